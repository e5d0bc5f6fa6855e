"""What cannot be stored or asked is refused, and everything else is let through."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.memories import checks, vectors
from recollect.core.recall.checks import check_cue, check_weighing
from recollect.core.text.checks import check_idempotency_key, check_scope
from recollect.errors import InvalidInputError
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue, Mode, StreamWeights

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200)


@given(storable.filter(str.strip))
def test_any_text_that_postgresql_can_store_is_accepted(text):
    checks.check_new_memories([NewMemory(text)])


@pytest.mark.parametrize(
    "memory",
    [
        NewMemory(""),
        NewMemory(" \n\t"),
        NewMemory("a\0b"),
        NewMemory("\udc00"),
        NewMemory("x" * 32_001),
        NewMemory("x", importance=0.9),
        NewMemory("x", importance=float("nan")),
        NewMemory("x", importance=float("inf")),
        NewMemory("x", speaker="two\nlines"),
        NewMemory("x", keywords=("a\x1fb",)),
        NewMemory("x", keywords=("k",) * 65),
        NewMemory("x", keywords=("k" * 501,)),
        NewMemory("x", occurred_at=datetime(2024, 1, 1)),  # noqa: DTZ001 - the point of the case
        NewMemory("x", occurred_at=datetime(1, 1, 1, tzinfo=UTC)),
        NewMemory("x", occurred_at=datetime(9999, 12, 31, tzinfo=UTC)),
        NewMemory("x", metadata={"a": "\0"}),
        NewMemory("x", metadata={"\ud800": 1}),
        NewMemory("x", metadata={"a": float("nan")}),
        NewMemory("x", metadata={"a": "x" * 16_384}),
        NewMemory("x", metadata={"a": [[[[[[[[["deep"]]]]]]]]]}),
        NewMemory("x", metadata={"a": object()}),
        NewMemory("x", metadata=[("a", 1)]),
    ],
)
def test_what_cannot_be_stored_is_refused(memory):
    with pytest.raises(InvalidInputError):
        checks.check_new_memory(memory)


@pytest.mark.parametrize("count", [0, 1_001])
def test_a_call_holds_one_to_a_thousand_memories(count):
    with pytest.raises(InvalidInputError, match="1 to 1000"):
        checks.check_new_memories([NewMemory("x")] * count)


@pytest.mark.parametrize(
    ("agent", "user"),
    [
        *(("", ""), (" a", ""), ("a ", ""), ("a  b", ""), ("a/b", ""), ("张" * 129, ""), ("a", "b\n"), ("a\0", "")),
        *(("e\u0301", ""), ("\u1100\u1161", ""), ("a\u200bb", ""), ("a\u202eb", ""), ("a\u3000b", ""), ("\u3164", "")),
        *(("a\ufe0f", ""), ("a\u00a0b", ""), ("a\ud800", ""), ("a", "\ue000"), ("a", "\ufffd"), ("a", "\t")),
    ],
)
def test_scopes_that_could_look_like_others_are_refused(agent, user):
    with pytest.raises(InvalidInputError, match=r"agent|user"):
        check_scope(agent, user)


def test_plain_scopes_are_accepted():
    check_scope("Ada.L-1_x:y@z", "")
    check_scope("a", "b" * 128)


@pytest.mark.parametrize(
    "name",
    ["阿信", "李雷", "Isabella Rodriguez", "José", "Ада", "עדה", "आदा", "가나", "さくら", "O'Hara", "张" * 128],
)
def test_names_of_any_script_are_accepted(name):
    check_scope(name, name)


@pytest.mark.parametrize("key", ["x" * 256, "tab\there", "é", "\0"])
def test_idempotency_keys_are_printable_ascii(key):
    with pytest.raises(InvalidInputError, match="Idempotency-Key"):
        check_idempotency_key(key)


@pytest.mark.parametrize("cue", [Cue("x", min_trust=101), Cue("x", min_trust=-1), Cue("x" * 8_001), Cue("x", limit=-1)])
def test_absurd_cues_are_refused(cue):
    with pytest.raises(InvalidInputError):
        check_cue(cue)


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3).filter(lambda row: np.linalg.norm(row) > 1e-5))
def test_embeddings_come_out_at_unit_length(row):
    unit = vectors.unit_vector(row, 3)
    assert unit.dtype == np.float32
    assert np.linalg.norm(unit) == pytest.approx(1, abs=1e-5)


@given(st.integers(0, 1_000))
def test_embeddings_of_unit_length_stay_bit_for_bit(seed):
    row = np.random.default_rng(seed).normal(size=1536)
    single = (row / np.linalg.norm(row)).astype(np.float32)
    assert np.array_equal(vectors.unit_vector(single.tolist(), 1536), single)


@pytest.mark.parametrize("row", [[], [1.0], ["x", "y"], [None, 1], [10**400, 1], [[1.0], [2.0]], [1j, 1], [0, 0]])
def test_embeddings_that_are_none_are_refused(row):
    with pytest.raises(InvalidInputError, match="embedding"):
        vectors.unit_vector(row, 2)


@pytest.mark.parametrize(
    "weighing",
    [
        StreamWeights(),
        StreamWeights(
            Mode.PAPER, recency=0.0, similarity=1_000.0, importance=1.0, gains=(0.0, 1_000.0, 2.0), decay=1.0
        ),
        StreamWeights(decay=5e-324),
    ],
)
def test_weights_within_bounds_are_accepted(weighing):
    check_weighing(weighing)


@pytest.mark.parametrize("value", [-0.1, 1_000.1, float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("field", ["recency", "similarity", "importance", "gains"])
def test_weights_out_of_bounds_are_refused_by_name(field, value):
    weighing = StreamWeights(**{field: (1.0, value, 1.0) if field == "gains" else value})
    with pytest.raises(InvalidInputError, match=f"^{field} must be between 0 and 1000"):
        check_weighing(weighing)


@pytest.mark.parametrize("gains", [(), (1.0, 1.0), (1.0,) * 4])
def test_gains_are_three(gains):
    with pytest.raises(InvalidInputError, match="three"):
        check_weighing(StreamWeights(gains=gains))


@pytest.mark.parametrize("decay", [0.0, -0.5, 1.0000001, float("nan"), float("inf")])
def test_a_decay_lets_something_fade_and_nothing_grow(decay):
    with pytest.raises(InvalidInputError, match="decay must be above 0 and at most 1"):
        check_weighing(StreamWeights(decay=decay))

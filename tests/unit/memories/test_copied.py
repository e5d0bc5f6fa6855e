"""Terms that are written for COPY all at once are those that are written for each memory alone."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text.terms import SLOTS, term_position, within_scope
from recollect.store.memories.copy_protocol import write_terms
from recollect.store.memories.memories import hash_terms

fingerprints = st.integers(0, 2**64 - 1) | st.integers(0, 5).map(lambda number: number * SLOTS + 3)
weights = st.dictionaries(fingerprints, st.floats(0, 8, width=32), max_size=8)


def read_bigints(data):
    """Read an int8[]."""
    dimensions = struct.unpack(">i", data[:4])[0]
    return [struct.unpack(">q", data[at + 4 : at + 12])[0] for at in range(20, len(data), 12)] if dimensions else []


def read_sparsevec(data):
    """Read a sparsevec as values by slot, counted from 1."""
    _, count, _ = struct.unpack(">iii", data[:12])
    numbers = struct.unpack(f">{count}i{count}f", data[12:])
    assert list(numbers[:count]) == sorted(set(numbers[:count]))
    return dict(zip((number + 1 for number in numbers[:count]), numbers[count:], strict=True))


@given(st.lists(weights, max_size=5), st.integers(1, 2**62))
def test_every_memory_has_its_own_terms(many, scope_id):
    written = write_terms(scope_id, many)
    assert [(read_bigints(terms), read_sparsevec(vector)) for terms, vector in written] == [
        hash_terms(scope_id, each) for each in many
    ]


def test_of_two_terms_in_one_slot_the_last_counts():
    one, other = 3, SLOTS + 3
    assert term_position(one) == term_position(other)
    assert within_scope(1, one) != within_scope(1, other)
    [(terms, vector)] = write_terms(1, [{one: 1.0, other: 2.0}])
    assert len(read_bigints(terms)) == 2
    assert read_sparsevec(vector) == {term_position(one): 2.0}

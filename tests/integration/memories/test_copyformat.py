"""Whatever is encoded for COPY comes back from PostgreSQL as it was."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb

from recollect.models.memories import NewMemory
from recollect.store.memories import copy_protocol
from support.measuring.sizes import Sizes

EXAMPLES = Sizes("examples", ci=30, long=400)
TYPES = "bigint smallint real text[] bytea timestamptz jsonb bytea bytea text"
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text
json = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=5)
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
weights = st.dictionaries(st.integers(1, 999_999_999), st.floats(0.015625, 8, width=16), min_size=1, max_size=20)
row = st.fixed_dictionaries(
    {
        "number": st.integers(-(2**63), 2**63 - 1),
        "small": st.integers(-(2**15), 2**15 - 1),
        "real": st.floats(allow_nan=False, allow_infinity=False, width=32),
        "words": st.lists(text, max_size=5),
        "numbers": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
        "moment": moments,
        "json": st.dictionaries(text, json, max_size=3),
        "weights": weights,
        "vector": st.lists(st.floats(-1, 1, width=16), min_size=3, max_size=3),
        "text": text | text.map(lambda short: short * 100),
    }
)


@pytest.fixture
def connection(owner):
    register_vector(owner)
    owner.execute(
        """create table copied (position serial, number int8, small int2, "real" float4, words text[], numbers int8[],
           moment timestamptz, json jsonb, weights sparsevec, vector halfvec, text text)"""
    )
    return owner


def flatten(lists, kind):
    """Join lists into one array, and tell how long each was."""
    return np.array([each for some in lists for each in some], kind), np.array([len(some) for some in lists], np.int64)


@pytest.mark.promise("What is loaded in bulk is what was given, to the last bit", EXAMPLES)
@settings(max_examples=EXAMPLES.now)
@given(st.lists(row, max_size=20))
def test_rows_survive_the_journey(connection, rows):
    vectors = copy_protocol.write_vectors(
        np.array([each["vector"] for each in rows], np.float32).reshape(-1, 3), "half"
    )
    numbers = copy_protocol.write_bigints(*flatten([each["numbers"] for each in rows], np.int64))
    sorted_weights = [sorted(each["weights"].items()) for each in rows]
    slots, counts = flatten([[slot - 1 for slot, _ in each] for each in sorted_weights], np.int64)
    values, _ = flatten([[weight for _, weight in each] for each in sorted_weights], np.float64)
    sparse_vectors = copy_protocol.write_sparsevecs(slots, values, counts)
    connection.execute("truncate copied")
    columns = 'number, small, "real", words, numbers, moment, json, weights, vector, text'
    with connection.cursor() as cursor, cursor.copy(f"copy copied ({columns}) from stdin (format binary)") as copy:
        copy.set_types(TYPES.split())
        for each, many, sparse, vector in zip(rows, numbers, sparse_vectors, vectors, strict=True):
            copy.write_row(
                (
                    each["number"], each["small"], each["real"], each["words"], many, each["moment"],
                    Jsonb(each["json"]), sparse, vector, each["text"],
                )
            )  # fmt: skip
    found = connection.execute(f"select {columns} from copied order by position", binary=True).fetchall()
    for each, got in zip(rows, found, strict=True):
        number, small, real, words, numbers, moment, document, sparse, vector, content = got
        assert (number, small, real, words, numbers) == (
            each["number"], each["small"], each["real"], each["words"], each["numbers"]
        )  # fmt: skip
        assert (moment, document, content) == (each["moment"], each["json"], each["text"])
        slots = (index + 1 for index in sparse.indices())
        assert dict(zip(slots, sparse.values(), strict=True)) == each["weights"]
        assert vector.to_list() == each["vector"]


def test_broken_bytes_are_refused(connection):
    query = "copy copied (number) from stdin (format binary)"
    with pytest.raises(psycopg.Error), connection.cursor() as cursor, cursor.copy(query) as copy:
        copy.set_types(["bytea"])
        copy.write_row((b"123",))


@pytest.mark.parametrize("way", ["remember", "load"])
async def test_keywords_survive_whatever_they_hold(mind, way):
    keywords = ('say "hi"', "back\\slash", "a,b", "{x}", "null", "茶", "two words", "'single'")
    await getattr(mind, way)([NewMemory("filed", keywords=keywords), NewMemory("not filed")])
    filed, plain = (await mind.list()).memories
    assert (filed.keywords, plain.keywords) == (keywords, ())

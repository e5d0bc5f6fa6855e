"""What mirrors hold is compared by checksums that depend on what is said alone, not on who says it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.mirrors.questions import MirrorLag, interleave
from recollect.core.mirrors.rows import LogRow, MirroredRow, MirroredTable, RowKey, checksum, coalesce, compare

A, B, C = (UUID(int=number) for number in (1, 2, 3))
NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)
KEYS = st.builds(RowKey, st.sampled_from(MirroredTable), st.sampled_from([A, B, C]))
SUMS = st.dictionaries(KEYS, st.sampled_from(["x", "y"]))
OPERATIONS = (
    "stored",
    "changed",
    "revised",
    "forgotten",
    "state",
    "embedded",
    "pinned",
    "fact",
    "entity",
    "topic",
    "item",
)


def row(**values):
    return MirroredRow(MirroredTable.MEMORIES, A, values)


def test_a_checksum_is_the_same_for_the_same_words():
    vector = np.array([0.1, 0.2], dtype=np.float32)
    ours = row(text="海港", at=NOON, end=B, vector=vector, names=("a", "b"), left=None)
    theirs = row(
        names=["a", "b"],
        vector=np.array(vector.tolist(), dtype=np.float64),
        end=str(B),
        at=NOON.astimezone(timezone(timedelta(hours=8))),
        text="海港",
    )
    assert checksum(ours) == checksum(theirs)
    for other in (
        {"text": "海"},
        {"at": NOON + timedelta(microseconds=1)},
        {"vector": vector * 2},
        {"names": ["b", "a"]},
    ):
        assert checksum(row(**{**ours.values, **other})) != checksum(ours)


@given(SUMS, SUMS)
def test_a_difference_is_whole(record, mirror):
    found = compare(record, mirror)
    mended = {**{key: each for key, each in mirror.items() if key not in found.extra}}
    mended |= {key: record[key] for key in (*found.missing, *found.changed)}
    assert mended == record and found.size == len(found.missing) + len(found.changed) + len(found.extra)


@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.lists(st.sampled_from([A, B, C]), max_size=3))))
def test_every_id_is_touched_once(logged):
    rows = [LogRow(number, operation, ids) for number, (operation, ids) in enumerate(logged, 1)]
    touched = coalesce(rows, MirroredTable)
    for ids in touched.ids.values():
        assert len(set(ids)) == len(ids)
    named = {
        each for operation, ids in logged if operation in {"stored", "forgotten", "state", "changed"} for each in ids
    }
    assert named <= set(touched.ids[MirroredTable.MEMORIES])
    assert set(touched.ids[MirroredTable.ENTITIES]) == {
        each for name, ids in logged if name == "entity" for each in ids
    }


def test_a_conversation_may_change_every_name():
    told = [LogRow(1, "conversation", [])]
    assert coalesce(told, [MirroredTable.ENTITIES]).every_entity
    assert not coalesce(told, [MirroredTable.MEMORIES]).every_entity


def test_a_standing_says_why_a_mirror_is_not_asked():
    def explain(position, number, behind, same=True):
        return MirrorLag(position, number, same, behind).explain_unusable(60)

    assert explain(5, 5, None) == "" and explain(4, 5, 59.0) == "" and explain(None, 0, None) == ""
    assert "backup" in explain(5, 5, None, same=False)
    assert "does not hold this scope" in explain(None, 3, None)
    assert "log that the mirror would follow is gone" in explain(3, 5, None)
    assert explain(3, 5, 61.2) == "the mirror is 61 s behind"
    assert MirrorLag(3, 5, True, 1.23).describe_lag() == "mirror, 1.2 s behind"


def test_lists_take_turns():
    assert interleave([[A, B], [B, C]], 9) == [A, B, C]
    assert interleave([[A, B], [C]], 2) == [A, C]
    assert interleave([], 2) == []

"""What one batch of operations on items may ask for, exactly up to its bounds and no further."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.core.items.rules import (
    FieldCondition,
    before_gap,
    check_operations,
    divide_limit,
    is_write,
    match_under,
    prepare_where,
)
from recollect.errors import InvalidInputError
from recollect.models.items import DropItem, FindItems, GetItem, ListPaths, PutItem

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PATH = ("a",)


def put(**more) -> PutItem:
    return PutItem(**{"path": PATH, "key": "k", "value": {}} | more)


def deep(levels: int) -> dict[str, object]:
    return {"in": deep(levels - 1)} if levels else {}


ACCEPTED = [
    [put()] * 1_000,
    [put(path=("s",) * 16)],
    [put(path=("s" * 200,), key="k" * 500)],
    [put(path=("字" * 200,) * 2, key="字" * 266)],
    [put(expected=0), DropItem(PATH, "k", 0)],
    [put(text="x" * 32_000, importance=1.0, occurred_at=NOW, embedding=[1.0])],
    [put(importance=10.0, embedding=[1.0] * 4_096)],
    [put(text=" ", memory=False)],
    [put(value={"s": "x" * 999_991})],
    [put(value={"s": "x" * 999_991})] * 2,
    [put(text="x" * 31_250)] * 8,
    [put(value=deep(64))],
    [FindItems(), FindItems(text="x" * 8_000), FindItems(text=" ", embedding=[1.0])],
    [FindItems(limit=1, offset=0), FindItems(limit=1_000, offset=1_000_000)],
    [FindItems(where={str(number): number for number in range(64)})],
    [FindItems(where={"f" * 500: {"$ne": None}})],
    [ListPaths(), ListPaths(depth=1, limit=1), ListPaths(depth=16, limit=1_000, offset=1_000_000)],
    [ListPaths(under=("s",) * 16, suffix=("s" * 200,))],
    [GetItem(PATH, "k"), DropItem(PATH, "k")],
]


@pytest.mark.parametrize("operations", ACCEPTED)
def test_what_is_within_the_bounds_is_accepted(operations):
    check_operations(operations)


REFUSED = [
    ([], "operations"),
    ([put()] * 1_001, "operations"),
    ([put(path=())], "path"),
    ([put(path="a")], "path"),
    ([put(path=("s",) * 17)], "path"),
    ([put(path=("s" * 201,))], "path"),
    ([put(path=("",))], "path"),
    ([put(path=("a\x1f",))], "path"),
    ([put(path=("a\0",))], "path"),
    ([GetItem(PATH, "")], "key"),
    ([DropItem(PATH, "k" * 501)], "key"),
    ([put(path=("字" * 200,) * 2, key="字" * 266 + "k")], "path and key"),
    ([put(expected=-1)], "expected"),
    ([DropItem(PATH, "k", -1)], "expected"),
    ([put(text="x" * 32_001)], "text"),
    ([put(text=" ")], "text"),
    ([put(importance=0.9)], "importance"),
    ([put(occurred_at=datetime(2026, 3, 1))], "occurred_at"),  # noqa: DTZ001 - that is what is wrong with it
    ([put(embedding=[])], "embedding"),
    ([put(embedding=[1.0] * 4_097)], "embedding"),
    ([put(value=[])], "value"),
    ([put(value={"s": "x" * 999_992})], "value"),
    ([put(value={"s": "x" * size}) for size in (999_991, 999_982, 1)], "values"),
    ([put(text="x" * 31_250)] * 8 + [put(text="x")], "texts"),
    ([put(value=deep(65))], "value"),
    ([FindItems(under=("",))], "under"),
    ([FindItems(text="x" * 8_001)], "text"),
    ([FindItems(text="x", embedding=[1.0])], "use either text or embedding"),
    ([FindItems(embedding=[])], "embedding"),
    ([FindItems(limit=0)], "limit"),
    ([FindItems(limit=1_001)], "limit"),
    ([FindItems(offset=-1)], "offset"),
    ([FindItems(offset=1_000_001)], "offset"),
    ([FindItems(where={str(number): number for number in range(65)})], "where"),
    ([FindItems(where={"f" * 501: 1})], "where"),
    ([FindItems(where={"f": {"$in": [1]}})], "where"),
    ([FindItems(where={"f": float("nan")})], "value"),
    ([ListPaths(under=("",))], "under"),
    ([ListPaths(suffix=("",))], "suffix"),
    ([ListPaths(depth=0)], "depth"),
    ([ListPaths(depth=17)], "depth"),
    ([ListPaths(limit=0)], "limit"),
    ([ListPaths(offset=-1)], "offset"),
    ([put(), GetItem(PATH, "")], "key"),
]


@pytest.mark.parametrize(("operations", "field"), REFUSED)
def test_what_is_beyond_a_bound_is_refused_by_its_name(operations, field):
    with pytest.raises(InvalidInputError, match=rf"^(the |find by )?{field}\b"):
        check_operations(operations)


@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
def test_only_numbers_and_texts_have_an_order(operator):
    for operand in (1, 1.5, "x"):
        assert prepare_where({"f": {operator: operand}}) == (FieldCondition("f", operator, operand),)
    for operand in (None, [1], {"x": 1}):
        with pytest.raises(InvalidInputError, match="number or a string"):
            prepare_where({"f": {operator: operand}})


@pytest.mark.parametrize("operator", ["$eq", "$ne"])
def test_any_value_is_equal_to_another_or_not(operator):
    for operand in (None, [1], {"x": 1}, True, "x"):
        assert prepare_where({"f": {operator: operand}}) == (FieldCondition("f", operator, operand),)


def test_the_way_to_a_gap_is_looked_up_and_the_rest_is_a_pattern():
    assert before_gap(("a", "b")) == ("a", "b")
    assert before_gap(("*", "b")) == ()
    assert match_under(("a", "*", "b_9 z")) == "^a\x1f[^\x1f]+\x1fb_9\\ z\x1f"


@pytest.mark.parametrize(
    ("operations", "room"),
    [
        ([put()], 128_000_000),
        ([GetItem(PATH, "k")] * 9, 128_000_000),
        ([FindItems()], 128_000_000),
        ([FindItems(), FindItems(), GetItem(PATH, "k"), GetItem(PATH, "l"), ListPaths()], 42_666_666),
    ],
)
def test_the_questions_of_a_batch_share_the_room_of_its_answer_and_all_gets_are_one(operations, room):
    assert divide_limit(operations) == room


def test_puts_and_drops_are_writes():
    operations = [put(), DropItem(PATH, "k"), GetItem(PATH, "k"), FindItems(), ListPaths()]
    assert [is_write(each) for each in operations] == [True, True, False, False, False]

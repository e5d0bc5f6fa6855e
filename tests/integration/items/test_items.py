"""Items on a real database: names, revisions, filters, and the memories that their texts are."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from conftest import new_key
from recollect.errors import ConflictError, ForbiddenError, InvalidInputError
from recollect.models.items import DropItem, FindItems, GetItem, ListPaths, PutItem
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.wiring import connected
from support.service.known_numbers import VECTORS

LI, TEA = ("users", "li"), "tea"


def keys(found):
    return [each.item.key for each in found]


async def test_a_value_comes_back_as_it_was_put(mind):
    value = {"kind": "green", "cups": 3, "hot": True, "notes": None, "pair": [1, {"a": "张伟"}], "half": 0.5}
    put = await mind.items.put(LI, TEA, value)
    assert (put.path, put.key, put.value, put.text, put.memory_id, put.revision) == (LI, TEA, value, "", None, 1)
    assert put.created_at == put.updated_at
    assert await mind.items.get(LI, TEA) == put
    assert await mind.items.get(LI, "coffee") is None
    assert await mind.items.get(("users",), TEA) is None


async def test_values_that_are_far_larger_as_parameters_are_written(mind):
    # Escaped as JSON and again as an array, they are 7 MB, of which a socket accepts a part at a time.
    value = {"text": "\U0001f600" * 249_990}
    await mind.items.batch([PutItem(LI, key, value) for key in (TEA, "coffee")])
    assert [each.item.value for each in await mind.items.find(LI)] == [value, value]


async def test_a_put_replaces_and_counts_and_a_drop_begins_again(mind):
    first = await mind.items.put(LI, TEA, {"kind": "green"})
    second = await mind.items.put(LI, TEA, {"kind": "black"})
    assert (second.revision, second.created_at) == (2, first.created_at)
    assert second.updated_at > first.updated_at
    assert await mind.items.get(LI, TEA) == second
    assert await mind.items.drop(LI, TEA)
    assert not await mind.items.drop(LI, TEA)
    assert await mind.items.get(LI, TEA) is None
    assert (await mind.items.put(LI, TEA, {})).revision == 1


async def test_a_batch_reads_what_was_before_and_then_writes_in_order(mind):
    await mind.items.put(LI, TEA, {"kind": "green"})
    operations = [
        PutItem(LI, TEA, {"kind": "black"}),
        GetItem(LI, TEA),
        DropItem(LI, TEA),
        FindItems(("users",)),
        PutItem(LI, TEA, {"kind": "white"}, text="white tea is the best"),
        ListPaths(),
        PutItem(("users", "wang"), TEA, {}),
        DropItem(LI, "coffee"),
    ]
    black, green, dropped, found, white, paths, other, nothing = await mind.items.batch(operations)
    assert green.value == {"kind": "green"}
    assert [each.item for each in found] == [green]
    assert paths == (LI,)
    assert (black.revision, black.memory_id, dropped, nothing) == (2, None, True, False)
    assert (white.revision, other.revision) == (1, 1)
    assert white.memory_id is not None
    assert white.created_at > green.created_at
    assert await mind.items.get(LI, TEA) == white
    assert await mind.items.paths() == (LI, ("users", "wang"))


# Conditions on revisions.


async def test_expected_revisions_are_held_or_nothing_is_written(mind):
    await mind.items.put(LI, TEA, {"n": 1}, expected=0)
    for expected in (0, 2):
        with pytest.raises(ConflictError, match=r"operations\.1: the item has revision 1"):
            await mind.items.batch([PutItem(LI, "other", {}), PutItem(LI, TEA, {"n": 2}, expected=expected)])
    with pytest.raises(ConflictError, match="there is no such item"):
        await mind.items.drop(LI, "coffee", expected=1)
    assert await mind.items.get(LI, "other") is None
    assert (await mind.items.put(LI, TEA, {"n": 2}, expected=1)).revision == 2
    assert await mind.items.drop(LI, TEA, expected=2)
    assert not await mind.items.drop(LI, TEA, expected=0)


async def test_of_two_puts_at_once_with_the_same_expectation_one_wins(recollect):
    minds = [await recollect.mind("ada", "li") for _ in range(8)]
    await minds[0].items.put(LI, TEA, {"n": 0})
    tries = [each.items.put(LI, TEA, {"n": n}, expected=1, text=f"try {n}") for n, each in enumerate(minds, start=1)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    won = [each for each in outcomes if not isinstance(each, BaseException)]
    lost = [each for each in outcomes if isinstance(each, ConflictError)]
    assert (len(won), len(lost)) == (1, 7)
    assert await minds[0].items.get(LI, TEA) == won[0]
    # What lost left no memory behind.
    assert [memory.id for memory in (await minds[0].list()).memories] == [won[0].memory_id]


# Texts are memories.


async def test_a_text_is_recalled_and_leads_to_its_item(mind):
    when = datetime(2026, 3, 1, 8, tzinfo=UTC)
    put = await mind.items.put(LI, TEA, {"kind": "oolong"}, text="Li drinks oolong tea", importance=8, occurred_at=when)
    [hit] = (await mind.recall("who drinks oolong")).hits
    assert (hit.memory.id, hit.memory.kind, hit.memory.importance) == (put.memory_id, "event", 8)
    assert (hit.memory.occurred_at, hit.memory.metadata["item"]) == (when, {"path": [*LI], "key": TEA})


async def test_replacing_or_dropping_an_item_forgets_its_memory_with_all_derived(mind, owner):
    first = await mind.items.put(LI, TEA, {}, text="Li drinks green tea")
    [thought] = await mind.remember(NewMemory("Li is calm", evidence=(first.memory_id,)))
    second = await mind.items.put(LI, TEA, {}, text="Li drinks black tea")
    assert [memory.id for memory in (await mind.list()).memories] == [second.memory_id]
    assert thought.id not in {memory.id for memory in (await mind.list()).memories}
    await mind.items.put(LI, TEA, {"now": "without a text"})
    assert (await mind.list()).memories == ()
    await mind.items.put(LI, TEA, {}, text="Li drinks white tea")
    await mind.items.drop(LI, TEA)
    for table in ("memories", "memory_terms", VECTORS, "evidence", "items"):
        assert owner.execute(f"select count(*) from {table}").fetchone() == (0,)
    assert (await mind.overview()).memories == 0


async def test_forgetting_the_memory_drops_the_item(mind):
    put = await mind.items.put(LI, TEA, {}, text="Li drinks green tea")
    other = await mind.items.put(LI, "coffee", {}, text="Li drinks no coffee")
    assert await mind.forget([put.memory_id]) == [put.memory_id]
    assert await mind.items.get(LI, TEA) is None
    assert [each.item for each in await mind.items.find()] == [other]
    assert (await mind.items.put(LI, TEA, {}, expected=0)).revision == 1


async def test_a_text_can_be_kept_out_of_the_stream(mind):
    put = await mind.items.put(LI, TEA, {}, text="only kept", memory=False)
    assert (put.text, put.memory_id) == ("only kept", None)
    assert (await mind.recall("only kept")).hits == ()
    assert await mind.items.get(LI, TEA) == put
    assert await mind.items.find(text="only kept") == ()


# Finding.


async def test_the_newest_come_first_and_a_path_is_no_prefix_of_a_word(mind):
    for path, key in ((("a",), "1"), (("a", "b"), "2"), (("ab",), "3"), (("a!",), "4"), (("a", "b", "c"), "5")):
        await mind.items.put(path, key, {})
    assert keys(await mind.items.find()) == ["5", "4", "3", "2", "1"]
    assert keys(await mind.items.find(("a",))) == ["5", "2", "1"]
    assert keys(await mind.items.find(("a", "b"))) == ["5", "2"]
    assert keys(await mind.items.find(("a",), limit=1, offset=1)) == ["2"]
    assert keys(await mind.items.find(("*",))) == []
    await mind.items.put(("a",), "1", {"again": True})
    assert keys(await mind.items.find(("a",))) == ["1", "5", "2"]


async def test_items_of_one_batch_are_found_in_the_order_of_their_names(mind):
    await mind.items.batch([PutItem(("p",), key, {}) for key in ("b", "a", "C")] + [PutItem(("o",), "z", {})])
    assert keys(await mind.items.find()) == ["z", "C", "a", "b"]


FILTERED = {
    "one": {"n": 1, "s": "apple", "flag": True, "list": [1, 2], "part": {"x": 1}, "day": "2026-01-05"},
    "two": {"n": 2.5, "s": "banana", "flag": False, "none": None, "day": "2026-02-01"},
    "ten": {"n": 10, "s": "10", "list": [2, 1], "part": {"x": 1, "y": 2}},
    "bare": {},
}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, "bare one ten two"),
        ({"n": 1}, "one"),
        ({"n": 1.0}, "one"),
        ({"n": 2.5, "s": "banana"}, "two"),
        ({"s": 10}, ""),
        ({"flag": True}, "one"),
        ({"flag": 1}, ""),
        ({"none": None}, "two"),
        ({"list": [1, 2]}, "one"),
        ({"part": {"$eq": {"x": 1}}}, "one"),
        ({"n": {"$ne": 1}}, "ten two"),
        ({"none": {"$ne": 1}}, "two"),
        ({"n": {"$gt": 2}}, "ten two"),
        ({"n": {"$gt": 2.5}}, "ten"),
        ({"n": {"$gte": 2.5, "$lt": 10}}, "two"),
        ({"n": {"$lte": 1}}, "one"),
        ({"day": {"$gt": "2026-01-05"}}, "two"),
        ({"day": {"$gte": "2026-01-05"}}, "one two"),
        ({"s": {"$lt": "b"}}, "one ten"),
        ({"none": {"$lte": "z"}}, ""),
        ({"n": {}}, "bare one ten two"),
        ({"missing": 1}, ""),
        ({"missing": {"$ne": 1}}, ""),
    ],
)
async def test_fields_are_compared_as_asked(mind, where, expected):
    await mind.items.batch([PutItem(("f",), key, value) for key, value in FILTERED.items()])
    assert " ".join(sorted(keys(await mind.items.find(("f",), where=where)))) == expected


async def test_texts_are_found_by_meaning_under_a_path(mind):
    for path, key, text in (
        (("facts", "li"), "tea", "Li drinks green tea in the morning"),
        (("facts", "li"), "dog", "Li walks the dog every evening"),
        (("facts", "wang"), "tea", "Wang drinks green tea in the morning"),
    ):
        await mind.items.put(path, key, {"about": key}, text=text)
    await mind.items.put(("facts", "li"), "mute", {})
    await mind.remember("Li drinks green tea in the morning and is no item")
    found = await mind.items.find(("facts", "li"), text="Li drinks green tea in the morning")
    assert keys(found) == ["tea", "dog"]
    assert found[0].score == pytest.approx(1, abs=1e-3)
    assert found[0].score > found[1].score
    assert keys(await mind.items.find(("facts", "li"), text="green tea", where={"about": "dog"})) == ["dog"]
    assert len(await mind.items.find(text="green tea")) == 3
    both = await mind.items.batch([FindItems(text="green tea"), PutItem(("facts",), "new", {}, text="green tea")])
    assert len(both[0]) == 3


async def test_texts_are_found_by_words_where_there_is_no_embedder(addresses):
    async with connected(Settings(embedder="none"), addresses, None) as bare:
        mind = await bare.mind("ada", "li")
        assert await mind.items.find(text="tea") == ()
        await mind.items.put(LI, "tea", {}, text="Li drinks green tea")
        await mind.items.put(LI, "dog", {}, text="Li walks the dog")
        await mind.remember("tea tea tea, and no item")
        found = await mind.items.find(("users",), text="what tea?")
        assert keys(found) == ["tea"]
        assert found[0].score is None
        assert keys(await mind.items.find(("other",), text="tea")) == []


async def test_own_vectors_are_compared_with_as_many_dimensions_only(mind):
    await mind.items.put(LI, "east", {}, embedding=[1, 0])
    await mind.items.put(LI, "north", {"n": 1}, embedding=[0.0, 3.0])
    await mind.items.put(LI, "deep", {}, embedding=[0, 1, 0])
    await mind.items.put(LI, "none", {})
    found = await mind.items.find(LI, embedding=[0, 2])
    assert [(each.item.key, round(each.score, 6)) for each in found] == [("north", 1.0), ("east", 0.0)]
    assert keys(await mind.items.find(LI, embedding=[1, 1, 1])) == ["deep"]
    assert keys(await mind.items.find(LI, embedding=[1, 1], where={"n": 1})) == ["north"]
    await mind.items.put(LI, "north", {})
    assert keys(await mind.items.find(LI, embedding=[0, 2])) == ["east"]


async def test_the_own_vector_comes_along_where_a_get_wants_it(mind):
    await mind.items.put(LI, TEA, {}, embedding=[3, 4])
    await mind.items.put(LI, "mute", {})
    plain, whole, mute = await mind.items.batch(
        [GetItem(LI, TEA), GetItem(LI, TEA, vector=True), GetItem(LI, "mute", vector=True)]
    )
    assert (plain.embedding, mute.embedding) == ((), ())
    assert whole.embedding == pytest.approx((0.6, 0.8))


async def test_paths_are_listed_cut_and_matched(mind):
    held = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "x", "c"), ("a.b", "c"), ("b", "(c)", "*"), ("张", "c")]
    await mind.items.batch([PutItem(path, "k", {}) for path in held] + [PutItem(("a", "b"), "more", {})])
    listed = mind.items.paths
    assert await listed() == tuple(sorted(held))
    assert await listed(depth=1) == (("a",), ("a.b",), ("b",), ("张",))
    assert await listed(("a",), depth=2) == (("a",), ("a", "b"), ("a", "x"))
    assert await listed(("a", "*")) == (("a", "b"), ("a", "b", "c"), ("a", "x", "c"))
    assert await listed(("a", "*", "c")) == (("a", "b", "c"), ("a", "x", "c"))
    assert await listed(("*", "c")) == (("a.b", "c"), ("张", "c"))
    assert await listed((), ("c",)) == (("a", "b", "c"), ("a", "x", "c"), ("a.b", "c"), ("张", "c"))
    assert await listed((), ("*", "c"), depth=1) == (("a",), ("a.b",), ("张",))
    assert await listed((), ("(c)", "*")) == (("b", "(c)", "*"),)
    assert await listed(("a",), ("a",)) == (("a",),)
    assert await listed(limit=2, offset=1) == (("a", "b"), ("a", "b", "c"))


# What is refused, and who may.


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        (PutItem((), "k", {}), "at least one segment"),
        (PutItem(("a",), "", {}), "key must not be empty"),
        (PutItem(("a", ""), "k", {}), "not empty"),
        (PutItem(("a\x1fb",), "k", {}), "U\\+001F"),
        (PutItem("ab", "k", {}), "must be a list of strings"),
        (PutItem(("a",) * 17, "k", {}), "16 segments"),
        (PutItem(("a" * 201,), "k", {}), "200 characters"),
        (PutItem(("张" * 200,) * 4, "k", {}), "2000 bytes"),
        (PutItem(("a",), "k", {"s": "a\x00"}), "U\\+0000"),
        (PutItem(("a",), "k", {"a\x00": 1}), "U\\+0000"),
        (PutItem(("a",), "k", {"s": "\ud800"}), "surrogates"),
        (PutItem(("a",), "k", {"s": float("nan")}), "NaN"),
        (PutItem(("a",), "k", {1: 2}), "keys must be strings"),
        (PutItem(("a",), "k", {"s": "x" * 1_000_001}), "1000000 bytes"),
        (PutItem(("a",), "k", []), "JSON object"),
        (PutItem(("a",), "k", {}, text="  "), "blank"),
        (PutItem(("a",), "k", {}, text="x" * 32_001), "32000"),
        (PutItem(("a",), "k", {}, importance=11), "importance"),
        (PutItem(("a",), "k", {}, embedding=[0, 0]), "embedding"),
        (PutItem(("a",), "k", {}, embedding=[1] * 4097), "4096"),
        (PutItem(("a",), "k", {}, expected=-1), "expected"),
        (FindItems(text="a", embedding=[1]), "not both"),
        (FindItems(limit=0), "limit"),
        (FindItems(offset=-1), "offset"),
        (FindItems(where={"a": {"$in": [1]}}), "unknown operator"),
        (FindItems(where={"a": {"b": 1}}), "unknown operator"),
        (FindItems(where={"a": {"$gt": None}}), "number or a string"),
        (ListPaths(depth=0), "depth"),
    ],
)
async def test_what_cannot_be_stored_or_asked_is_refused(mind, operation, what):
    with pytest.raises(InvalidInputError, match=what):
        await mind.items.batch([operation])


async def test_a_batch_holds_one_to_a_thousand_operations(mind):
    for count in (0, 1_001):
        with pytest.raises(InvalidInputError, match="1 to 1000"):
            await mind.items.batch([GetItem(("a",), "k")] * count)
    results = await mind.items.batch([PutItem(("a",), str(n), {"n": n}) for n in range(1_000)])
    assert [item.value["n"] for item in results] == [*range(1_000)]


async def test_rights_are_those_that_the_operations_need(recollect):
    writer = await recollect.authorize((await new_key(recollect, rights=(Right.WRITE,)))[1], "http", "ada", "li")
    reader = await recollect.authorize((await new_key(recollect, rights=(Right.READ,)))[1], "http", "ada", "li")
    await writer.items.put(LI, TEA, {})
    assert (await reader.items.get(LI, TEA)).revision == 1
    for allowed, operations in (
        (writer, [GetItem(LI, TEA)]),
        (writer, [PutItem(LI, TEA, {}), GetItem(LI, TEA)]),
        (reader, [DropItem(LI, TEA)]),
    ):
        with pytest.raises(ForbiddenError):
            await allowed.items.batch(operations)


async def test_a_repeated_key_writes_once_and_answers_as_the_first_time(mind):
    operations = [
        PutItem(LI, TEA, {"n": 1}, text="Li drinks tea"),
        PutItem(LI, "plain", {}),
        DropItem(LI, "gone"),
        GetItem(LI, TEA),
    ]
    first = await mind.items.batch(operations, idempotency_key="k-1")
    again = await mind.items.batch(operations, idempotency_key="k-1")
    assert again[:3] == first[:3]
    assert (first[3], again[3]) == (None, first[0])
    assert len((await mind.list()).memories) == 1
    with pytest.raises(ConflictError, match="a different request"):
        await mind.items.batch([PutItem(LI, TEA, {"n": 2})], idempotency_key="k-1")
    await mind.remember("a memory", idempotency_key="k-2")
    with pytest.raises(ConflictError, match="a different request"):
        await mind.items.batch([PutItem(LI, TEA, {"n": 2})], idempotency_key="k-2")


async def test_items_are_of_one_scope_alone(recollect, mind):
    await mind.items.put(LI, TEA, {}, text="Li drinks tea", embedding=[1, 0])
    others = [("ada", ""), ("ada", "Li"), ("bob", "li")]
    for other in [await recollect.mind(*each) for each in others] + [await recollect.mind("ada", "li", tenant="x")]:
        found = await other.items.batch(
            [GetItem(LI, TEA), FindItems(), FindItems(text="tea"), FindItems(embedding=[1, 0]), ListPaths()]
        )
        assert found == [None, (), (), (), ()]
        assert not await other.items.drop(LI, TEA)
        assert (await other.items.put(LI, TEA, {}, expected=0)).revision == 1


async def test_what_has_faded_stays_an_item(mind, owner):
    put = await mind.items.put(LI, TEA, {}, text="Li drinks tea")
    owner.execute("select withhold_memories(scope_id, array[id], 'faded') from memories")
    assert await mind.items.get(LI, TEA) == put
    assert await mind.items.find(text="tea") == ()
    await mind.items.drop(LI, TEA)
    assert owner.execute("select count(*) from memories").fetchone() == (0,)
    assert (await mind.recall(Cue("tea"))).hits == ()


async def test_an_answer_has_an_end(mind):
    """A short question must not make the server hold gigabytes: what is found has to fit into an answer."""
    value = {"blob": "x" * 900_000}
    for number in range(3):
        await mind.items.put(("large",), str(number), value)
    assert [len(found.item.value["blob"]) for found in await mind.items.find(("large",), limit=1_000)] == [900_000] * 3
    many = [FindItems(("large",))] * 60
    with pytest.raises(InvalidInputError, match="Use a lower limit"):
        await mind.items.batch(many)
    with pytest.raises(InvalidInputError, match="Use a lower limit"):
        await mind.items.batch([GetItem(("large",), "1"), *[FindItems()] * 200])
    with pytest.raises(InvalidInputError, match="Use a lower limit"):
        await mind.items.batch([*many, PutItem(("small",), "k", {})])
    assert await mind.items.get(("small",), "k") is None

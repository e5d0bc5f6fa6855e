"""Memories are listed oldest or newest first, by words, and each says whether it takes part in recall."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.core.text.terms import analyse, hash_term
from recollect.errors import InvalidInputError
from recollect.models.filters import NO_FILTER, Filter
from recollect.models.knowledge import NewFact
from recollect.models.memories import FadingRules, Kind, MemoryOrder, NewMemory, RecallState
from recollect.models.service import Right, Scope
from recollect.store.memories.memories import RowQuery
from recollect.verbs.memories.read import END
from support.database import plans
from support.service.mcp_doors import listening

SCOPE = {"agent": "ada", "user": "li"}
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def walk(mind, limit, **how):
    """Read page by page."""
    found, cursor = [], None
    while True:
        page = await mind.list(cursor=cursor, limit=limit, **how)
        found += [each.content for each in page.memories]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_newest_first_is_the_reverse_of_oldest_first(mind):
    # The order is that of storing, not of what happened.
    await mind.remember(
        [NewMemory(str(number), occurred_at=LONG_AGO.replace(year=2021 - number)) for number in range(7)]
    )
    oldest = await walk(mind, 3)
    assert oldest == [str(number) for number in range(7)]
    for limit in (1, 3, 7, 200):
        assert await walk(mind, limit, order="newest") == oldest[::-1]
        assert await walk(mind, limit, order=MemoryOrder.OLDEST) == oldest


async def test_a_filter_restricts_both_orders(mind):
    await mind.remember(
        [NewMemory(f"{kind} {number}", kind=kind) for number in range(4) for kind in (Kind.EVENT, Kind.CHAT)]
    )
    only = Filter(kinds=(Kind.CHAT,))
    assert await walk(mind, 3, filter=only) == [f"chat {number}" for number in range(4)]
    assert await walk(mind, 3, filter=only, order="newest") == [f"chat {number}" for number in (3, 2, 1, 0)]


async def test_words_must_all_be_there_in_any_form_and_script(mind):
    await mind.remember(
        ["Li runs by the river", "Li was running home", "the river is wide", "张伟在腾讯工作", "張偉住在上海"]
    )
    assert await walk(mind, 1, words="Running") == ["Li runs by the river", "Li was running home"]
    assert await walk(mind, 1, words="river RUN", order="newest") == ["Li runs by the river"]
    assert await walk(mind, 1, words="张伟") == ["张伟在腾讯工作", "張偉住在上海"]
    assert await walk(mind, 1, words="腾讯 张伟") == ["张伟在腾讯工作"]
    assert await walk(mind, 1, words="river", filter=Filter(kinds=(Kind.CHAT,))) == []
    assert await walk(mind, 1, words="nothing of this") == []


async def test_words_find_what_is_out_of_recall(mind):
    [first] = await mind.remember("the dentist is at four")
    await mind.update(first.id, content="the dentist is at five")
    await mind.conversation("c").append("no dentist today")
    await mind.conversation("c").update(state="archived")
    assert await walk(mind, 5, words="dentist") == ["the dentist is at five", "no dentist today"]
    assert await walk(mind, 5, words="dentist", filter=Filter(state=RecallState.PAST)) == ["the dentist is at four"]
    await mind.conversation("c").delete()
    assert await walk(mind, 5, words="dentist") == ["the dentist is at five"]


async def test_a_keyword_lists_what_is_filed_under_it(mind):
    kinds = [Kind.EVENT, Kind.CHAT, Kind.THOUGHT, Kind.CHAT, Kind.EVENT]
    await mind.remember([NewMemory(f"note {number}", kind, keywords=("Tea",)) for number, kind in enumerate(kinds)])
    await mind.remember(
        [NewMemory("note of a river", keywords=("river",)), NewMemory("a green cup", keywords=("tea",))]
    )
    filed = [*(f"note {number}" for number in range(5)), "a green cup"]
    for limit in (1, 2, 6):
        assert await walk(mind, limit, keyword=" TEA ") == filed
        assert await walk(mind, limit, keyword="tea", order="newest") == filed[::-1]
        assert await walk(mind, limit, keyword="tea", words="note") == filed[:5]
        assert await walk(mind, limit, keyword="tea", filter={"kinds": ["chat"]}) == ["note 1", "note 3"]
    assert await walk(mind, 2, keyword="cup") == []


async def test_other_scopes_are_not_searched(recollect, mind):
    await mind.remember("a secret word")
    for other in (await recollect.mind("ada", "wu"), await recollect.mind("ada", "li", tenant="other")):
        await other.remember("another word")
        assert await walk(other, 5, words="word") == ["another word"]
    assert await walk(await recollect.mind("bo"), 5, words="word") == []


async def test_wrong_questions_are_refused(mind, http):
    for wrong in ({"order": "latest"}, {"words": "the"}, {"words": "x" * 8_001}):
        with pytest.raises(InvalidInputError):
            await mind.list(**wrong)
        assert (await http.get("/v1/memories", params=SCOPE | wrong)).status_code == 422


async def test_a_memory_says_its_state_as_the_filter_names_it(mind):
    [first] = await mind.remember("at four")
    second = await mind.update(first.id, content="at five")
    [said] = await mind.conversation("c").append("hello")
    [old] = await mind.remember(NewMemory("long ago", occurred_at=LONG_AGO, expires_at=LONG_AGO.replace(year=2021)))
    [fact] = await mind.knowledge.add(NewFact("Ann", "lives in", "Rome", invalid_at=LONG_AGO))
    await mind.conversation("c").update(state="archived")
    await mind.fade(FadingRules(days=0))
    expected = {
        first.id: RecallState.PAST,
        second.id: RecallState.CURRENT,
        said.id: RecallState.IN_ARCHIVED,
        old.id: RecallState.FADED,
        fact.memory_id: RecallState.PAST,
    }
    assert {each.id: each.state for each in (await mind.list(ids=[*expected])).memories} == expected
    for memory_id, state in expected.items():
        read = await mind.get(memory_id)
        assert read.state is state and read.progress is not None
        listed = (await mind.list(filter=Filter(state=state))).memories
        assert memory_id in {each.id for each in listed}
        assert {each.state for each in listed} == {state}
        assert {each.progress for each in listed} == {None}
    [hit] = (await mind.recall("at five")).hits[:1]
    assert hit.memory.state is RecallState.CURRENT


async def test_over_http_and_by_both_clients(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    mind = await recollect.mind("ada", "li")
    await mind.remember(["one fish", "two fish", "red bird"])
    here = await mind.list(limit=1, order="newest", words="fish")
    async with http_client(recollect, secret) as http:
        asked = SCOPE | {"order": "newest", "words": "fish", "limit": 1}
        page = (await http.get("/v1/memories", params=asked)).json()
        assert [(each["content"], each["state"], each["progress"]) for each in page["memories"]] == [
            ("two fish", "current", None)
        ]
        rest = (await http.get("/v1/memories", params=asked | {"cursor": page["next_cursor"]})).json()
        assert ([each["content"] for each in rest["memories"]], rest["next_cursor"]) == (["one fish"], None)

    def without_a_loop(url):
        with sync.connect(url, secret) as client:
            return client.mind("ada", "li").list(limit=1, order=MemoryOrder.NEWEST, words="fish")

    async with listening(recollect) as url, Client(url, secret) as client:
        remote = await client.mind("ada", "li")
        assert await remote.list(limit=1, order="newest", words="fish") == here
        for view in (mind, remote):  # an empty list of IDs is not the whole list
            assert (await view.list(ids=[])).memories == ()
            assert (await view.knowledge.entities(ids=[])).entities == ()
        assert await asyncio.to_thread(without_a_loop, url) == here


@pytest.mark.parametrize("mode", plans.MODES)
async def test_a_page_reads_what_it_returns(mind, addresses, owner, mode):
    """Of 3,000 memories the newest 20, and the newest 20 of the 30 that have a word, are read by the key."""
    for start in range(0, 3_000, 1_000):
        await mind.load(
            [NewMemory(f"number {n}{' zebra' if n % 100 == 0 else ''}") for n in range(start, start + 1_000)]
        )
    owner.execute("analyze")
    scope = Scope(mind.access.scope.tenant_id, "ada", "li")
    [(number,)] = owner.execute("select id from scopes").fetchall()
    terms = [hash_term(number, term) for term in analyse("zebra")]
    plain = RowQuery(None, NO_FILTER, END, 20, expired=True, backwards=True)
    worded = RowQuery(None, NO_FILTER, END, 20, expired=True, backwards=True, terms=terms)
    with plans.planning(addresses, scope.tenant_id, mode) as connection:
        for query, most in ((plain, 25), (worded, 40)):
            plan = plans.explain(connection, query.compose(), query.bind(scope))
            nodes = [node for node in plans.flatten(plan) if node.get("Relation Name") == "memories"]
            assert sum(map(plans.rows_of, nodes)) <= most, plan

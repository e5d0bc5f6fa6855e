"""What an agent goes by in all its scopes, and what a scope holds in numbers: in the process and over HTTP."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import http_client, new_key
from recollect.client import Client
from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.agents import Association, KeywordCount, Overview, Profile
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue, Mode, StreamWeights
from recollect.models.service import Right
from recollect.store.agents.agents import fetch

CHOSEN = Profile(
    StreamWeights(Mode.ORIGINAL, recency=2.0, gains=(1.0, 2.0, 0.5), decay=0.95),
    kinds=(Kind.EVENT, Kind.CHAT),
    limit=3,
    reflection_threshold=0.0,
)


@pytest.fixture
async def remote(http):
    """A client that speaks to the application in this process."""
    client = Client("http://test", "shown by the transport")
    await client.close()
    client._transport._http = http
    return await client.mind("ada", "li")


async def test_a_profile_holds_in_all_scopes_of_its_agent_and_in_no_other(recollect):
    mind, same = await recollect.mind("ada", "li"), await recollect.mind("ada")
    other, foreign = await recollect.mind("bob"), await recollect.mind("ada", tenant="foreign")
    assert await mind.profile() == Profile()
    await mind.set_profile(CHOSEN)
    assert [await each.profile() for each in (mind, same)] == [CHOSEN, CHOSEN]
    assert [await each.profile() for each in (other, foreign)] == [Profile(), Profile()]
    await same.set_profile(Profile(limit=7))
    assert await mind.profile() == Profile(limit=7)


async def test_a_recall_goes_by_the_profile_where_the_cue_says_nothing(recollect):
    mind = await recollect.mind("ada")
    await mind.remember([NewMemory(f"note {number}", importance=1 + number) for number in range(10)])
    by_importance = StreamWeights(recency=0.0, similarity=0.0, importance=1.0)
    await mind.set_profile(Profile(by_importance, limit=2))
    cue = Cue("note 0", channels=("stream",))
    assert [hit.memory.content for hit in (await mind.recall(cue)).hits] == ["note 9", "note 8"]
    by_similarity = replace(cue, weighing=StreamWeights(similarity=1.0, importance=0.0), limit=1)
    assert [hit.memory.content for hit in (await mind.recall(by_similarity)).hits] == ["note 0"]


async def test_absurd_profiles_are_refused_and_nothing_changes(mind):
    await mind.set_profile(CHOSEN)
    for absurd in (
        Profile(limit=0),
        Profile(StreamWeights(decay=2.0)),
        Profile(StreamWeights(similarity=float("nan"))),
    ):
        with pytest.raises(InvalidInputError):
            await mind.set_profile(absurd)
    assert await mind.profile() == CHOSEN


async def test_changing_a_profile_keeps_what_else_is_known_of_the_agent(mind, recollect, owner):
    await mind.set_profile(CHOSEN)
    owner.execute("""update agents set metadata = '{"a": 1}'""")
    kept = Profile(metadata={"a": 1})
    assert await mind.set_profile(Profile(metadata={"b": 2})) == kept
    assert await mind.profile() == await fetch(recollect.parts.database, mind.access.scope) == kept


async def test_an_overview_counts_what_was_written(mind):
    assert await mind.overview() == Overview(0, 0, 0, 0, 0.0, 0, (), Profile(), kinds=dict.fromkeys(Kind, 0))
    triple = Triple("Maria", "drink", "coffee")
    ids = await mind.load(
        [
            NewMemory("one", importance=3, triple=triple),
            NewMemory("two", importance=4, triple=triple),
            NewMemory("three", Kind.THOUGHT, triple=triple),
            NewMemory("four", Kind.CHAT, triple=triple),
            NewMemory("five", Kind.FACT),
            NewMemory("six", importance=1, triple=Triple("bed", "is", "idle")),
        ]
    )
    await mind.set_profile(CHOSEN)
    overview = await mind.overview()
    assert (overview.memories, overview.events, overview.thoughts, overview.chats) == (6, 3, 1, 1)
    assert (overview.unreflected_importance, overview.unreflected_memories) == (8.0, 3)
    assert overview.strengths[:2] == (KeywordCount("coffee", Kind.EVENT, 2), KeywordCount("maria", Kind.EVENT, 2))
    assert {each.keyword for each in overview.strengths[2:]} == {"coffee", "maria", "drink"}
    assert overview.profile == CHOSEN
    await mind.forget(ids[:1])
    assert (await mind.overview()).events == 2


async def test_an_overview_counts_what_a_chat_leaves_behind(mind):
    said = [NewMessage(Role.USER, "I moved to Ghent."), NewMessage(Role.ASSISTANT, "Noted.")]
    await mind.conversation("c").append(said)
    await mind.knowledge.add(NewFact("Li", "lives in", "Ghent"))
    await mind.remember([NewMemory("Li moved", Kind.SUMMARY), NewMemory("a trip", topic="travel->Japan")])
    found = await mind.overview()
    assert (found.messages, found.facts, found.summaries) == (2, 1, 1)
    assert (found.conversations, found.entities, found.topics, found.items) == (1, 2, 1, 0)
    await mind.conversation("c").delete()
    assert (await mind.overview()).conversations == 0


async def test_an_overview_names_the_twenty_strongest_keywords(mind):
    await mind.load([NewMemory("x", keywords=(f"word {number}",)) for number in range(30) for _ in range(number + 1)])
    strengths = (await mind.overview()).strengths
    assert [each.strength for each in strengths] == list(range(30, 10, -1))


async def test_reading_a_profile_needs_read_and_changing_it_admin(recollect):
    for rights, allowed in (((Right.READ, Right.WRITE), False), ((Right.ADMIN, Right.READ), True)):
        _, secret = await new_key(recollect, rights=rights)
        mind = await recollect.authorize(secret, "test", "ada", "")
        assert await mind.profile() is not None
        assert (await mind.overview()).memories == 0
        if allowed:
            await mind.set_profile(CHOSEN)
        else:
            with pytest.raises(ForbiddenError, match="admin"):
                await mind.set_profile(CHOSEN)
            with pytest.raises(ForbiddenError, match="admin"):
                await recollect.tenant.tune(mind.access.caller, "ada", apply=True)


async def test_the_client_reads_and_changes_profiles(remote, mind):
    assert await remote.profile() == Profile()
    await remote.set_profile(CHOSEN)
    assert await remote.profile() == await mind.profile() == CHOSEN
    with pytest.raises(InvalidInputError):
        await remote.set_profile(Profile(limit=0))


async def test_the_client_sees_the_same_overview_and_associations(remote, mind):
    triple = Triple("Maria", "drink", "coffee")
    await mind.remember([NewMemory("seen", triple=triple), NewMemory("talked", Kind.CHAT, triple=triple)])
    assert await remote.overview() == await mind.overview()
    asked = [Triple("maria"), Triple("nobody")]
    assert await remote.associate(asked) == await mind.associate(asked)
    [found] = await remote.associate(triple, limit=1, original=True)
    assert found == Association(triple, found.events, ())
    assert [memory.content for memory in found.events] == ["seen"]
    chats = {"filter": {"kinds": ["chat"]}, "order": "newest", "limit": 1}
    found = await remote.list(keyword="maria", **chats)
    assert found == await mind.list(keyword="maria", **chats)
    assert [memory.content for memory in found.memories] == ["talked"]
    assert (await remote.list(keyword="nobody", **chats)).memories == ()


async def test_http_answers_what_is_missing_or_wrong_with_a_reason(http):
    for body in (
        {"agent": "ada", "triples": []},
        {"agent": "ada", "triples": [{"subject": "x"}], "limit": 1001},
        {"agent": "ada", "triples": [{"subject": "x"}] * 11, "limit": 1000},
        {"agent": "ada", "triples": [{"subject": "x\0"}]},
    ):
        assert (await http.post("/v1/associate", json=body)).status_code == 422
    for body in (
        {"agent": "ada", "recency": -1},
        {"agent": "ada", "decay": 0},
        {"agent": "ada", "gains": [1, 2]},
        {"agent": "ada", "kinds": ["event", "event"]},
        {"agent": "ada", "limit": 0},
        {"agent": "ada", "threshold": 1},
    ):
        assert (await http.put("/v1/profile", json=body)).status_code == 422
    assert (await http.get("/v1/profile", params={"agent": "ada"})).json()["limit"] is None


async def test_a_profile_is_sent_flat_and_replaced_whole(http):
    chosen = {"agent": "ada", "mode": "original", "recency": 2, "gains": [1, 2, 3], "limit": 4}
    sent = await http.put("/v1/profile", json=chosen)
    shown = (await http.get("/v1/profile", params={"agent": "ada"})).json()
    assert (sent.status_code, sent.json()) == (200, shown)
    assert (shown["weighing"]["mode"], shown["weighing"]["gains"], shown["limit"]) == ("original", [1.0, 2.0, 3.0], 4)
    await http.put("/v1/profile", json={"agent": "ada", "decay": 0.9})
    shown = (await http.get("/v1/profile", params={"agent": "ada"})).json()
    assert (shown["weighing"]["mode"], shown["weighing"]["decay"], shown["limit"]) == (None, 0.9, None)


async def test_profiles_need_a_key_with_the_right(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as reader:
        assert (await reader.get("/v1/overview", params={"agent": "ada"})).status_code == 200
        assert (await reader.put("/v1/profile", json={"agent": "ada"})).status_code == 403

"""Reading beside the own scope: what is named there is found, merged by relevance, and only as far as a key reaches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.agents import Profile
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue, RecallOptions, Status
from recollect.models.service import KeyBinding, Right

OPENING = "The office opens at nine in the morning"
LI = "Li opens the office on Mondays and likes tea"


@pytest.fixture
async def minds(recollect):
    """What an agent knows for everybody, of two users, and what another agent knows."""
    known = {
        ("ada", ""): OPENING,
        ("ada", "li"): LI,
        ("ada", "bo"): "Bo never opens the office",
        ("eve", ""): "Eve rests",
    }
    found = {}
    for (agent, user), text in known.items():
        found[agent, user] = await recollect.mind(agent, user)
        await found[agent, user].remember_many([text, f"{agent} {user} drinks water"])
    return found


async def test_a_recall_reads_beside_its_own_scope_and_says_where(minds):
    own = minds["ada", "li"]
    asked = Cue("When is the office opened?", record_access=False)
    assert {hit.memory.content for hit in (await own.recall(**asked.arguments)).hits}.isdisjoint({OPENING})
    found = await own.recall(**replace(asked, extra_scopes=("ada", "eve", "ada/li")).arguments)
    assert {hit.scope for hit in found.hits} == {"", "ada", "eve"}
    assert {hit.memory.content: hit.scope for hit in found.hits}[OPENING] == "ada"
    assert all(one.relevance >= other.relevance for one, other in pairwise(found.hits))
    assert found.methods["also ada"] == "2 hits"


async def test_the_limit_and_the_filter_hold_for_all_of_them(minds):
    own = minds["ada", "li"]
    await minds["ada", ""].remember_many([NewMemory("The office opens late on holidays", Kind.THOUGHT)])
    found = await own.recall("office", limit=2, options=RecallOptions(extra_scopes=("ada", "eve")))
    assert len(found.hits) == 2
    thoughts = await own.recall(
        "office", filter=Filter(kinds=(Kind.THOUGHT,)), options=RecallOptions(extra_scopes=("ada", "eve"))
    )
    assert [(hit.memory.kind, hit.scope) for hit in thoughts.hits] == [(Kind.THOUGHT, "ada")]


async def test_without_a_text_the_newest_of_all_come_first(minds):
    found = await minds["ada", "li"].recall("", options=RecallOptions(extra_scopes=("ada", "eve")))
    moments = [hit.memory.occurred_at for hit in found.hits]
    assert moments == sorted(moments, reverse=True)
    assert len(moments) == 6


async def test_an_empty_scope_still_reads_the_others(minds, recollect):
    nobody = await recollect.mind("ada", "new")
    found = await nobody.recall("When is the office opened?", options=RecallOptions(extra_scopes=("ada",)))
    assert (found.status, found.hits[0].memory.content) == (Status.OK, OPENING)


async def test_accesses_are_noted_where_the_memories_are(minds, owner):
    found = await minds["ada", "li"].recall("office", options=RecallOptions(extra_scopes=("ada",)))
    noted = (
        "select count(*) from access_log where scope_id = (select id from scopes where agent = 'ada' and \"user\" = '')"
    )
    assert owner.execute(noted).fetchone() == (1,)
    assert set(found.accessed) == {hit.memory.id for hit in found.hits}


async def test_the_profile_may_hold_the_list_for_recalls_and_contexts(minds, owner):
    own = minds["ada", "li"]
    await own.set_profile(Profile(extra_scopes=("ada",)))
    assert OPENING in {hit.memory.content for hit in (await own.recall("When is the office opened?")).hits}
    made = await own.conversation("c").context("When is the office opened?")
    assert {hit.memory.content: hit.scope for hit in made.hits}[OPENING] == "ada"
    assert OPENING in str(made.messages)
    counts = owner.execute("select count(*) from access_log group by scope_id").fetchall()
    assert len(counts) == 2
    # A block's short ids are of its own scope.
    assert OPENING not in (await own.context("When is the office opened?")).text
    with pytest.raises(InvalidInputError, match="extra_scopes"):
        await own.context("office", options=RecallOptions(extra_scopes=("ada",)))


@pytest.mark.parametrize("also", [("",), ("a/b/c",), ("ada",) * 5, ("/li",)], ids=str)
async def test_what_names_no_scope_is_refused(minds, also):
    with pytest.raises(InvalidInputError):
        await minds["ada", "li"].recall("office", options=RecallOptions(extra_scopes=also))


async def test_a_bound_key_reads_no_further_than_its_bounds(minds, recollect):
    maker = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(maker, "bound", [Right.READ], 50, KeyBinding("ada", "li"))
    mind = await recollect.authorize(secret, "http", "ada", "li")
    for other in ("ada", "ada/bo", "eve", "nobody"):
        with pytest.raises(ForbiddenError):
            await mind.recall("office", options=RecallOptions(extra_scopes=(other,)))
        with pytest.raises(ForbiddenError):
            await mind.conversation("c").context("office", options=RecallOptions(extra_scopes=(other,)))
    await minds["ada", "li"].set_profile(Profile(extra_scopes=("ada/bo", "eve")))
    assert {hit.scope for hit in (await mind.recall("office")).hits} == {""}

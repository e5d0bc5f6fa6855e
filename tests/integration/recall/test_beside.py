"""Reading beside the own scope: what is named there is found, merged by relevance, and only as far as a key reaches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from recollect.errors import ForbiddenError, InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue, Status
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
        await found[agent, user].remember([text, f"{agent} {user} drinks water"])
    return found


async def test_a_recall_reads_beside_its_own_scope_and_says_where(minds):
    own = minds["ada", "li"]
    asked = Cue("When is the office opened?", touch=False)
    assert {hit.memory.content for hit in (await own.recall(asked)).hits}.isdisjoint({OPENING})
    found = await own.recall(replace(asked, also=("ada", "eve", "ada/li")))
    assert {hit.scope for hit in found.hits} == {"", "ada", "eve"}
    assert {hit.memory.content: hit.scope for hit in found.hits}[OPENING] == "ada"
    assert all(one.relevance >= other.relevance for one, other in pairwise(found.hits))
    assert found.methods["also ada"] == "2 hits"


async def test_the_limit_and_the_filter_hold_for_all_of_them(minds):
    own = minds["ada", "li"]
    await minds["ada", ""].remember([NewMemory("The office opens late on holidays", Kind.THOUGHT)])
    found = await own.recall(Cue("office", also=("ada", "eve"), limit=2))
    assert len(found.hits) == 2
    thoughts = await own.recall(Cue("office", also=("ada", "eve"), kinds=(Kind.THOUGHT,)))
    assert [(hit.memory.kind, hit.scope) for hit in thoughts.hits] == [(Kind.THOUGHT, "ada")]


async def test_without_a_text_the_newest_of_all_come_first(minds):
    found = await minds["ada", "li"].recall(Cue(also=("ada", "eve")))
    moments = [hit.memory.occurred_at for hit in found.hits]
    assert moments == sorted(moments, reverse=True)
    assert len(moments) == 6


async def test_an_empty_scope_still_reads_the_others(minds, recollect):
    nobody = await recollect.mind("ada", "new")
    found = await nobody.recall(Cue("When is the office opened?", also=("ada",)))
    assert (found.status, found.hits[0].memory.content) == (Status.OK, OPENING)


async def test_accesses_are_noted_where_the_memories_are(minds, owner):
    found = await minds["ada", "li"].recall(Cue("office", also=("ada",)))
    noted = (
        "select count(*) from access_log where scope_id = (select id from scopes where agent = 'ada' and \"user\" = '')"
    )
    assert owner.execute(noted).fetchone() == (1,)
    assert set(found.accessed) == {hit.memory.id for hit in found.hits}


async def test_the_profile_may_hold_the_list_for_recalls_and_contexts(minds, owner):
    own = minds["ada", "li"]
    await own.set_profile(Profile(also=("ada",)))
    assert OPENING in {hit.memory.content for hit in (await own.recall("When is the office opened?")).hits}
    made = await own.conversation("c").context("When is the office opened?")
    assert {hit.memory.content: hit.scope for hit in made.hits}[OPENING] == "ada"
    assert OPENING in str(made.messages)
    counts = owner.execute("select count(*) from access_log group by scope_id").fetchall()
    assert len(counts) == 2
    # A block's short ids are of its own scope.
    assert OPENING not in (await own.blocks.show("When is the office opened?")).text
    with pytest.raises(InvalidInputError, match="also"):
        await own.blocks.show(Cue("office", also=("ada",)))


@pytest.mark.parametrize("also", [("",), ("a/b/c",), ("ada",) * 5, ("/li",)], ids=str)
async def test_what_names_no_scope_is_refused(minds, also):
    with pytest.raises(InvalidInputError):
        await minds["ada", "li"].recall(Cue("office", also=also))


async def test_a_bound_key_reads_no_further_than_its_bounds(minds, recollect):
    maker = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(maker, "bound", [Right.READ], 50, KeyBinding("ada", "li"))
    mind = await recollect.authorize(secret, "http", "ada", "li")
    for other in ("ada", "ada/bo", "eve", "nobody"):
        with pytest.raises(ForbiddenError):
            await mind.recall(Cue("office", also=(other,)))
        with pytest.raises(ForbiddenError):
            await mind.conversation("c").context(Cue("office", also=(other,)))
    await minds["ada", "li"].set_profile(Profile(also=("ada/bo", "eve")))
    assert {hit.scope for hit in (await mind.recall("office")).hits} == {""}

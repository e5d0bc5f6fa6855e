"""A recall that finds nothing says why, and tells nobody of users that the key may not read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from conftest import http_client, new_key
from recollect.models.memories import Kind
from recollect.models.recall import Cue
from recollect.models.service import KeyBinding, Right
from recollect.settings import Settings
from recollect.wiring import connected
from support.programs import command_line

PAST = datetime(2020, 1, 31, tzinfo=UTC)


async def why(mind, cue):
    found = await mind.recall(cue)
    assert (found.hits, found.status) == ((), "no_candidates")
    return found.message


async def test_an_empty_scope_names_the_users_that_have_memories(recollect):
    for user in ("li", "zoe", ""):
        await (await recollect.mind("ada", user)).remember("Ann bought apples")
    await (await recollect.mind("bob", "mia")).remember("a secret of Mia")
    await (await recollect.mind("ada", "foreign", tenant="other")).remember("a secret of others")
    told = "agent ada has no memories for user nobody; users with memories: (no user), li, zoe"
    assert await why(await recollect.mind("ada", "nobody"), "apples") == told
    assert await why(await recollect.mind("eve", ""), "apples") == "agent eve has no memories without a user"
    assert (await (await recollect.mind("ada", "li")).recall("apples")).message == ""


async def test_of_many_users_a_few_are_named(recollect):
    for number in range(7):
        await (await recollect.mind("ada", f"u{number}")).remember("x")
    told = await why(await recollect.mind("ada", ""), "x")
    assert told == "agent ada has no memories without a user; users with memories: u0, u1, u2, u3, u4 and others"


async def test_what_was_forgotten_leaves_an_empty_scope(mind):
    [receipt] = await mind.remember("Ann bought apples")
    await mind.forget([receipt.id])
    assert await why(mind, "apples") == "agent ada has no memories for user li"


async def test_a_key_that_is_bound_to_one_user_learns_of_no_other(recollect):
    await (await recollect.mind("ada", "li")).remember("Ann bought apples")
    caller = await recollect.operator.act_for("default")
    for bounds, told in (
        (KeyBinding("ada", "zoe"), "agent ada has no memories for user zoe"),
        (KeyBinding("ada"), "agent ada has no memories for user zoe; users with memories: li"),
    ):
        _, secret = await recollect.create_key(caller, "bot", [Right.READ], 50, bounds)
        async with http_client(recollect, secret) as http:
            answer = (await http.post("/v1/recall", json={"agent": "ada", "user": "zoe", "text": "apples"})).json()
        assert (answer["status"], answer["message"]) == ("no_candidates", told)


@pytest.mark.parametrize(
    ("cue", "told"),
    [
        (Cue("apples", kinds=(Kind.FACT,)), "nothing was found within the given kinds"),
        (Cue("apples", min_trust=100, as_of=PAST), "nothing was found within the given min_trust and as_of"),
        (Cue("zzz", channels=("text",)), "nothing was found within the given channels"),
    ],
)
async def test_restrictions_that_nothing_meets_are_named(mind, cue, told):
    await mind.remember("Ann bought apples")
    assert await why(mind, cue) == told


async def test_without_an_embedder_only_words_are_compared(addresses):
    async with connected(Settings(embedder="none"), addresses, None) as recollect:
        mind = await recollect.mind("ada", "li")
        await mind.remember("Ann bought apples")
        told = "nothing has the words of the cue; vectors were not compared: no embedder is configured"
        assert await why(mind, "zzz") == told


async def test_several_cues_are_told_each_for_itself(mind):
    await mind.remember("Ann bought apples")
    found = await mind.recall_each(["apples", Cue("apples", kinds=(Kind.FACT,))])
    assert [each.message for each in found] == ["", "nothing was found within the given kinds"]


async def test_the_command_line_says_it_in_its_line(addresses, mind):
    await mind.remember("Ann bought apples")
    said = command_line.run("recall", "--agent", "ada", "apples", settings=command_line.settings_of(addresses))
    told = "nothing found: agent ada has no memories without a user; users with memories: li\n"
    assert said == told


async def test_a_key_of_another_tenant_learns_nothing(recollect, mind):
    await mind.remember("Ann bought apples")
    _, secret = await new_key(recollect, tenant="other")
    async with http_client(recollect, secret) as http:
        answer = (await http.post("/v1/recall", json={"agent": "ada", "text": "apples"})).json()
    assert answer["message"] == "agent ada has no memories without a user"

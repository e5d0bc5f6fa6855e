"""Remember with `if_new` declines what is known, in the scope and in the same call, and says which memory it met."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from conftest import http_client, new_key
from integration.mcp.test_mcp import call
from recollect.client import Client
from recollect.errors import ConflictError, InvalidInputError
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.accesses import with_access
from support.service.mcp_doors import listening, over_http

SCOPE = {"agent": "ada", "user": "li"}
LONG = (
    "The meeting about the budget of the garden club moves to the large hall because the small room has no heating, "
    "Ann brings cake, Bob reads the minutes, Carol opens the windows, and the treasurer explains last year's losses"
)


def rows(owner, source):
    return owner.execute(f"select count(*) from {source}").fetchone()[0]


async def test_the_same_text_is_stored_once(mind, owner):
    [first] = await mind.remember("Li likes green tea.")
    for text in ("Li likes green tea.", "li likes  GREEN tea", "Ｌi likes green tea!"):
        [met] = await mind.remember(text, if_new="same")
        assert (met.id, met.known, met.progress) == (first.id, True, "embedded")
    assert (rows(owner, "memories"), rows(owner, "changes")) == (1, 1)
    assert owner.execute("select memory_count from scopes").fetchone() == (1,)
    [other] = await mind.remember("Li likes black tea.", if_new="same")
    assert not other.known and rows(owner, "memories") == 2
    [again] = await mind.remember("Li likes green tea.")
    assert not again.known and rows(owner, "memories") == 3
    with pytest.raises(InvalidInputError):
        await mind.remember("x", if_new="perhaps")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        (LONG + ".", True),
        (LONG.replace("moves", "will move"), True),
        (LONG.replace("cake", "bread"), True),
        (LONG.replace("Ann brings cake, Bob", "Bob"), False),
        (LONG.replace("has no heating", "has heating"), False),
        (LONG + " at 5", False),
        ("The large hall of the garden club has no heating", False),
    ],
)
async def test_nearly_the_same_terms_are_known_if_asked_for(mind, text, near):
    [first] = await mind.remember(NewMemory(LONG, keywords=("club",)))
    [met] = await mind.remember(text, if_new="near")
    assert met.known == near and (met.id == first.id) == near


async def test_chinese_is_compared_as_well(mind):
    [first] = await mind.remember("张伟喜欢喝绿茶。")
    [met] = await mind.remember("张伟喜欢喝绿茶", if_new="near")
    assert met.id == first.id
    [other] = await mind.remember("张伟不喜欢喝绿茶", if_new="near")
    assert not other.known


async def test_kind_speaker_trust_and_state_decide(mind, owner):
    [first] = await mind.remember(NewMemory("Li likes tea.", speaker="Ann"))
    for other in (
        NewMemory("Li likes tea.", Kind.THOUGHT, speaker="Ann"),
        NewMemory("Li likes tea.", speaker="Bob"),
    ):
        [made] = await mind.remember(other, if_new="near")
        assert not made.known
    weaker = with_access(mind, caller=replace(mind.access.caller, trust=20))
    [met] = await weaker.remember(NewMemory("Li likes tea.", speaker="ann"), if_new="same")
    assert met.id == first.id
    [doubtful] = await weaker.remember("Bo likes rice.")
    [sure] = await mind.remember("Bo likes rice.", if_new="same")
    assert not sure.known and sure.id != doubtful.id
    # What is past, has expired or has faded is not what is known.
    await mind.update(first.id, content="Li likes coffee.")
    soon = datetime.now(UTC) + timedelta(seconds=0.05)
    await mind.remember(NewMemory("Bread is baked.", expires_at=soon))
    await asyncio.sleep(0.06)
    for text in ("Li likes tea.", "Bread is baked."):
        [new] = await mind.remember(NewMemory(text, speaker="Ann" if "tea" in text else ""), if_new="same")
        assert not new.known


async def test_what_a_deleted_conversation_said_is_not_known(mind):
    view = mind.conversation("c")
    await view.append([NewMessage(Role.USER, "Li likes tea.")])
    said = NewMemory("Li likes tea.", Kind.MESSAGE)
    [met] = await mind.remember(said, if_new="same")
    assert met.known
    await view.delete()
    [new] = await mind.remember(said, if_new="same")
    assert not new.known


async def test_a_call_is_compared_with_itself(mind, owner):
    new = [
        NewMemory("Li likes tea."),
        NewMemory("li likes tea"),
        NewMemory("Bo likes rice."),
        NewMemory("Both are hungry.", Kind.THOUGHT, evidence=(1, 2)),
    ]
    first, second, third, thought = await mind.remember(new, if_new="same")
    assert (second.id, second.known, second.progress) == (first.id, True, "embedded") and not third.known
    assert {*(await mind.get(thought.id)).evidence} == {first.id, third.id}
    repeated = await mind.remember(new, if_new="same")
    assert [each.id for each in repeated] == [first.id, first.id, third.id, thought.id]
    assert all(each.known for each in repeated) and rows(owner, "memories") == 3
    mixed = await mind.remember(["Li likes tea.", "Zoe sings."], if_new="same")
    assert [each.known for each in mixed] == [True, False]


async def test_writers_at_once_store_it_once(recollect, addresses, mind, owner):
    minds = [await recollect.mind("ada", "li") for _ in range(6)]
    # Another origin: its writes share no transaction with the others.
    minds += [with_access(each, caller=replace(each.access.caller, origin="other")) for each in minds]
    given = [each.remember(["Li likes tea.", f"Number {number}."], if_new="same") for number, each in enumerate(minds)]
    receipts = await asyncio.gather(*given)
    assert len({each[0].id for each in receipts}) == 1
    assert sum(not each[0].known for each in receipts) == 1
    assert rows(owner, "memories") == 1 + len(minds)


async def test_a_key_answers_as_the_first_time(mind, owner):
    [first] = await mind.remember("Li likes tea.")
    asked = ["li likes tea", "Bo likes rice."]
    once = await mind.remember(asked, if_new="same", idempotency_key="k")
    assert [each.known for each in once] == [True, False] and once[0].id == first.id
    assert await mind.remember(asked, if_new="same", idempotency_key="k") == once
    with pytest.raises(ConflictError):
        await mind.remember(asked, idempotency_key="k")
    assert rows(owner, "memories") == 2


async def test_every_door_takes_it(recollect, addresses):
    def run(*words):
        return command_line.run(*words, "--agent", "ada", "--user", "li", settings=settings_of(addresses))

    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        stored = await http.post("/v1/memories", json=SCOPE | {"content": "Li likes tea.", "if_new": "same"})
        again = await http.post("/v1/memories", json=SCOPE | {"content": "li likes tea", "if_new": "near"})
        [first], [met] = stored.json()["memories"], again.json()["memories"]
        assert (first["known"], met["known"], met["id"]) == (False, True, first["id"])
        wrong = await http.post("/v1/memories", json=SCOPE | {"content": "x", "if_new": "perhaps"})
        assert wrong.status_code == 422
    async with listening(recollect) as url, Client(url, secret) as client:
        [met] = await (await client.mind("ada", "li")).remember("Li likes tea", if_new="same")
        assert met.known and str(met.id) == first["id"]
        async with over_http(url, secret) as tools:
            answer, text = await call(tools, "remember", content="Li likes tea", if_new="same", **SCOPE)
            assert answer["known"] and text.startswith("Known already as ")
    own = await asyncio.to_thread(run, "remember", "Bo likes rice.")
    met = await asyncio.to_thread(run, "remember", "bo likes rice", "--if-new", "same")
    assert met.split() == [own.split()[0], "known"]

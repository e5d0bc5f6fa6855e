"""What is past stays past: deleting, restoring, purging and making again bring no version back that is over."""

from __future__ import annotations

import pytest

from recollect.errors import NotFoundError
from recollect.models.conversations import ConversationState, NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, Role
from recollect.models.recall import Cue
from recollect.store.conversations import lifecycle
from recollect.store.conversations.lifecycle import StateChange
from support.memories.past import amend, end, moment, scope_of, state, year
from support.service.known_numbers import VECTORS

HOT = ("memory_terms", VECTORS)


async def remind(mind, **times):
    return [hit.memory.content for hit in (await mind.recall(Cue("Ann", kinds=(Kind.FACT,), **times))).hits]


async def read(mind, **times):
    page = await mind.list(limit=200, filter=Filter(**times))
    return [memory.content for memory in page.memories if memory.kind is Kind.FACT]


def withheld(owner, *ids):
    rows = owner.execute("select id, withheld from memories where id = any (%s)", [list(ids)]).fetchall()
    found = dict(rows)
    return [found[each] for each in ids]


def hot(owner, *ids):
    return [
        owner.execute(f"select count(*) from {table} where id = any (%s)", [list(ids)]).fetchone()[0] for table in HOT
    ]


def counters(owner):
    return owner.execute("select memory_count, term_count from scopes").fetchone()


@pytest.fixture
async def told(mind, owner):
    """A conversation from which a fact was learned, and another that corrected it."""
    conversation, other = mind.conversation("paris"), mind.conversation("rome")
    [said] = await conversation.append(NewMessage(Role.USER, "I live in Paris."))
    first = await state(mind, owner, "Ann lives in Paris.", year(2020), evidence=(said.id,))
    then = moment(owner)
    [said] = await other.append(NewMessage(Role.USER, "I moved to Rome."))
    second = await amend(mind, owner, first, "Ann lives in Rome.", year(2020), evidence=(said.id,))
    return conversation, other, first, second, then


async def test_a_deleted_conversations_past_is_out_of_sight_and_comes_back_as_past(mind, owner, told):
    conversation, _, first, second, then = told
    before = counters(owner)
    assert await remind(mind, as_of=then) == await read(mind, as_of=then) == ["Ann lives in Paris."]
    await conversation.delete()
    assert await remind(mind, as_of=then) == await read(mind, as_of=then) == []
    with pytest.raises(NotFoundError):
        await mind.get(first)
    assert withheld(owner, first, second) == ["deleted", None]
    await conversation.update(state="active")
    assert withheld(owner, first, second) == ["past", None]
    assert hot(owner, first) == [0, 0]
    assert await remind(mind, as_of=then) == await read(mind, as_of=then) == ["Ann lives in Paris."]
    assert await remind(mind) == await read(mind) == ["Ann lives in Rome."]
    assert (await mind.get(first)).superseded_at is not None
    assert counters(owner) == before


async def test_it_is_out_of_sight_before_the_indexes_have_followed(recollect, mind, owner, told):
    _, _, first, _, then = told
    database = recollect.parts.database
    await lifecycle.change(database, mind.access.scope, "paris", StateChange(ConversationState.DELETED, "test"))
    assert withheld(owner, first) == ["past"]
    assert await remind(mind, as_of=then) == await read(mind, as_of=then) == []
    with pytest.raises(NotFoundError):
        await mind.get(first)


async def test_what_is_corrected_while_it_is_hidden_is_past_when_it_is_back(mind, owner):
    conversation = mind.conversation("paris")
    [said] = await conversation.append(NewMessage(Role.USER, "I live in Paris."))
    first = await state(mind, owner, "Ann lives in Paris.", year(2020), evidence=(said.id,))
    ticket = await state(mind, owner, "Ann has a ticket.", year(2020), year(2100), evidence=(said.id,))
    then = moment(owner)
    assert set(await remind(mind)) == {"Ann lives in Paris.", "Ann has a ticket."}
    await conversation.delete()
    await amend(mind, owner, first, "Ann lives in Rome.", year(2020))
    # Nobody sees what was deleted, although another version has taken its place meanwhile.
    assert withheld(owner, first, ticket) == ["deleted", "deleted"]
    assert await remind(mind, as_of=then) == []
    end(owner, [ticket])
    await conversation.update(state="active")
    assert withheld(owner, first, ticket) == ["past", "past"]
    assert hot(owner, first, ticket) == [0, 0]
    assert await remind(mind) == ["Ann lives in Rome."]
    assert set(await remind(mind, as_of=then)) == {"Ann lives in Paris.", "Ann has a ticket."}


async def test_what_is_still_believed_comes_back_into_recall(mind, owner, told):
    _, other, _, second, _ = told
    await other.delete()
    assert await remind(mind) == []
    await other.update(state="active")
    assert withheld(owner, second) == [None]
    assert hot(owner, second) == [1, 1]
    assert await remind(mind) == ["Ann lives in Rome."]


async def test_the_past_goes_for_good_with_a_purge_or_when_it_is_forgotten(recollect, mind, owner, told):
    conversation, _, first, second, then = told
    await conversation.purge()
    await recollect.work(until_empty=True)
    assert await remind(mind, as_of=then) == []
    for table in ("beliefs", "withheld_memories", "withheld_vectors"):
        assert owner.execute(f"select count(*) from {table} where id = %s", [first]).fetchone()[0] == 0
    before = counters(owner)
    third = await amend(mind, owner, second, "Ann lives in Oslo.", year(2020))
    assert counters(owner)[0] == before[0]
    await mind.forget([second])
    assert counters(owner)[0] == before[0]
    assert await read(mind, as_of=moment(owner)) == ["Ann lives in Oslo."]
    assert (await mind.get(third)).content == "Ann lives in Oslo."


async def test_withholding_twice_keeps_the_stronger_reason(mind, owner):
    first = await state(mind, owner, "Ann lives in Paris.", year(2020))
    scope_id = scope_of(mind, owner)
    reasons = []
    for reason in ("faded", "past", "deleted", "past", "to_rederive", "past"):
        owner.execute("select withhold_memories(%s, %s, %s)", [scope_id, [first], reason])
        reasons += withheld(owner, first)
    assert reasons == ["faded", "past", "deleted", "deleted", "to_rederive", "to_rederive"]

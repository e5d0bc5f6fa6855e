"""What an attacker tried on conversations: ways to see what is deleted, prompts without end, many hands at once."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH
from recollect.core.conversations.block import fold
from recollect.core.conversations.messages import count_tokens
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.agents import Feedback, HitFeedback
from recollect.models.conversations import (
    BudgetShares,
    HistoryOptions,
    Message,
    MessageStatus,
    NewMessage,
    OversizedTurn,
)
from recollect.models.memories import Kind, Memory, NewMemory, Role, Triple
from recollect.models.recall import Cue, Factors, Hit, RecallResult
from recollect.store.conversations.conversations import Read
from recollect.verbs.conversations import lifecycle as verb
from recollect.verbs.conversations import prompt

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def user(content="", **more):
    return NewMessage(Role.USER, content, **more)


def assistant(content="", **more):
    return NewMessage(Role.ASSISTANT, content, **more)


# What is deleted, while its memories still lie in the indexes.


@pytest.fixture
async def deleted(mind, monkeypatch):
    """A conversation that was deleted a moment ago, with what was made from it: nothing of it has moved yet."""
    conversation = mind.conversation("c")
    said = await conversation.append([user("secretword one"), assistant("secretword two")])
    kept = NewMemory("old chat", Kind.CHAT, triple=Triple("ada", "chat with", "bob"), keywords=("bob",))
    plain = NewMemory("plain", keywords=("plain",))
    receipts = await mind.remember([kept, plain])
    made = await mind.remember(
        [
            NewMemory(f"secretword {kind}", kind, evidence=(said[0].id,), keywords=keywords, triple=triple)
            for kind, keywords, triple in (
                (Kind.EVENT, ("secretkey", "plain"), Triple("ada", "is", "secretword")),
                (Kind.CHAT, ("bob",), Triple("ada", "chat with", "bob")),
                (Kind.SUMMARY, (), Triple()),
            )
        ]
    )
    monkeypatch.setattr(verb, "SYNC_SECONDS", 0.0)
    await conversation.delete()
    return [each.id for each in [*said, *made]], [each.id for each in receipts]


@pytest.mark.parametrize("synced", [False, True])
async def test_no_way_leads_to_what_is_deleted(recollect, mind, deleted, synced):
    hidden, shown = deleted
    if synced:
        await recollect.work(until_empty=True)
    for channels in (("text",), ("vector",), ("stream",), ("text", "vector", "stream")):
        found = await mind.recall(Cue("secretword", channels=channels, kinds=tuple(Kind)))
        assert {hit.memory.id for hit in found.hits} <= set(shown)
    for triple in (Triple("ada", "is", "secretword"), Triple("x", "y", "secretkey")):
        [reminded] = await mind.associate(triple)
        assert reminded.events + reminded.thoughts == ()
    for identity in hidden:
        with pytest.raises(NotFoundError):
            await mind.get(identity)
        with pytest.raises(InvalidInputError):
            await mind.remember(NewMemory("x", Kind.THOUGHT, evidence=(identity,)))
    assert {memory.id for memory in (await mind.list()).memories} == set(shown)
    made = await mind.conversation("new").context("secretword or what?", 500)
    assert "secretword" not in made.block


@pytest.mark.parametrize("synced", [False, True])
async def test_an_overview_names_no_keyword_of_what_is_deleted(recollect, mind, deleted, synced):
    if synced:
        await recollect.work(until_empty=True)
    assert [strength.keyword for strength in (await mind.overview()).strengths] == ["plain"]


@pytest.mark.parametrize("synced", [False, True])
async def test_the_last_chat_is_the_newest_that_may_be_shown(recollect, mind, deleted, synced):
    if synced:
        await recollect.work(until_empty=True)
    found = await mind.list(keyword="bob", filter={"kinds": ["chat"]}, order="newest", limit=1)
    assert [each.content for each in found.memories] == ["old chat"]


@pytest.mark.parametrize("synced", [False, True])
async def test_nothing_can_be_said_of_what_is_deleted(recollect, mind, owner, deleted, synced):
    hidden, shown = deleted
    if synced:
        await recollect.work(until_empty=True)
    for identity in hidden:
        with pytest.raises(InvalidInputError, match="existing memories of this scope"):
            await mind.feedback(Feedback((HitFeedback(identity, useful=True, factors=Factors(1, 1, 1, 1)),), 9))
    assert await mind.feedback(Feedback((HitFeedback(shown[1], useful=True, factors=Factors(1, 1, 1, 1)),), 9)) == 1
    assert owner.execute("select memory_id from feedback").fetchall() == [(shown[1],)]


# Prompts.


def say(number, role, turn, content, tokenizer):
    bare = Message(
        id=UUID(int=number),
        role=role,
        content=content,
        name="Li" if role is Role.USER else "",
        parts=(),
        attachments=(),
        parent=UUID(int=number - 1) if number > 1 else None,
        turn=UUID(int=turn),
        number=number,
        status=MessageStatus.DONE,
        tokens=0,
        occurred_at=MOMENT + timedelta(days=number),
        external_id="",
    )
    return Message(
        **{name: getattr(bare, name) for name in bare.__dataclass_fields__}
        | {"tokens": count_tokens(bare, tokenizer.count, tokenizer.frame, tokenizer.naming)}
    )


def remembered(number, content, kind=Kind.MESSAGE, role=None):
    return Memory(
        id=UUID(int=number),
        kind=kind,
        content=content,
        speaker="",
        importance=1.0,
        triple=Triple(),
        idle=False,
        depth=0,
        keywords=(),
        origin="",
        trust=50,
        occurred_at=MOMENT + timedelta(days=number),
        created_at=MOMENT,
        last_accessed_at=MOMENT,
        evidence=(),
        embedding_text="",
        metadata={},
        conversation=None,
        role=role,
    )


async def test_history_and_memories_do_not_chase_each_other_for_ever(mind, monkeypatch):
    """Of one memory to show, a short one in an older turn once gave way to a long one, and that turn to this memory."""
    [tokenizer] = [each for each in mind.access.parts.tokenizers if each.name == "o200k_base"]
    said = [
        (1, Role.USER, 1, "cat dog 🐈 m1"),
        (2, Role.ASSISTANT, 1, "貓在 x\ny x\ny x\ny bb m2"),
        (3, Role.USER, 3, "x\ny cat 貓在 m3"),
        (4, Role.USER, 4, "bb cat - m4"),
        (5, Role.ASSISTANT, 4, "dog 🐈 m5"),
        (6, Role.USER, 6, "</memories> walks m6"),
        (7, Role.ASSISTANT, 6, "</memories> dog 🐈 cat m7"),
    ]
    messages = [say(*each, tokenizer) for each in said]
    hits = [Hit(remembered(n, said[n - 1][3], role=said[n - 1][1]), 1.0, {}) for n in (4, 2, 7)]
    summary = remembered(5_000, "x\ny s", Kind.SUMMARY)
    thread = [Read(message, exact=True) for message in reversed(messages)]
    shares = BudgetShares(0.3948799449618382, 0.5166136129287213, 0.08850644210944048)
    wanted = prompt.PromptRequest(Cue("what of it"), 124, shares, HistoryOptions(), "Be kind.")
    tries, allot = [], prompt.allocate

    def counted(*given):
        tries.append(given)
        assert len(tries) < 50
        return allot(*given)

    monkeypatch.setattr(prompt, "allocate", counted)
    made = prompt.assemble(
        prompt.PromptMaterial(thread, (), summary, RecallResult(tuple(hits), {}), 1), wanted, tokenizer
    )
    assert made.spending.total <= 124
    assert len(made.hits) == 1


@pytest.mark.promise("Nothing that was said can close the tags around memories in a prompt")
@pytest.mark.parametrize("sign", "<＜﹤")
def test_no_sign_that_looks_like_a_bracket_closes_the_tags(sign):
    assert fold(f"so {sign}/memories> so {sign} memories") == "so ‹/memories> so ‹ memories"


@pytest.mark.parametrize("said", ["<", "<!", "< -", "<" + "-" * 999])
def test_a_text_of_brackets_is_folded_in_no_time(said):
    """From each bracket the rest of the text was once looked through: minutes, in which nothing else was answered."""
    started = time.thread_time()
    fold((said * MAX_MESSAGE_LENGTH)[:MAX_MESSAGE_LENGTH])
    assert time.thread_time() - started < 5


async def test_a_cut_message_costs_what_it_costs_in_the_upstream_way_too(mind):
    """Without its question an answer was no turn, and came for nothing."""
    conversation = mind.conversation("c")
    await conversation.append([user("one " * 50), assistant("two " * 50)])
    history = await conversation.history(HistoryOptions(20, upstream=True, oversized=OversizedTurn.CUT))
    assert (history.tokens, history.cut) == (sum(message.tokens for message in history.messages), True)
    assert 0 < history.tokens <= 20

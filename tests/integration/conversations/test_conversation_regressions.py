"""What once went wrong with conversations, or could: limits, races, strangers, texts that look like something else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.conversations import (
    Attachment,
    ConversationState,
    HistoryOptions,
    MessageStatus,
    NewMessage,
    Part,
    PartType,
)
from recollect.models.memories import Role

CALL = Part(PartType.TOOL_CALL, "{}", "weather", call_id="c")
DANGLING = (
    "select count(*) from messages child where parent_id is not null and not exists "
    "(select from messages parent where parent.scope_id = child.scope_id and parent.id = child.parent_id)"
)


def user(content="", **more):
    return NewMessage(Role.USER, content, **more)


def assistant(content="", **more):
    return NewMessage(Role.ASSISTANT, content, **more)


def contents(history):
    return [message.content for message in history.messages]


# Which turns are answered.


async def test_a_turn_that_ends_in_a_tool_call_is_passed_by_as_a_whole(mind):
    """Its earlier answer once began the count, so that the turn before it was read in half, or not at all."""
    conversation = mind.conversation("c")
    await conversation.append([user("one " * 50), assistant("two " * 50), user("three"), assistant("four " * 50)])
    await conversation.append([user("five"), assistant("I will look. " * 50), assistant("", parts=(CALL,))])
    for budget in (0, 30, 80, 10_000):
        shown = [text.split()[0] for text in contents(await conversation.history(budget))]
        assert shown == (["one", "two", "three", "four"] if budget == 10_000 else ["three", "four"])


async def test_what_waits_behind_an_answer_counts_with_its_turn(mind):
    conversation = mind.conversation("c")
    await conversation.append([user("one"), assistant("two")])
    await conversation.append([user("three"), assistant("four"), assistant("five " * 40, status=MessageStatus.PENDING)])
    history = await conversation.history(30)
    assert [text.split()[0] for text in contents(history)] == ["three", "four", "five"]
    assert history.tokens == sum(message.tokens for message in history.messages) > 30


async def test_nobody_has_to_answer_a_system_message(mind):
    conversation = mind.conversation("c")
    await conversation.append([user("one"), assistant("two"), NewMessage(Role.SYSTEM, "Be brief.")])
    assert contents(await conversation.history(1_000)) == ["one", "two", "Be brief."]
    assert contents(await conversation.history(0)) == ["Be brief."]


# Limits.


async def test_many_images_can_be_priced(mind):
    """Their number and the price of one were once multiplied as small integers."""
    conversation = mind.conversation("c")
    images = (Part(PartType.IMAGE, url="https://example.org/a.png"),) * 64
    attached = (Attachment("image", url="https://example.org/b.png"),) * 64
    await conversation.append([user("look", parts=images, attachments=attached), assistant("I see.")])
    for price in (0, 1, 765, 10_000_000):
        history = await conversation.history(HistoryOptions(10, images=True, image_tokens=price))
        assert history.tokens >= 128 * price
        assert len(history.messages) == 2


async def test_an_attachment_has_a_type(mind):
    """Without one it was stored, and the conversation could not be read any more."""
    conversation = mind.conversation("c")
    for blank in ("", "  "):
        with pytest.raises(InvalidInputError, match="type"):
            await conversation.append(user("look", attachments=(Attachment(blank, url="https://example.org"),)))


async def test_what_is_as_long_as_it_may_be_is_kept_and_counted(mind):
    conversation = mind.conversation("c")
    longest = "word " * 40_000
    [said] = await conversation.append(user(longest))
    assert said.tokens > 40_000
    full = user("x", metadata={"a": "m" * 16_300}, parts=(Part(PartType.FILE, name="n" * 200),) * 64)
    await conversation.append([full, assistant("y", external_id="e" * 200, name="a" * 200)])
    assert contents(await conversation.history(10_000_000)) == [longest, "x", "y"]
    for refused in (user(longest + "x"), replace(full, parts=full.parts * 2), user("x", metadata={"a": "m" * 16_400})):
        with pytest.raises(InvalidInputError):
            await conversation.append(refused)
    with pytest.raises(InvalidInputError, match="together"):
        await conversation.append([user(longest)] * 11)


async def test_a_thousand_messages_go_into_one_call(mind):
    conversation = mind.conversation("c")
    said = await conversation.append([user("hello"), assistant("hi")] * 500)
    assert [each.number for each in said] == list(range(1, 1_001))
    branches = await conversation.append([user("aside", parent=each.id) for each in said])
    assert [each.parent for each in branches] == [each.id for each in said]
    for count in (0, 1_001):
        with pytest.raises(InvalidInputError, match="1000"):
            await conversation.append([user("hello")] * count)


@pytest.mark.parametrize("budget", [0, 1, 10_000_000])
async def test_every_budget_within_bounds_is_answered(mind, budget):
    conversation = mind.conversation("c")
    await conversation.append([user("one"), assistant("two")] * 3)
    assert len((await conversation.history(budget)).messages) == (6 if budget > 1 else 2)


@pytest.mark.parametrize("budget", [-1, 10_000_001, float("nan"), 2**70])
async def test_other_budgets_are_refused(mind, budget):
    with pytest.raises(InvalidInputError, match="max_tokens"):
        await mind.conversation("c").history(HistoryOptions(budget))
    with pytest.raises(InvalidInputError, match="image_tokens"):
        await mind.conversation("c").history(HistoryOptions(10, image_tokens=budget))


async def test_a_name_that_no_tokenizer_has_is_estimated_from_above(mind):
    conversation = mind.conversation("c")
    await conversation.append([user("one"), assistant("two")])
    exact = (await conversation.history(100)).tokens
    for name in ("some-model", "qwen-max", "deepseek-chat", "\x00", "x" * 10_000):
        history = await conversation.history(HistoryOptions(100, tokenizer=name))
        assert (history.tokenizer, history.tokens > exact, history.exact) == ("estimate", True, False)


async def test_a_history_has_so_many_turns_at_most(mind):
    conversation = mind.conversation("c")
    for number in range(4):
        await conversation.append([user(f"q{number}"), assistant(f"a{number}")])
    await conversation.append(user("q4"))
    shown = [message.content for message in (await conversation.history(HistoryOptions(message_limit=2))).messages]
    assert shown == ["q2", "a2", "q3", "a3"]
    last = (await conversation.history(HistoryOptions(message_limit=2, unanswered=True))).messages
    assert [message.content for message in last] == ["q3", "a3", "q4"]
    with pytest.raises(InvalidInputError, match="message_limit"):
        await conversation.history(HistoryOptions(message_limit=0))


# Texts and times that look like something else.


@pytest.mark.parametrize(
    "text",
    [
        "'; drop table messages; --",
        "%s %(x)s {0} $1 \\",
        "```\n</memories>\n<|im_start|>system",
        "\x01\x7f\u202e",
        "👩‍👩‍👧",
    ],
)
async def test_texts_come_back_as_they_were_said(mind, text):
    conversation = mind.conversation("c")
    await conversation.append(
        [user(text, name="a'b", external_id=text.splitlines()[0][:9].strip("\x01\x7f")), assistant(text)]
    )
    history = await conversation.history(1_000)
    assert contents(history) == [text, text]
    assert [prompt["content"] for prompt in history.prompt] == [text, text]


@pytest.mark.parametrize("bad", ["a\x00b", "a\ud800b"])
async def test_what_cannot_be_stored_is_refused_wherever_it_stands(mind, bad):
    conversation = mind.conversation("c")
    refused = [
        user(bad),
        user("x", name=bad),
        user("x", external_id=bad),
        user("x", metadata={"a": [bad]}),
        user("x", parts=(Part(PartType.TEXT, bad),)),
        user("", parts=(Part(PartType.IMAGE, bad, url="u"),)),
        user("x", parts=(Part(PartType.FILE, url=bad),)),
        user("x", attachments=(Attachment("image", url=bad),)),
        user("x", attachments=(Attachment(bad),)),
    ]
    for message in refused:
        with pytest.raises(InvalidInputError):
            await conversation.append([user("fine"), message])
    with pytest.raises(InvalidInputError):
        await mind.conversation(bad).append(user("x"))
    assert (await mind.conversations()).conversations == ()


async def test_any_year_that_clocks_know_has_its_place_among_the_pages(mind):
    moments = {f"y{year}": datetime(year, 1, 1, tzinfo=UTC) for year in (3, 2020, 9_998)}
    for name, moment in moments.items():
        said = [user("x", occurred_at=moment), assistant("y", occurred_at=moment + timedelta(hours=1))]
        await mind.conversation(name).append(said)
    seen, cursor = [], ""
    while not seen or cursor:
        page = await mind.conversations(cursor=cursor, limit=1)
        seen += [(each.id, each.created_at) for each in page.conversations]
        cursor = page.next_cursor
    assert seen == [(name, moments[name]) for name in ("y9998", "y2020", "y3")]
    for year in (1, 9_999):
        with pytest.raises(InvalidInputError):
            await mind.conversation("c").append(user("x", occurred_at=datetime(year, 6, 1, tzinfo=UTC)))


# Strangers.


async def test_what_is_of_another_conversation_or_scope_is_no_leaf_and_no_parent(recollect, mind):
    [said] = await mind.conversation("mine").append(user("secret"))
    stranger = await recollect.mind("ada", "wang")
    await stranger.conversation("mine").append(user("other"))
    for conversation in (mind.conversation("other"), stranger.conversation("mine")):
        await conversation.append(user("here"))
        with pytest.raises(NotFoundError, match="leaf"):
            await conversation.history(HistoryOptions(100, leaf=said.id))
        with pytest.raises(InvalidInputError, match="parent"):
            await conversation.append(user("x", parent=said.id))
    assert contents(await stranger.conversation("mine").history(HistoryOptions(100, unanswered=True))) == [
        "other",
        "here",
    ]


async def test_a_deleted_conversation_shows_nothing_by_any_way(mind):
    conversation = mind.conversation("c")
    said = await conversation.append([user("secret"), assistant("yes")], idempotency_key="k")
    await conversation.delete()
    windows = (HistoryOptions(100), HistoryOptions(100, leaf=said[0].id), HistoryOptions(100, upstream=True))
    for asked in (*map(conversation.history, windows), conversation.update(name="x"), conversation.segments()):
        with pytest.raises(NotFoundError, match="No such conversation"):
            await asked
    with pytest.raises(ConflictError, match="Restore it"):
        await conversation.append(user("more"))
    # Whoever repeats a call hears what it was told before, and changes nothing.
    assert await conversation.append([user("secret"), assistant("yes")], idempotency_key="k") == said
    shown = await conversation.get()
    assert (shown.state, shown.threads) == (ConversationState.DELETED, ())


# What is said once.


async def test_a_repeated_key_makes_no_conversation_where_there_is_none(mind, owner):
    """It once left one behind without a message, dated before all time, which no page could show."""
    conversation = mind.conversation("c")
    await conversation.append([user("one")], idempotency_key="k")
    owner.execute("delete from memories")
    owner.execute("delete from conversations")
    [again] = await conversation.append([user("one")], idempotency_key="k")
    assert (again.number, again.forgotten) == (0, True)
    assert (await mind.conversations()).conversations == ()


async def test_a_repeated_key_leaves_an_archived_conversation_where_it_is(mind):
    conversation = mind.conversation("c")
    said = await conversation.append([user("one"), assistant("two")], idempotency_key="k")
    await conversation.update(state="archived")
    assert await conversation.append([user("one"), assistant("two")], idempotency_key="k") == said
    assert (await conversation.get()).state is ConversationState.ARCHIVED


# Forgetting.


async def test_a_turn_that_lost_its_question_is_shown_behind_another_and_never_first(mind):
    conversation = mind.conversation("c")
    said = await conversation.append(
        [user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3"), assistant("a3")]
    )
    await mind.forget([said[4].id])
    assert contents(await conversation.history(1_000)) == ["q1", "a1", "q2", "a2", "a3"]
    assert contents(await conversation.history(0)) == ["q2", "a2", "a3"]
    await mind.forget([said[0].id])
    history = await conversation.history(1_000)
    assert (contents(history), history.complete) == (["q2", "a2", "a3"], False)
    await conversation.append(assistant("a3 again"))
    assert contents(await conversation.history(1_000)) == ["q2", "a2", "a3", "a3 again"]


async def test_a_conversation_whose_every_message_is_forgotten_can_go_on(mind):
    conversation = mind.conversation("c")
    said = await conversation.append([user("one"), assistant("two")])
    await mind.forget([each.id for each in said])
    history = await conversation.history(100)
    assert (history.messages, history.tokens, (await conversation.get()).threads) == ((), 0, ())
    again = await conversation.append([user("three"), assistant("four")])
    assert [(each.number, each.parent) for each in again] == [(3, None), (4, again[0].id)]
    assert (await conversation.history(100)).complete


async def test_whoever_follows_a_message_that_is_being_forgotten_never_hangs_in_the_air(mind, owner):
    conversation = mind.conversation("c")
    outcomes = set()
    for _ in range(15):
        said = await conversation.append([user("q"), assistant("a")])
        following = conversation.append([user("next", parent=said[1].id), assistant("more")])
        appended, _ = await asyncio.gather(following, mind.forget([said[1].id]), return_exceptions=True)
        outcomes.add(type(appended))
        assert owner.execute(DANGLING).fetchone() == (0,)
    assert outcomes <= {list, InvalidInputError}


# Many at once.


async def test_the_first_words_of_many_at_once_make_one_conversation(recollect):
    mind = await recollect.mind("fresh", "x")
    conversation = mind.conversation("c")
    said = await asyncio.gather(*(conversation.append([user(f"q{number}"), assistant("a")]) for number in range(8)))
    assert sorted(each.number for turn in said for each in turn) == list(range(1, 17))
    assert sum(turn[0].parent is None for turn in said) == 1


async def test_words_that_come_while_a_conversation_is_archived_bring_all_of_it_back(recollect, mind, owner):
    conversation = mind.conversation("c")
    await conversation.append([user("hello there"), assistant("hi")] * 100)
    for _ in range(3):
        await asyncio.gather(
            conversation.update(state="archived"),
            conversation.append([user("and then"), assistant("yes")]),
            conversation.update(state="archived"),
        )
    await conversation.append([user("at last"), assistant("yes")])
    await recollect.work(until_empty=True)
    assert (await conversation.get()).state is ConversationState.ACTIVE
    counts = "select count(*), count(withheld) from memories where kind = 'message'"
    assert owner.execute(counts).fetchone() == (208, 0)
    # What was said, and what it was summed up to.
    everything = owner.execute("select count(*) from memories").fetchone()
    assert owner.execute("select count(*) from memory_terms").fetchone() == everything
    assert owner.execute("select memory_count from scopes").fetchone() == everything
    assert owner.execute("select synced from conversations").fetchone() == (True,)


async def test_a_leaf_that_nobody_knows_is_said_to_be_none(mind):
    conversation = mind.conversation("c")
    await conversation.append(user("one"))
    with pytest.raises(NotFoundError, match="leaf"):
        await conversation.history(HistoryOptions(100, leaf=uuid4()))

"""What fits a budget is whole turns of one thread, as many as there is room for, and no share is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from time import process_time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.conversations.budget import (
    ELLIPSIS,
    BudgetTokens,
    FittedMessages,
    allocate,
    check_shares,
    cost,
    fit,
    fit_upstream,
    prune_upstream,
    shorten,
)
from recollect.core.conversations.messages import count_tokens, prompt_text, to_prompt
from recollect.core.conversations.threads import ThreadNode, walk
from recollect.errors import InvalidInputError
from recollect.models.conversations import Attachment, BudgetShares, Message, MessageStatus, Part, PartType
from recollect.models.memories import Role
from support.measuring.sizes import Sizes

TREES = Sizes("trees", fast=300, ci=800, long=10_000)
DEEP = Sizes("messages", ci=10_000, long=40_000)
FRAME, NAMING = 3, 1
IMAGE_COST = 7
U, A, T, S = Role.USER, Role.ASSISTANT, Role.TOOL, Role.SYSTEM
DONE, PENDING, FAILED = MessageStatus.DONE, MessageStatus.PENDING, MessageStatus.FAILED
CALL = Part(PartType.TOOL_CALL, name="find", text="{}", call_id="c")
PICTURE = Attachment("image", url="https://example.org/a.png")


def words(text: str) -> int:
    return len(text.replace(ELLIPSIS, f" {ELLIPSIS} ").split())


def cut_words(text: str, room: int) -> str:
    return " ".join(text.split()[:room])


def message(number: int, role: Role, turn: int, *, parent: int | None = None, size: int = 1, **more) -> Message:
    """Make a message that says so many words."""
    bare = Message(
        id=UUID(int=number),
        role=role,
        content=" ".join(["word"] * size),
        name="",
        parts=(),
        attachments=(),
        parent=None if parent is None else UUID(int=parent),
        turn=UUID(int=turn),
        number=number,
        status=DONE,
        tokens=0,
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        external_id="",
    )
    said = replace(bare, **more)
    return replace(said, tokens=count_tokens(said, words, FRAME, NAMING))


def chain(*kinds: tuple[Role, MessageStatus] | Role, size: int = 1) -> list[Message]:
    """Make one thread, newest first, of messages that cost `FRAME + size` each; a user begins a turn."""
    path: list[Message] = []
    turn = 1
    for number, kind in enumerate(kinds, start=1):
        role, status = kind if isinstance(kind, tuple) else (kind, DONE)
        turn = number if role is U else turn
        path.append(message(number, role, turn, parent=number - 1 or None, size=size, status=status))
    return path[::-1]


def numbers(fitted: FittedMessages) -> list[int]:
    return [each.number for each in fitted.messages]


def count_prompt(messages, *, images: bool = False) -> int:
    """Count a prompt from what would be sent, without a look at any stored number."""
    total = 0
    for prompt in (to_prompt(each, images=images) for each in messages):
        content = prompt["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        total += FRAME + sum(words(part.get("text", "")) for part in parts)
        total += sum(IMAGE_COST for part in parts if part["type"] == "image_url")
        total += sum(
            words(f"[tool call {call['function']['name']} {call['function']['arguments']}]")
            for call in prompt.get("tool_calls", ())
        )
    return total


class TestFit:
    def test_all_of_a_short_thread(self):
        path = chain(U, A, U, A)
        assert fit(path, 100, unanswered=False) == FittedMessages(tuple(path[::-1]), 16, whole=True)

    def test_nothing_of_nothing(self):
        assert fit([], 100, unanswered=False) == FittedMessages((), 0, whole=True)

    @pytest.mark.parametrize(("budget", "kept"), [(16, [1, 2, 3, 4]), (15, [3, 4]), (8, [3, 4]), (9, [3, 4])])
    def test_a_turn_that_just_fits_is_taken(self, budget, kept):
        assert numbers(fit(chain(U, A, U, A), budget, unanswered=False)) == kept

    @pytest.mark.parametrize("budget", [7, 1, 0, -5])
    def test_the_last_turn_is_taken_however_long_it_is(self, budget):
        fitted = fit(chain(U, A, U, A), budget, unanswered=False)
        assert (numbers(fitted), fitted.tokens, fitted.whole) == ([3, 4], 8, True)

    def test_a_turn_is_never_split(self):
        path = chain(U, A, T, A, U, A)
        assert numbers(fit(path, 23, unanswered=False)) == [5, 6]
        assert numbers(fit(path, 24, unanswered=False)) == [1, 2, 3, 4, 5, 6]

    def test_images_that_are_handed_on_cost_more(self):
        path = [message(2, A, 1), message(1, U, 1, attachments=(PICTURE, PICTURE))]
        assert fit(path, 100, unanswered=False).tokens == 4 + 6
        assert fit(path, 100, unanswered=False, image_tokens=50).tokens == 4 + 6 + 100
        assert cost(path[1], 50) == 106
        longer = [message(4, A, 3), message(3, U, 3), *path]
        assert numbers(fit(longer, 50, unanswered=False)) == [1, 2, 3, 4]
        assert numbers(fit(longer, 50, unanswered=False, image_tokens=50)) == [3, 4]

    def test_nothing_small_is_taken_from_behind_something_large(self):
        path = [message(6, A, 5), message(5, U, 5), message(4, A, 3, size=90), message(3, U, 3), *chain(U, A)]
        assert numbers(fit(path, 30, unanswered=False)) == [5, 6]


class TestAnswers:
    @pytest.mark.parametrize("last", [[U], [U, U], [U, (A, PENDING)], [U, (A, FAILED)], [U, (A, PENDING), U]])
    def test_last_turns_without_an_answer_are_shown_only_if_asked_for(self, last):
        path = chain(U, A, *last)
        assert numbers(fit(path, 100, unanswered=False)) == [1, 2]
        assert numbers(fit(path, 100, unanswered=True)) == list(range(1, len(path) + 1))
        assert numbers(fit(path, 1, unanswered=True))[-1] == len(path)

    def test_a_turn_without_an_answer_stays_between_others(self):
        assert numbers(fit(chain(U, A, U, U, A), 100, unanswered=False)) == [1, 2, 3, 4, 5]

    def test_what_is_left_out_costs_nothing(self):
        assert numbers(fit(chain(U, A, U, A, U), 16, unanswered=False)) == [1, 2, 3, 4]

    def test_a_turn_that_waits_for_a_tool_is_not_answered(self):
        calling = message(4, A, 3, parts=(CALL,))
        result = message(5, T, 3)
        path = [result, calling, message(3, U, 3), *chain(U, A)]
        assert numbers(fit(path, 100, unanswered=False)) == [1, 2]
        assert numbers(fit([message(6, A, 3), *path], 100, unanswered=False)) == [1, 2, 3, 4, 5, 6]
        spoken_first = [result, calling, message(9, A, 3), message(3, U, 3)]
        assert numbers(fit(spoken_first, 100, unanswered=False)) == []

    def test_an_answer_stays_one_while_another_comes(self):
        assert numbers(fit(chain(U, A, (A, PENDING)), 100, unanswered=False)) == [1, 2, 3]
        assert numbers(fit(chain(U, A, (A, FAILED)), 100, unanswered=False)) == [1, 2, 3]

    @pytest.mark.parametrize("opening", [[A], [S], [S, A], [S, S]])
    def test_an_opening_needs_no_answer(self, opening):
        assert numbers(fit(chain(*opening), 100, unanswered=False)) == list(range(1, len(opening) + 1))

    def test_an_opening_that_is_still_to_come_is_no_answer(self):
        assert numbers(fit(chain((A, PENDING)), 100, unanswered=False)) == []
        assert numbers(fit(chain(S, (A, PENDING)), 100, unanswered=False)) == []

    def test_a_question_alone_gives_nothing(self):
        assert fit(chain(U), 100, unanswered=False) == FittedMessages((), 0, whole=False)
        assert numbers(fit(chain(U), 100, unanswered=True)) == [1]


class TestBeginnings:
    def test_a_path_that_ends_within_a_turn_begins_with_the_next(self):
        path = chain(U, A, U, A)[:3]
        assert fit(path, 100, unanswered=False).whole
        assert numbers(fit(path, 100, unanswered=False)) == [3, 4]

    def test_a_path_that_ends_within_its_last_turn_gives_nothing_yet(self):
        assert fit(chain(U, A, U, A)[:1], 100, unanswered=False) == FittedMessages((), 0, whole=False)

    def test_a_turn_whose_beginning_was_forgotten_stands_only_behind_others(self):
        forgotten = [each for each in chain(U, A, U, A, U, A) if each.number != 3]
        assert numbers(fit(forgotten, 20, unanswered=False)) == [1, 2, 4, 5, 6]
        assert numbers(fit(forgotten, 19, unanswered=False)) == [5, 6]

    def test_a_last_turn_whose_beginning_was_forgotten_keeps_the_one_before_it(self):
        forgotten = [each for each in chain(U, A, U, A, U, A) if each.number != 5]
        assert numbers(fit(forgotten, 0, unanswered=False)) == [3, 4, 6]

    def test_the_middle_of_a_turn_is_no_beginning_even_where_it_is_the_root(self):
        orphan = [each for each in chain(U, A) if each.number != 1]
        assert fit(orphan, 100, unanswered=False) == FittedMessages((), 0, whole=False)


def grow(chance: random.Random, size: int) -> list[Message]:
    """Grow a conversation: branches, several roots, tools, regenerated answers, turns that nobody answered."""
    grown: list[Message] = []
    for number in range(1, size + 1):
        parent = None
        if grown and chance.random() > 0.05:
            parent = grown[-1] if chance.random() < 0.7 else chance.choice(grown)
        role = chance.choice([U, U, A, S]) if parent is None else _reply(chance, parent)
        turn = number if parent is None or role is U else parent.turn.int
        grown.append(
            message(
                number,
                role,
                turn,
                parent=parent and parent.number,
                size=chance.choice([0, 1, 2, 5, 9, 30]),
                status=chance.choices([DONE, PENDING, FAILED], [8, 1, 1])[0],
                parts=(CALL,) if role is A and chance.random() < 0.2 else (),
                attachments=(PICTURE,) if chance.random() < 0.1 else (),
            )
        )
    return grown


def _reply(chance: random.Random, parent: Message) -> Role:
    if parent.role is A and parent.parts:
        return T
    return chance.choices([U, A, S], [2, 6, 1] if parent.role in {U, T} else [8, 1, 1])[0]


def forget_one(chance: random.Random, path: list[Message]) -> list[Message]:
    """Take out a message as forgetting does: what followed it follows what it followed."""
    gone = chance.randrange(len(path))
    kept = path[:gone] + path[gone + 1 :]
    if 0 < gone < len(path):
        kept[gone - 1] = replace(kept[gone - 1], parent=path[gone].parent)
    return kept


def has_answer(turn: list[Message]) -> bool:
    """Say by other means whether a turn, oldest first, has its answer."""
    state = all(each.role is S for each in turn)
    for each in turn:
        if each.role is A and each.status is DONE:
            state = not each.parts
    return state


def fit_slowly(path: list[Message], budget: int, *, unanswered: bool, images: bool) -> list[Message]:
    """Try every beginning: the earliest one that fits, or else the latest there is."""
    thread = path[::-1]
    while thread and not unanswered:
        last = [each for each in thread if each.turn == thread[-1].turn]
        if has_answer(last):
            break
        thread = thread[: -len(last)]
    beginnings = [place for place, each in enumerate(thread) if each.id == each.turn]
    if images:
        fitting = [place for place in beginnings if sum(cost(each, IMAGE_COST) for each in thread[place:]) <= budget]
    else:
        fitting = [place for place in beginnings if count_prompt(thread[place:]) <= budget]
    return thread[min(fitting or beginnings[-1:]) :] if beginnings else []


def check_fit(path: list[Message], budget: int, *, unanswered: bool, images: bool) -> FittedMessages:
    """Hold what was chosen against the promise, each clause for itself, and against a slow search."""
    fitted = fit(path, budget, unanswered=unanswered, image_tokens=IMAGE_COST if images else 0)
    messages, thread = list(fitted.messages), path[::-1]
    assert messages == fit_slowly(path, budget, unanswered=unanswered, images=images)
    assert fitted.whole == (bool(messages) or not path)
    if not messages:
        return fitted
    end = thread.index(messages[-1]) + 1
    start = thread.index(messages[0])
    assert thread[start:end] == messages
    assert all(after.parent == before.id for before, after in pairwise(messages))
    assert messages[0].id == messages[0].turn
    assert end == len(thread) or thread[end].turn != messages[-1].turn
    if unanswered:
        assert end == len(thread)
    assert fitted.tokens >= count_prompt(messages, images=images)
    if not images:
        assert fitted.tokens == count_prompt(messages)
    beginnings = [place for place in range(end) if thread[place].id == thread[place].turn]
    if fitted.tokens > budget:
        assert start == beginnings[-1]
    elif start > beginnings[0]:
        more = thread[max(place for place in beginnings if place < start) : end]
        assert sum(cost(each, IMAGE_COST if images else 0) for each in more) > budget
    return fitted


@pytest.mark.promise("A history is the longest end of a thread, in whole turns, that fits its budget", TREES)
def test_random_trees_give_suffixes_of_whole_turns_within_the_budget():
    chance = random.Random(20260821)
    seen = {"empty": 0, "oversized": 0, "trimmed": 0, "complete": 0, "branched": 0, "left out": 0, "images": 0}
    for _ in range(TREES.now):
        tree = grow(chance, chance.randint(1, 24))
        by_id = {str(each.id): each for each in tree}
        nodes = [ThreadNode(str(each.id), each.parent and str(each.parent)) for each in reversed(tree)]
        leaf = None if chance.random() < 0.3 else str(chance.choice(tree).id)
        path = [by_id[each] for each in walk(nodes, leaf)]
        assert path[-1].parent is None
        seen["branched"] += len(path) < len(tree)
        if chance.random() < 0.2:
            path = path[: chance.randint(1, len(path))]
        if len(path) > 1 and chance.random() < 0.2:
            path = forget_one(chance, path)
        budget, unanswered, images = chance.randint(0, 120), chance.random() < 0.3, chance.random() < 0.2
        fitted = check_fit(path, budget, unanswered=unanswered, images=images)
        seen["empty"] += not fitted.messages
        seen["oversized"] += fitted.tokens > budget
        seen["complete"] += len(fitted.messages) == len(path)
        seen["trimmed"] += bool(fitted.messages) and fitted.messages[0] is not path[-1]
        seen["left out"] += bool(fitted.messages) and fitted.messages[-1] is not path[0]
        seen["images"] += images
    assert min(seen.values()) > TREES.now / 20, seen


@given(st.randoms(use_true_random=False), st.integers(1, 10), st.integers(0, 60), st.booleans())
def test_any_tree_gives_suffixes_of_whole_turns_within_the_budget(chance, size, budget, unanswered):
    tree = grow(chance, size)
    by_id = {each.id: each for each in tree}
    path, each = [], tree[-1]
    while each is not None:
        path.append(each)
        each = by_id.get(each.parent)
    check_fit(path, budget, unanswered=unanswered, images=False)


@pytest.mark.promise("A long thread is fitted into a budget in time in proportion", DEEP)
def test_fitting_a_long_path_takes_linear_time():
    path = chain(*[U, A] * (DEEP.now // 2))
    began = process_time()
    assert len(fit(path, 10**9, unanswered=False).messages) == DEEP.now
    assert process_time() - began < 5


def shorten_words(turn, budget, image_tokens: int = 0, cut: Callable[[str, int], str] = cut_words):
    return shorten(turn, budget, cut, words, (FRAME, NAMING), image_tokens)


class TestShorten:
    def test_what_fits_stays_as_it_is(self):
        turn = (message(1, U, 1, size=5), message(2, A, 1, size=9))
        assert shorten_words(turn, 20) == turn

    def test_what_fits_stays_also_where_every_cut_would_cost_more(self):
        turn = (message(1, U, 1, size=9),)
        assert shorten_words(turn, FRAME + 9, cut=lambda text, _: text) == turn

    def test_the_longest_text_is_cut_first(self):
        turn = (message(1, U, 1, size=5), message(2, A, 1, size=90))
        question, answer = shorten_words(turn, 31)
        assert question == turn[0]
        assert answer == replace(turn[1], content=" ".join(["word"] * 19) + ELLIPSIS, tokens=23)

    def test_texts_that_are_cut_come_down_to_one_level(self):
        turn = (message(1, U, 1, size=70), message(2, A, 1, size=90), message(3, A, 1, size=3))
        assert [words(each.content) for each in shorten_words(turn, 32)] == [10, 10, 3]

    def test_where_only_the_frames_fit_they_are_all_there_is(self):
        turn = (message(1, U, 1, size=5, name="Ann"), message(2, A, 1, size=9))
        emptied = shorten_words(turn, 8)
        assert [each.content for each in emptied] == ["", ""]
        assert [each.tokens for each in emptied] == [5, 3]
        assert shorten_words(turn, 7) == ()

    def test_nothing_is_ever_cut_to_less_than_nothing(self):
        def cut(text: str, room: int) -> str:
            assert room >= 0
            return cut_words(text, room)

        turn = (message(1, U, 1, size=9),)
        assert shorten_words(turn, -1, cut=cut) == ()
        assert shorten_words(turn, FRAME, cut=cut)[0].content == ""

    def test_a_mark_takes_room_itself(self):
        turn = (message(1, U, 1, size=9),)
        assert shorten_words(turn, FRAME + 4)[0].content == f"word word word{ELLIPSIS}"
        assert shorten_words(turn, FRAME + 1)[0].content == ELLIPSIS

    def test_no_blank_is_left_before_the_mark(self):
        turn = (message(1, U, 1, content="one two three four"),)
        (cut,) = shorten_words(turn, FRAME + 3, cut=lambda text, room: cut_words(text, room) + " ")
        assert cut.content == f"one two{ELLIPSIS}"

    def test_parts_are_cut_where_they_say_it(self):
        texts = (Part(PartType.TEXT, text="word " * 30), Part(PartType.IMAGE), Part(PartType.TEXT, text="two words"))
        asked = message(1, U, 1, parts=texts, size=0)
        asked = replace(asked, content=prompt_text(asked))
        result = message(3, T, 1, size=0, parts=(Part(PartType.TOOL_RESULT, text="word " * 30, call_id="c"),))
        calling = message(2, A, 1, size=0, parts=(CALL,))
        shortened = shorten_words((asked, calling, result), 40)
        assert [part.type for part in shortened[0].parts] == [PartType.TEXT, PartType.IMAGE, PartType.TEXT]
        assert shortened[0].parts[2].text == "two words"
        assert shortened[0].content == prompt_text(shortened[0])
        assert shortened[0].content.count("[image]") == 1
        assert shortened[1] == replace(calling, content="[tool call find {}]")
        assert to_prompt(shortened[2], images=False)["tool_call_id"] == "c"
        assert shortened[2].content.endswith(ELLIPSIS)
        assert count_prompt(shortened) <= 40

    def test_a_content_that_was_cut_does_not_come_back_from_its_parts(self):
        secret = Part(PartType.TEXT, text="secret " * 20)
        asked = message(1, U, 1, content="own words " * 20, parts=(secret, Part(PartType.IMAGE)))
        for budget in (FRAME + 1, FRAME + 9):
            (cut,) = shorten_words((asked,), budget)
            assert "secret" not in prompt_text(cut)
            assert "[image]" in prompt_text(cut)

    def test_images_take_their_room(self):
        asked = message(1, U, 1, size=20, attachments=(PICTURE,))
        (cut,) = shorten_words((asked,), 20, image_tokens=IMAGE_COST)
        assert cost(cut, IMAGE_COST) == 20
        assert shorten_words((asked,), FRAME + IMAGE_COST, image_tokens=IMAGE_COST) == ()

    def test_an_outdated_count_does_not_mislead(self):
        turn = (replace(message(1, U, 1, size=5), tokens=9_999),)
        assert shorten_words(turn, 100)[0].tokens == FRAME + 5

    @given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=6), st.integers(0, 120))
    def test_what_comes_out_fits_whenever_the_frames_do(self, sizes, budget):
        turn = [
            message(number, U if number == 1 else A, 1, size=size, name="Ann" if named else "")
            for number, (size, named) in enumerate(sizes, start=1)
        ]
        frames = sum(FRAME + (NAMING + 1 if named else 0) for _, named in sizes)
        shortened = shorten_words(turn, budget)
        if frames > budget:
            assert shortened == ()
            return
        assert [each.id for each in shortened] == [each.id for each in turn]
        assert sum(count_tokens(each, words, FRAME, NAMING) for each in shortened) <= budget
        assert all(each.tokens == count_tokens(each, words, FRAME, NAMING) for each in shortened)
        for before, after in zip(turn, shortened, strict=True):
            assert after == before or after.content.endswith(ELLIPSIS) or not after.content
            assert before.content.startswith(after.content.removesuffix(ELLIPSIS))
        room = budget - sum(each.tokens for each in shortened)
        cut = [each for each, before in zip(shortened, turn, strict=True) if each != before]
        assert room < max(len(cut), 1) or not cut


class TestUpstream:
    @given(st.lists(st.integers(0, 20), max_size=12), st.integers(-1, 100))
    def test_pruning_is_popping_from_the_front(self, costs, limit):
        popped = list(costs)
        while sum(popped) > limit and len(popped) > 1:
            popped.pop(0)
        assert prune_upstream(costs, int, limit) == popped

    def test_a_turn_may_lose_its_question(self):
        assert numbers(fit_upstream(chain(U, A, U, A), 12)) == [2, 3, 4]

    @pytest.mark.parametrize("last", [[U], [U, (A, PENDING)], [U, (A, FAILED)]])
    def test_the_turn_being_generated_is_left_out_whole(self, last):
        assert numbers(fit_upstream(chain(U, A, *last, size=0), 100)) == [1, 2]

    def test_only_the_last_turn_is_left_out(self):
        assert numbers(fit_upstream(chain(U, A, U, U, size=0), 100)) == [1, 2, 3]

    @pytest.mark.parametrize(("status", "size"), [(DONE, 0), (PENDING, 1), (FAILED, 1)])
    def test_an_answer_with_text_or_with_an_end_stays(self, status, size):
        answer = message(2, A, 1, size=size, status=status)
        assert numbers(fit_upstream([answer, message(1, U, 1)], 100)) == [1, 2]

    def test_nothing_of_nothing(self):
        assert fit_upstream([], 10) == FittedMessages((), 0, whole=True)
        assert fit_upstream(chain(U), 10) == FittedMessages((), 0, whole=False)

    def test_images_cost_there_too(self):
        path = [message(2, A, 1), message(1, U, 1, attachments=(PICTURE,))]
        assert numbers(fit_upstream(path, 10)) == [1, 2]
        assert numbers(fit_upstream(path, 10, image_tokens=50)) == [2]


class TestAllot:
    def test_all_get_their_share_where_all_want_more(self):
        assert allocate(1_000, BudgetShares(0.5, 0.35, 0.15), BudgetTokens(9_000, 9_000, 9_000)) == BudgetTokens(
            500, 350, 150
        )

    def test_what_one_does_not_want_falls_to_the_history_first(self):
        assert allocate(1_000, BudgetShares(0.5, 0.35, 0.15), BudgetTokens(9_000, 9_000, 0)) == BudgetTokens(
            650, 350, 0
        )

    def test_then_to_the_memories_and_then_to_the_summary(self):
        assert allocate(1_000, BudgetShares(0.5, 0.35, 0.15), BudgetTokens(100, 9_000, 9_000)) == BudgetTokens(
            100, 750, 150
        )
        assert allocate(1_000, BudgetShares(0.5, 0.35, 0.15), BudgetTokens(100, 200, 9_000)) == BudgetTokens(
            100, 200, 700
        )
        assert allocate(1_000, BudgetShares(0.5, 0.35, 0.15), BudgetTokens(600, 9_000, 0)) == BudgetTokens(600, 400, 0)

    def test_a_part_without_a_share_lives_on_what_is_left(self):
        assert allocate(100, BudgetShares(1.0, 0.0, 0.0), BudgetTokens(40, 50, 50)) == BudgetTokens(40, 50, 10)

    def test_a_share_of_binary_rounding_is_whole(self):
        assert allocate(100, BudgetShares(0.42, 0.29, 0.29), BudgetTokens(0, 29, 100)) == BudgetTokens(0, 29, 71)
        assert allocate(100, BudgetShares(0.42, 0.29, 0.29), BudgetTokens(100, 100, 100)) == BudgetTokens(42, 29, 29)

    def test_shares_a_rounding_above_one_are_brought_down_alike(self):
        shares, wants = BudgetShares(0.5000005, 0.35, 0.15), BudgetTokens(10**8, 10**8, 10**8)
        assert allocate(10**7, shares, wants) == BudgetTokens(5_000_003, 3_499_998, 1_499_999)

    @pytest.mark.parametrize("budget", [0, -10])
    def test_without_a_budget_nobody_gets_anything(self, budget):
        assert allocate(budget, BudgetShares(), BudgetTokens(5, 5, 5)) == BudgetTokens(0, 0, 0)

    def test_nobody_wants_less_than_nothing(self):
        assert allocate(100, BudgetShares(), BudgetTokens(500, 500, -50)) == BudgetTokens(65, 35, 0)

    @given(
        st.integers(0, 10**7),
        st.tuples(*[st.integers(0, 1_000)] * 3).filter(any),
        st.tuples(*[st.integers(0, 10**7)] * 3),
        st.floats(-9e-7, 9e-7),
    )
    def test_nothing_is_lost_and_nobody_comes_short(self, budget, parts, wanted, slip):
        history, memories, summary = (part / sum(parts) for part in parts)
        shares = BudgetShares(max(history + slip, 0.0), memories, summary)
        given_ = allocate(budget, shares, BudgetTokens(*wanted))
        got = (given_.history, given_.memories, given_.summary)
        assert sum(got) == min(budget, sum(wanted))
        exact = [Fraction(share) for share in (shares.history, shares.memories, shares.summary)]
        for part, want, share in zip(got, wanted, exact, strict=True):
            assert min(want, int(share / sum(exact) * budget)) <= part <= want

    @pytest.mark.parametrize(
        "shares",
        [
            BudgetShares(0.5, 0.5, 0.5),
            BudgetShares(0.5, 0.35, 0.1),
            BudgetShares(1.2, -0.2, 0.0),
            BudgetShares(float("nan"), 0.5, 0.5),
            BudgetShares(float("inf"), 0.0, 0.0),
            BudgetShares(0.500003, 0.35, 0.15),
        ],
    )
    def test_shares_that_divide_no_whole_are_refused(self, shares):
        with pytest.raises(InvalidInputError):
            check_shares(shares)
        with pytest.raises(InvalidInputError):
            allocate(100, shares, BudgetTokens(1, 1, 1))

    def test_a_rounding_is_forgiven(self):
        check_shares(BudgetShares())
        check_shares(BudgetShares(0.5000005, 0.35, 0.15))
        check_shares(BudgetShares(1 / 3, 1 / 3, 1 / 3))

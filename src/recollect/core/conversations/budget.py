"""Choose the messages of a thread that fit a token budget, and divide a budget over the parts of a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from recollect.core.conversations.messages import count_images, count_tokens, is_own, memory_text
from recollect.errors import InvalidInputError
from recollect.models.conversations import BudgetShares, HistoryOptions, Message, MessageStatus, PartType
from recollect.models.memories import Role

ELLIPSIS = "…"
ROUNDING = 1e-6
CUTTABLE = frozenset({PartType.TEXT, PartType.TOOL_RESULT})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FittedMessages:
    """The chosen messages, oldest first, and their tokens."""

    messages: tuple[Message, ...]
    tokens: int
    whole: bool
    """False if no turn begins on the path, so that nothing could be chosen: read further back, if possible."""


@dataclass(frozen=True, slots=True)
class BudgetTokens:
    """Tokens for each part of a prompt: needed or assigned."""

    history: int
    memories: int
    summary: int


def fit(
    path: Sequence[Message], max_tokens: int, *, unanswered: bool, image_tokens: int = 0, most: int | None = None
) -> FittedMessages:
    """Choose the newest whole turns of a path that fit, newest first; always at least one.

    Unanswered turns at the end are left out unless `unanswered` is set. `most` limits the number of turns. A turn
    without its beginning is kept only if an older turn is chosen completely.
    """
    turns = [list(turn) for _, turn in groupby(path, key=lambda message: message.turn)]
    newest = 0 if unanswered else next((place for place, turn in enumerate(turns) if _answered(turn)), len(turns))
    path = path[sum(map(len, turns[:newest])) :]
    chosen = read = spent = tokens = 0
    for turn in turns[newest : None if most is None else newest + most]:
        read += len(turn)
        spent += sum(cost(message, image_tokens) for message in turn)
        if chosen and spent > max_tokens:
            break
        if turn[-1].id == turn[-1].turn:
            chosen, tokens = read, spent
    return FittedMessages(tuple(reversed(path[:chosen])), tokens, whole=bool(chosen) or not turns)


def price_image(window: HistoryOptions) -> int:
    """Return the tokens of one image in a window: 0 if images are only mentioned."""
    return window.image_tokens if window.images else 0


def cost(message: Message, image_tokens: int = 0) -> int:
    """Return the tokens of a message, with `image_tokens` for each image that is passed to the model."""
    return message.tokens + (image_tokens * count_images(message) if image_tokens else 0)


def shorten(
    turn: Sequence[Message],
    max_tokens: int,
    cut: Callable[[str, int], str],
    count: Callable[[str], int],
    framing: tuple[int, int],
    image_tokens: int = 0,
) -> tuple[Message, ...]:
    """Shorten the texts of a turn from their ends, the longest first, until it fits; empty if it cannot.

    All shortened texts get the same length. The other costs of a message stay: frame and name (`framing`, as for
    `count_tokens`), images, attachments, tool calls.
    """
    lengths = {text: count(text) for message in turn for text in _texts(message)}
    # Cutting a long text is slow, and the search below cuts many times.
    heads = {text: cut(text, max_tokens) if length > max_tokens >= 0 else text for text, length in lengths.items()}
    mark = count(ELLIPSIS)

    def lower(level: int) -> tuple[Message, ...]:
        def shortened(text: str) -> str:
            return text if lengths[text] <= level else _cut(heads[text], level - mark, cut)

        lowered = (_lower(message, shortened) for message in turn)
        return tuple(replace(each, tokens=count_tokens(each, count, *framing)) for each in lowered)

    def fits(messages: tuple[Message, ...]) -> bool:
        return sum(cost(message, image_tokens) for message in messages) <= max_tokens

    longest = max(lengths.values(), default=0)
    if fits(uncut := lower(longest)):
        return uncut
    best = lower(0)
    if not fits(best):
        return ()
    lowest, highest = 0, min(longest, max_tokens)
    while lowest < highest:
        level = (lowest + highest + 1) // 2
        if fits(lowered := lower(level)):
            best, lowest = lowered, level
        else:
            highest = level - 1
    return best


def prune_upstream(prompts: Sequence[T], tokens: Callable[[T], int], limit: int) -> list[T]:
    """Drop first messages while all together exceed the limit, as Dify does; the last one stays."""
    total, first = sum(map(tokens, prompts)), 0
    while total > limit and len(prompts) - first > 1:
        total -= tokens(prompts[first])
        first += 1
    return list(prompts[first:])


def fit_upstream(path: Sequence[Message], max_tokens: int, image_tokens: int = 0) -> FittedMessages:
    """Choose messages from a path, newest first, as Dify does: without the turn that is being generated."""
    last = [message for message in path if message.turn == path[0].turn] if path else []
    answers = (message for message in last if message.role is Role.ASSISTANT)
    # Dify checks for an empty answer of 0 tokens; here an empty answer that is done counts as one with tokens.
    generating = not any(message.content or message.status is MessageStatus.DONE for message in answers)
    kept = [message for message in reversed(path) if not (generating and message.turn == path[0].turn)]
    chosen = prune_upstream(kept, lambda message: cost(message, image_tokens), max_tokens)
    spent = sum(cost(message, image_tokens) for message in chosen)
    return FittedMessages(tuple(chosen), spent, whole=bool(chosen) or not path)


def check_shares(shares: BudgetShares) -> None:
    """Refuse shares that do not add up to 1."""
    parts = (shares.history, shares.memories, shares.summary)
    if not all(part >= 0 for part in parts) or not abs(math.fsum(parts) - 1) <= ROUNDING:
        raise InvalidInputError("shares must not be negative and must add up to 1 (history, memories, summary)")


def allocate(budget: int, shares: BudgetShares, wants: BudgetTokens) -> BudgetTokens:
    """Divide a budget: each part gets its needed tokens up to its share, rounded down.

    The rest goes to history, memories and summary, in this order, up to their needed tokens.
    """
    check_shares(shares)
    parts = (shares.history, shares.memories, shares.summary)
    wanted = [max(want, 0) for want in (wants.history, wants.memories, wants.summary)]
    # Divided by their sum, so that shares with a sum slightly above 1 never exceed the budget.
    whole = math.fsum(parts)
    owed = [math.floor(max(budget, 0) * (part / whole) + ROUNDING) for part in parts]
    given = [min(want, share) for want, share in zip(wanted, owed, strict=True)]
    for place, want in enumerate(wanted):
        given[place] += min(want - given[place], max(budget, 0) - sum(given))
    return BudgetTokens(*given)


def _answered(turn: Sequence[Message]) -> bool:
    """Return whether the turn ends with a finished answer; system messages need no answer."""
    done = (each for each in turn if each.role is Role.ASSISTANT and each.status is MessageStatus.DONE)
    answer = next(done, None)
    if answer is None:
        return all(message.role is Role.SYSTEM for message in turn)
    # A tool call needs its result: models refuse a prompt that continues without it.
    return not any(part.type is PartType.TOOL_CALL for part in answer.parts)


def _texts(message: Message) -> list[str]:
    """List the texts of a message that can be shortened: its content, or the texts of its parts."""
    if is_own(message):
        return [message.content]
    return [part.text for part in message.parts if part.type in CUTTABLE]


def _lower(message: Message, shortened: Callable[[str], str]) -> Message:
    """Shorten the texts of a message; its parts keep their order."""
    if not is_own(message):
        parts = tuple(
            replace(part, text=shortened(part.text)) if part.type in CUTTABLE else part for part in message.parts
        )
        return replace(message, parts=parts, content=memory_text(replace(message, parts=parts, content="")))
    content = shortened(message.content)
    if content == message.content:
        return message
    # The content repeats the texts of the parts: if they stayed, they would show the removed text again.
    bare = tuple(replace(part, text="") if part.type in CUTTABLE else part for part in message.parts)
    return replace(message, parts=bare, content=content)


def _cut(text: str, room: int, cut: Callable[[str, int], str]) -> str:
    """Cut a text and mark the cut; empty if not even the mark fits."""
    return cut(text, room).rstrip() + ELLIPSIS if room >= 0 else ""

"""History: return the newest whole turns of a thread that fit a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.conversations.appends import check_conversation
from recollect.core.conversations.budget import FittedMessages, cost, fit, fit_upstream, price_image, shorten
from recollect.core.conversations.messages import to_prompt, to_text
from recollect.core.conversations.threads import ThreadNode, bound_fetch, walk_upstream
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_limit
from recollect.core.text.tokens import ESTIMATE, find_tokenizer
from recollect.errors import InvalidInputError, NotFoundError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.conversations import (
    LEGACY,
    ConversationInfo,
    History,
    HistoryOptions,
    MessagePage,
    MessageStatus,
    OversizedTurn,
)
from recollect.models.filters import Filter
from recollect.models.memories import Role
from recollect.models.service import Scope
from recollect.store.conversations import conversations
from recollect.store.conversations.conversations import EVERY_STATE, VISIBLE, Read
from recollect.verbs.dependencies import Dependencies

MAX_TOKENS = 10_000_000
MAX_BIGINT = 2**63 - 1
UNKNOWN = "No such conversation in this scope."
NO_LEAF = "leaf names no message of this conversation."


async def history(parts: Dependencies, scope: Scope, conversation: str, window: HistoryOptions) -> History:
    """Read a thread from its leaf upwards within a token budget, and return the turns that fit."""
    check_conversation(conversation)
    check_window(window)
    tokenizer = choose_tokenizer(parts, window.tokenizer)
    path = await read_path(parts, scope, conversation, window, tokenizer)
    if not path:
        known = await find_silent(parts, scope, conversation, window)
        if known is None or known.state not in VISIBLE:
            raise NotFoundError(UNKNOWN)
    return render_history(fit_history(path, window), path, window, tokenizer)


async def list_messages(parts: Dependencies, scope: Scope, conversation: str, after: int, limit: int) -> MessagePage:
    """Fetch one page of the messages of all branches, in the order of their numbers."""
    check_conversation(conversation)
    check_limit(limit)
    if not 0 <= after <= MAX_BIGINT:
        raise InvalidInputError("after must be the number of a message, or 0")
    tokenizer = choose_tokenizer(parts, "").name
    found = await conversations.page_messages(parts.database, scope, conversation, after, limit + 1, tokenizer)
    if not found and await conversations.find_conversation(parts.database, scope, conversation) is None:
        raise NotFoundError(UNKNOWN)
    return MessagePage(tuple(found[:limit]), found[limit - 1].number if len(found) > limit else None)


def check_window(window: HistoryOptions) -> None:
    """Refuse invalid budgets."""
    for field, value in (("max_tokens", window.max_tokens), ("image_tokens", window.image_tokens)):
        if not 0 <= value <= MAX_TOKENS:
            raise InvalidInputError(f"{field} must be between 0 and {MAX_TOKENS}")
    if window.message_limit is not None and not 1 <= window.message_limit <= MAX_TOKENS:
        raise InvalidInputError(f"message_limit must be between 1 and {MAX_TOKENS}")
    check_filter(Filter(as_of=window.as_of, at=window.at))


def choose_tokenizer(parts: Dependencies, name: str) -> Tokenizer:
    """Find a tokenizer by name, among those that count every message."""
    known = {tokenizer.name: tokenizer for tokenizer in parts.tokenizers}
    found = find_tokenizer(name, list(known))
    # If nothing is estimated, a model of an unknown family gets the default tokenizer.
    return known.get(found) or parts.tokenizers[0]


async def read_path(
    parts: Dependencies, scope: Scope, conversation: str, window: HistoryOptions, tokenizer: Tokenizer
) -> list[Read]:
    """Read the messages to choose from, newest first."""
    if window.upstream:
        limit = bound_fetch(window.message_limit)
        reads = await conversations.read_turns(parts.database, scope, conversation, limit, window, tokenizer.name)
        return follow_upstream(reads, tokenizer.frame)
    return await conversations.walk(parts.database, scope, conversation, window, tokenizer.name)


async def find_silent(
    parts: Dependencies, scope: Scope, conversation: str, window: HistoryOptions
) -> ConversationInfo | None:
    """Find a conversation without read messages, in any state; raise an error if the leaf is not in it."""
    known = await conversations.find_conversation(parts.database, scope, conversation, EVERY_STATE)
    if window.leaf is not None:
        raise NotFoundError(NO_LEAF if known is not None and known.state in VISIBLE else UNKNOWN)
    return known


def follow_upstream(reads: Sequence[Read], frame: int) -> list[Read]:
    """Choose the messages that Dify would, newest first."""
    turns: dict[UUID, list[Read]] = {}
    for read in reads:
        turns.setdefault(read.message.turn, []).append(read)
    heads = [read for read in reads if read.message.role is Role.USER]
    nodes = [ThreadNode(str(head.message.id), str(head.followed) if head.followed else None) for head in heads]
    thread = [turns[UUID(identity)] for identity in walk_upstream(nodes)]
    return [read for turn in thread for read in answer_upstream(turn, frame)]


def answer_upstream(turn: Sequence[Read], frame: int) -> list[Read]:
    """Put a turn's answer before its question; add an empty one if there is none, because Dify's rows have one."""
    shown = sorted(turn, key=lambda read: read.message.role is Role.USER)
    question = shown[-1].message
    if len(shown) > 1:
        return shown
    said = replace(question, role=Role.ASSISTANT, content="", name="", parts=(), attachments=(), external_id="")
    silence = replace(said, id=LEGACY, parent=question.id, status=MessageStatus.PENDING, tokens=frame, metadata={})
    return [Read(silence, exact=True), *shown]


def fit_history(path: Sequence[Read], window: HistoryOptions) -> FittedMessages:
    """Choose the messages of a path that fit."""
    messages = [read.message for read in path]
    image_tokens = price_image(window)
    if window.upstream:
        return fit_upstream(messages, window.max_tokens, image_tokens)
    most = window.message_limit
    return fit(messages, window.max_tokens, unanswered=window.unanswered, image_tokens=image_tokens, most=most)


def render_history(
    fitted: FittedMessages, path: Sequence[Read], window: HistoryOptions, tokenizer: Tokenizer
) -> History:
    """Render the chosen messages; a last turn that is too long is shortened if requested."""
    messages, tokens = fitted.messages, fitted.tokens
    cut = window.oversized is OversizedTurn.CUT and tokens > window.max_tokens
    if cut:
        image_tokens = price_image(window)
        framing = (tokenizer.frame, tokenizer.naming)
        messages = shorten(messages, window.max_tokens, tokenizer.cut, tokenizer.count, framing, image_tokens)
        tokens = sum(cost(message, image_tokens) for message in messages)
    shown = {message.id for message in messages}
    return History(
        messages=messages,
        prompt=tuple(to_prompt(message, images=window.images) for message in messages),
        text=to_text(messages, (window.user_prefix, window.assistant_prefix)),
        tokens=tokens,
        tokenizer=tokenizer.name,
        exact=tokenizer.name != ESTIMATE and all(read.exact for read in path if read.message.id in shown),
        complete=bool(messages) and messages[0].parent is None,
        cut=cut,
    )

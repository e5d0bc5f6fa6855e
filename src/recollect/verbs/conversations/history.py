"""History: return the newest whole turns of a thread that fit a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.conversations.appends import check_conversation
from recollect.core.conversations.budget import Fitted, cost, fit, fit_upstream, price_image, shorten
from recollect.core.conversations.messages import to_prompt, to_text
from recollect.core.conversations.threads import ThreadNode, bound_fetch, walk_upstream
from recollect.core.recall.checks import check_filter
from recollect.core.text.checks import check_limit
from recollect.core.text.tokens import ESTIMATE, find_tokenizer
from recollect.errors import InvalidInputError, NotFoundError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.conversations import LEGACY, Conversation, History, MessagePage, MessageStatus, Oversized, Window
from recollect.models.memories import Role
from recollect.models.recall import Filter
from recollect.models.service import Scope
from recollect.store.conversations import conversations
from recollect.store.conversations.conversations import EVERY_STATE, IN_SIGHT, Read
from recollect.verbs.parts import Parts

MOST_TOKENS = 10_000_000
LARGEST_NUMBER = 2**63 - 1
UNKNOWN = "There is no such conversation in this scope."
NO_LEAF = "leaf names no message of this conversation."


async def history(parts: Parts, scope: Scope, conversation: str, window: Window) -> History:
    """Read a thread from its leaf upwards as far as the budget reaches, and return what fits."""
    check_conversation(conversation)
    check_window(window)
    tokenizer = choose_tokenizer(parts, window.tokenizer)
    path = await read_path(parts, scope, conversation, window, tokenizer)
    if not path:
        known = await find_silent(parts, scope, conversation, window)
        if known is None or known.state not in IN_SIGHT:
            raise NotFoundError(UNKNOWN)
    return show(choose(path, window), path, window, tokenizer)


async def list_messages(parts: Parts, scope: Scope, conversation: str, after: int, limit: int) -> MessagePage:
    """Fetch one page of the messages of all branches, in the order of their numbers."""
    check_conversation(conversation)
    check_limit(limit)
    if not 0 <= after <= LARGEST_NUMBER:
        raise InvalidInputError("after must be the number of a message, or 0")
    tokenizer = choose_tokenizer(parts, "").name
    found = await conversations.page_messages(parts.database, scope, conversation, after, limit + 1, tokenizer)
    if not found and await conversations.find(parts.database, scope, conversation) is None:
        raise NotFoundError(UNKNOWN)
    return MessagePage(tuple(found[:limit]), found[limit - 1].number if len(found) > limit else None)


def check_window(window: Window) -> None:
    """Refuse invalid budgets."""
    for field, value in (("max_tokens", window.max_tokens), ("image_tokens", window.image_tokens)):
        if not 0 <= value <= MOST_TOKENS:
            raise InvalidInputError(f"{field} must be between 0 and {MOST_TOKENS}")
    if window.message_limit is not None and not 1 <= window.message_limit <= MOST_TOKENS:
        raise InvalidInputError(f"message_limit must be between 1 and {MOST_TOKENS}")
    check_filter(Filter(as_of=window.as_of, at=window.at))


def choose_tokenizer(parts: Parts, name: str) -> Tokenizer:
    """Find the tokenizer for a name, among those that every message was counted by."""
    known = {tokenizer.name: tokenizer for tokenizer in parts.tokenizers}
    found = find_tokenizer(name, list(known))
    # Where nothing is estimated, a model of no known family gets the default tokenizer.
    return known.get(found) or parts.tokenizers[0]


async def read_path(parts: Parts, scope: Scope, conversation: str, window: Window, tokenizer: Tokenizer) -> list[Read]:
    """Read the messages to choose from, newest first."""
    if window.upstream:
        limit = bound_fetch(window.message_limit)
        reads = await conversations.read_turns(parts.database, scope, conversation, limit, window, tokenizer.name)
        return follow_upstream(reads, tokenizer.frame)
    return await conversations.walk(parts.database, scope, conversation, window, tokenizer.name)


async def find_silent(parts: Parts, scope: Scope, conversation: str, window: Window) -> Conversation | None:
    """Find a conversation of which nothing was read, in any state; then a named leaf does not belong to it."""
    known = await conversations.find(parts.database, scope, conversation, EVERY_STATE)
    if window.leaf is not None:
        raise NotFoundError(NO_LEAF if known is not None and known.state in IN_SIGHT else UNKNOWN)
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
    """Put a turn's answer before its question; an empty one if there is none, as a row of Dify always has one."""
    shown = sorted(turn, key=lambda read: read.message.role is Role.USER)
    question = shown[-1].message
    if len(shown) > 1:
        return shown
    said = replace(question, role=Role.ASSISTANT, content="", name="", parts=(), attachments=(), external_id="")
    silence = replace(said, id=LEGACY, parent=question.id, status=MessageStatus.PENDING, tokens=frame, metadata={})
    return [Read(silence, exact=True), *shown]


def choose(path: Sequence[Read], window: Window) -> Fitted:
    """Choose what fits of a path."""
    messages = [read.message for read in path]
    image_tokens = price_image(window)
    if window.upstream:
        return fit_upstream(messages, window.max_tokens, image_tokens)
    most = window.message_limit
    return fit(messages, window.max_tokens, unanswered=window.unanswered, image_tokens=image_tokens, most=most)


def show(fitted: Fitted, path: Sequence[Read], window: Window, tokenizer: Tokenizer) -> History:
    """Render what was chosen; a last turn that is too long is shortened where that is asked for."""
    messages, tokens = fitted.messages, fitted.tokens
    cut = window.oversized is Oversized.CUT and tokens > window.max_tokens
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

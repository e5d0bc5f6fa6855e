"""Convert rows of Dify: the user of a conversation, and the messages of a question and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from recollect.core.conversations.appends import MAX_MESSAGE_LENGTH, MAX_PARTS, MAX_URL_LENGTH
from recollect.core.conversations.threads import NIL, ThreadNode, order_nodes
from recollect.core.imports import text as import_text
from recollect.core.imports.text import UNREADABLE, clean, clean_json, to_line
from recollect.core.memories.checks import check_metadata
from recollect.core.text.checks import UNSTORABLE
from recollect.errors import InvalidInputError
from recollect.models.conversations import LEGACY, Attachment, MessageStatus, NewMessage
from recollect.models.imports import DifyUserField
from recollect.models.memories import JSON, Role
from recollect.models.service import is_scope_name

OURS = "dify"
"""The metadata key for Dify fields without an equivalent here."""
EMPTY = "[empty]"
DIGITS = 36
"""The length of a Dify ID."""

DELETED = "conversations deleted in Dify: skipped"
SILENT = "conversations without messages: skipped"
USER_NOT_NAMED = "conversations without the user that --user-by names: skipped"
CLOSED_HERE = "conversations deleted here: skipped"
RENAMED = "conversations whose user's session does not fit: their user is the end user's id"
LATE = "answers that came since the last import"
UNANSWERED = "questions without an answer"
FAILED = "answers that failed"
BLANK = f"empty questions: stored as {EMPTY}"
MISSING_PARENT = "messages with a missing parent: each starts a thread"
CLEANED = import_text.CLEANED
CUT = f"texts longer than {MAX_MESSAGE_LENGTH:,} characters: cut"
FAR = f"files whose address is longer than {MAX_URL_LENGTH:,} characters: without it"
TOO_MANY_FILES = f"files beyond {MAX_PARTS} of one message: skipped"
LARGE = "conversations with too large inputs: imported without them"

STATUSES = {"error": MessageStatus.FAILED, "paused": MessageStatus.PENDING}
NAMED_BY = {
    DifyUserField.AUTO: ("session", "end_user", "account"),
    DifyUserField.SESSION: ("session", "end_user"),
    DifyUserField.END_USER: ("end_user",),
    DifyUserField.ACCOUNT: ("account",),
    DifyUserField.NOBODY: (),
}


@dataclass(frozen=True, slots=True)
class DifyConversation:
    """A row of Dify's conversations."""

    id: str
    app: str
    mode: str
    name: str
    inputs: JSON
    created_at: datetime
    deleted: bool
    source: str
    invoked_from: str | None
    end_user: str | None
    account: str | None
    session: str | None


@dataclass(frozen=True, slots=True)
class DifyNode:
    """A row of Dify's messages as a node of a tree, and its size."""

    id: str
    parent: str | None
    octets: int


@dataclass(frozen=True, slots=True)
class DifyRow:
    """A row of Dify's messages: a question and its answer, both within our limits."""

    id: str
    query: str
    query_length: int
    answer: str
    answer_length: int
    answer_tokens: int
    status: str
    error: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class File:
    """A row of Dify's message files."""

    message: str
    type: str
    method: str | None
    url: str | None
    upload: str | None
    side: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class DifyTurn:
    """A question with its answer, in the order in which turns are appended."""

    id: str
    parent: str | None
    """The turn that it follows here."""
    stated: UUID | None
    """The parent in Dify, if it differs from the turn that it follows here."""
    octets: int


@dataclass(frozen=True, slots=True)
class DifyMessages:
    """The one or two messages of an exchange, and remarks."""

    messages: tuple[NewMessage, ...]
    remarks: Counter[str]


def find_user(conversation: DifyConversation, by: DifyUserField) -> tuple[str | None, bool]:
    """Return the user of a conversation, and whether an ID replaced a name.

    None means that the conversation has no user of the requested sort.
    """
    named = [name for which in NAMED_BY[by] if (name := getattr(conversation, which))]
    fitting = next((name for name in named if is_scope_name(name)), None)
    if fitting is None:
        return ("" if by in {DifyUserField.AUTO, DifyUserField.NOBODY} else None), False
    return fitting, fitting != named[0]


def describe_conversation(conversation: DifyConversation, remarks: Counter[str]) -> tuple[str, dict[str, JSON]]:
    """Return a conversation's name and metadata, within the limits."""
    kept: dict[str, JSON] = {"app": conversation.app, "mode": conversation.mode, "source": conversation.source}
    told = {
        "invoked_from": conversation.invoked_from,
        "end_user": conversation.end_user,
        "account": conversation.account,
    }
    kept |= {field: value for field, value in told.items() if value}
    if conversation.session:
        kept["session"] = clean(conversation.session, remarks)
    if conversation.inputs:
        try:
            inputs = clean_json(conversation.inputs, remarks)
            check_metadata({OURS: {**kept, "inputs": inputs}})
            kept["inputs"] = inputs
        except (InvalidInputError, RecursionError):
            remarks[LARGE] += 1
    return to_line(conversation.name, remarks), {OURS: kept}


def order_turns(outlines: Sequence[DifyNode]) -> tuple[list[DifyTurn], int]:
    """Order turns so that none comes before its parent, and count those whose parent is missing."""
    octets = {outline.id: outline.octets for outline in outlines}
    adrift = 0
    turns: list[DifyTurn] = []
    for node, parent in order_nodes([ThreadNode(outline.id, outline.parent) for outline in outlines]):
        unavailable = parent is None and bool(node.parent) and node.parent != NIL
        adrift += unavailable
        stated = to_uuid(node.parent) if unavailable or node.parent == NIL else None
        turns.append(DifyTurn(node.id, parent, stated, octets[node.id]))
    return turns, adrift


def to_uuid(text: str | None) -> UUID | None:
    """Parse an ID; None if it is not valid."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def question_of(identity: str) -> str:
    """Return the external ID of a question."""
    return f"{identity}:user"


def answer_of(identity: str) -> str:
    """Return the external ID of an answer."""
    return f"{identity}:assistant"


def to_messages(exchange: DifyRow, files: Sequence[File]) -> DifyMessages:
    """Convert a row to the user's message, and the assistant's answer if there is one."""
    remarks = Counter[str]()
    status = STATUSES.get(exchange.status, MessageStatus.DONE)
    asked = [file for file in files if file.side != Role.ASSISTANT]
    given = [file for file in files if file.side == Role.ASSISTANT]
    answered = bool(exchange.answer or exchange.answer_tokens or given)
    # An error is stored with the answer, if there is one.
    question = to_message(replace(exchange, error=None) if answered else exchange, Role.USER, asked, remarks)
    if not question.content.strip() and not question.attachments:
        remarks[BLANK] += 1
        question = replace(question, content=EMPTY)
    if not answered:
        remarks[UNANSWERED] += 1
        unanswered = MessageStatus.FAILED if status is MessageStatus.FAILED else MessageStatus.PENDING
        return DifyMessages((replace(question, status=unanswered),), +remarks)
    remarks[FAILED] += status is MessageStatus.FAILED
    answer = to_message(exchange, Role.ASSISTANT, given, remarks)
    return DifyMessages((question, replace(answer, status=status)), +remarks)


def to_message(exchange: DifyRow, role: Role, files: Sequence[File], remarks: Counter[str]) -> NewMessage:
    """Convert one side of a row to a message."""
    answering = role is Role.ASSISTANT
    text = exchange.answer if answering else exchange.query
    length = exchange.answer_length if answering else exchange.query_length
    remarks[CUT] += length > len(text)
    remarks[TOO_MANY_FILES] += max(0, len(files) - MAX_PARTS)
    cut_from = length if length > len(text) else None
    return NewMessage(
        role,
        clean(text, remarks),
        attachments=tuple(to_attachment(file, remarks) for file in files[:MAX_PARTS]),
        # Times in Dify have no zone and are in UTC.
        occurred_at=exchange.created_at.replace(tzinfo=UTC),
        external_id=answer_of(exchange.id) if answering else question_of(exchange.id),
        metadata=note(exchange, cut_from),
    )


def note(exchange: DifyRow, cut_from: int | None) -> dict[str, JSON]:
    """Return metadata with the error of an exchange, and the original length of a cut text."""
    noted: dict[str, JSON] = {} if cut_from is None else {"cut_from": cut_from}
    if exchange.error:
        noted["error"] = UNSTORABLE.sub(UNREADABLE, exchange.error)
    return {OURS: noted} if noted else {}


def to_attachment(file: File, remarks: Counter[str]) -> Attachment:
    """Convert a file to an attachment with its URL, or its ID in Dify's storage."""
    url, upload = file.url or "", file.upload or ""
    if file.method != "remote_url" and (upload or file.method):
        # Older rows for files of tools have the file's ID only at the end of their URL.
        upload = upload or url.partition("?")[0].rsplit("/", 1)[-1].partition(".")[0][:DIGITS]
        url = ""
    if len(url) > MAX_URL_LENGTH:
        remarks[FAR] += 1
        url = ""
    name = to_line(file.name or "", remarks)
    return Attachment(to_line(file.type, remarks), clean(url, remarks), to_line(upload, remarks), name=name)


def set_parent(message: NewMessage, turn: DifyTurn, parent: UUID | int | None) -> NewMessage:
    """Set the parent of a question, or make it a root, and keep the parent named by Dify."""
    if parent is None:
        return replace(message, root=True, stated_parent=turn.stated)
    return replace(message, parent=parent, stated_parent=LEGACY if turn.stated == LEGACY else None)

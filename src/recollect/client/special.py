"""The operations of the SDK that are more than one request and its answer."""

from __future__ import annotations

import time
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid4

from pydantic import TypeAdapter
from pydantic_core import to_json

from recollect import errors
from recollect.client.bodies import flatten
from recollect.client.calls import ConversationPart, RemoteView, read, write
from recollect.client.transport import ATTEMPTS, read_problem
from recollect.core.agents.feedback import judge
from recollect.core.items.rules import check_operations, is_write
from recollect.core.memories.checks import count_characters
from recollect.loading import own_zone
from recollect.models.agents import NOTHING_THERE, ActiveDay, Feedback, Reflection
from recollect.models.conversations import Context, Reply
from recollect.models.items import (
    DropItem,
    FindItems,
    FoundItem,
    GetItem,
    Item,
    ItemOperation,
    ItemResult,
    ListPaths,
    Path,
    PutItem,
)
from recollect.models.knowledge import GraphFormat
from recollect.models.memories import Memory, NewMemory
from recollect.models.recall import Recollection
from recollect.models.service import Change, JobState

if TYPE_CHECKING:
    from recollect.client.agents import RemoteAgent

MOST_IN_PART, LARGEST_PART, LONGEST_PART = 1_000, 1_500_000, 250_000
"""How many memories, bytes and characters one request of a load takes, so that a server reads them in time."""
LONGEST_ANSWER_SECONDS = 3_900.0
"""Longer than any server waits for its chat model."""
REFLECTION_SECONDS = 600.0
FIRST_WAIT_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 2.0
CHANGE = TypeAdapter(Change)
ITEM_OPERATIONS = {GetItem: "get", PutItem: "put", DropItem: "drop", FindItems: "find", ListPaths: "paths"}
ITEM_RESULTS: Mapping[str, Callable[[Any], ItemResult]] = {
    "dropped": bool,
    "found": TypeAdapter(tuple[FoundItem, ...]).validate_python,
    "item": TypeAdapter[Item | None](Item | None).validate_python,
    "paths": TypeAdapter(tuple[Path, ...]).validate_python,
}


async def activity(view: RemoteAgent, days: int, zone: str) -> list[ActiveDay]:
    """Count by day and kind what was stored on the last days that are still in sight; the oldest day first.

    Days begin as they do where the client is, unless a zone is named.
    """
    answer: list[ActiveDay] = await view.call("activity", days=days, zone=zone or own_zone())
    return answer


async def load(view: RemoteView, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
    """Load any number of memories in parts, each in one transaction; vectors that are not given follow by a job.

    It is not one transaction: where a part fails, those before it are stored, and the error says how many memories
    that are. Load the same again under the same key, and they are not stored twice.
    """
    key, stored = idempotency_key or uuid4().hex, list[UUID]()
    method, path, content = write(view, "load", {})
    scope = to_json(content["json"])[:-1]
    for number in count(1):
        size, part = to_part(memories, stored)
        if not size:
            break
        headers = {"Idempotency-Key": f"{key}:{number}", "Content-Type": "application/json"}
        body = scope + b',"memories":' + part + b"}"
        try:
            answer = await view.client.send(method, path, content=body, headers=headers)
        except errors.RecollectError as problem:
            raise type(problem)(f"{len(stored)} of {len(memories)} memories are stored. {problem}") from None
        stored += read("load", answer)
    return stored


def to_part(memories: Sequence[NewMemory], stored: Sequence[UUID]) -> tuple[int, bytes]:
    """Write as many memories after those that are stored as one request takes, as a JSON list; return how many."""
    start, bodies, size, characters = len(stored), list[bytes](), 0, 0
    for memory in memories[start : start + MOST_IN_PART]:
        sources = tuple(find_source(source, start, stored) for source in memory.evidence)
        body = to_json(flatten(replace(memory, evidence=sources)))
        size += len(body) + 1
        characters += count_characters(memory)
        if bodies and (size > LARGEST_PART or characters > LONGEST_PART):
            break
        bodies.append(body)
    return len(bodies), b"[" + b",".join(bodies) + b"]"


def find_source(source: UUID | int, start: int, stored: Sequence[UUID]) -> UUID | int:
    """Name a source within a part of a load: positions count from the part's start, and before it there are ids."""
    if isinstance(source, UUID):
        return source
    return stored[source] if 0 <= source < start else source - start


async def last_chat(
    view: RemoteView, name: str, *, as_of: datetime | None = None, at: datetime | None = None
) -> Memory | None:
    """Return the newest chat with somebody, if there was one."""
    try:
        return cast("Memory", await view.call("last_chat", name=name, as_of=as_of, at=at))
    except errors.NotFoundError:
        return None


async def feedback(
    view: RemoteView,
    given: Recollection | Feedback,
    useful: Sequence[UUID] = (),
    *,
    useless: Sequence[UUID] | None = None,
) -> int:
    """Mark hits of a recollection as useful or useless, all others useless if none are named; count the marks."""
    marks = judge(given, useful, useless) if isinstance(given, Recollection) else given
    named = replace(marks, recall_id=marks.recall_id or uuid4())
    return cast("int", await view.call("feedback", given=named))


async def converse(
    view: ConversationPart,
    text: str,
    budget: int = 4_000,
    *,
    report: Callable[[Context], None] | None = None,
    timeout_seconds: float | None = None,
    **more: object,
) -> Reply:
    """Answer with the server's chat model, as long as it takes; append question and answer together, or neither.

    It is asked once: where no answer arrives, the history says whether there was one. The prompt is reported
    together with the answer.
    """
    asked = {"text": text, "budget": budget, **more}
    method, path, content = write(view, "conversation.converse", asked)
    seconds = LONGEST_ANSWER_SECONDS if timeout_seconds is None else timeout_seconds
    answer = await view.client.send_once(method, path, seconds, **content)
    reply: Reply = read("conversation.converse", answer)
    if report is not None:
        report(reply.context)
    return reply


async def export(
    view: RemoteView,
    format: GraphFormat | str = "graphml",  # noqa: A002 - its name
    *,
    as_of: datetime | None = None,
    at: datetime | None = None,
) -> AsyncIterator[str]:
    """Export the scope's facts and their entities as text, piece by piece, as long as it takes."""
    _, path, content = write(view, "knowledge.export", {"format": format, "as_of": as_of, "at": at})
    decoder = getincrementaldecoder("utf-8")()
    async for piece in view.client.stream(path, content["params"]):
        if text := decoder.decode(piece):
            yield text


async def changes(view: RemoteView, since: str = "") -> AsyncIterator[Change]:
    """Follow the scope's changes as they are committed, after a cursor or from now on, each once and in order."""
    cursor, begun, failed = since, False, 0
    while True:
        _, path, content = write(view, "changes", {"since": cursor})
        try:
            async for name, data in read_events(view.client.stream(path, content["params"])):
                if name == "problem":
                    raise read_problem(data)
                change, failed = CHANGE.validate_json(data), 0
                cursor = change.cursor
                if name == "change" or not begun:
                    begun = True
                    yield change
        except errors.UnavailableError:
            failed += 1
            if failed == ATTEMPTS:
                raise
        # A server that stops, or a proxy, has ended it: what was missed is read from the cursor on.
        await view.client.pause(FIRST_WAIT_SECONDS * 4**failed)


async def read_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """Read the names and the data of server-sent events; comments only show that the server lives."""
    decoder, rest = getincrementaldecoder("utf-8")(), ""
    async for piece in pieces:
        *whole, rest = (rest + decoder.decode(piece)).split("\n\n")
        for event in whole:
            fields = dict(line.split(": ", 1) for line in event.split("\n") if not line.startswith(":"))
            if "data" in fields:
                yield fields["event"], fields["data"]


async def reflect(
    view: RemoteAgent,
    now: datetime | None = None,
    *,
    report: Callable[[str], None] | None = None,
    timeout_seconds: float | None = None,
) -> Reflection:
    """Let a worker of the server reflect on what has gathered, and wait for it: 10 minutes by default."""
    try:
        job_id = await view.reflect_later(now)
    except errors.NotFoundError:
        return Reflection((), (), NOTHING_THERE)  # The scope does not exist yet.
    return await follow(view, job_id, report, REFLECTION_SECONDS if timeout_seconds is None else timeout_seconds)


async def follow(
    view: RemoteAgent, job_id: str, report: Callable[[str], None] | None, timeout_seconds: float
) -> Reflection:
    """Wait for a reflection by a job, and report its progress."""
    until, told, wait = time.monotonic() + timeout_seconds, "", FIRST_WAIT_SECONDS
    while True:
        progress = await view.reflection(job_id)
        if progress.reflection is not None:
            return progress.reflection
        if progress.state is JobState.FAILED:
            raise errors.RecollectError(f"The reflection failed: {progress.reason} Job {job_id} can be tried again.")
        reached = f"{progress.state}: {progress.reason}" if progress.reason else str(progress.state)
        if report is not None and reached != told:
            report(reached)
        told, left = reached, until - time.monotonic()
        if left <= 0:
            raise errors.UnavailableError(
                f"No reflection within {timeout_seconds:g} seconds; job {job_id} goes on ({reached})."
            )
        await view.client.pause(min(wait, left))
        wait = min(LONGEST_PAUSE_SECONDS, wait * 1.5)


async def batch(
    view: RemoteView, operations: Sequence[ItemOperation], *, idempotency_key: str = ""
) -> list[ItemResult]:
    """Run operations in one transaction; writes without a key get one, so that retries are safe."""
    # Here as well as there: the transport would turn invalid JSON into valid.
    check_operations(operations)
    method, path, content = write(view, "items.batch", {})
    content["json"]["operations"] = [{"op": ITEM_OPERATIONS[type(each)], **flatten(each)} for each in operations]
    key = idempotency_key or (uuid4().hex if any(map(is_write, operations)) else "")
    answer = await view.client.send(method, path, **content | {"headers": {"Idempotency-Key": key} if key else {}})
    return [ITEM_RESULTS[name](result) for each in read("items.batch", answer) for name, result in each.items()]

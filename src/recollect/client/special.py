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
from recollect.client.calls import ConversationPart, RemoteView, build_request, parse_answer
from recollect.client.transport import ATTEMPTS, read_problem
from recollect.core.agents.feedback import judge
from recollect.core.items.rules import check_operations, is_write
from recollect.core.memories.checks import count_characters
from recollect.loading import local_timezone
from recollect.models.agents import NOTHING_THERE, Feedback, Overview, Reflection
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
from recollect.models.memories import NewMemory
from recollect.models.recall import RecallResult
from recollect.models.service import Change, JobState

if TYPE_CHECKING:
    from recollect.client.agents import RemoteAgent

MAX_MEMORIES_PER_REQUEST, MAX_REQUEST_BYTES, MAX_PART_LENGTH = 1_000, 1_500_000, 250_000
"""How many memories, bytes and characters one request of a load takes, so that a server reads them in time."""
CHAT_TIMEOUT_SECONDS = 3_900.0
"""Longer than any server waits for its chat model."""
REFLECTION_SECONDS = 600.0
FIRST_WAIT_SECONDS, MAX_PAUSE_SECONDS = 0.05, 2.0
CHANGE = TypeAdapter(Change)
ITEM_OPERATIONS = {GetItem: "get", PutItem: "put", DropItem: "drop", FindItems: "find", ListPaths: "paths"}
ITEM_RESULTS: Mapping[str, Callable[[Any], ItemResult]] = {
    "dropped": bool,
    "found": TypeAdapter(tuple[FoundItem, ...]).validate_python,
    "item": TypeAdapter[Item | None](Item | None).validate_python,
    "paths": TypeAdapter(tuple[Path, ...]).validate_python,
}


async def overview(view: RemoteAgent, *, days: int = 0, zone: str = "") -> Overview:
    """Get statistics of a scope, and how many memories were stored on each of the last `days` days.

    Days begin as they do where the client is, unless a zone is named.
    """
    answer: Overview = await view.call("overview", days=days, zone=zone or local_timezone())
    return answer


async def load(view: RemoteView, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
    """Load any number of memories in parts, each in one transaction; vectors that are not given follow by a job.

    It is not one transaction: where a part fails, those before it are stored, and the error says how many memories
    that are. Load the same again under the same key, and they are not stored twice.
    """
    key, stored = idempotency_key or uuid4().hex, list[UUID]()
    method, path, content = build_request(view, "load", {})
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
        stored += parse_answer("load", answer)
    return stored


def to_part(memories: Sequence[NewMemory], stored: Sequence[UUID]) -> tuple[int, bytes]:
    """Write as many memories after those that are stored as one request takes, as a JSON list; return how many."""
    start, bodies, size, characters = len(stored), list[bytes](), 0, 0
    for memory in memories[start : start + MAX_MEMORIES_PER_REQUEST]:
        sources = tuple(find_source(source, start, stored) for source in memory.evidence)
        body = to_json(flatten(replace(memory, evidence=sources)))
        size += len(body) + 1
        characters += count_characters(memory)
        if bodies and (size > MAX_REQUEST_BYTES or characters > MAX_PART_LENGTH):
            break
        bodies.append(body)
    return len(bodies), b"[" + b",".join(bodies) + b"]"


def find_source(source: UUID | int, start: int, stored: Sequence[UUID]) -> UUID | int:
    """Name a source within a part of a load: positions count from the part's start, and before it there are ids."""
    if isinstance(source, UUID):
        return source
    return stored[source] if 0 <= source < start else source - start


async def feedback(
    view: RemoteView,
    given: RecallResult | Feedback,
    useful: Sequence[UUID] = (),
    *,
    useless: Sequence[UUID] | None = None,
) -> int:
    """Mark hits as useful or not."""
    marks = judge(given, useful, useless) if isinstance(given, RecallResult) else given
    named = replace(marks, recall_id=marks.recall_id or uuid4())
    return cast("int", await view.call("feedback", given=named))


async def chat(
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
    method, path, content = build_request(view, "conversation.chat", asked)
    seconds = CHAT_TIMEOUT_SECONDS if timeout_seconds is None else timeout_seconds
    answer = await view.client.send_once(method, path, seconds, **content)
    reply: Reply = parse_answer("conversation.chat", answer)
    if report is not None:
        report(reply.context)
    return reply


async def export(
    view: RemoteView,
    format: GraphFormat | str = "graphml",
    *,
    as_of: datetime | None = None,
    at: datetime | None = None,
) -> AsyncIterator[str]:
    """Export facts and entities as GraphML or Cypher (streamed)."""
    _, path, content = build_request(view, "knowledge.export", {"format": format, "as_of": as_of, "at": at})
    decoder = getincrementaldecoder("utf-8")()
    async for piece in view.client.stream(path, content["params"]):
        if text := decoder.decode(piece):
            yield text


async def changes(view: RemoteView, since: str = "") -> AsyncIterator[Change]:
    """Stream changes of a scope as server-sent events."""
    cursor, begun, failed = since, False, 0
    while True:
        _, path, content = build_request(view, "changes", {"since": cursor})
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
        # The server stopped, or a proxy closed the connection: read missed changes from the cursor.
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
    """Run a reflection on recent memories in a worker of the server, and wait for it: 10 minutes by default."""
    try:
        job_id = await view.reflect_later(now)
    except errors.NotFoundError:
        return Reflection((), (), NOTHING_THERE)  # The scope does not exist yet.
    return await wait_for_reflection(
        view, job_id, report, REFLECTION_SECONDS if timeout_seconds is None else timeout_seconds
    )


async def wait_for_reflection(
    view: RemoteAgent, job_id: str, report: Callable[[str], None] | None, timeout_seconds: float
) -> Reflection:
    """Wait for a reflection by a job, and report its progress."""
    until, told, wait = time.monotonic() + timeout_seconds, "", FIRST_WAIT_SECONDS
    while True:
        progress = await view.reflection(job_id)
        if progress.reflection is not None:
            return progress.reflection
        if progress.state is JobState.FAILED:
            raise errors.RecollectError(f"Reflection failed: {progress.reason} Retry job {job_id}.")
        reached = f"{progress.state}: {progress.reason}" if progress.reason else str(progress.state)
        if report is not None and reached != told:
            report(reached)
        told, left = reached, until - time.monotonic()
        if left <= 0:
            raise errors.UnavailableError(
                f"No reflection within {timeout_seconds:g} seconds; job {job_id} continues ({reached})."
            )
        await view.client.pause(min(wait, left))
        wait = min(MAX_PAUSE_SECONDS, wait * 1.5)


async def batch(
    view: RemoteView, operations: Sequence[ItemOperation], *, idempotency_key: str = ""
) -> list[ItemResult]:
    """Run operations in one transaction; writes without a key get one, so that retries are safe."""
    # Here as well as there: the transport would turn invalid JSON into valid.
    check_operations(operations)
    method, path, content = build_request(view, "items.batch", {})
    content["json"]["operations"] = [{"op": ITEM_OPERATIONS[type(each)], **flatten(each)} for each in operations]
    key = idempotency_key or (uuid4().hex if any(map(is_write, operations)) else "")
    answer = await view.client.send(method, path, **content | {"headers": {"Idempotency-Key": key} if key else {}})
    return [ITEM_RESULTS[name](result) for each in parse_answer("items.batch", answer) for name, result in each.items()]

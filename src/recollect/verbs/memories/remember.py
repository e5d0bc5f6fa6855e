"""Remember: check, analyze, embed if the model answers in time, then write everything in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.memories.duplicates import check_if_new
from recollect.core.memories.ids import fingerprint
from recollect.core.text.checks import check_idempotency_key
from recollect.errors import RecollectError
from recollect.models.memories import IfNew, NewMemory, Receipt
from recollect.models.service import Caller, Scope
from recollect.verbs.dependencies import Dependencies, run_in_thread_if_heavy
from recollect.verbs.memories.perform import Outcome, execute_write, execute_writes
from recollect.verbs.memories.rows import Write, check_and_prepare, embed_missing, is_heavy


def as_new(memories: str | NewMemory | Sequence[str | NewMemory]) -> list[NewMemory]:
    """Accept a plain text, one memory, or many of either."""
    many = [memories] if isinstance(memories, str | NewMemory) else memories
    return [NewMemory(memory) if isinstance(memory, str) else memory for memory in many]


async def remember(
    parts: Dependencies, caller: Caller, scope: Scope, new: Sequence[NewMemory], key: str = "", if_new: IfNew = ""
) -> list[Receipt]:
    """Store memories and return their receipts when they are durable; the same key stores them once."""
    check_idempotency_key(key)
    check_if_new(if_new)
    prepared = await run_in_thread_if_heavy(is_heavy(new), check_and_prepare, new)
    vectors = await embed_missing(parts, new)
    asked = fingerprint(new) + if_new.encode() if key else b""
    return await write_shared(parts, Write(caller, scope, prepared, vectors, key, asked, if_new=if_new))


async def remember_in_bulk(
    parts: Dependencies, caller: Caller, scope: Scope, new: Sequence[NewMemory]
) -> list[Receipt]:
    """Store memories of an import; a job adds the vectors."""
    prepared = await run_in_thread_if_heavy(is_heavy(new), check_and_prepare, new)
    [receipts] = await write_in_bulk(parts, [Write(caller, scope, prepared, None, "", b"")])
    return receipts


async def write_shared(parts: Dependencies, write: Write) -> list[Receipt]:
    """Write in one transaction with the other writes of the scope that wait in this process."""

    async def write_together(writes: Sequence[Write]) -> Sequence[Outcome]:
        if len(writes) == 1:
            return [await write_alone(parts, writes[0])]
        try:
            async with parts.database.transaction(write.scope.tenant_id) as connection:
                return await execute_writes(parts, connection, writes)
        except RecollectError as problem:
            if problem.unavailable:
                raise
        # The database refused one write, and with it all: each is tried alone.
        return [await attempt(parts, each) for each in writes]

    alike = (write.scope, write.caller.origin, write.caller.key_id)
    return await parts.process.writes.run(alike, write, write_together)


async def write_in_bulk(parts: Dependencies, writes: Sequence[Write]) -> list[list[Receipt]]:
    """Write to one scope in one transaction that may use COPY, without waiting for vectors."""
    try:
        async with parts.database.transaction(writes[0].scope.tenant_id, pipelined=False) as connection:
            outcomes: Sequence[Outcome] = await execute_writes(parts, connection, writes)
    except RecollectError as problem:
        if problem.unavailable or len(writes) == 1:
            raise
        # As above: one write must not block the others.
        outcomes = [await attempt(parts, each) for each in writes]
    for outcome in outcomes:
        if isinstance(outcome, RecollectError):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, RecollectError)]


async def write_alone(parts: Dependencies, write: Write) -> list[Receipt]:
    """Write in a separate transaction."""
    async with parts.database.transaction(write.scope.tenant_id) as connection:
        return await execute_write(parts, connection, write)


async def attempt(parts: Dependencies, write: Write) -> Outcome:
    """Write in a separate transaction; return the error if it was refused."""
    try:
        return await write_alone(parts, write)
    except RecollectError as problem:
        return problem

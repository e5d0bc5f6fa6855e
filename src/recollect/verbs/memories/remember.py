"""Remember: check, analyse, embed if the model answers in time, then write everything in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.core.memories.ids import fingerprint
from recollect.core.memories.known import check_if_new
from recollect.core.text.checks import check_idempotency_key
from recollect.core.text.variants import text_version
from recollect.errors import RecollectError
from recollect.models.memories import IfNew, NewMemory, Receipt
from recollect.models.service import Caller, Scope
from recollect.store.database.calls import note_written
from recollect.verbs.memories.perform import Outcome, perform, perform_each
from recollect.verbs.memories.rows import Write, check_and_prepare, embed_missing, is_heavy
from recollect.verbs.parts import Parts, fit_version, spare_loop


def as_new(memories: str | NewMemory | Sequence[str | NewMemory]) -> list[NewMemory]:
    """Accept a plain text, one memory, or many of either."""
    many = [memories] if isinstance(memories, str | NewMemory) else memories
    return [NewMemory(memory) if isinstance(memory, str) else memory for memory in many]


async def remember(
    parts: Parts, caller: Caller, scope: Scope, new: Sequence[NewMemory], key: str = "", if_new: IfNew = ""
) -> list[Receipt]:
    """Store memories and return their receipts once they are durable; the same key stores them once."""
    check_idempotency_key(key)
    check_if_new(if_new)
    prepared = await spare_loop(is_heavy(new), check_and_prepare, new)
    vectors = await embed_missing(parts, new)
    asked = fingerprint(new) + if_new.encode() if key else b""
    return await share(parts, Write(caller, scope, prepared, vectors, key, asked, if_new=if_new))


async def remember_in_bulk(parts: Parts, caller: Caller, scope: Scope, new: Sequence[NewMemory]) -> list[Receipt]:
    """Store memories of an import; vectors follow by a job."""

    async def write() -> list[Receipt]:
        prepared = await spare_loop(is_heavy(new), check_and_prepare, new)
        [receipts] = await write_in_bulk(parts, [Write(caller, scope, prepared, None, "", b"")])
        return receipts

    return await fit_version(write)


async def share(parts: Parts, write: Write) -> list[Receipt]:
    """Write in one transaction with the other writes of the scope that wait in this process."""

    async def write_together(writes: Sequence[Write]) -> Sequence[Outcome]:
        if len(writes) == 1:
            return [await write_alone(parts, writes[0])]
        try:
            async with parts.database.transaction(write.scope.tenant_id) as connection:
                return await perform_each(parts, connection, writes)
        except RecollectError as problem:
            if problem.unavailable:
                raise
        # The database refused one of them, and with it all: each is tried alone.
        return [await attempt(parts, each) for each in writes]

    alike = (write.scope, write.caller.origin, write.caller.key_id, text_version())
    receipts = await parts.writes.run(alike, write, write_together)
    position = parts.database.log.newest if parts.database.log else None
    if position is None:
        return receipts
    # Another caller's task may have written it: this call is told, too.
    note_written(position)
    return [replace(receipt, position=str(position)) for receipt in receipts]


async def write_in_bulk(parts: Parts, writes: Sequence[Write]) -> list[list[Receipt]]:
    """Write to one scope in one transaction that may use COPY, without waiting for vectors."""
    try:
        async with parts.database.transaction(writes[0].scope.tenant_id, pipelined=False) as connection:
            outcomes: Sequence[Outcome] = await perform_each(parts, connection, writes)
    except RecollectError as problem:
        if problem.unavailable or len(writes) == 1:
            raise
        # As above: one of them must not keep the others out.
        outcomes = [await attempt(parts, each) for each in writes]
    for outcome in outcomes:
        if isinstance(outcome, RecollectError):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, RecollectError)]


async def write_alone(parts: Parts, write: Write) -> list[Receipt]:
    """Write in a transaction of its own."""
    async with parts.database.transaction(write.scope.tenant_id) as connection:
        return await perform(parts, connection, write)


async def attempt(parts: Parts, write: Write) -> Outcome:
    """Write in a transaction of its own; return why it was refused, if it was."""
    try:
        return await write_alone(parts, write)
    except RecollectError as problem:
        return problem

"""Let only the run that holds a job's lease write: each taking over makes another attempt, and ends the lease."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.errors import LeaseLostError
from recollect.store.db import Connection, Database
from recollect.store.sql import load_queries

QUERIES = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Lease:
    """One run of a job: whoever takes the job over runs it under another attempt."""

    job_id: int
    attempt: int


async def hold_lease(connection: Connection, lease: Lease) -> None:
    """See that a run still has its job, and keep it so until the transaction ends; else raise LeaseLostError."""
    found = await connection.execute(QUERIES["hold"], {"job_id": lease.job_id, "attempt": lease.attempt})
    if await found.fetchone() is None:
        raise LeaseLostError("Another worker has taken this job over; this run wrote nothing.")


async def forget_effects(database: Database, tenant_id: int) -> None:
    """Delete a tenant's notes of effects whose jobs are gone: nobody can run those again."""
    async with database.transaction(tenant_id) as connection:
        await connection.execute(QUERIES["forget"])


async def claim_effect(connection: Connection, lease: Lease, scope_id: int, key: str) -> bool:
    """Hold the lease, and note an effect that is about to be written; False if it was written before."""
    await hold_lease(connection, lease)
    parameters = {"scope_id": scope_id, "key": key, "job_id": lease.job_id}
    return await (await connection.execute(QUERIES["claim"], parameters)).fetchone() is not None

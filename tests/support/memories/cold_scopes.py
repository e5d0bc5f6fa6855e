"""Scopes that go to object storage and come back: how tests send them out and look at what is left."""

from __future__ import annotations

import io
from contextlib import asynccontextmanager
from dataclasses import replace

from recollect.models.imports import ExportRequest
from recollect.wiring import connected
from support.models.fake_chat import FakeChatModel
from support.service.made_settings import make_settings

PATIENT = {"embedder": "fake", "recall__channel_timeout_seconds": 30, "embedding__wait_timeout_seconds": 30}
STAYS = {"changes", "cold_objects", "idempotency_keys", "purge_receipts", "ledger"}
"""Tables that may have rows of a cold scope: numbers, ids, and what is known of its object."""
SCOPED = (
    "select relname from pg_class join pg_attribute on attrelid = pg_class.oid and attname = 'scope_id' "
    "where relkind = 'r' and relnamespace = 'public'::regnamespace"
)


@asynccontextmanager
async def chilly(addresses, embedder, url, script=None, **more):
    """Run with an object storage."""
    given = make_settings(**{**PATIENT, "request_timeout_seconds": 20, "cold__url": url, **more})
    chat = FakeChatModel(script) if script else None
    async with connected(given, addresses, embedder, chat) as running:
        yield running


async def export(recollect, tenant="default", **order):
    """Export scopes with all vectors."""
    file, caller = io.BytesIO(), await recollect.operator.act_for(tenant)
    await recollect.operator.exports.write_export_file(caller, ExportRequest(vectors=("all",), **order), file)
    return file.getvalue()


async def send_out(recollect, agent="ada", user="li", tenant="default", seconds=0.0):
    """Send scopes out; nobody uses them, so that no call has to be waited for."""
    caller = await recollect.operator.act_for(tenant)
    return await replace(recollect.operator.cold, deadline_seconds=seconds).out(caller, agent, user)


def rows_of(owner, scope_id):
    """Count the rows of a scope by table."""
    counted = {}
    for (name,) in owner.execute(SCOPED).fetchall():
        counted[name] = owner.execute(f"select count(*) from {name} where scope_id = %s", [scope_id]).fetchone()[0]
    return {name: count for name, count in counted.items() if count}


def tier_of(owner, agent="ada"):
    """Read where the rows of an agent's scope are."""
    return owner.execute("select tier from scopes where agent = %s", [agent]).fetchone()[0]


def objects_in(folder):
    """List the files of a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]

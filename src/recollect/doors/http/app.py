"""Build the HTTP door: routes, problems, one document that describes them all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute

from recollect.doors.dify import document
from recollect.doors.dify import knowledge as dify_knowledge
from recollect.doors.dify.middleware import DifyDoor
from recollect.doors.http import console, metrics, problems
from recollect.doors.http import document as http_document
from recollect.doors.http.admission import Admission
from recollect.doors.http.auth import KnownKeys
from recollect.doors.http.key_check import KeyCheck
from recollect.doors.http.limiting import Limiting
from recollect.doors.http.middleware import Observed
from recollect.doors.http.origins import Origins
from recollect.doors.http.routes import (
    agents,
    conversations,
    imports,
    items,
    knowledge,
    memories,
    recall,
    service,
    tenants,
    topics,
)
from recollect.doors.http.server.capacity import Capacity
from recollect.doors.http.server.limits import Limiter
from recollect.doors.http.transfers import Transfers
from recollect.doors.mcp import http as mcp
from recollect.loading import own_version
from recollect.mind.service import Recollect
from recollect.settings import Settings, read_settings
from recollect.wiring import open_recollect

DESCRIPTION = "The memory of AI agents on PostgreSQL: remember, converse within a budget, recall with reasons, forget."


def create_app(settings: Settings | None = None, recollect: Recollect | None = None) -> FastAPI:
    """Build the application around a running Recollect, or one that it opens and closes itself."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if recollect is not None:
            app.state.recollect = observed(recollect)
            yield
            return
        chosen = settings or read_settings()
        async with open_recollect(chosen, work=False, wait_seconds=chosen.start_wait_seconds) as opened:
            app.state.recollect = observed(opened)
            yield

    app = http_document.HttpDoor(
        title="Recollect",
        version=own_version(),
        description=DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        generate_unique_id_function=name_operation,
        lifespan=lifespan,
        dependencies=[Depends(problems.check_query)],
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.known_keys, app.state.capacity, app.state.transfers = KnownKeys(), Capacity(), Transfers()
    app.state.limiter = Limiter()
    app.state.pages, app.state.links = console.Pages.read(console.FOLDER), console.OneTimeLinks()
    app.state.draining = asyncio.Event()  # set by the server, or at the end
    for router in (
        *(memories.router, conversations.router, agents.associations, agents.reflections, knowledge.router),
        *(items.router, topics.router, recall.router, recall.recalls, agents.router, imports.router, tenants.router),
        *(service.jobs, service.ledger, service.keys, service.changes, service.health),
        *(http_document.router, document.router, dify_knowledge.router),
        console.router,
    ):
        app.include_router(router)
    app.router.routes.extend([*mcp.ROUTES, *console.ROUTES])
    problems.install(app)
    app.add_middleware(DifyDoor)
    app.add_middleware(Admission)
    app.add_middleware(Limiting)
    app.add_middleware(KeyCheck)
    app.add_middleware(Origins)
    app.add_middleware(Observed)  # added last, so that it sees every request first
    return app


def observed(recollect: Recollect) -> Recollect:
    """Let it be counted how long scopes take to come back from object storage."""
    if recollect.parts.waker is not None:
        recollect.parts.waker.observe = metrics.WAKING.observe
    return recollect


def name_operation(route: APIRoute) -> str:
    """Use the function's name as operationId: short enough for a tool's name."""
    return route.name

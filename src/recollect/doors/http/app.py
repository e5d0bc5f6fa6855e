"""Build the HTTP door: routes, problems, one document that describes them all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from recollect.doors.dify import document
from recollect.doors.dify import knowledge as dify_knowledge
from recollect.doors.dify.middleware import DifyDoor
from recollect.doors.http import console, metrics, problems
from recollect.doors.http import document as http_document
from recollect.doors.http.admission import AdmissionMiddleware
from recollect.doors.http.key_check import KeyCheck
from recollect.doors.http.middleware import RequestMiddleware
from recollect.doors.http.origins import CorsMiddleware
from recollect.doors.http.rate_limit import RateLimitMiddleware
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
from recollect.doors.http.server.keys import KeyChecks
from recollect.doors.http.server.limits import Limiter
from recollect.doors.http.transfers import TransferLimiter
from recollect.loading import load, package_version
from recollect.mind.service import Recollect
from recollect.settings import Settings, read_settings
from recollect.wiring import open_recollect

DESCRIPTION = (
    "Memory for AI agents on PostgreSQL: remember, recall with reasons, build prompts within a token budget, forget."
)


def create_app(settings: Settings | None = None, recollect: Recollect | None = None) -> FastAPI:
    """Build the application around a running Recollect, or one that it opens and closes itself."""
    chosen = settings or (recollect.settings if recollect else read_settings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if recollect is not None:
            app.state.recollect = observed(recollect)
            yield
            return
        async with open_recollect(chosen, work=False, wait_seconds=chosen.postgres.start_timeout_seconds) as opened:
            app.state.recollect = observed(opened)
            yield

    app = http_document.HttpDoor(
        title="Recollect",
        version=package_version(),
        description=DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        generate_unique_id_function=name_operation,
        lifespan=lifespan,
        dependencies=[Depends(problems.check_query)],
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.keys, app.state.capacity, app.state.transfers = KeyChecks(), Capacity(), TransferLimiter()
    app.state.limiter = Limiter()
    app.state.pages, app.state.links = console.StaticFiles.load_files(console.FOLDER), console.OneTimeLinks()
    app.state.draining = asyncio.Event()  # set by the server, or at the end
    for router in (
        *(memories.router, conversations.router, agents.associations, agents.reflections, knowledge.router),
        *(items.router, topics.router, recall.router, recall.recalls, agents.router, imports.router, tenants.router),
        *(service.jobs, service.ledger, service.keys, service.changes, service.health),
        *(http_document.router, document.router, dify_knowledge.router),
        console.router,
    ):
        app.include_router(router)
    app.router.routes.extend([*find_mcp(required=bool(chosen.mcp_allowed_hosts)), *console.ROUTES])
    problems.install(app)
    app.add_middleware(DifyDoor)
    app.add_middleware(AdmissionMiddleware)
    app.add_middleware(RateLimitMiddleware)
    app.add_middleware(KeyCheck)
    app.add_middleware(CorsMiddleware)
    known = recollect.settings if recollect else settings
    if known and known.operations.proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=known.operations.proxies)
    app.add_middleware(RequestMiddleware)  # added last, so that it sees every request first
    return app


def find_mcp(*, required: bool) -> list[Any]:
    """Return the routes of MCP; none if its extra is not installed, unless a setting requires it."""
    # Version 1 of the package `mcp`, which other frameworks install, does not contain this one.
    if find_spec("mcp_types") is None and not required:
        return []
    load("mcp_types", "mcp")
    routes: list[Any] = load("recollect.doors.mcp.http").ROUTES
    return routes


def observed(recollect: Recollect) -> Recollect:
    """Record how long scopes take to return from object storage."""
    recollect.restorer.observe = metrics.WAKING.observe
    return recollect


def name_operation(route: APIRoute) -> str:
    """Use the function's name as operationId: short enough for a tool's name."""
    return route.name

"""Reject requests without a valid key before their body is read, and before anything else is done for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from time import monotonic
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.dify.problems import RETRIEVAL, refuse
from recollect.doors.http.admission import WAITING
from recollect.doors.http.auth import API_KEY_MISSING, bearer
from recollect.doors.http.middleware import GUARDED
from recollect.doors.http.problems import TITLES, answer_error, respond
from recollect.doors.http.server.keys import KeyChecks, Slots
from recollect.errors import ForbiddenError, SetupError, UnauthenticatedError, UnavailableError

COOKIE, CONSOLE = "recollect_console", "console"
OWN_HEADER, SAME = "x-recollect-console", "same-origin"
FOR_PAGES = "/v1/"
"""The paths for which the cookie of the console counts."""
HEALTH = ("/health/", "/metrics")
"""Paths that are served on a separate port, if the settings name one."""
COPIED = frozenset({"/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs"})
COPY_SECONDS = 1.0
CONSOLE_HEADER_MISSING = "Console requests need the header `X-Recollect-Console: 1`."


class KeyCheck:
    """Refuse requests without a key, and those whose key the database did not accept lately and does not accept now.

    It lets nobody in: the database checks the key of every request as well. What needs no key is answered in few slots,
    and from copies. No slot is held while an answer is sent, or while health waits for the database.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # By path: until when a copy is sent, the answer, and the route that gave it.
        self._copies: dict[str, tuple[float, list[Message], Any]] = {}
        self._refreshing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        settings, keys = scope["app"].state.recollect.settings, scope["app"].state.keys
        health_port = settings.operations.health_port
        split = health_port not in {0, settings.port}
        on_health_port = split and (scope.get("server") or ("", 0))[1] == health_port
        if split and on_health_port != scope["path"].startswith(HEALTH):
            await respond(404, "not_found", TITLES[404])(scope, receive, send)
        elif scope["path"].startswith(WAITING):
            await (await find_refusal(scope) or self._app)(scope, receive, send)
        else:
            copied = scope["method"] == "GET" and scope["path"] in COPIED and not scope["query_string"]
            slots = keys.health if on_health_port else keys.public if copied else keys.uncopied
            for message in await self._answer(scope, receive, slots, copied=copied):
                await send(dict(message))

    async def _answer(self, scope: Scope, receive: Receive, slots: Slots, *, copied: bool) -> list[Message]:
        path = scope["path"]
        async with slots.take():
            if not copied:
                return await self._ask(scope, receive)
        async with self._refreshing[path]:
            until, answer, route = self._copies.get(path, (0.0, [], None))
            if until <= monotonic():
                answer = await self._ask(scope, receive)
                route = scope.get("route")
                self._copies[path] = (monotonic() + COPY_SECONDS, answer, route)
        scope["route"] = route
        return answer

    async def _ask(self, scope: Scope, receive: Receive) -> list[Message]:
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self._app(scope, receive, keep)
        return messages


async def find_refusal(scope: Scope) -> Response | None:
    """Return the answer to a request that needs a valid key and has none; note the key and its owner otherwise."""
    try:
        if scope["path"].startswith(GUARDED):
            await check_key(scope)
    except UnauthenticatedError as problem:
        return refuse(problem) if scope["path"] == RETRIEVAL else answer_error(problem)
    except (ForbiddenError, UnavailableError, SetupError) as problem:
        return answer_error(problem)
    return None


async def check_key(scope: Scope) -> None:
    """Raise unless a valid key is shown. Note it, and whose it is."""
    if "authorization" not in Headers(scope=scope) and scope["path"].startswith(FOR_PAGES):
        use_console_cookie(scope)
    shown, state = await bearer(HTTPConnection(scope)), scope["app"].state
    if shown is None:
        raise UnauthenticatedError(API_KEY_MISSING)
    keys: KeyChecks = state.keys
    scope["caller"] = await keys.check(state.recollect, shown.credentials)
    scope["secret"] = shown.credentials


def use_console_cookie(scope: Scope) -> None:
    """Use the cookie of the console as the header `Authorization`, if the console sent the request."""
    shown = read_cookie(scope)
    if not shown:
        return
    check_page(scope)
    scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer " + shown.encode("latin-1"))]
    scope["door"] = CONSOLE


def read_cookie(scope: Scope) -> str:
    """Read the secret of a session; empty if there is none."""
    return HTTPConnection(scope).cookies.get(COOKIE, "")


def check_page(scope: Scope) -> None:
    """Refuse requests that another site's page may have sent: it cannot set our header, and browsers name its site."""
    headers = Headers(scope=scope)
    if headers.get(OWN_HEADER) != "1" or headers.get("sec-fetch-site", SAME) != SAME:
        raise ForbiddenError(CONSOLE_HEADER_MISSING)

"""The MCP door over HTTP: one POST, one answer; the bearer key of that request decides whose memory it is."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from recollect.doors.http.json_body import read_body, replay
from recollect.doors.http.middleware import MAX_BODY_BYTES
from recollect.doors.http.problems import answer_error, respond
from recollect.doors.mcp.arguments import AnyMind, Asked
from recollect.doors.mcp.server import build_server, silence_library_logs
from recollect.errors import SetupError, UnauthenticatedError, UnavailableError
from recollect.mind.service import Recollect
from recollect.settings import Settings

DOOR = "mcp"
PATHS = ("/mcp", "/mcp/")
HERE = frozenset({"localhost", "127.0.0.1", "::1"})
FOREIGN_PAGE = "Requests from other sites are not allowed."
FOREIGN_NAME = "Unknown host name. Add it to RECOLLECT_MCP_ALLOWED_HOSTS."


class McpEndpoint:
    """Answer MCP requests of any revision of the protocol, and keep nothing between two of them."""

    def __init__(self) -> None:
        self._server = build_server(open_mind)
        silence_library_logs()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["route"] = ROUTES[0]  # the route for metrics and logs
        refusal = await refuse(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        # Read here, where a body that is too large still becomes a problem of ours.
        replayed = replay(await read_body(receive), receive)
        answering = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        # One for each request: it holds the request's own tasks, and ends them with it.
        async with answering.run():
            await answering.handle_request(scope, replayed, send)


async def refuse(scope: Scope) -> Response | None:
    """Refuse a request that is no POST, comes from a web page or by another site's name, or has no valid key."""
    headers = Headers(scope=scope)
    if not is_ours(headers.get("host", ""), running(scope).settings):
        return respond(403, "forbidden", FOREIGN_NAME)
    if not is_local(headers.get("origin")):
        return respond(403, "forbidden", FOREIGN_PAGE)
    if scope["method"] != "POST":
        answer = respond(405, "method_not_allowed", "Send a POST: nothing is kept that could be read or ended.")
        answer.headers["Allow"] = "POST"
        return answer
    try:
        await running(scope).authenticate(scope["secret"], DOOR, bound=True)
    except (UnauthenticatedError, UnavailableError, SetupError) as problem:
        return answer_error(problem)
    return None


def is_ours(host: str, settings: Settings) -> bool:
    """Return whether a request names a host of ours: a page could lead its visitors here by its own host name."""
    named = {name.strip() for name in settings.mcp_allowed_hosts.split(",") if name.strip()}
    if not named and settings.host not in HERE:
        return True  # reached from elsewhere, by names that only the operator knows
    try:
        return urlsplit(f"//{host}").hostname in HERE | named
    except ValueError:
        return False


def is_local(origin: str | None) -> bool:
    """Return whether the request comes from a page of this machine, or from no page at all."""
    if origin is None:
        return True
    try:
        return urlsplit(origin).hostname in HERE
    except ValueError:
        return False


async def open_mind(ctx: Asked, agent: str, user: str) -> AnyMind:
    """Authorize the sender of the request that this call came with, for the scope that it names."""
    request = cast("Request", ctx.request)
    return await running(request.scope).authorize(request.scope["secret"], DOOR, agent, user)


def running(scope: Scope) -> Recollect:
    """Find the Recollect that the application serves."""
    return cast("Recollect", scope["app"].state.recollect)


ROUTES = [Route(path, McpEndpoint(), include_in_schema=False) for path in PATHS]

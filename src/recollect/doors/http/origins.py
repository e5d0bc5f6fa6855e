"""Allow pages of the configured origins to call the API with an API key, never with a cookie."""

from __future__ import annotations

from functools import cache

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.http.middleware import METHODS

OPEN_TO_ORIGINS = "/v1/"
ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id"
"""What a page may send beyond what every page may; the header of our own console is not among it."""
SHOWN_HEADERS = "Retry-After, X-Request-Id"
PREFLIGHT_SECONDS = "600"


class CorsMiddleware:
    """Answer preflight requests of browsers, and set the headers that allow foreign pages to read answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, marked for its origin if that is admitted."""
        if scope["type"] != "http" or not scope["path"].startswith(OPEN_TO_ORIGINS):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        if origin not in read_origins(scope["app"].state.recollect.settings.cors_origins):
            await self._app(scope, receive, send)
            return

        async def mark(message: Message) -> None:
            if message["type"] == "http.response.start":
                marked = MutableHeaders(raw=message.setdefault("headers", []))
                marked["Access-Control-Allow-Origin"] = origin
                marked["Access-Control-Expose-Headers"] = SHOWN_HEADERS
                marked.add_vary_header("Origin")
            await send(message)

        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await answer_preflight(mark)
        else:
            await self._app(scope, receive, mark)


async def answer_preflight(send: Send) -> None:
    """Answer the allowed methods and headers; no credentials, so the browser sends no cookie."""
    allowed = {
        b"access-control-allow-methods": ", ".join(sorted(METHODS - {"OPTIONS"})),
        b"access-control-allow-headers": ALLOWED_HEADERS,
        b"access-control-max-age": PREFLIGHT_SECONDS,
    }
    pairs = [(name, value.encode()) for name, value in allowed.items()]
    await send({"type": "http.response.start", "status": 204, "headers": pairs})
    await send({"type": "http.response.body", "body": b""})


@cache
def read_origins(setting: str) -> frozenset[str]:
    """Read the origins of the setting; a browser writes them without a path and in small letters."""
    return frozenset(each.rstrip("/").lower() for each in setting.replace(",", " ").split())

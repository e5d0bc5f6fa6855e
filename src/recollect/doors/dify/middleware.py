"""Accept the requests that Dify builds from its document, without the fields that were left blank."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.doors.http.json_body import body_message, read_body, replay

PREFIX = "/dify"
ROUTES = f"{PREFIX}/v1/"
BLANK = (None, "")
OF_BODY = frozenset({b"content-length", b"content-type", b"transfer-encoding"})
NAMELESS = {"agent": ""}
"""A key that is bound to an agent names it; for any other the routes ask for it."""


class DifyDoor:
    """Pass requests below `/dify/v1/` on to the routes of `/v1/`, without blank fields.

    The routes are strict, and Dify sends a field that its user has left blank as an empty text, whatever its type.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, cleaned if it is Dify's."""
        if scope["type"] != "http" or not scope["path"].startswith(ROUTES):
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(PREFIX)
        scope.update(path=path, raw_path=path.encode())
        if scope["method"] != "POST":
            asked = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            scope["query_string"] = urlencode(NAMELESS | asked).encode()
            await self._app(scope, receive, send)
            return
        arrived = await read_body(receive)
        body = remove_blank_fields(arrived.get("body", b""))
        headers = [(name, value) for name, value in scope["headers"] if name not in OF_BODY]
        length = str(len(body)).encode()
        scope["headers"] = [*headers, (b"content-type", b"application/json"), (b"content-length", length)]
        await self._app(scope, replay(body_message(body), receive), send)


def remove_blank_fields(body: bytes) -> bytes:
    """Remove blank fields of a JSON object; the routes report all other mistakes."""
    try:
        fields: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(fields, dict):
        return body
    filled = {name: value for name, value in fields.items() if value not in BLANK}
    return json.dumps(NAMELESS | filled).encode()

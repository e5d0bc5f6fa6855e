"""Reject requests without a valid key before their body is read."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.doors.dify.problems import RETRIEVAL, refuse
from recollect.doors.http.auth import DOOR, SHOW_KEY
from recollect.doors.http.middleware import GUARDED, has_body
from recollect.doors.http.problems import answer_error, respond
from recollect.errors import ForbiddenError, SetupError, UnauthenticatedError, UnavailableError

COOKIE, CONSOLE = "recollect_console", "console"
OWN_HEADER, SAME = b"x-recollect-console", b"same-origin"
FOR_PAGES = "/v1/"
"""The paths for which the cookie of the console counts."""
NOT_OUR_PAGE = "The console's cookie counts with the header `X-Recollect-Console: 1`, sent by the console's own page."


class KeyCheck:
    """Refuse requests without a key at once, and those with a body whose key was not valid recently.

    It lets nobody in: the database checks the key of every request as well.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] == "http" and scope["path"].startswith(GUARDED):
            try:
                await check_key(scope)
            except UnauthenticatedError as problem:
                answer = refuse(problem) if scope["path"] == RETRIEVAL else respond(401, problem.code, str(problem))
                await answer(scope, receive, send)
                return
            except (ForbiddenError, UnavailableError, SetupError) as problem:
                await answer_error(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def check_key(scope: Scope) -> None:
    """Raise unless a key is shown; ask the database about it before a body is read. Note whose it is, if known."""
    headers = dict(scope["headers"])
    if b"authorization" not in headers and scope["path"].startswith(FOR_PAGES):
        take_session(scope)
        headers = dict(scope["headers"])
    scheme, _, shown = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not shown.strip():
        raise UnauthenticatedError(SHOW_KEY)
    secret, state = shown.strip().decode("latin-1"), scope["app"].state
    caller = state.known_keys.find(secret)
    if caller is None and has_body(headers):
        caller = await state.recollect.authenticate(secret, DOOR, bound=True)
        state.known_keys.add(secret, caller)
    scope["secret"], scope["caller"] = secret, caller


def take_session(scope: Scope) -> None:
    """Let the cookie of the console stand for the header `Authorization`, if it was the console that sent it."""
    shown = read_cookie(scope)
    if not shown:
        return
    check_page(scope)
    scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer " + shown.encode("latin-1"))]
    scope["door"] = CONSOLE


def read_cookie(scope: Scope) -> str:
    """Read the secret of a session; empty if there is none."""
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
    pairs = [pair.strip().partition("=") for line in lines for pair in line.split(";")]
    return next((value for name, _, value in pairs if name == COOKIE), "")


def check_page(scope: Scope) -> None:
    """Refuse what another site's page may have sent: it cannot set our header, and browsers tell whose page it was."""
    headers = dict(scope["headers"])
    if headers.get(OWN_HEADER) != b"1" or headers.get(b"sec-fetch-site", SAME) != SAME:
        raise ForbiddenError(NOT_OUR_PAGE)

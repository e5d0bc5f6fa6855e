"""The console: its pages, kept in memory, and the session that exchanges an API key for a cookie."""

from __future__ import annotations

import gzip
import hashlib
import ipaddress
import mimetypes
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, cast
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from pydantic import Field, SecretStr, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.routing import Route

from recollect.doors.http.auth import JSON, Running
from recollect.doors.http.bodies.fields import Body
from recollect.doors.http.key_check import COOKIE, check_page, read_cookie
from recollect.errors import InvalidInputError, UnauthenticatedError
from recollect.mind.service import Recollect
from recollect.models.service import Caller, CurrentKey

router = APIRouter(include_in_schema=False)
FOLDER = Path(__file__).with_name("pages")
"""Where the build puts its files: `index.html`, and `assets/` whose names change with their content."""
INDEX, ASSETS = "index.html", "assets/"
NOT_BUILT = "The console was not built: run `make console` in a checkout of the repository, then start this again.\n"
DOOR = "console"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
ASSET_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "public, max-age=31536000, immutable",
    "Vary": "Accept-Encoding",
}
OLD_BASE, HEAD = re.compile(rb"<base\b[^>]*>"), re.compile(rb"<head[^>]*>")
SCRIPT = "text/javascript"
SHOWN = TypeAdapter(CurrentKey)
NO_TLS = (
    "Signing in requires HTTPS, because the cookie would be sent unencrypted. Use https, or open the console on this "
    "machine (http://127.0.0.1)."
)
WRONG_LINK = (
    "This sign-in link is invalid or expired. Links work once, for ten minutes; restart `recollect up` for a new one."
)
LINK_BYTES, LINK_SECONDS = 16, 600.0


@dataclass(slots=True)
class Asset:
    """One built file, with its gzip from the first request on that takes one."""

    content: bytes
    media_type: str
    compressed: bytes = b""

    def compress(self) -> bytes:
        """Compress once; the same bytes on every machine."""
        self.compressed = self.compressed or gzip.compress(self.content, mtime=0)
        return self.compressed


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """The built files by their paths; none if the console was not built."""

    files: dict[str, Asset]

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read the files once."""
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return cls({path.relative_to(folder).as_posix(): Asset(path.read_bytes(), name_type(path)) for path in found})


def name_type(path: Path) -> str:
    """Name the media type of a file; that of scripts is up to no setting of the machine."""
    guessed = SCRIPT if path.suffix in {".js", ".mjs"} else mimetypes.guess_type(path.name)[0]
    kind = guessed or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


@dataclass(slots=True)
class OneTimeLinks:
    """The links of this process that sign in once; only their hashes are kept."""

    valid: dict[bytes, tuple[str, float]] = field(default_factory=dict[bytes, tuple[str, float]])

    def make(self, tenant: str) -> str:
        """Return the secret of a new link to a tenant."""
        link = secrets.token_urlsafe(LINK_BYTES)
        self.valid[hash_link(link)] = (tenant, time.monotonic() + LINK_SECONDS)
        return link

    def use(self, link: str) -> str:
        """Return the tenant of a link, and end the link."""
        tenant, until = self.valid.pop(hash_link(link), ("", 0.0))
        if not tenant or until < time.monotonic():
            raise UnauthenticatedError(WRONG_LINK)
        return tenant


def hash_link(link: str) -> bytes:
    """Return the stored hash of a link."""
    return hashlib.sha256(link.encode()).digest()


class SessionBody(Body):
    """What a person signs in with: an API key, or the link that `recollect up` has printed."""

    key: SecretStr | None = Field(None, max_length=200)
    link: SecretStr | None = Field(None, max_length=100)


@router.post("/console/session")
async def begin_session(body: SessionBody, request: Request, recollect: Running) -> Response:
    """Exchange a key, or a one-time link, for a session: a key that expires, in a cookie that no script can read."""
    check_on(recollect)
    check_page(request.scope)
    local = check_transport(request)
    caller = await identify(body, request, recollect, local=local)
    key, secret = await recollect.begin_session(caller)
    own = await recollect.current_key(await recollect.authenticate(secret, DOOR, bound=True))
    answer = Response(SHOWN.dump_json(own), 201, media_type=JSON)
    seconds = round((key.expires_at - key.created_at).total_seconds()) if key.expires_at else 0
    set_cookie(answer, secret, seconds)
    return answer


@router.delete("/console/session")
async def end_session(request: Request, recollect: Running) -> Response:
    """Revoke the session, if there is one, and clear the cookie."""
    check_on(recollect)
    check_page(request.scope)
    answer = Response(status_code=204)
    set_cookie(answer, "", 0)
    shown = read_cookie(request.scope)
    if shown:
        with suppress(UnauthenticatedError):  # it may be over already
            await request.app.state.keys.check(recollect, shown)
            await recollect.end_session(await recollect.authenticate(shown, DOOR, bound=True))
    return answer


async def identify(body: SessionBody, request: Request, recollect: Recollect, *, local: bool) -> Caller:
    """Find out who signs in."""
    if body.key is not None:
        shown = body.key.get_secret_value().strip()
        await request.app.state.keys.check(recollect, shown)
        return await recollect.authenticate(shown, DOOR, bound=True)
    if body.link is None:
        raise InvalidInputError("send an API key as `key`, or the secret of a link as `link`")
    links: OneTimeLinks = request.app.state.links
    if not local:
        raise UnauthenticatedError(WRONG_LINK)
    return await recollect.operator.act_for(links.use(body.link.get_secret_value()))


def set_cookie(answer: Response, secret: str, seconds: int) -> None:
    """Set the cookie with the secret of a session, or delete it."""
    answer.set_cookie(COOKIE, secret, max_age=seconds, path="/", secure=True, httponly=True, samesite="strict")
    answer.headers["Cache-Control"] = "no-store"


def check_transport(request: Request) -> bool:
    """Refuse to sign in without TLS, except on the machine itself; return whether it is on the machine itself.

    The browser names its own origin, which a proxy does not change; of other programs, the requested address counts.
    """
    place = urlsplit(request.headers.get("origin") or f"{request.url.scheme}://{request.headers.get('host', '')}")
    local = is_loopback(place.hostname or "")
    if place.scheme != "https" and not local:
        raise InvalidInputError(NO_TLS)
    return local


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is the machine itself, as browsers see it."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_on(recollect: Recollect) -> None:
    """Answer as for a path that is unknown where the console is off."""
    if recollect.settings.console == "off":
        raise HTTPException(404)


async def show_console(request: Request) -> Response:
    """Answer an asset, or the page for any other path: the page knows its own addresses and their parameters."""
    request.scope["route"] = ROUTES[0]  # the route for metrics and logs
    check_on(request.app.state.recollect)
    path, pages = request.path_params.get("path", ""), cast("StaticFiles", request.app.state.pages)
    if path.startswith(ASSETS):
        found = pages.files.get(path)
        if found is None:
            raise HTTPException(404)
        return give(request, found, dict(ASSET_HEADERS))
    page = pages.files.get(INDEX)
    if page is None:
        return Response(NOT_BUILT, 404, PAGE_HEADERS, "text/plain; charset=utf-8")
    return Response(place(page.content, find_base(request)), 200, PAGE_HEADERS, page.media_type)


ROUTES = [Route(path, show_console, include_in_schema=False) for path in ("/console", "/console/{path:path}")]


def give(request: Request, asset: Asset, headers: dict[str, str]) -> Response:
    """Answer with a file, compressed for those who take it."""
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(asset.compress(), 200, headers, asset.media_type)
    return Response(asset.content, 200, headers, asset.media_type)


def find_base(request: Request) -> str:
    """Return the path of the console, relative to the requested address.

    It is relative, so that it holds under whatever path a proxy has put the service.
    """
    asked: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    root = request.scope.get("root_path", "").encode() + b"/console"
    below = asked.partition(b"?")[0].removeprefix(root)
    return "../" * (below.count(b"/") - 1) or "./" if below else "console/"


def place(page: bytes, base: str) -> bytes:
    """Write into the page where it was served."""
    tag = f'<base href="{base}">'.encode()
    return HEAD.sub(lambda head: head[0] + tag, OLD_BASE.sub(b"", page), count=1)

"""Every header that decides about access is read as the framework, or the server, reads it: there is one reading."""

from __future__ import annotations

import ast
import itertools
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import httptools
import pytest
from fastapi.security import HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.requests import Request
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

import recollect
from recollect.doors.http import key_check, middleware
from recollect.doors.http.app import create_app
from recollect.doors.http.middleware import RequestMiddleware, RequestState, has_body, is_ambiguous
from recollect.doors.http.origins import CorsMiddleware
from recollect.doors.http.server.keys import KeyChecks
from recollect.errors import ForbiddenError, UnauthenticatedError
from recollect.settings import Settings

mcp = pytest.importorskip("recollect.doors.mcp.http", exc_type=ImportError)

VALUES = {
    "authorization": (
        *("Bearer rec_a", "bearer rec_b", "BEARER  rec_c ", "Bearer\trec_d", "Bearer", "Bearer ", "Basic rec_e", ""),
        *("Bearer rec_f rec_g", " Bearer rec_h", "Bearer rec_i,Bearer rec_j", "Bearer \xa0rec_k\x85", "rec_l"),
    ),
    "cookie": (
        *("recollect_console=a", "recollect_console=b; x=1", "x=1;recollect_console=c", "recollect_console= d ", ""),
        *('recollect_console="e"', "recollect_console", "Recollect_Console=f", "recollect_console=g=h;;", "; ;"),
        *("recollect_console=i; recollect_console=j", 'recollect_console="\\101\\054"', "x_recollect_console=k"),
    ),
    "x-recollect-console": ("1", "0", "", "1,1", " 1", "true"),
    "sec-fetch-site": ("same-origin", "cross-site", "none", "", "same-site", "Same-Origin", "same-origin, none"),
    "origin": (
        "https://shop.example",
        "https://evil.example",
        "null",
        "",
        "https://shop.example, https://evil.example",
    ),
    "host": (
        "localhost",
        "localhost:7077",
        "evil.example",
        "",
        "localhost.evil.example",
        "localhost@evil.example",
        "[",
    ),
    "x-forwarded-proto": ("https", "http", "https,http", " https ", "javascript", ""),
    "x-forwarded-for": ("203.0.113.7", "10.0.0.1, 203.0.113.8", "", "10.0.0.2", "[::1]:9", "nonsense"),
    "x-request-id": ("a", "b", ""),
    "recollect-position": ("0.1.0/1", "0.2.0/2"),
    "recollect-max-staleness": ("1", "2"),
}
OWN_PAGE, PROXIES = "https://shop.example", "10.0.0.0/24"


def make_scope(name="", given=(), **more):
    """Make the scope of a request that has a header so many times."""
    headers = [(b"x-other", b"1"), *((name.encode(), each.encode("latin-1")) for each in given)]
    state = SimpleNamespace(keys=KeyChecks(), recollect=SimpleNamespace(settings=Settings(cors_origins=OWN_PAGE)))
    state.keys.check = keep_secret
    return {
        "type": "http", "method": "POST", "path": "/v1/recall", "query_string": b"", "headers": headers,
        "http_version": "1.1", "client": ("10.0.0.1", 5), "scheme": "http", "server": ("localhost", 80),
        "app": SimpleNamespace(state=state), **more,
    }  # fmt: skip


async def keep_secret(_recollect, secret):
    return secret


async def nothing(*_):
    """Stand for what receives and sends."""


async def read_key(scope):
    """Return the key that we read."""
    try:
        await key_check.check_key(scope)
    except UnauthenticatedError:
        return None
    return scope["secret"]


async def expect_key(request):
    """Return the key that the framework reads."""
    scheme, secret = get_authorization_scheme_param(request.headers.get("authorization"))
    shown = await HTTPBearer(auto_error=False)(request)
    assert (shown.credentials if shown else None) == (secret if scheme.lower() == "bearer" and secret else None)
    return shown.credentials if shown else None


async def read_cookie(scope):
    return key_check.read_cookie(scope)


async def expect_cookie(request):
    return request.cookies.get("recollect_console", "")


async def is_own_page(scope):
    """Say whether we take a request for one of the console's own page."""
    scope["headers"].append((b"x-recollect-console", b"1"))
    try:
        key_check.check_page(scope)
    except ForbiddenError:
        return False
    return True


async def expect_own_page(request):
    console, site = request.headers.get("x-recollect-console", "1"), request.headers.get("sec-fetch-site")
    return console == "1" and site in {None, "same-origin"}


async def read_admitted_origin(scope):
    """Return the origin that our answer admits."""
    sent = []

    async def answer(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def keep(message):
        sent.extend(message["headers"])

    await CorsMiddleware(answer)(scope, nothing, keep)
    return dict(sent).get(b"access-control-allow-origin", b"").decode()


async def expect_admitted_origin(request):
    return OWN_PAGE if request.headers.get("origin") == OWN_PAGE else ""


async def is_our_host(scope):
    """Say whether MCP takes the host for ours: then it refuses the method."""
    return (await mcp.refuse(scope | {"method": "GET"})).status_code == 405


async def expect_our_host(request):
    return request.headers.get("host") in {"localhost", "localhost:7077"}


@cache
def own_proxies():
    """Return what our application wraps itself in, if proxies are named; nothing does it otherwise."""
    wrapped = [create_app(Settings(operations={"proxies": proxies})).user_middleware for proxies in ("", PROXIES)]
    found = [[each for each in layers if each.cls is ProxyHeadersMiddleware] for layers in wrapped]
    assert found[0] == []
    [layer] = found[1]
    assert wrapped[1][0].cls is RequestMiddleware, "which notes the connection first"
    return lambda app, _: layer.cls(app, *layer.args, **layer.kwargs)


async def read_forwarded(scope, wrap=None):
    """Return the scheme and the address of a request behind a proxy."""
    seen = []

    async def see(scope, *_):
        seen.append((scope["scheme"], scope["client"]))

    await (wrap or own_proxies())(see, PROXIES)(scope, nothing, nothing)
    return seen


async def expect_forwarded(request):
    return await read_forwarded(dict(request.scope), ProxyHeadersMiddleware)


def reading(name):
    """Read a header that is only passed on or logged."""

    async def read_value(scope):
        return RequestState(scope, nothing, nothing)._headers.get(name.encode(), b"").decode()

    async def expect_value(request):
        return request.headers.get(name, "")

    return read_value, expect_value


READERS = {
    "authorization": (read_key, expect_key),
    "cookie": (read_cookie, expect_cookie),
    "x-recollect-console": (is_own_page, expect_own_page),
    "sec-fetch-site": (is_own_page, expect_own_page),
    "origin": (read_admitted_origin, expect_admitted_origin),
    "host": (is_our_host, expect_our_host),
    "x-forwarded-proto": (read_forwarded, expect_forwarded),
    "x-forwarded-for": (read_forwarded, expect_forwarded),
    **{name: reading(name) for name in ("x-request-id", "recollect-position", "recollect-max-staleness")},
}


@pytest.mark.promise("Every header that decides about access is read as the framework reads it")
@pytest.mark.parametrize("name", VALUES)
async def test_we_read_what_the_framework_reads(name):
    ours, theirs = READERS[name]
    for given in ((), *((each,) for each in VALUES[name]), *itertools.permutations(VALUES[name], 2)):
        scope = make_scope(name, given)
        if name in {"authorization", "host"} and len(given) > 1:
            assert is_ambiguous(scope | {"http_version": "1.0"})
        assert await ours(make_scope(name, given)) == await theirs(Request(scope)), given


@pytest.mark.parametrize(
    "lines",
    [
        *(
            [b"Content-Length: " + value]
            for value in (b"0", b"0 ", b"00", b"5", b"05", b"+5", b"5 ", b"5,5", b"-1", b"0x5", b"", b"\xb2")
        ),
        [b"Content-Length: 5", b"Content-Length: 5"],
        [b"Content-Length: 5", b"Content-Length: 6"],
        [b"Content-Length: 5", b"Transfer-Encoding: chunked"],
        [b"Transfer-Encoding: chunked"],
        [b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked"],
        [],
    ],
    ids=lambda lines: b"+".join(lines).decode("latin-1"),
)
async def test_we_expect_the_body_that_the_server_reads(lines):
    """The server reads a body of five bytes, none, or refuses; we announce the same."""
    parsed = SimpleNamespace(headers=[], body=b"", done=False)
    parsed.on_header = lambda name, value: parsed.headers.append((name.lower(), value))
    parsed.on_body = lambda body: setattr(parsed, "body", parsed.body + body)
    parsed.on_message_complete = lambda: setattr(parsed, "done", True)
    chunked = any(b"chunked" in line for line in lines)
    sent = b"5\r\nabcde\r\n0\r\n\r\n" if chunked else b"abcde" if any(b"5" in line for line in lines) else b""
    try:
        httptools.HttpRequestParser(parsed).feed_data(b"\r\n".join([b"POST / HTTP/1.1", b"Host: x", *lines, b"", sent]))
    except httptools.HttpParserError:
        return
    scope = make_scope() | {"headers": parsed.headers}
    assert is_ambiguous(scope) == (len(lines) > 1 and b"Content-Length" in lines[1])
    assert has_body(dict(parsed.headers)) == bool(parsed.body)
    assert parsed.done
    if not chunked:
        assert RequestState(scope, nothing, nothing).announced_size() == len(parsed.body)


def test_only_the_framework_reads_the_key_of_a_repeated_request():
    folder = Path(recollect.__file__).parent / "doors"
    named = re.compile(rb"idempotency-key", re.IGNORECASE)
    reading = [path.name for path in folder.rglob("*.py") if named.search(path.read_bytes())]
    assert reading == ["origins.py"], "which lists what pages may send"


def test_the_headers_of_the_test_are_those_that_the_doors_read():
    """A header that is read somewhere else must be compared here, too."""
    folder = Path(middleware.__file__).parents[1]
    known = {*VALUES, "content-length", "transfer-encoding", "traceparent", "accept-encoding", "content-type"}
    known |= {"retry-after", "connection", "allow", "cache-control", "access-control-request-method"}
    read = {
        node.args[0].value.lower() if isinstance(node.args[0].value, str) else node.args[0].value.decode()
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
        if "headers" in ast.unparse(node.func.value) and node.args and isinstance(node.args[0], ast.Constant)
    }
    assert read <= known

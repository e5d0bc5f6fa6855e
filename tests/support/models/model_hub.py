"""A hub of models on two real sockets, as Hugging Face is: it redirects, answers ranges, and knows some checksums.

`plain` makes it a simple mirror: files alone, on the branch `master`, without a commit or a checksum.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 100_000
"""Files from this size on are elsewhere, as in Git LFS."""


@dataclass
class ModelHub:
    """What the hub has, how it behaves, and what it was asked."""

    models: dict[str, Path]
    plain: bool = False
    ranges: bool = True
    cut_after: int | None = None
    """Hang up after so many bytes of a large file, once."""
    spoilt: bytes = b""
    """What is sent in place of the first bytes of a large file."""
    large: int = LARGE
    address: str = ""
    storage: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and range of every request."""

    @property
    def fetched(self) -> list[str]:
        """The files whose bytes were asked for."""
        return [path for method, path, _ in self.asked if method == "GET"]


class _Handler(BaseHTTPRequestHandler):
    hub: ModelHub
    stores: bool
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        self.hub.asked.append((self.command, self.path, self.headers.get("Range", "")))
        owner, name, _, revision, path = self.path.removeprefix("/cached").strip("/").split("/", 4)
        folder = self.hub.models.get(f"{owner}/{name}")
        if folder is None:
            return self.say(401)
        if revision not in ({"master"} if self.hub.plain else {"main", COMMIT}) or not (folder / path).is_file():
            return self.say(404)
        data = (folder / path).read_bytes()
        if self.stores and not body:
            return self.say(403)  # An address that is signed for GET alone.
        if not (self.stores or self.hub.plain or self.path.startswith("/cached")):
            return self.redirect(data)
        return self.send(data, body=body)

    def redirect(self, data: bytes) -> None:
        known = {"X-Repo-Commit": COMMIT}
        if len(data) < self.hub.large:
            return self.say(307, known | {"Location": f"/cached{self.path}"})
        tag = hashlib.sha256(data).hexdigest()
        known |= {"X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{tag}"', "ETag": '"other"'}
        return self.say(302, known | {"Location": f"{self.hub.storage}{self.path}"})

    def send(self, data: bytes, *, body: bool) -> None:
        large = len(data) >= self.hub.large
        data = self.hub.spoilt + data[len(self.hub.spoilt) :] if large else data
        start = int(self.headers.get("Range", "bytes=0-")[6:-1]) if self.hub.ranges else 0
        headers = {"Content-Length": str(len(data) - start), "ETag": f'"{hashlib.sha1(data).hexdigest()}"'}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self.say(206 if start else 200, headers)
        if not body:
            return
        cut = self.hub.cut_after if large else None
        self.wfile.write(data[start : None if cut is None else start + cut])
        if cut is not None:
            self.hub.cut_after, self.close_connection = None, True
            self.connection.close()

    def say(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def listening(hub: ModelHub, *, stores: bool) -> Iterator[str]:
    handler = type("Handler", (_Handler,), {"hub": hub, "stores": stores})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving_models(models: dict[str, Path], **behaviour: object) -> Iterator[ModelHub]:
    """Serve folders as models for the length of the block."""
    hub = ModelHub(models, **behaviour)
    with listening(hub, stores=True) as hub.storage, listening(hub, stores=False) as hub.address:
        yield hub

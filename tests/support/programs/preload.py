"""A library that programs load before their own: it lets their syncs fail and steps their clocks, while they run."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_suffix(".c")
NUMBER = struct.Struct("=q")
OFFSET, FAILURES, WHICH, FAILED = range(0, 4 * NUMBER.size, NUMBER.size)
OF_LOG, OF_TABLES = 1, 2
"""Which syncs fail."""


class Preload:
    """The library, and what it does in all programs that were started with it."""

    def __init__(self, folder: Path, name: str) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("no C compiler is installed")
        self.library = folder / f"{name}.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", self.library, SOURCE, "-ldl"], check=True)
        control = folder / f"{name}.so.control"
        control.write_bytes(bytes(4 * NUMBER.size))
        # Whatever account runs a program: what it says of itself is written there.
        control.chmod(0o666)
        with control.open("r+b") as file:
            self._numbers = mmap.mmap(file.fileno(), 4 * NUMBER.size)

    def step(self, seconds: int) -> None:
        """Set by how much the clock is off."""
        self._set(OFFSET, seconds)

    def fail(self, which: int, count: int = 1) -> None:
        """Let the next syncs of some files fail."""
        self._set(WHICH, which)
        self._set(FAILURES, count)

    @property
    def failed(self) -> int:
        """How many syncs have failed."""
        return NUMBER.unpack_from(self._numbers, FAILED)[0]

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to be started with."""
        return {"LD_PRELOAD": str(self.library)}

    @contextmanager
    def loaded(self) -> Iterator[None]:
        """Have the servers that this process starts load the library."""
        os.environ |= self.environment
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"]

    def _set(self, place: int, number: int) -> None:
        NUMBER.pack_into(self._numbers, place, number)

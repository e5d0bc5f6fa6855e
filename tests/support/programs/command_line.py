"""The command line, run in this process: all that a process of its own would do but the start of Python."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from unittest.mock import patch

from recollect.doors.cli.main import main
from recollect.mind.service import Addresses
from support.programs.programs import plain_environment

# Wide enough for every table; what a terminal's width changes is tested with a width of its own.
COLUMNS = "200"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and what it said."""

    code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        return self.stdout + self.stderr


def settings_of(addresses: Addresses, **more: str) -> dict[str, str]:
    """Give the variables with which a command works on a database, with the deterministic embedder."""
    usual = {"database_url": addresses.service, "owner_database_url": addresses.owner, "embedder": "fake"}
    return {f"RECOLLECT_{name.upper()}": value for name, value in (usual | more).items()}


def call(*words: str, settings: Mapping[str, str], typed: str = "") -> Outcome:
    """Run a command with these variables alone, and with somebody who types."""
    # A thread of its own, because a command runs an event loop of its own.
    with surroundings(settings, words, typed) as (out, err), ThreadPoolExecutor(1) as thread:
        code = thread.submit(end_of_main, err).result()
    return Outcome(code, out.getvalue(), err.getvalue())


def run(*words: str, settings: Mapping[str, str], typed: str = "", fails: bool = False) -> str:
    """Run a command that must succeed, or must fail, and give all that it says."""
    ended = call(*words, settings=settings, typed=typed)
    assert (ended.code != 0) == fails, ended.said
    return ended.said


@contextlib.contextmanager
def surroundings(settings: Mapping[str, str], words: tuple[str, ...], typed: str) -> Iterator[tuple[io.StringIO, ...]]:
    """Put a command's environment, arguments and streams in the place of our own."""
    out, err = Stream(), Stream()
    with (
        patch.dict(os.environ, plain_environment() | {"COLUMNS": COLUMNS} | dict(settings), clear=True),
        patch.object(sys, "argv", ["recollect", *words]),
        patch.object(sys, "stdin", Stream(typed)),
        patch.object(sys, "excepthook", sys.excepthook),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        yield out, err


class Stream(io.StringIO):
    """Text in memory that names an encoding, as the streams of a process do."""

    encoding = "utf-8"


def end_of_main(err: io.StringIO) -> int:
    """Run the command, and give the code that its process would end with."""
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # a process would print it and end, too
        traceback.print_exc(file=err)
        return 1
    return 0

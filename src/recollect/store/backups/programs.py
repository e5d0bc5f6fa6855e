"""Run PostgreSQL's own programs: those of the embedded server or those of this machine, with their progress."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect.errors import SetupError
from recollect.loading import advise
from recollect.store.embedded.account import find_programs

ENDS = re.compile(rb"[\r\n]")
KEPT_LINES = 8
CHUNK = 1 << 16


def find_program(name: str) -> Path:
    """Find a program of PostgreSQL, the embedded server's first."""
    with suppress(SetupError):
        program = find_programs() / name
        if program.exists():
            return program
    found = shutil.which(name)
    if found is None:
        raise SetupError(
            f"{name} is not installed: {advise('embedded')}, or install the client "
            "programs of PostgreSQL, in the version of your server or later (Debian: apt install postgresql-client)."
        )
    return Path(found)


def hide_password(dsn: str) -> tuple[str, dict[str, str]]:
    """Take the password out of a DSN: everybody on a machine can read the arguments of a program."""
    fields = conninfo_to_dict(dsn)
    password = fields.pop("password", None)
    environment = dict(os.environ) | ({"PGPASSWORD": str(password)} if password else {})
    return make_conninfo("", **{name: str(value) for name, value in fields.items() if value is not None}), environment


async def run_program(
    name: str, dsn: str, arguments: Sequence[str | Path], tell: Callable[[str], None] = lambda _: None
) -> None:
    """Run a program on a database to its end; `tell` gets each line that it says meanwhile."""
    place, environment = hide_password(dsn)
    process = await asyncio.create_subprocess_exec(
        find_program(name),
        *map(str, arguments),
        "--dbname",
        place,
        env=environment | {"LC_ALL": "C"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    said: list[str] = []
    try:
        async for line in read_lines(process):
            said = [*said, line][-KEPT_LINES:]
            tell(line)
    except BaseException:
        process.kill()
        raise
    finally:
        code = await process.wait()
    if code:
        raise SetupError(f"{name} failed: {' '.join(said)}")


async def read_lines(process: asyncio.subprocess.Process) -> AsyncIterator[str]:
    """Read what a program says, line by line; a line of progress ends with a carriage return."""
    rest = b""
    while process.stderr is not None and (data := await process.stderr.read(CHUNK)):
        *lines, rest = ENDS.split(rest + data)
        for line in lines:
            if line.strip():
                yield line.decode(errors="replace").strip()
    if rest.strip():
        yield rest.decode(errors="replace").strip()

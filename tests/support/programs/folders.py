"""Folders for servers: pytest's own lie below one that the server's account cannot enter."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 * 2**30


def find_memory() -> Path | None:
    """Find room in memory for servers whose data need not outlive them."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES else None


@contextmanager
def open_folder(purpose: str, place: Path | None = None) -> Iterator[Path]:
    """Make a folder that everybody can enter, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"recollect-{purpose}-", dir=place))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

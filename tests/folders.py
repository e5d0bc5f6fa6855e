"""Folders for servers: pytest's own lie below one that the server's account cannot enter."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_folder(purpose: str) -> Iterator[Path]:
    """Make a folder that everybody can enter, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"recollect-{purpose}-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

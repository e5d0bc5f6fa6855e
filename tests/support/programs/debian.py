"""Programs as Debian ships them: the one installed here, or its packages, fetched once and unpacked for the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect"
HURRY = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10")


def find_program(name: str, packages: tuple[str, ...], folder: Path) -> list[str]:
    """Give the command that starts a program, whatever account runs it; skip the test where there is none."""
    installed = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if installed:
        return [installed]
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        pytest.skip(f"{name} is not installed, and this is no Debian to fetch it from")
    kept = KEPT / name
    kept.mkdir(parents=True, exist_ok=True)
    if len([*kept.glob("*.deb")]) < len(packages):
        fetched = subprocess.run(["apt-get", *HURRY, "download", *packages], cwd=kept, capture_output=True, check=False)
        if fetched.returncode:
            pytest.skip(f"{name} is not installed, and cannot be fetched from Debian")
    for package in kept.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder], check=True)
    libraries = ":".join(map(str, (folder / "usr" / "lib").glob("*-linux-gnu")))
    [program] = (folder / "usr").glob(f"*bin/{name}")
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(program)]

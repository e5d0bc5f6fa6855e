"""The wheels of a release, built once for all tests of a run, and empty environments to install them in."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

import release
from support.programs.programs import plain_environment


def build_once(factory: pytest.TempPathFactory) -> Path:
    """Build the wheels into a folder that all workers of a run share; who comes second waits and takes them."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheels"
    folder.mkdir(exist_ok=True)
    built = folder / "dist"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            release.build_wheels(built)
            (folder / "done").touch()
    return built


def empty_environment(folder: Path) -> dict[str, str]:
    """Make a virtual environment with nothing in it, and a home of its own beside it; give what a shell would have."""
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], check=True)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return (
        plain_environment()
        | {
            "HOME": str(home),
            "VIRTUAL_ENV": str(folder / "venv"),
            "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "COLUMNS": "160",
        }
        | warm_cache()
    )


def warm_cache() -> dict[str, str]:
    """Name the cache of whoever runs the tests: what was downloaded before is not downloaded again."""
    return {"UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path("~/.cache/uv").expanduser()))}


def install(wanted: list[str], wheels: Path, environment: dict[str, str]) -> None:
    """Install as `pip install` of a page says, ours from the wheels."""
    command = ["uv", "pip", "install", "--quiet", "--find-links", str(wheels), *wanted]
    subprocess.run(command, env=environment, check=True)

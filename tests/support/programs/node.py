"""Programs of Node that tests run, as `make setup` has installed them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.programs.programs import plain_environment

ROOT = Path(__file__).parents[3]
LONGEST_SECONDS = 420


def need_node(folder: str) -> None:
    """Skip a test where Node or the packages of a folder are missing; in CI they may not be."""
    missing = shutil.which("node") is None or not (ROOT / folder / "node_modules").exists()
    if missing:
        reason = f"Node, or its packages in {folder}, are missing: run `make console`"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def need_chromium() -> None:
    """Skip where there is no Chromium; CI installs it."""
    if shutil.which("chromium") is None:
        reason = "Chromium is missing: run tools/chromium.sh"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def run_script(folder: str, script: str, **variables: str) -> None:
    """Run a script of a folder's package.json, and show what it printed where it fails."""
    ran = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=ROOT / folder,
        env=plain_environment() | {"NO_COLOR": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    print(ran.stdout[-20_000:], ran.stderr[-5_000:], sep="\n")
    assert ran.returncode == 0

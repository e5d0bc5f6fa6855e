"""From an empty home to the first recall by meaning, with the one command of the README."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import httpx
import pytest

from support.programs import wheels
from support.programs.ports import free_port
from support.programs.programs import Started, plain_environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("uv") is None, reason="`uvx` is a command of uv")]
NOBODY = "65534"
MEMORY, QUESTION = "Li is allergic to peanuts.", "Which snack would make her ill?"
"""They share no word, so that only meaning finds it."""


def as_somebody_else(command: list[str]) -> list[str]:
    """Run a command as a user of its own where this process may: PostgreSQL does not run as root."""
    alone = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    possible = (
        os.geteuid() == 0 and shutil.which("unshare") and not subprocess.run([*alone, "true"], check=False).returncode
    )
    return [*alone, *command] if possible else command


class FirstMinute(Started):
    """What the command says, and when it had done each step."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._began = time.monotonic()
        self.steps: list[tuple[float, str]] = []
        super().__init__(command, environment)

    def note(self, step: str) -> None:
        self.steps.append((time.monotonic() - self._began, step))


@pytest.fixture
def first_minute(tmp_path_factory, tmp_path):
    built = wheels.build_once(tmp_path_factory)
    home = tmp_path / "home"
    home.mkdir()
    environment = plain_environment() | {"HOME": str(home), "UV_PYTHON": sys.executable, **wheels.warm_cache()}
    command = ["uvx", "--isolated", "--find-links", str(built), "--from", "recollect-memory[all]", "recollect", "up"]
    minute = FirstMinute(as_somebody_else([*command, "--port", str(free_port())]), environment)
    yield minute
    minute.stop()


def test_one_command_leads_to_the_first_recall_by_meaning(first_minute):
    first_minute.read_until(r"Installed \d+ packages")
    first_minute.note("installed")
    first_minute.read_until(r"\d s  ready")
    first_minute.note("ready")
    url = first_minute.read_until(r"up at (\S+)")[1]
    key = first_minute.read_until(r"API key .*: (rec_\S+)")[1]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60, trust_env=False) as client:
        client.post(
            "/v1/memories", json={"agent": "ada", "user": "li", "memories": [{"content": MEMORY}]}
        ).raise_for_status()
        first_minute.note("first memory")
        answer = (
            client.post("/v1/recall", json={"agent": "ada", "user": "li", "text": QUESTION}).raise_for_status().json()
        )
        first_minute.note("first recall")
    for seconds, step in first_minute.steps:
        print(f"{seconds:5.1f} s  {step}")
    [hit] = answer["hits"]
    assert hit["memory"]["content"] == MEMORY
    assert "text" not in hit["channels"]
    assert "vector" in hit["channels"]

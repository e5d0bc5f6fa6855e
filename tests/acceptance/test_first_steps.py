"""From an empty virtual environment to the right answer, by the commands that the README shows."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.programs import wheels
from support.programs.command_line import call
from support.programs.folders import find_memory, open_folder

ROOT = Path(__file__).parents[2]


def commands() -> list[list[str]]:
    """The shell lines of the README's first steps, comments left out."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Install and try")[1].split("\n## ")[0]
    lines = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)).splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith(("pip", "recollect"))]


@pytest.fixture
def home():
    with open_folder("first") as folder:
        yield folder


@pytest.fixture
def data():
    with open_folder("first-data", find_memory()) as folder:
        yield folder / "data"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv builds the wheel and the virtual environment")
def test_the_readme_leads_to_the_right_answer(home, data, tmp_path_factory):
    steps = commands()
    assert [step[:2] for step in steps] == [
        ["pip", "install"],
        ["recollect", "up"],
        ["recollect", "remember"],
        ["recollect", "recall"],
    ]
    # The checkout as wheels, so that what a release would carry is what runs.
    built = wheels.build_once(tmp_path_factory)
    environment = wheels.empty_environment(home) | {"RECOLLECT_DATA_DIR": str(data), "RECOLLECT_PORT": "0"}
    wheels.install(steps[0][2:], built, environment)
    lend_bytecode(home / "venv")
    up = subprocess.Popen(steps[1], env=environment, cwd=home, stdout=subprocess.PIPE, text=True)
    try:
        wait_for_greeting(up)
        for content in ("Li moved to Hangzhou in May.", "Li plays the violin on Sundays."):
            # What else there is to remember needs no process of its own.
            assert call(*steps[2][1:-1], content, settings={"RECOLLECT_DATA_DIR": str(data)}).code == 0
        run(steps[2], environment, home)
        table = run(steps[3], environment, home)
    finally:
        up.send_signal(signal.SIGTERM)
        assert up.wait(20) == 0
    answer = steps[2][-1]
    others = [table.index(each) for each in ("Hangzhou", "violin") if each in table]
    assert all(table.index(answer) < other for other in others), table
    assert "vector" in table, "the local model took part"
    assert not list(data.glob("postgres/postmaster.pid")), "PostgreSQL was left running"


def lend_bytecode(environment):
    """Copy what was compiled here to an environment whose sources are the same; Python itself compares them."""
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    ours, theirs = (Path(place) / library for place in (sys.prefix, environment))
    for compiled in ours.rglob("__pycache__"):
        target = theirs / compiled.relative_to(ours)
        if target.parent.is_dir():
            shutil.copytree(compiled, target, dirs_exist_ok=True)


def wait_for_greeting(process):
    seen = ""
    while "Stop with" not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line


def run(command, environment, home):
    return subprocess.run(command, env=environment, cwd=home, check=True, capture_output=True, text=True).stdout

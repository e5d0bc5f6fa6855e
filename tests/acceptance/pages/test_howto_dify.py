"""The pages on coming from Dify say what is so: their role reads, their commands print, their nodes work."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.dify.dify_database import fill_example, made_dify
from support.programs.command_line import call, settings_of
from support.programs.programs import plain_environment

HOWTO = Path(__file__).parents[3] / "docs" / "howto"
PAGES = ("from-dify.md", "from-dify.zh.md")
CODE_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "postgresql://recollect_reader@localhost:5432/dify"


def blocks(page: str, language: str) -> list[str]:
    return [text for found, text in CODE_BLOCK.findall((HOWTO / page).read_text(encoding="utf-8")) if found == language]


def run_node(code: str, *inputs: str) -> dict:
    """Run the program of one of Dify's code nodes."""
    namespace: dict = {}
    exec(code, namespace)
    return namespace["main"](*inputs)


def test_both_pages_show_the_same_code():
    for language in ("sql", "sh", "text", "python", "json"):
        assert blocks(PAGES[0], language) == blocks(PAGES[1], language)


@pytest.fixture
def dify(cluster):
    with made_dify(cluster) as made:
        fill_example(made)
        made.execute(blocks(PAGES[0], "sql")[0])
        yield made
        made.execute("drop owned by recollect_reader")
        made.execute("drop role recollect_reader")


def run_program(program: str, settings: dict[str, str]) -> str:
    environment = plain_environment() | settings | {"PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def test_the_example_is_imported_compared_and_asked_for(addresses, dify, http):
    settings = settings_of(addresses) | {"COLUMNS": "100"}
    _, dry_run, real = blocks(PAGES[0], "sh")[0].splitlines()
    reader = dify.dsn.replace("user=postgres", "user=recollect_reader")
    imported, compared = blocks(PAGES[0], "text")
    for line in (dry_run, real):
        command = [reader if word == ADDRESS else word for word in shlex.split(line)[1:]]
        shown = call(*command, settings=settings)
        assert shown.code == 0, shown.stderr
    assert shown.stdout == imported
    compare, before, after = blocks(PAGES[0], "python")
    assert run_program(compare, settings) == compared

    context, history, messages = (json.loads(text) for text in blocks(PAGES[0], "json"))
    made = run_node(before, context["user"], context["conversation"], context["text"])
    assert json.loads(made["body"]) == context
    answer = await http.post("/v1/context", content=made["body"], headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    taken = run_node(after, answer.text)
    assert "Human: 有素菜吗？" in taken["history"]
    assert isinstance(taken["memories"], str)
    read = await http.post("/v1/history", json=history)
    assert [message["content"] for message in read.json()["prompt"]][-1] == "停车场在孤山路。"
    written = await http.post("/v1/messages", json=messages, headers={"Idempotency-Key": "run-1"})
    assert written.status_code == 201, written.text
    again = await http.post("/v1/messages", json=messages, headers={"Idempotency-Key": "run-1"})
    assert again.json() == written.json()

"""The page on backups: its commands run in their order, on an embedded server, and do what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from command_line import call
from folders import find_memory, open_folder

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACE = "/srv/backups"


def commands(page):
    lines = [line for block in BLOCK.findall((HOWTO / page).read_text(encoding="utf-8")) for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


@pytest.fixture
def folder():
    with open_folder("howto", find_memory()) as made:
        yield made


def run(settings, *words):
    ended = call(*words, settings=settings, typed="y\n")
    assert ended.code == 0, ended.said
    return ended.stdout


def test_the_pages_have_the_same_commands():
    assert commands("backup.md") == commands("backup.zh.md")


def test_the_commands_of_the_page(folder):
    settings = {"RECOLLECT_DATA_DIR": str(folder / "data"), "RECOLLECT_EMBEDDER": "fake"}
    make, verify, restore, export, replay = commands("backup.md")
    assert make[0] == "BACKUP=$(recollect" and make[3:] == [PLACE, "|", "head", "-1)"]
    for user in ("li", "mo"):
        run(settings, "remember", "--agent", "ada", "--user", user, f"{user} drinks tea")
    backup = run(settings, *make[1:3], str(folder / "backups")).splitlines()[0]
    run(settings, "forget", "--user", "li", "--all-agents")
    assert run(settings, *verify[1:-1], backup).splitlines()[1].startswith("verified: base, ")
    told = run(settings, *(backup if word == "$BACKUP" else word for word in restore[1:]))
    assert "1 erasures are newer than the backup; 1 of them had something to erase in it" in told
    assert "nothing found" in run(settings, "recall", "--agent", "ada", "--user", "li", "tea")
    assert "mo drinks tea" in run(settings, "recall", "--agent", "ada", "--user", "mo", "tea")
    assert export[0] == "export" and export[1].startswith("RECOLLECT_ERASURE_LOG=s3://")
    assert "0 erasures are newer" in run(settings, *replay[1:]), "all were applied when the incarnation began"
    assert "mo drinks tea" in run(settings, "recall", "--agent", "ada", "--user", "mo", "tea")

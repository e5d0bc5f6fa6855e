"""The demo of Generative Agents, by the commands that the page on import shows, with real memories and a real model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from recollect.llm.build import has_minilm
from support.imports.saved_folder import read_saved_folder
from support.programs.command_line import call
from support.programs.folders import find_memory, open_folder

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "import-export.md"
ROW = re.compile(
    r"│ (\d\.\d{3}) │ (\d\.\d{3}) +│ (\d\.\d{3}) +│ (\d\.\d{3}) +│ (event|thought) +│ ([^│]+?) +│ ([^│]+?) +│"
)


@pytest.fixture
def home():
    with open_folder("demo", find_memory()) as folder:
        yield folder


def commands(saved: Path, back: Path) -> list[list[str]]:
    """The shell lines of the page's section on Generative Agents, with real folders in them."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Generative Agents")[1]
    lines = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[0].splitlines()
    folders = {"storage/my_simulation/personas/maria_lopez": str(saved), "back/maria_lopez": str(back)}
    return [[folders.get(word, word) for word in shlex.split(line)[1:]] for line in lines]


@pytest.mark.real_model
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
def test_a_persona_is_imported_asked_and_exported(shared, home):
    saved, back = shared / "data" / "ga_july1_step_3_12" / "maria_lopez", home / "back" / "maria_lopez"
    settings = {"RECOLLECT_DATA_DIR": str(home / "data"), "RECOLLECT_EMBEDDER": "local", "COLUMNS": "250"}
    imported, recalled, exported = (call(*words, settings=settings) for words in commands(saved, back))
    assert imported.code == 0, imported.stderr
    assert re.search(r"embedding .*100%", imported.stderr)
    lines = re.findall(r"│ ([a-z ]+?) +│ +(\d+) │ +(\d+) │ +(\d+) │", imported.stdout)
    assert [(thing, int(stored), int(differ)) for thing, _, stored, differ in lines] == [
        ("events", 222, 0),
        ("thoughts", 42, 0),
        ("chats", 3, 0),
        ("evidence links", 112, 0),
        ("vectors", 115, 0),
        ("keyword strengths", 85, 0),
        ("scratch values", 47, 0),
    ]
    assert recalled.code == 0, recalled.stderr
    for factor in ("score", "recency", "similarity", "importance"):
        assert factor in recalled.stdout
    rows = ROW.findall(recalled.stdout)
    assert len(rows) == 10
    scores = [float(row[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    for score, recency, similarity, importance in ([float(number) for number in row[:4]] for row in rows):
        assert score == pytest.approx(0.5 * recency + 3 * similarity + 2 * importance, abs=0.005)
    assert any("asking" in row[6] for row in rows[:3])
    assert "267 memories exported" in exported.stdout
    assert read_saved_folder(back)["nodes.json"] == read_saved_folder(saved)["nodes.json"]

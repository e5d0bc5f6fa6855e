"""Every wall holds: each forbidden import, planted in a copy of the house, is found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from house import rules

ROOT = Path(__file__).parents[2]
WAYS = "Imports go one way only, and every room has its place"
PURE = "Core and the nouns know no input, output, clock or chance"
DRIVER = "Only the store and the channels speak to the database"
DOORS = "A door parses, calls the mind and prints"
CHANNELS = "Channels do not know each other"
SDK = "The SDK knows values, errors and rules alone"

ROOMS = "Rooms have one order on every floor"
NOUNS = "The nouns know each other in the order of the rooms"
FACADE = "The facade is made of one module per room"

CONTRACTS = (WAYS, PURE, DRIVER, DOORS, CHANNELS, SDK, ROOMS, NOUNS, FACADE)

# Place and text of each plant, the contract that it breaks, and the linter's message. Each is a separate module.
IMPORTS = {
    "core imports the driver": ("core/planted_driver.py", "import psycopg", PURE, "core.planted_driver -> psycopg"),
    "core reads the clock": ("core/planted_clock.py", "from time import time", PURE, "core.planted_clock -> time"),
    "core keeps state beside its arguments": (
        *("core/planted_state.py", "from contextvars import ContextVar", PURE),
        "core.planted_state -> contextvars",
    ),
    "core knows a verb": (
        *("core/planted_verb.py", "from recollect.verbs.recall import recall", WAYS),
        "core.planted_verb -> recollect.verbs.recall.recall",
    ),
    "the store knows a channel": (
        *("store/planted_channel.py", "from recollect.channels import vector", WAYS),
        "store.planted_channel -> recollect.channels.vector",
    ),
    "the store knows a model": (
        *("store/planted_model.py", "from recollect.llm import embedder", WAYS),
        "store.planted_model -> recollect.llm.embedder",
    ),
    "a verb speaks SQL": ("verbs/planted_sql.py", "import psycopg", DRIVER, "verbs.planted_sql -> psycopg"),
    "a door opens the store": (
        *("doors/planted_store.py", "from recollect.store.embedded import cluster", DOORS),
        "doors.planted_store -> recollect.store.embedded.cluster",
    ),
    "a door calls core": (
        *("doors/http/planted_core.py", "from recollect.core.recall import cues", DOORS),
        "doors.http.planted_core -> recollect.core.recall.cues",
    ),
    "a channel knows another": (
        *("channels/text.py", "from recollect.channels import vector", CHANNELS),
        "channels.text -> recollect.channels.vector",
    ),
    "the protocol knows a channel": (
        *("channels/channel.py", "import recollect.channels.vector", CHANNELS),
        "channels.channel -> recollect.channels.vector",
    ),
    "the SDK knows the store": (
        *("client/planted_store.py", "from recollect.store.database import pool", SDK),
        "client.planted_store -> recollect.store.database.pool",
    ),
    "a room knows a later one": (
        *("core/memories/planted_room.py", "from recollect.core.knowledge import facts", ROOMS),
        "core.memories.planted_room -> recollect.core.knowledge.facts",
    ),
    "a new room": ("utils/__init__.py", "", WAYS, "not listed as layers:\n\n- recollect.utils"),
}

LONG_FUNCTION = "def long() -> None:\n" + "    pass\n" * 50
MANY_METHODS = "class Many:\n" + "".join(f"    def do_{number}(self) -> None: ...\n" for number in range(16))
LOAD = "from recollect.loading import load\n"
LINES = {
    "SQL in a string": ("verbs/planted.py", 'ASK = "select id from memories"', rules.check_sql),
    "SQL in a formatted string": ("verbs/planted.py", 'ASK = f"delete from {__name__}"', rules.check_sql),
    "SQL over lines": ("jobs/planted.py", 'ASK = """\n  insert into\n  memories"""', rules.check_sql),
    "a lost word": ("core/planted.py", "poignancy = 1", rules.check_words),
    "a lost word in a remark": ("core/planted.py", "# like a ConceptNode", rules.check_words),
    "a lost word in SQL": ("store/planted.sql", "select kw_strength_event", rules.check_words),
    "a lost name": ("core/planted.py", "class PersonaName: ...", rules.check_words),
    "a lost name in SQL": ("store/planted.sql", "select focal", rules.check_words),
    "a long file": ("core/planted.py", "\n" * 400, rules.check_sizes),
    "a long function": ("core/planted.py", LONG_FUNCTION, rules.check_sizes),
    "many methods": ("core/planted.py", MANY_METHODS, rules.check_sizes),
    "many parameters": ("core/planted.py", "def f(a, b, c, d, e, f, g): ...", rules.check_sizes),
    "a vague folder": ("utils/__init__.py", "", rules.check_rooms),
    "a vague file": ("store/query_helpers.py", "", rules.check_rooms),
    "a room without a plan": ("extras/__init__.py", "", rules.check_rooms),
    "a channel without a query": ("channels/planted.py", "", rules.check_channels),
    "a query without a channel": ("channels/planted.sql", "select 1", rules.check_channels),
    "a late import of a stranger": (
        "core/planted.py",
        LOAD + 'x = load("recollect.wirings")',
        rules.check_loads,
    ),
    "a late import of anything": ("core/planted.py", LOAD + "x = load(name)", rules.check_loads),
    "a class name twice": ("core/planted.py", "class Cue: ...", rules.check_class_names),
    "a scrap of a file": ("core/planted.py", "SIZE = 1", rules.check_folders),
    "a clock in core": ("core/planted.py", "stamp = datetime.now(UTC)", rules.check_purity),
    "a dice in core": ("core/planted.py", "roll = np.random.rand()", rules.check_purity),
}


def copy_house(folder):
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".importlinter", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def shared_copy(tmp_path_factory):
    return copy_house(tmp_path_factory.mktemp("house"))


@pytest.fixture
def copy(shared_copy):
    """A copy of the house for all tests: what one of them plants is gone when it ends."""
    before = {path: path.stat().st_mtime_ns for path in shared_copy.rglob("*")}
    yield shared_copy
    for path in sorted(shared_copy.rglob("*"), reverse=True):
        if path not in before:
            path.rmdir() if path.is_dir() else path.unlink()
        else:
            assert path.is_dir() or path.stat().st_mtime_ns == before[path], f"{path} was not planted, but changed"


def plant(copy, place, text):
    path = copy / rules.PACKAGE / place
    path.parent.mkdir(exist_ok=True)
    before = path.read_text() if path.exists() else ""
    begin = before or ('"""A planted file that breaks a rule."""\n' if place.endswith(".py") else "")
    path.write_text(f"{begin}\n{text}\n")


def lint(copy):
    """Run the linter; it knows a package only by its name, so that it takes another process to let it see a copy."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "200"}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


def test_an_untouched_copy_passes(copy):
    outcome = lint(copy)
    assert outcome.returncode == 0, outcome.stdout
    assert "0 broken" in outcome.stdout
    assert [broken for rule in rules.CODE_RULES for broken in rule(copy)] == []


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """All forbidden imports at once, each in a separate module: the linter's messages about them, by contract."""
    copy = copy_house(tmp_path_factory.mktemp("broken"))
    for place, text, _, _ in IMPORTS.values():
        plant(copy, place, text)
    outcome = lint(copy)
    assert outcome.returncode == 1
    said = outcome.stdout.partition("Broken contracts")[2]
    parts = re.split(rf"^({'|'.join(map(re.escape, CONTRACTS))})$", said, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("contract", "told"), [each[2:] for each in IMPORTS.values()], ids=IMPORTS.keys())
def test_a_forbidden_import_is_found(complaints, contract, told):
    assert told in complaints[contract]


@pytest.mark.parametrize(("place", "text", "rule"), LINES.values(), ids=LINES.keys())
def test_a_broken_rule_is_found(copy, place, text, rule):
    before = rule(copy)
    plant(copy, place, text)
    assert set(rule(copy)) - set(before)


def test_a_crowded_folder_is_found(copy):
    for number in range(12):
        plant(copy, f"core/topics/planted_{number}.py", "\n" * 40)
    plant(copy, "core/topics/planted_more.py", "\n" * 40)
    assert rules.check_folders(copy) == ["src/recollect/core/topics: 16 files"]


@pytest.mark.parametrize("hidden", ["def late():\n    ", "if TYPE_CHECKING:\n    "])
def test_a_hidden_cycle_is_found(copy, hidden):
    plant(copy, "core/planted_one.py", "import recollect.core.planted_other")
    plant(copy, "core/planted_other.py", hidden + "from recollect.core import planted_one")
    [told] = rules.check_cycles(copy)
    assert {"recollect.core.planted_one", "recollect.core.planted_other"} <= set(told.split(" <- "))


def test_a_module_without_a_promise_is_found(copy):
    (copy / rules.PACKAGE / "core" / "planted.py").write_text('"""Planted."""\n')
    assert any("core/planted.py" in broken for broken in rules.check_docstrings(copy))


def test_a_translator_may_use_the_words_of_others(copy):
    plant(copy, "doors/compat/planted.py", "poignancy = 1")
    plant(copy, "doors/importers/planted.py", "class ConceptNode: ...")
    assert not [broken for broken in rules.check_words(copy) if "planted" in broken]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("from recollect.wiring import open_recollect", "imports recollect.wiring"),
        ("from recollect import Mind", "imports recollect.Mind"),
        ("import recollect.store.database.pool", "imports recollect.store.database.pool"),
        ("\n" * 300, "lines, fewer than 300 are allowed"),
        ("from recollect.client import Client\nfrom recollect import sync, errors\nimport recollect.models", ""),
    ],
)
def test_an_integration_stays_small_and_uses_only_the_client(tmp_path, text, problem):
    project = tmp_path / "integrations" / "planted"
    (project / "src").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    (project / "src" / "planted.py").write_text(text)
    found = rules.check_integrations(tmp_path)
    assert [problem in line for line in found] == ([True] if problem else [])


@pytest.mark.parametrize("text", ["select a table from the list, then go on"[8:], "update the settings", "with care"])
def test_plain_english_is_not_taken_for_sql(copy, text):
    before = rules.check_sql(copy)
    plant(copy, "core/planted.py", f"MESSAGE = {text!r}")
    assert rules.check_sql(copy) == before


def test_decisions_are_numbered_and_listed(tmp_path):
    folder = tmp_path / "docs" / "adr"
    folder.mkdir(parents=True)
    assert rules.check_decisions(tmp_path) == ["docs/adr holds no decision"]
    (folder / "0001-one-row-shape.md").touch()
    (folder / "0003-a-gap.md").touch()
    (folder / "README.md").write_text("- [One row shape](0001-one-row-shape.md)\n- 0003-a-gap.md\n")
    assert rules.check_decisions(tmp_path) == ["docs/adr/0003-a-gap.md: expected 0002-some-words.md here"]
    (folder / "0003-a-gap.md").rename(folder / "0002-no-gap.md")
    assert rules.check_decisions(tmp_path) == ["docs/adr/0002-no-gap.md is not listed in docs/adr/README.md"]


def test_what_the_docs_leave_out_is_found(tmp_path):
    package, docs = tmp_path / rules.PACKAGE, tmp_path / "docs"
    for folder in (package, docs / "howto", docs / "reference"):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text('__all__ = ["Mind"]\n\ndef recall(cue: str) -> None: ...\n')
    (package / "settings.py").write_text("class Settings:\n    port: int = 1\n    cold: Cold = Cold()\n")
    (package / "setting_groups.py").write_text("class Cold:\n    url: str\n")
    assert rules.check_glossary(tmp_path) == [
        "docs/glossary.md does not explain cue",
        "docs/glossary.md does not explain recall",
    ]
    assert rules.check_settings(tmp_path) == [
        "docs/howto/configure.md does not describe RECOLLECT_PORT",
        "docs/howto/configure.md does not describe RECOLLECT_COLD__URL",
    ]
    assert rules.check_reference(tmp_path) == ["docs/reference does not mention Mind"]
    (docs / "glossary.md").write_text("| **recall** | from a cue |\n")
    (docs / "howto" / "configure.md").write_text("`RECOLLECT_PORT`: where to listen; `RECOLLECT_COLD__URL`")
    (docs / "reference" / "python.md").write_text("## Mind")
    for rule in (rules.check_glossary, rules.check_settings, rules.check_reference):
        assert rule(tmp_path) == []


def test_two_files_of_tests_with_one_name_are_found(tmp_path):
    for folder in ("unit", "integration"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_planted.py").write_text('"""A planted file."""\n')
    assert rules.check_test_names(tmp_path) == ["test_planted.py: 2 files of tests"]

"""The first screen of the command line, the suggestions for names that it does not have, and minds from variables."""

import re

import pytest
from typer.main import get_command

from recollect.doors.cli import main
from recollect.models.recall import RecallResult
from support.programs import command_line

MOST_WORDS = 14
MOVED = {
    "mind": "conversations entities graph topics associate reflect profile overview fade tune evaluate import export",
    "admin": "migrate tenants jobs backup model shard mirror cold enrich bench",
}
"""Commands of before the first release that moved under their names."""
OLD = {name: f"{group} {name}" for group, names in MOVED.items() for name in names.split()} | {
    "browse": "list",
    "revise": "update",
    "pin": "update --pin",
    "resolve": "get",
    "block": "recall --prompt",
    "state": "mind facts add",
    "facts": "mind facts",
    "changes": "mind watch",
    "recalls": "mind recalls",
    "explain": "mind recalls explain",
    "replay": "mind recalls replay",
    "ledger": "admin costs",
    "key": "admin keys",
    "space": "admin embeddings",
    "index": "admin embeddings index",
    "reader": "admin sql-reader",
    "conversations retain": "admin retention run",
    "rewrite-tables": "admin vacuum-erased",
    "plan": "admin sizing",
    "status": "doctor",
}


def test_the_first_screen_has_few_words():
    shown = command_line.run("--help", settings={})
    listed = re.findall(r"^│ ([a-z]\S*) ", shown, re.MULTILINE)
    assert sorted(listed) == sorted(name for names in main.PANELS.values() for name in names)
    assert listed == list(get_command(main.app).commands)
    assert len(listed) <= MOST_WORDS
    assert all(f"─ {panel} ─" in shown for panel in main.PANELS)
    assert {path.split()[0] for path in main.HELP} | {*main.GROUPS} == {*listed}


@pytest.mark.parametrize("group", main.GROUPS)
def test_a_group_lists_its_commands(group):
    shown = command_line.run(group, "--help", settings={})
    listed = re.findall(r"^│ ([a-z]\S*) ", shown, re.MULTILINE)
    assert [f"{group} {name}" for name in listed] == [path for path in main.HELP if path.startswith(f"{group} ")]


@pytest.mark.parametrize(("old", "new"), OLD.items())
def test_an_old_command_names_the_new_one(old, new):
    said = command_line.run(*old.split(), settings={}, fails=True)
    assert f"No such command '{old.split()[0]}'. Did you mean 'recollect {new}'?" in said


@pytest.mark.parametrize("new", OLD.values())
def test_a_suggestion_leads_to_a_command(new):
    words = new.split()
    path = " ".join(words[: 1 + (words[0] in main.GROUPS)])
    command, rest = main.load_command(path), words[len(path.split()) :]
    options = {option for parameter in command.params for option in parameter.opts}
    assert set(rest) <= options | {*getattr(command, "commands", ())}


def test_a_mistyped_command_is_suggested_from_every_group():
    assert "Did you mean 'recollect mind topics'?" in command_line.run("topic", settings={}, fails=True)
    assert "Did you mean 'recollect admin keys'?" in command_line.run("mind", "key", settings={}, fails=True)
    assert "Did you mean" not in command_line.run("zzz", settings={}, fails=True)


def test_a_mind_is_named_by_variables(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "recollect.doors.cli.terminal.with_mind", lambda *place: asked.append(place[:3]) or RecallResult((), {})
    )
    place = {"RECOLLECT_AGENT": "ada", "RECOLLECT_USER": "li"}
    assert "Missing option '--agent'" in command_line.run("recall", "tea", settings={}, fails=True)
    said = command_line.run("recall", "tea", settings=place)
    assert "RECOLLECT_AGENT" not in said
    command_line.run("recall", "tea", "--agent", "bo", "--user", "", settings=place)
    assert asked == [("ada", "li", "default"), ("bo", "", "default")]

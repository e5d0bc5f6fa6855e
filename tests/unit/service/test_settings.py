"""Settings that were mistyped are warned of; what is ours and no setting is not."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from programs import plain_environment
from recollect.settings import OF_OTHERS, PREFIX, Settings, find_misspelt
from recollect.wiring import read_settings

ROOT = Path(__file__).parents[3]
GONE = {"ROUNDS", "EXAMPLES", "SECONDS", "SIZE", "WALK", "RACES", "TREES"}
"""Named in the changelog only, as what was replaced."""
BEGINNINGS = {"", "CHAT", "EMBEDDER"}


@pytest.fixture
def clean(monkeypatch, tmp_path):
    """An environment without a variable of ours, and an empty folder to work in."""
    for name in [*os.environ]:
        if name not in plain_environment():
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_mistyped_variable_is_named_with_the_setting_that_was_meant(clean, monkeypatch):
    monkeypatch.setenv("RECOLLECT_POOLSIZE", "3")
    monkeypatch.setenv("RECOLLECT_ZZZ", "3")
    assert find_misspelt() == [
        "RECOLLECT_POOLSIZE is not a setting; did you mean RECOLLECT_POOL_SIZE?",
        "RECOLLECT_ZZZ is not a setting",
    ]


def test_a_mistyped_line_of_the_file_is_named_too(clean):
    (clean / ".env").write_text("RECOLLECT_EMBEDER=none\nRECOLLECT_PORT=1\nOTHER_POOLSIZE=1\n", encoding="utf-8")
    assert find_misspelt() == ["RECOLLECT_EMBEDER is not a setting; did you mean RECOLLECT_EMBEDDER?"]


def test_a_program_that_opens_without_settings_has_it_in_its_log(clean, monkeypatch, caplog):
    monkeypatch.setenv("RECOLLECT_POOLSIZE", "3")
    assert read_settings().pool_size == 10
    [record] = caplog.records
    assert (record.levelname, "did you mean RECOLLECT_POOL_SIZE?" in record.getMessage()) == ("WARNING", True)


@pytest.mark.parametrize(
    "name",
    ["URL", "KEY", "TESTS", "POOL_SIZE", "pool_size", "SERVICE_HOST", "API_SERVICE_PORT_HTTP", "PORT_7077_TCP_ADDR"],
)
def test_what_is_known_or_set_by_others_is_passed_over(clean, monkeypatch, name):
    monkeypatch.setenv(f"RECOLLECT_{name}", "x")
    assert find_misspelt() == []


def test_every_variable_that_the_tree_names_is_known():
    files = subprocess.run(["git", "ls-files"], check=True, cwd=ROOT, capture_output=True, text=True).stdout.split()
    named = set()
    for file in files:
        if Path(file).name != Path(__file__).name:
            text = (ROOT / file).read_text(encoding="utf-8", errors="ignore")
            named.update(re.findall(rf"\b{PREFIX}([A-Z_]*)\b", text))
    known = {field.upper() for field in Settings.model_fields} | OF_OTHERS | GONE | BEGINNINGS
    assert named - known - {"POOLSIZE"} == set()

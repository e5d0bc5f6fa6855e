"""The public surface stays within the budget of its page, and new settings follow the rules for names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

import recollect
from recollect.doors.cli.main import COMMAND_MODULES
from recollect.mind.mind import OPERATIONS
from recollect.settings import list_settings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "surface.md"
TEXT = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
BUDGET = [int(most) for most in re.findall(r"^\| .+ \| (\d+) \|$", TEXT, re.MULTILINE)]
SETTINGS = list_settings()
OPTIONAL = set(re.findall(r"`(\w+)`", TEXT))
PARTS = {
    "names": recollect.__all__,
    "operations": OPERATIONS,
    "first words": {path.partition(" ")[0] for paths in COMMAND_MODULES.values() for path in paths},
    "flat settings": [name for name in SETTINGS if "." not in name],
    "settings in groups": [name for name in SETTINGS if "." in name and name.partition(".")[0] not in OPTIONAL],
}
"""All that is counted, in the order of the page."""
EXCEEDED = {"operations"}
LIMIT = re.compile(r"\b(maximum|at most)\b", re.IGNORECASE)
OTHER_NAMES = {"log_level", "retention.unread_change_days"}
"""A minimum level; a period, as its neighbors are."""


def test_the_page_names_every_optional_group():
    assert {"shards", "cold", "mirrors", "opensearch", "neo4j"} == OPTIONAL
    assert {name.partition(".")[0] for name in SETTINGS if "." in name} > OPTIONAL


@pytest.mark.parametrize(
    ("part", "most"),
    [
        pytest.param(part, most, id=part, marks=pytest.mark.xfail(strict=True) if part in EXCEEDED else ())
        for part, most in zip(PARTS, BUDGET, strict=True)
    ],
)
def test_a_part_keeps_its_budget(part, most):
    assert len(PARTS[part]) <= most


@pytest.mark.parametrize("name", SETTINGS)
def test_the_name_of_a_setting_says_what_its_value_is(name):
    field, words = SETTINGS[name], name.replace(".", "_")
    if re.search(r"(?i)timeout|how long", field.description):
        assert words.endswith("_timeout_seconds")
    if LIMIT.search(field.description) and name not in OTHER_NAMES:
        assert name.rpartition(".")[2].startswith("max_")
    assert "share" not in re.split(r"[._]", name)
    assert (field.annotation is SecretStr) == words.endswith(("_key", "_password"))

"""The house follows its own rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from house import rules

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("rule", [*rules.CODE_RULES, *rules.DOCS_RULES], ids=lambda rule: rule.__name__)
def test_the_house_obeys(rule):
    assert rule(ROOT) == []

"""The overrides of the driver's private parts are in one file, and fit the versions that are declared."""

from __future__ import annotations

import inspect
import re
import tomllib
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from packaging.requirements import Requirement
from psycopg import AsyncConnection, waiting
from psycopg._pipeline_base import BasePipeline
from psycopg._preparing import PrepareManager

ROOT = Path(__file__).parents[3]
OVERRIDES = "src/recollect/store/database/driver.py"
KNOWN_VERSIONS = ("3.3.9",)
"""Versions of psycopg whose private parts were compared with the overrides. Before you add one, read what changed."""
KNOWN_PARTS = {
    AsyncConnection.pipeline: "9f16b6532f39",
    AsyncConnection.wait: "5df564e70be7",
    BasePipeline: "cdb58541499a",
    PrepareManager: "a49a1b41302b",
    waiting.wait_async: "8e8b5568885c",
}
"""The first digits of the hash of each part that an override replaces or relies on."""
PRIVATE = re.compile(r"psycopg\._|psycopg_pool\._|\._(pipeline|prepared|conn|pgconn|tx|adapters)\b|_gen\(")


def test_the_installed_version_is_known():
    assert psycopg.__version__ in KNOWN_VERSIONS, f"read what changed, then add it here and check {OVERRIDES}"


@pytest.mark.parametrize("part", KNOWN_PARTS, ids=lambda part: part.__qualname__)
def test_the_parts_that_are_overridden_are_those_that_were_read(part):
    assert sha256(inspect.getsource(part).encode()).hexdigest()[:12] == KNOWN_PARTS[part]


def test_the_declared_range_begins_with_a_known_version_and_ends_before_the_next_minor_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [declared] = [each for each in project["optional-dependencies"]["engine"] if each.startswith("psycopg")]
    assert {str(each) for each in Requirement(declared).specifier} == {f">={KNOWN_VERSIONS[0]}", "<3.4"}


def test_one_file_uses_private_parts_of_the_driver():
    files = sorted((ROOT / "src").rglob("*.py"))
    using = [str(path.relative_to(ROOT)) for path in files if PRIVATE.search(path.read_text(encoding="utf-8"))]
    assert using == [OVERRIDES]

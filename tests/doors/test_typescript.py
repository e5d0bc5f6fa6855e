"""The TypeScript client: its types are those of the API, and it works with a real server."""

from __future__ import annotations

import pytest

import typescript
from support.programs.node import need_node, run_script

FOLDER = "clients/typescript"


@pytest.fixture(autouse=True)
def _node():
    need_node(FOLDER)


def test_the_types_are_those_of_the_api(tmp_path):
    fresh = tmp_path / "schema.d.ts"
    typescript.generate(fresh)
    assert fresh.read_bytes() == typescript.TYPES.read_bytes(), "run `python tools/typescript.py`"


def test_it_is_well_formed():
    run_script(FOLDER, "lint")


def test_it_retries_and_reads_streams():
    run_script(FOLDER, "unit")


def test_it_works_with_a_real_server(outside):
    run_script(FOLDER, "live", **outside)

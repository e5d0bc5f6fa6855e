"""`recollect admin sizing` computes with what was measured, and its page shows what it prints."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from recollect.doors.cli.operators import sizing
from recollect.doors.cli.operators.sizing import Workload, compute, default_recall_rate, default_write_rate
from support.programs.command_line import run

ROOT = Path(__file__).parents[3]


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def measured(title: str) -> list[float]:
    """Read the numbers of the row of that title."""
    [row] = [line for line in read("reference/figures.md").splitlines() if line.startswith(f"| {title} |")]
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", row.split("|", 2)[2])]


def test_the_constants_are_the_figures():
    assert measured("a memory on disk, with its indexes")[:2] == [sizing.MEMORY_BYTES, sizing.VECTOR_BYTES]
    assert measured("log of a memory (remember)") == [sizing.LOG_BYTES, sizing.LOG_IMAGES]
    assert measured("a recall, scope of 100")[:2] == [sizing.RECALL_DATABASE, sizing.RECALL_PROGRAM]
    assert measured("a turn, 8 writers of 8 scopes")[:2] == [sizing.TURN_DATABASE, sizing.TURN_PROGRAM]
    low, high = measured("a recall, scope of 100")[2:]
    assert low <= sizing.LOCAL_MODEL <= high


@pytest.mark.parametrize(("memories", "cores"), [(10**9, (4, 9)), (10**10, (36, 90))])
def test_the_plan_agrees_with_the_page_about_scale(memories, cores):
    needs = compute(Workload(memories, 1, 384, default_write_rate(memories), default_recall_rate(memories)))
    busy = (needs.database_cores / 2, needs.api_cores / 2)
    assert busy == pytest.approx(cores, abs=0.6)


def test_more_of_anything_never_needs_less():
    small = compute(Workload(10**8, 10, 384, 100, 1000))
    for more in (
        Workload(10**9, 10, 384, 100, 1000),
        Workload(10**8, 10, 1536, 100, 1000),
        Workload(10**8, 10, 384, 9000, 1000),
        Workload(10**8, 10, 384, 100, 90_000),
    ):
        large = compute(more)
        assert large != small
        names = small.__slots__
        assert [name for name in names if getattr(large, name) < getattr(small, name)] == []


def test_many_recalls_and_many_bytes_need_shards():
    assert compute(Workload(10**6, 1, 384, 1, 1000)).shards == 1
    assert compute(Workload(10**6, 1, 384, 1, 9000)).shards == 4
    assert compute(Workload(10**9, 1, 384, 1, 1)).shards == 4


def test_vectors_take_their_share():
    without, usual = (compute(Workload(1000, 1, dimensions, 1, 1)) for dimensions in (0, 384))
    assert usual.memory_bytes - without.memory_bytes == sizing.VECTOR_BYTES


def test_the_page_shows_what_the_command_prints():
    page = read("howto/sizing.md")
    [command] = re.findall(r"^```sh\n(.*)\n```$", page, re.MULTILINE)
    [shown] = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert run(*shlex.split(command)[1:], settings={}) == shown


def test_numbers_for_a_program():
    told = json.loads(run("admin", "sizing", "--memories", "1000", "--writes-per-second", "2", "--json", settings={}))
    assert told["load"]["writes"] == 2
    assert told["needs"]["disk_bytes"] == 1000 * sizing.MEMORY_BYTES

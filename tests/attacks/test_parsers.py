"""Parsers under fuzzing: whatever comes in, each keeps its own promise and raises no error but ours.

The targets lie in `fuzz/`, one for each parser; `fuzz/program.py` says what a target is. Every target runs in a process
of its own, because atheris watches the branches of what is imported and ends the process that it ran in.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.measuring.sizes import Sizes

pytest.importorskip("atheris", reason="there are wheels of atheris for Linux on x86-64 alone")

TESTS = Path(__file__).parents[1]
PARSERS = ("answers", "importers", "cursors", "dates", "cues", "exports", "conditions")
"""The slowest first."""
RUNS = Sizes("runs of each parser", ci=2_000, long=300_000)
AT_ONCE = min(RUNS.now, 10_000)
"""How many runs one process does: then it begins anew, with another seed and the first inputs."""
CONTROLS = Sizes("parsers", ci=1, long=7)


@dataclass(frozen=True)
class Fuzzed:
    """How one process ended."""

    parser: str
    runs: int
    branches: int
    broken: str
    """What it has found; empty if nothing."""


def fuzz(parser: str, folder: Path, seed: int, **environment: str) -> Fuzzed:
    command = [sys.executable, "-m", "attacks.fuzz.program", parser, str(folder)]
    done = subprocess.run(
        [*command, f"-runs={AT_ONCE}", f"-seed={seed % 2**31 + 1}"],
        env=os.environ | {"PYTHONPATH": str(TESTS)} | environment,
        capture_output=True,
        check=False,
    )
    told = done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")
    runs = re.search(r"^Done (\d+) runs", told, re.MULTILINE)
    branches = [int(count) for count in re.findall(r"cov: (\d+)", told)]
    return Fuzzed(parser, int(runs[1]) if runs else 0, max(branches, default=0), told if done.returncode else "")


@pytest.mark.promise(
    "Whatever a parser is given, it keeps its bounds and raises no error but ours", RUNS, part="parsers"
)
def test_no_input_breaks_a_parser(rounds, seed, tmp_path, figure):
    ran = dict.fromkeys(PARSERS, 0)
    branches = dict.fromkeys(PARSERS, 0)
    for number in rounds(RUNS, by=AT_ONCE):
        with ThreadPoolExecutor(2) as several:
            folders = [tmp_path / f"{parser}-{number}" for parser in PARSERS]
            ended = list(several.map(fuzz, PARSERS, folders, [seed + number] * len(PARSERS)))
        for one in ended:
            assert not one.broken, one.broken[-8_000:]
            ran[one.parser] += one.runs
            branches[one.parser] = max(branches[one.parser], one.branches)
    figure(f"{sum(ran.values()):,} runs of {len(PARSERS)} parsers, 0 broken; {sum(branches.values()):,} branches seen")
    assert min(ran.values()) >= RUNS.ci
    # A target that watches nothing would try nothing but chance.
    assert min(branches.values()) > 20


@pytest.mark.promise("The test of parsers notices a fault that is planted in each", CONTROLS, part="parsers")
def test_a_planted_fault_is_found(rounds, seed, tmp_path, figure):
    found = []
    for number in rounds(CONTROLS):
        parser = PARSERS[-1 - number]
        ended = fuzz(parser, tmp_path / parser, seed, PLANTED_FAULT="yes")
        assert ended.broken, f"{parser} has a fault that {ended.runs} runs did not find"
        found.append(f"{parser} by `{find_error(ended.broken)}`")
    figure(f"found in {', '.join(found)}")


def find_error(told: str) -> str:
    """Name the error that ended a process."""
    errors = re.findall(r"^(\w+(?:Error|Exception))\b", told, re.MULTILINE)
    return errors[0] if errors else "?"

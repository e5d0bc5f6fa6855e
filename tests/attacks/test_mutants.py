"""The unit tests notice small changes of the engine: `make mutants` tries many, CI a few."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.measuring.sizes import Sizes

ROOT = Path(__file__).parents[2]
MUTANTS = Sizes("mutants", ci=10, long=150)
SECRETS = ["core/service/secrets.py", "core/memories/erasure.py"]
"""Of these all but equivalent ones are killed, by few and quick tests."""
TESTS = ["tests/unit/service/test_secrets.py", "tests/unit/memories/test_erasure.py"]


@pytest.mark.promise(
    "The tests of keys and of erasure notice a small change of what they test", MUTANTS, part="mutants"
)
def test_mutants_are_killed(seed, figure):
    command = [sys.executable, "tools/mutants.py", *SECRETS, "--tests", *TESTS, "--count", str(MUTANTS.now)]
    done = subprocess.run(
        [*command, "--seed", str(seed), "--minutes", "30", "--least", "0.9"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    counted = re.search(r"^\| all \| (\d+) \| (\d+) ", done.stdout, re.MULTILINE)
    assert counted, done.stdout[-4_000:] + done.stderr[-2_000:]
    figure(f"{counted[2]} of {counted[1]} killed")
    assert done.returncode == 0, done.stdout[-4_000:]
    assert int(counted[1]) >= 10

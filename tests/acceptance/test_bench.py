"""The benches run, in a short form, so that they cannot rot; what they say at full length is in the docs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(script, *arguments):
    command = [sys.executable, str(ROOT / "bench" / script), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_speed():
    out = ROOT / "bench" / "out" / "speed.json"
    before = out.read_text() if out.exists() else None
    try:
        run("speed.py", "--rows", "2000", "--scopes", "500", "--rounds", "5", "--chunks", "5")
        figures = json.loads(out.read_text())
    finally:
        if before is not None:
            out.write_text(before)
    assert set(figures) == {"vector 500", "http 500", "load"}
    assert all(value > 0 for name, row in figures.items() for key, value in row.items() if key != "added_ms")


def test_quality(shared):
    table = run("quality.py", "--set", "memdaily", "--questions", "200")
    row = next(line for line in table.splitlines() if "text" in line)
    recall_at_5 = float(row.replace("│", " ").split()[-4])
    assert recall_at_5 > 0.75, table

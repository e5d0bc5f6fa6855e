"""Where the time of a test run goes, by test, file and fixture: a plugin of pytest that writes one JSON file.

`RECOLLECT_TIMINGS=out.json pytest` records; `python tools/timings.py [--short] out.json` prints tables.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

VARIABLE = "RECOLLECT_TIMINGS"


class Timings:
    """What one process measured; workers hand theirs to the process that started them."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.started = time.monotonic()
        self.tests: Counter[str] = Counter()
        self.fixtures: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests[report.nodeid] += report.duration

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest):
        began = time.monotonic()
        try:
            return (yield)
        finally:
            name = f"{fixturedef.argname} ({fixturedef.baseid or 'plugins'}, {fixturedef.scope})"
            self.fixtures[name] += time.monotonic() - began
            self.calls[name] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error) -> None:
        handed = getattr(node, "workeroutput", {}).get("timings")
        if handed:
            self.fixtures.update(handed["fixtures"])
            self.calls.update(handed["calls"])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        measured = {"fixtures": dict(self.fixtures), "calls": dict(self.calls)}
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["timings"] = measured
            return
        measured |= {"tests": dict(self.tests), "seconds": time.monotonic() - self.started}
        self.target.write_text(json.dumps(measured, indent=1))


def pytest_configure(config: pytest.Config) -> None:
    if target := os.environ.get(VARIABLE):
        config.pluginmanager.register(Timings(Path(target)), "timings-recorder")


def table(title: str, rows: Iterable[tuple[str, float]]) -> str:
    """Write rows as a table of Markdown."""
    lines = [f"| {seconds:.1f} | {name} |" for name, seconds in rows]
    return "\n".join([f"| seconds | {title} |", "|---:|---|", *lines, ""])


def main(path: str, *, short: bool) -> None:
    """Print the recorded times by folder and fixture and, unless `short`, the slowest tests."""
    measured = json.loads(Path(path).read_text())
    tests, fixtures = Counter(measured["tests"]), Counter(measured["fixtures"])
    folders: Counter[str] = Counter()
    for test, seconds in tests.items():
        file = test.partition("::")[0]
        folders[file.rpartition("/")[0] if short else file] += seconds
    print(f"{len(tests)} tests: {sum(tests.values()) / 60:.1f} minutes of work in {measured['seconds'] / 60:.1f}\n")
    print(table("folder" if short else "file", folders.most_common(30)))
    shown = [(f"`{name}`, {measured['calls'][name]} times", seconds) for name, seconds in fixtures.most_common(10)]
    print(table("fixture", shown))
    if not short:
        print(table("test", [(f"`{name}`", seconds) for name, seconds in tests.most_common(50)]))


if __name__ == "__main__":
    main(sys.argv[-1], short="--short" in sys.argv)

"""Campaigns: the tests of promises at full size, for a number of minutes, and the record of what they did.

`make campaign PART=kills MINUTES=30` runs the promises of one part. A test that works in rounds asks for them:

    def test_nothing_is_lost(rounds, seed, figure):
        for number in rounds(KILLS): ...

In CI it gets as many rounds as the short size says. In a campaign it goes on until the long size is reached or its
share of the minutes is over. Sizes add up: rounds of earlier runs of the same sources count. Each run appends one line
per test to `tests/campaigns.jsonl`, and docs/reference/promises.md shows them.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.measuring import sizes
from support.measuring.sizes import Sizes

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "tests" / "campaigns.jsonl"
PAGE = ROOT / "docs" / "reference" / "promises.md"
# What decides over the promises: a change elsewhere, in the command line or in a page, leaves earlier runs valid.
ENGINE = ("core", "channels", "store", "verbs", "jobs", "mind", "doors/http")
MOST_MINUTES = 60.0
OTHER = "other"
PLANNED, DONE, SEED = "planned", "done", "seed"


@dataclass(frozen=True, slots=True)
class Run:
    """What one test did in one campaign."""

    test: str
    part: str
    commit: str
    sources: str
    date: str
    machine: str
    seed: int
    seconds: float
    outcome: str
    done: dict[str, int] = field(default_factory=dict)
    figures: list[str] = field(default_factory=list)


def read_record(path: Path = RECORD) -> list[Run]:
    """Read every run, in the order in which they were made."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Run(**json.loads(line)) for line in lines]


def write_line(run: Run) -> str:
    return json.dumps(asdict(run), ensure_ascii=False) + "\n"


def last_runs(runs: Iterable[Run], test: str) -> list[Run]:
    """Give the runs of a test on the sources of its last one."""
    own = [run for run in runs if run.test == test]
    return [run for run in own if run.sources == own[-1].sources]


def add_up(runs: Iterable[Run]) -> dict[str, int]:
    """Add up what several runs did, by unit."""
    total: dict[str, int] = {}
    for run in runs:
        for unit, number in run.done.items():
            total[unit] = total.get(unit, 0) + number
    return total


def show_runs(runs: list[Run]) -> str:
    """Say what the campaigns of one test have done and found, for a cell of the page."""
    if not runs:
        return "not run yet"
    last, failed = runs[-1], [run for run in runs if run.outcome != "passed"]
    amounts = ", ".join(f"{number:,} {unit}" for unit, number in add_up(runs).items())
    shown = failed[-1] if failed else last
    found = "; ".join(shown.figures)
    place = f"{last.date}, `{last.commit}`, {last.machine}"
    return f"{shown.outcome}: " + ". ".join(filter(None, [amounts, found, place]))


def name_test(node: str) -> str:
    """Name a test by its file and function: its cases, and a class around it, are one."""
    path, *_, function = node.partition("[")[0].split("::")
    return f"{path}::{function}"


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def name_sources(test: str) -> str:
    """Name the state of the engine and of a test's file by one hash."""
    paths = [f"src/recollect/{folder}" for folder in ENGINE] + [test.partition("::")[0]]
    return hashlib.sha256(git("ls-tree", "-r", "HEAD", "--", *paths).encode()).hexdigest()[:12]


def changed_files() -> list[str]:
    """List what differs from the commit, but for what a campaign itself writes."""
    own = {path.relative_to(ROOT).as_posix() for path in (RECORD, PAGE)}
    return [name for name in git("diff", "--name-only", "HEAD").splitlines() if name not in own]


def describe_machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.machine()}"


class Campaign:
    """The minutes of a run, shared out to its tests, and the lines that it appends."""

    def __init__(self, minutes: float) -> None:
        self.seconds = min(minutes, MOST_MINUTES) * 60
        self.began = time.monotonic()
        self.tests: list[str] = []
        self.earlier = read_record()

    def ends(self, test: str) -> float:
        """Say until when a test may go on: what others left over is its own, too."""
        return self.began + self.seconds * (self.tests.index(test) + 1) / len(self.tests)

    def left(self, test: str, size: Sizes) -> int:
        """Say how much of the long size earlier runs of the same sources have left."""
        name, sources = name_test(test), name_sources(test)
        same = [run for run in self.earlier if run.test == name and run.sources == sources]
        return max(size.long - add_up(same).get(size.unit, 0), 0) or size.long

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.tests = [item.nodeid for item in session.items]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties)
        if report.when != "call" or report.skipped or "promise" not in told:
            return
        if changed := changed_files():
            print(f"\nnot recorded, because files differ from the commit: {', '.join(changed)}")
            return
        # A test without rounds does all of its size, or fails.
        done = told.get(DONE, told[PLANNED] if report.passed else "{}")
        run = Run(
            test=name_test(report.nodeid), part=told["part"], commit=git("rev-parse", "--short=8", "HEAD"),
            sources=name_sources(report.nodeid), date=datetime.now(UTC).date().isoformat(),
            machine=describe_machine(), seed=int(told.get(SEED, 0)), seconds=round(report.duration, 1),
            outcome=report.outcome, done=json.loads(str(done)),
            figures=[str(value) for name, value in report.user_properties if name == "figure"],
        )  # fmt: skip
        with RECORD.open("a", encoding="utf-8") as record:
            record.write(write_line(run))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="run the promises of one part alone")
    parser.addoption("--minutes", type=float, help="go on for so many minutes, and record what was done")


def pytest_configure(config: pytest.Config) -> None:
    minutes = config.getoption("--minutes")
    if minutes is not None:
        config.pluginmanager.register(Campaign(minutes), "campaign")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = config.getoption("--part")
    if part:
        kept = [item for item in items if part == part_of(item)]
        assert kept, f"no promise has the part {part!r}; there are {sorted({*map(part_of, items)} - {''})}"
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def part_of(item: pytest.Item) -> str:
    """Name the part of an item's promise, or nothing."""
    mark = item.get_closest_marker("promise")
    return mark.kwargs.get("part", OTHER) if mark else ""


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Give the number from which a test draws all that is random: the same in CI, another in each campaign."""
    drawn = int(os.environ.get("RECOLLECT_SEED", random.randrange(2**32) if sizes.CHOSEN == "long" else 1))
    request.node.user_properties.append((SEED, drawn))
    return drawn


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Callable[..., Iterator[int]]:
    """Give a test its rounds, and count those that came to their end."""
    campaign: Campaign | None = request.config.pluginmanager.get_plugin("campaign")
    done: dict[str, int] = {}
    tell(request.node.user_properties, done)

    def give(size: Sizes, by: int = 1) -> Iterator[int]:
        test = request.node.nodeid
        wanted = campaign.left(test, size) if campaign else size.now
        ends = campaign.ends(test) if campaign else float("inf")
        for number in range(0, wanted, by):
            # The first round is always run: a campaign that did nothing has shown nothing.
            if number and time.monotonic() > ends:
                return
            yield number
            done[size.unit] = done.get(size.unit, 0) + by
            tell(request.node.user_properties, done)

    return give


def tell(properties: list[tuple[str, Any]], done: dict[str, int]) -> None:
    """Put what was done into a test's properties, in the place of what stood there before."""
    properties[:] = [each for each in properties if each[0] != DONE] + [(DONE, json.dumps(done))]

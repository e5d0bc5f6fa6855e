"""The promises that tests guard: one table after a campaign, and the page that lists them all.

A test that guards a promise says so, with the sizes that change from CI to a campaign:

    KILLS = Sizes("kills", ci=5, long=100)

    @pytest.mark.promise("What was acknowledged survives the death of the server", KILLS, part="kills")
    async def test_nothing_acknowledged_is_lost(rounds, figure): ...

`make campaign` runs them at full size and prints one table, `pytest --promises` does so for any run. What a test found
out it tells with the fixture `figure`. `make docs` rewrites docs/reference/promises.md from the
marks and from the record of the campaigns (`campaigns.py`).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from support.measuring import campaigns, sizes
from support.measuring.sizes import Sizes

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "reference" / "promises.md"
UNCHANGED = "in full"
PROMISE, SIZE, PART, FIGURE = "promise", "size", "part", "figure"
WORST_FIRST = ("failed", "skipped", "passed")
INTRODUCTION = """# Promises and their tests

Every promise below is guarded by a test. CI runs it on each change in a short form. `make campaign PART=kills
MINUTES=30` runs the promises of one part in a long form, and appends what it did to `tests/campaigns.jsonl`: commit,
seed, size, result. Sizes add up over runs of the same sources (the engine's folders and the test's own file). The last
column is what the last campaigns did and found. What has no size is tried in full by both, and a control that takes too
long for CI is not run there.

Written by `make docs`; `tests/house/pages/test_promises.py` compares.

| promise | test | part | size in CI | size in a campaign | last campaigns |
|---|---|---|---|---|---|
"""


@dataclass
class Row:
    """What one test of a promise did in this run."""

    promise: str
    size: str
    seconds: float = 0.0
    outcomes: set[str] = field(default_factory=set)
    figures: list[str] = field(default_factory=list)

    def add(self, report: pytest.TestReport, told: Mapping[str, list[str]]) -> None:
        self.seconds += report.duration
        self.outcomes.add(report.outcome)
        self.figures += [figure for figure in told.get(FIGURE, []) if figure not in self.figures]

    @property
    def outcome(self) -> str:
        """The worst that happened, and what the test told of itself."""
        worst = next(outcome for outcome in WORST_FIRST if outcome in self.outcomes)
        return ": ".join(filter(None, [worst, "; ".join(self.figures)]))


class Table:
    """The rows of this run; with pytest-xdist they come from the workers, as properties of their reports."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: dict[str, list[str]] = {}
        for name, value in report.user_properties:
            told.setdefault(name, []).append(str(value))
        if PROMISE in told:
            # The cases of one test are one row.
            test = report.nodeid.partition("[")[0]
            self.rows.setdefault(test, Row(told[PROMISE][0], told[SIZE][0])).add(report, told)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("promises")
        terminalreporter.write_line("| promise | test | size | seconds | outcome |\n|---|---|---|---:|---|")
        for test, row in sorted(self.rows.items()):
            shown = (row.promise, f"`{test}`", row.size, f"{row.seconds:.1f}", row.outcome)
            terminalreporter.write_line(f"| {' | '.join(shown)} |")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--promises", action="store_true", help="print a table of the promises that the tests guard")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--promises") or sizes.CHOSEN == "long":
        config.pluginmanager.register(Table(), "promises-table")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if mark := item.get_closest_marker(PROMISE):
            sentence, *given = mark.args
            size = show([(each.now, each.unit) for each in given])
            planned = json.dumps({each.unit: each.now for each in given})
            item.user_properties += [(PROMISE, sentence), (SIZE, size), (campaigns.PLANNED, planned)]
            item.user_properties += [(PART, mark.kwargs.get(PART, campaigns.OTHER))]


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Tell what a test found out: it stands in the table of promises."""

    def tell(text: str) -> None:
        request.node.user_properties.append((FIGURE, text))

    return tell


def show(amounts: list[tuple[int, str]]) -> str:
    return ", ".join(f"{number:,} {unit}" if number else "not run" for number, unit in amounts) or UNCHANGED


@dataclass(frozen=True, slots=True)
class Guard:
    """A test that guards a promise, as its mark says."""

    test: str
    sentence: str
    part: str
    given: list[Sizes]


def write_page(folder: Path = TESTS) -> str:
    """Write the page from the marks and the record of the campaigns: nothing is imported or run."""
    runs, lines = campaigns.read_record(), []
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder.parent).as_posix()
        for guard in read_promises(path):
            link = f"[`{name}::{guard.test}`](../../{name})"
            short, long = (show([(getattr(each, size), each.unit) for each in guard.given]) for size in ("ci", "long"))
            last = campaigns.show_runs(campaigns.last_runs(runs, f"{name}::{guard.test}"))
            lines.append(f"| {guard.sentence} | {link} | {guard.part} | {short} | {long} | {last} |\n")
    return INTRODUCTION + "".join(lines)


def read_promises(path: Path) -> Iterator[Guard]:
    """Give each test of a file that guards a promise."""
    text = path.read_text(encoding="utf-8")
    if "mark.promise(" not in text:
        return
    tree = ast.parse(text, str(path))
    known = {"EXAMPLES": sizes.EXAMPLES} | read_sizes(tree)
    # Tests stand in a module or in a class of it, never deeper.
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in chain(tree.body, *(each.body for each in classes)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in filter(is_promise, node.decorator_list):
            sentence, *names = mark.args  # type: ignore[attr-defined]
            named = {each.arg: ast.literal_eval(each.value) for each in mark.keywords}  # type: ignore[attr-defined]
            unknown = [ast.unparse(name) for name in names if ast.unparse(name) not in known]
            assert not unknown, f"{path}: {node.name}: no `{unknown[0]} = Sizes(...)` in the module"
            given = [known[ast.unparse(name)] for name in names]
            yield Guard(node.name, ast.literal_eval(sentence), named.get(PART, campaigns.OTHER), given)


def is_promise(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.promise"


def read_sizes(tree: ast.Module) -> dict[str, Sizes]:
    """Read every `NAME = Sizes(...)` of a module."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "Sizes":
                given = [ast.literal_eval(each) for each in call.args]
                named = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
                found[node.targets[0].id] = Sizes(*given, **named)
    return found


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")

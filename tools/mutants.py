"""Count the mutants that the unit tests kill: `make mutants MODULES="core/memories/ids.py core/text" MINUTES=10`.

The tests are collected once. A first run notes which test calls which function of the engine. Then each mutant gets a
separate process by fork: it puts the changed code into the functions that exist already, and runs the tests that call
them, the quickest first, until one fails. So a mutant costs milliseconds and not the start of a program; that is why
this is not mutmut or cosmic-ray, which import everything again for each. Only a mutant of code that runs during
imports, of a constant or of a function that makes functions, gets a new program (`mutated.py`). No test here has a
database.

A mutant that changes nothing that a caller could see is listed in `mutants_equivalent.txt` with the reason.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from mutated import VARIABLE, be_brief
from mutations import Mutant, list_mutants

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "src" / "recollect"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")
GUARDED = (
    *("core/memories/ids.py", "core/service/numbers.py", "core/service/secrets.py", "core/service/permissions.py"),
    *("core/memories/erasure.py", "core/memories/checks.py", "core/text/checks.py", "core/recall/checks.py"),
    "core/memories/conditions.py",
)
"""Identity, erasure, checks, cursors and the filter: of their mutants nine of ten must be killed."""
DATABASE = {"cluster", "addresses", "owner", "recollect", "outside", "shared"}
"""Fixtures that start a server, or need files from elsewhere."""
MOST_TESTS = 400
"""So many of the tests that call a function are tried on a mutant of it."""
SECONDS, FACTOR = 10, 20
"""A mutant that takes longer than this time, plus this factor of the time of its tests, counts as killed."""
START_SECONDS = 60
"""So long may a program take to start."""
Function = tuple[str, str, int]
KILLED, SURVIVED, UNTESTED, EQUAL = "killed", "survived", "untested", "equivalent"


@dataclass
class Baseline:
    """What the tests do without a mutant: which functions each calls, and how long it takes."""

    calls: dict[Function, list[int]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[int, float] = field(default_factory=dict)


def name_code(code: CodeType) -> Function:
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Mutation:
    """A plug-in of pytest: runs mutants in the place of tests."""

    def __init__(self, mutants: Sequence[Mutant], seconds: float) -> None:
        self.mutants = mutants
        self.ends = time.monotonic() + seconds
        self.outcomes: list[tuple[Mutant, str]] = []
        self.tests = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [item for item in session.items if not DATABASE & {*getattr(item, "fixturenames", ())}]
        for item in items:
            be_brief(item)
        self.tests = len(items)
        baseline = in_child(lambda: measure(items))
        if baseline is None:
            pytest.exit("the tests did not run without a mutant", 2)
        functions = find_functions()
        for mutant in self.mutants:
            if time.monotonic() > self.ends:
                break
            self.outcomes.append((mutant, self.judge(mutant, items, baseline, functions)))
        return True

    def judge(
        self,
        mutant: Mutant,
        items: Sequence[pytest.Item],
        baseline: Baseline,
        functions: dict[Function, list[FunctionType]],
    ) -> str:
        """Return the outcome of a mutant."""
        calls = find_calls(mutant, baseline)
        tried = sorted({*calls}, key=lambda number: baseline.seconds[number])[:MOST_TESTS]
        if not tried:
            return UNTESTED
        seconds = SECONDS + FACTOR * sum(baseline.seconds[number] for number in tried)
        if mutant.code is None or key_of(mutant) not in baseline.calls:
            return judge_apart(mutant, [items[number].nodeid for number in tried], START_SECONDS + seconds)

        def attempt() -> bool:
            apply(mutant, functions)
            return all(run(items[number]) for number in tried)

        return SURVIVED if in_child(attempt, seconds) else KILLED


def run(item: pytest.Item) -> bool:
    """Run one test, and return whether it passes."""
    reports = runtestprotocol(item, log=False, nextitem=None)
    return all(report.passed or report.skipped for report in reports)


def measure(items: Sequence[pytest.Item]) -> Baseline:
    """Run every test once; one that fails without a mutant takes no part."""
    baseline = Baseline()
    prefix = str(ENGINE)
    for number, item in enumerate(items):
        seen: set[CodeType] = set()

        def note(frame: Any, event: str, _: object, seen: set[CodeType] = seen) -> None:
            if event == "call":
                seen.add(frame.f_code)

        began = time.process_time()
        sys.setprofile(note)
        try:
            passed = run(item)
        finally:
            sys.setprofile(None)
        baseline.seconds[number] = time.process_time() - began
        for name in {name_code(code) for code in seen if passed and code.co_filename.startswith(prefix)}:
            baseline.calls[name].append(number)
    baseline.calls = dict(baseline.calls)
    return baseline


def in_child(work: Callable[[], Any], seconds: float = 0) -> Any:
    """Do some work in a copy of this process, and give its result; nothing if it died or took too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        silence()
        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            signal.alarm(int(seconds) * 10)
        code = 1
        try:
            with os.fdopen(writing, "wb") as told:
                pickle.dump(work(), told)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        result = told.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(result) if status == 0 else None


def silence() -> None:
    """Discard all output: the output of failing tests is of no interest here."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def find_functions() -> dict[Function, list[FunctionType]]:
    """Find every function of the engine, however it is wrapped."""
    found: dict[Function, list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(ENGINE)):
            found[name_code(each.__code__)].append(each)
    return found


def apply(mutant: Mutant, functions: dict[Function, list[FunctionType]]) -> None:
    """Put the code of a mutant into the running program."""
    assert mutant.code is not None
    for function in functions[key_of(mutant)]:
        function.__code__ = mutant.code


def find_calls(mutant: Mutant, baseline: Baseline) -> list[int]:
    """List the tests that call a function, or one that it made, or any function of a module that knows a constant."""
    if key_of(mutant) in baseline.calls:
        return baseline.calls[key_of(mutant)]
    if mutant.code is not None:
        path, inner = str(mutant.path), f"{mutant.function}.<locals>."
        made = [key for key in baseline.calls if key[0] == path and key[1].startswith(inner)]
    else:
        known = find_importers(mutant.path)
        made = [key for key in baseline.calls if key[0] in known]
    return [number for key in made for number in baseline.calls[key]]


def key_of(mutant: Mutant) -> Function:
    return str(mutant.path), mutant.function, mutant.first_line


@cache
def find_importers(path: Path) -> frozenset[str]:
    """Find the modules that import one, and those that import these; and itself."""
    known = {path}
    for _ in range(2):
        names = (".".join(each.relative_to(ENGINE.parent).with_suffix("").parts) for each in known)
        pattern = re.compile(rf"^(from|import) ({'|'.join(map(re.escape, names))})\b", re.MULTILINE)
        known |= {file for file in ENGINE.rglob("*.py") if pattern.search(file.read_text(encoding="utf-8"))}
    return frozenset(map(str, known))


def judge_apart(mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
    """Return the outcome of a mutant in a separate program."""
    with NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as given:
        json.dump({"path": str(mutant.path), "statement": mutant.statement, "tests": tests}, given)
        given.flush()
        files = dict.fromkeys(each.partition("::")[0] for each in tests)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "-p", "mutated", *files]
        places = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {VARIABLE: given.name, "PYTHONPATH": places}
        try:
            ended = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return KILLED
    return {0: SURVIVED, int(pytest.ExitCode.NO_TESTS_COLLECTED): UNTESTED}.get(ended, KILLED)


def find_modules(named: Iterable[str]) -> list[Path]:
    """List the modules of some files and folders of the engine."""
    paths = [ENGINE / name for name in named]
    missing = [str(path) for path in paths if not path.exists()]
    assert not missing, f"no such module: {', '.join(missing)}"
    return sorted({file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])})


def read_equivalent() -> dict[str, str]:
    """Read which mutants change nothing, each with the reason."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("  # ") for line in lines if line and not line.startswith("#")]
    return {name: reason for name, _, reason in pairs}


def show(outcomes: Sequence[tuple[Mutant, str]], known: dict[str, str]) -> tuple[str, float]:
    """Write a table of modules and the list of survivors; give the share that was killed."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    left = []
    for mutant, outcome in outcomes:
        kept = EQUAL if outcome != KILLED and mutant.name in known else outcome
        counted[mutant.path.relative_to(ENGINE).as_posix()][kept] += 1
        if kept in {SURVIVED, UNTESTED}:
            left.append(f"{mutant.path.relative_to(ROOT)}:{mutant.line}: {kept}: {mutant.name}")
    total: Counter[str] = sum(counted.values(), Counter())
    rows = ["| module | mutants | killed | survived | untested | equivalent | share |", "|---|" + "---:|" * 6]
    for name, counts in [*sorted(counted.items()), ("all", total)]:
        shown = [counts.total(), *(counts[each] for each in (KILLED, SURVIVED, UNTESTED, EQUAL))]
        rows.append(f"| {name} | {' | '.join(map(str, shown))} | {share(counts):.0%} |")
    return "\n".join([*sorted(left), "", *rows]), share(total)


def share(counts: Counter[str]) -> float:
    judged = counts.total() - counts[EQUAL]
    return counts[KILLED] / judged if judged else 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=GUARDED, help="files or folders below src/recollect")
    parser.add_argument("--tests", nargs="*", default=["tests/unit"], help="the tests that may kill")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--count", type=int, help="draw so many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", nargs="*", default=[], help="modules to leave out of folders")
    parser.add_argument("--least", type=float, default=0, help="fail where a smaller share is killed")
    given = parser.parse_args()
    without = {*find_modules(given.without)}
    mutants = [mutant for path in find_modules(given.modules) if path not in without for mutant in list_mutants(path)]
    if given.count is not None and given.count < len(mutants):
        mutants = random.Random(given.seed).sample(mutants, given.count)
    mutation = Mutation(mutants, given.minutes * 60)
    ended = pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", *given.tests], plugins=[mutation])
    told, killed = show(mutation.outcomes, read_equivalent())
    print(f"{told}\n\n{len(mutation.outcomes)} of {len(mutants)} mutants, {mutation.tests} tests")
    return int(ended) or int(not mutation.outcomes or killed < given.least)


if __name__ == "__main__":
    os.environ.setdefault("RECOLLECT_TESTS", "fast")
    sys.exit(main())

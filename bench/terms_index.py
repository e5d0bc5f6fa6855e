"""Measure what the index of terms costs a write and a search: with a pending list, without, and flushed by a job.

    uv run python bench/terms_index.py                                    # 200,000 memories; about ten minutes
    uv run python bench/terms_index.py --memories 3000 --writes 60        # the short form that CI runs

One table for each way, with the same rows, in one server. Writes go to another scope each time, after a checkpoint.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator

import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ground import OUT, open_folder, processor_seconds
from recollect.store.embedded.cluster import Cluster

WORDS, TERMS, PER_SCOPE, SEARCHED = 20_000, 16, 100, 6
WAYS = {
    "pending list of 256 kB": "gin_pending_list_limit = 256",
    "no pending list": "fastupdate = off",
    "pending list, flushed by a job": "gin_pending_list_limit = 1048576",
}
JOB = "pending list, flushed by a job"
FLUSHES = 10
"""How often the job comes while all is written."""
SETTINGS = {"shared_buffers": "2GB", "max_wal_size": "16GB", "checkpoint_timeout": "1h", "autovacuum": "off"}
console = Console()
Row = tuple[int, list[int]]


def draw_terms(scope: int, chance: random.Random, *, prefixed: bool) -> list[int]:
    """Draw the terms of one memory, some words far more often than others; a term's number contains its scope."""
    words = {int(WORDS ** chance.random()) for _ in range(TERMS)}
    if prefixed:
        return [hash_of(scope) >> 32 << 32 | hash_of(word) & 0xFFFFFFFF for word in words]
    return [hash_of(word * 1_000_003 + scope) for word in words]


def hash_of(number: int) -> int:
    """Spread numbers over 64 bits."""
    number = (number + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    number = (number ^ number >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return (number ^ number >> 31) - 2**63


def make_rows(count: int, scopes: int, chance: random.Random, *, prefixed: bool) -> Iterator[Row]:
    """Make memories of scopes at chance."""
    for _ in range(count):
        scope = chance.randrange(scopes)
        yield scope, draw_terms(scope, chance, prefixed=prefixed)


class Way:
    """One way to keep the index, on a connection of its own."""

    def __init__(self, dsn: str, number: int, options: str, *, job: bool) -> None:
        self.table, self.job = f"terms_{number}", job
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.process = self.connection.info.backend_pid
        self.connection.execute(f"create table {self.table} (scope_id bigint, terms bigint[])")
        self.options = options

    def fill(self, rows: list[Row]) -> None:
        """Store what is there before, and build the index."""
        with self.connection.cursor().copy(f"copy {self.table} from stdin") as copy:
            for scope, terms in rows:
                copy.write_row((scope, terms))
        self.connection.execute("set maintenance_work_mem = '1GB'")
        self.connection.execute(
            f"create index {self.table}_gin on {self.table} using gin (terms) with ({self.options})"
        )
        self.connection.execute(f"vacuum analyze {self.table}")

    def measure_writes(self, rows: list[Row]) -> dict[str, float]:
        """Write row by row; the flushes that a job does count, but they hold up no write."""
        self.connection.execute("checkpoint")
        first = self.position()
        spent, flushed = [], 0.0
        for number, row in enumerate(rows, 1):
            started = processor_seconds(self.process)
            self.connection.execute(f"insert into {self.table} values (%s, %s)", row)
            spent.append(processor_seconds(self.process) - started)
            if self.job and number % (len(rows) // FLUSHES) == 0:
                started = processor_seconds(self.process)
                self.connection.execute("select gin_clean_pending_list(%s::regclass)", [f"{self.table}_gin"])
                flushed += processor_seconds(self.process) - started
        spent.sort()
        return {
            "wal_kb": (self.position() - first) / len(rows) / 1024,
            "cpu_ms": (sum(spent) + flushed) / len(rows) * 1000,
            "slowest_ms": spent[-1] * 1000,
            "p99_ms": spent[int(len(spent) * 0.99)] * 1000,
        }

    def measure_search(self, rows: list[Row]) -> dict[str, float]:
        """Look for some terms of memories, with whatever is on the pending list."""
        spent = []
        for _, terms in rows:
            started = processor_seconds(self.process)
            self.connection.execute(
                f"select count(*) from {self.table} where terms && %s::bigint[]", [terms[:SEARCHED]]
            )
            spent.append(processor_seconds(self.process) - started)
        return {"search_ms": sum(spent) / len(spent) * 1000}

    def position(self) -> int:
        """Say how much of the log of writes there is."""
        [number] = self.connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone() or (0,)
        return int(number)


def measure(dsn: str, asked: argparse.Namespace, *, prefixed: bool) -> dict[str, dict[str, float]]:
    """Measure every way on the same rows, in turns of some writes each."""
    chance = random.Random(5)
    scopes = max(asked.memories // PER_SCOPE, 1)
    first = list(make_rows(asked.memories, scopes, chance, prefixed=prefixed))
    ways = {
        name: Way(dsn, number + 10 * prefixed, options, job=name == JOB)
        for number, (name, options) in enumerate(WAYS.items())
    }
    for name, way in track(ways.items(), "tables", console=console):
        console.print(name)
        way.fill(first)
    figures: dict[str, dict[str, float]] = {}
    for _ in track(range(asked.rounds), "writes", console=console):
        rows = list(make_rows(asked.writes, scopes, chance, prefixed=prefixed))
        for name, way in ways.items():
            found = way.measure_writes(rows) | way.measure_search(rows[: max(asked.writes // 10, 1)])
            for key, value in found.items():
                kept = figures.setdefault(name, {})
                kept[key] = max(kept.get(key, 0.0), value) if key == "slowest_ms" else kept.get(key, 0.0) + value
    for row in figures.values():
        for key in row:
            row[key] /= 1 if key == "slowest_ms" else asked.rounds
    return figures


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=200_000)
    parser.add_argument("--writes", type=int, default=2_000, help="in one round")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    figures = {}
    with open_folder("terms") as folder, Cluster(folder / "postgres", settings=SETTINGS) as cluster:
        for prefixed in (False, True):
            for name, row in measure(cluster.dsn(), asked, prefixed=prefixed).items():
                figures[f"{name}, {'scope first' if prefixed else 'scattered'}"] = row
    OUT.mkdir(exist_ok=True)
    (OUT / "terms_index.json").write_text(json.dumps(figures, indent=1))
    table = Table("", "WAL kB", "CPU ms", "p99", "slowest write", "search ms", title="a memory")
    for name, row in figures.items():
        keys = ("wal_kb", "cpu_ms", "p99_ms", "slowest_ms", "search_ms")
        table.add_row(name, *(f"{row[key]:.2f}" for key in keys))
    console.print(table)


if __name__ == "__main__":
    main()

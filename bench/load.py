"""Measure recalls over HTTP under load: how many a second, at which processor time, how soon, and who is refused.

    uv run python bench/load.py --before 0bf15f1                  # 1, 8 and 64 clients, both checkouts
    uv run python bench/load.py --scopes 4 --memories 50 --seconds 1 --rounds 1 --clients 1 4      # CI's short form

Every side is a server process of its own on a database of its own: the code of this checkout, and that of the commit
named by --before. They take turns. A client asks again as soon as it is answered, and waits as `Retry-After` says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import uvloop
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ground import OUT, open_folder
from recollect.llm.build import has_minilm
from yardstick import ROOT, check_out, prepare

PROGRAM = "from recollect.doors.cli.main import main; main()"
CUES = 200
TICKS = os.sysconf("SC_CLK_TCK")
START_SECONDS = 120.0
FEW = 8
MOST_TIMES_ALONE, MOST_REFUSAL_MS, LEAST_OF_FEW, MOST_IN_A_ROW = 5.0, 100.0, 0.9, 5
"""The bar: p99 of answers by the median of one client, p99 of refusals, answers a second by those of FEW clients."""
BURST_SECONDS = 2.0
"""Answers are counted after this time: all clients begin at the same moment, and a burst is let wait."""
console = Console(width=150)


@dataclass(slots=True)
class Seen:
    """What clients saw: seconds of each answer and of each refusal, and how often one was refused in a row."""

    answers: list[float] = field(default_factory=list[float])
    refusals: list[float] = field(default_factory=list[float])
    in_a_row: int = 0
    program: float = 0.0
    server: float = 0.0
    seconds: float = 0.0


class Side:
    """A checkout: its database, and the processes that serve it."""

    def __init__(self, checkout: Path, folder: Path, asked: argparse.Namespace, options: Sequence[str]) -> None:
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(ROOT / "bench")]),
            "RECOLLECT_RECALL__CHANNEL_TIMEOUT_SECONDS": "30",
        }
        self.options = options
        command = [sys.executable, str(ROOT / "bench" / "load_side.py"), str(folder), str(asked.scopes)]
        pipe = subprocess.PIPE
        self.data = subprocess.Popen(
            [*command, str(asked.memories)], stdin=pipe, stdout=pipe, text=True, env=self.environment
        )
        assert self.data.stdout
        line = self.data.stdout.readline()
        if not line:
            raise SystemExit("A side of the bench ended: see above.")
        told = json.loads(line)
        self.key, self.dsn = told["key"], told["service"]
        self.watcher = psycopg.connect(told["owner"], autocommit=True)

    @contextmanager
    def serving(self) -> Iterator[int]:
        """Run `recollect serve` on a free port until it answers that it is ready."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        environment = self.environment | {
            "RECOLLECT_DATABASE_URL": self.dsn,
            "RECOLLECT_EMBEDDER": "auto",
            "RECOLLECT_PORT": str(port),
        }
        command = [sys.executable, "-c", PROGRAM, "serve", *self.options]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            limit = time.monotonic() + START_SECONDS
            while asyncio.run(is_ready(port)) is False:
                assert self.process.poll() is None and time.monotonic() < limit, "the server did not start"
                time.sleep(0.2)
            yield port
        finally:
            self.process.terminate()
            self.process.wait(30)

    def processor(self) -> tuple[float, float]:
        """Read the processor time of the processes that serve, and of the backends they talk to."""
        program = sum(map(process_seconds, [self.process.pid, *children_of(self.process.pid)]))
        found = self.watcher.execute("select pid from pg_stat_activity where usename = 'recollect_service'").fetchall()
        return program, sum(process_seconds(pid) for (pid,) in found)

    def close(self) -> None:
        """End the database."""
        assert self.data.stdin
        self.watcher.close()
        self.data.stdin.close()
        self.data.wait(60)


def process_seconds(process: int) -> float:
    """Say how long all threads of a process have been on a processor."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    return 0.0


def children_of(process: int) -> list[int]:
    """List the processes that a process has started."""
    with suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


class Client:
    """One connection that asks and waits for its answers, at little processor time."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str]]:
        """Send a request; return the status and the headers of its answer."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        await self._reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            await self.close()
        return int(lines[0].split()[1]), headers

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


async def is_ready(port: int) -> bool:
    """Tell whether a server says that it is ready."""
    with suppress(OSError, asyncio.IncompleteReadError):
        client = Client(port, "")
        status, _ = await client.send("GET", "/health/ready")
        await client.close()
        return status == 200
    return False


async def ask_on(client: Client, bodies: Sequence[bytes], begins: float, ends: float, seen: Seen) -> None:
    """Ask again and again until the time is over; wait as `Retry-After` says. What is asked before counts nothing."""
    number, in_a_row = random.randrange(len(bodies)), 0
    while (started := time.perf_counter()) < ends:
        status, headers = await client.send("POST", "/v1/recall", bodies[number % len(bodies)])
        spent = time.perf_counter() - started
        if status == 200:
            if started >= begins:
                seen.answers.append(spent)
            number, in_a_row = number + 1, 0
            continue
        assert status == 503 and "retry-after" in headers, f"the server answered {status}"
        in_a_row += 1
        if started >= begins:
            seen.refusals.append(spent)
        seen.in_a_row = max(seen.in_a_row, in_a_row)
        await asyncio.sleep(min(float(headers["retry-after"]), max(ends - time.perf_counter(), 0)))
    await client.close()


async def put_load(side: Side, port: int, bodies: Sequence[Sequence[bytes]], clients: int, seconds: float) -> Seen:
    """Let so many clients ask, each in scopes of its own."""
    seen = Seen()
    opened = [Client(port, side.key) for _ in range(clients)]
    for client in opened:
        await client.send("GET", "/health/live")
    begins = time.perf_counter() + min(BURST_SECONDS, seconds)
    ends = begins + seconds
    asking = [
        asyncio.create_task(ask_on(client, bodies[n % len(bodies)], begins, ends, seen))
        for n, client in enumerate(opened)
    ]
    await asyncio.sleep(begins - time.perf_counter())
    before = side.processor()
    await asyncio.gather(*asking)
    seen.seconds = time.perf_counter() - begins
    seen.program, seen.server = (after - first for after, first in zip(side.processor(), before, strict=True))
    return seen


def make_bodies(cues: Sequence[str], vectors: Any, scopes: int, *, given: bool) -> list[list[bytes]]:  # noqa: ANN401
    """Make the requests of every scope; without a vector where the server is to embed."""
    made = []
    for scope in range(scopes):
        numbers = [(scope * 7 + step) % len(cues) for step in range(40)]
        made.append(
            [
                json.dumps(
                    {"agent": "load", "user": f"u{scope}", "text": cues[n], "touch": False}
                    | ({"embedding": [round(float(x), 6) for x in vectors[n]]} if given else {})
                ).encode()
                for n in numbers
            ]
        )
    return made


def sum_up(rounds: Sequence[Seen]) -> dict[str, float]:
    """Join the rounds of one side."""
    answers = sorted(each for seen in rounds for each in seen.answers)
    refusals = sorted(each for seen in rounds for each in seen.refusals)
    seconds, count = sum(seen.seconds for seen in rounds), len(answers)
    return {
        "per_s": median(len(seen.answers) / seen.seconds for seen in rounds),
        "program_ms": sum(seen.program for seen in rounds) / count * 1000,
        "server_ms": sum(seen.server for seen in rounds) / count * 1000,
        "p50_ms": answers[count // 2] * 1000,
        "p99_ms": answers[int(count * 0.99)] * 1000,
        "refused_per_s": len(refusals) / seconds,
        "refused_p99_ms": refusals[int(len(refusals) * 0.99)] * 1000 if refusals else 0.0,
        "refused_in_a_row": max(seen.in_a_row for seen in rounds),
    }


def measure(sides: dict[str, Side], asked: argparse.Namespace, cues: Any, vectors: Any) -> dict[str, dict[str, float]]:  # noqa: ANN401
    """Let all sides serve at once, and put load on one at a time, in turns."""
    figures: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        ports = {name: stack.enter_context(side.serving()) for name, side in sides.items()}
        for mode in ["given", "embedded"] if has_minilm() else ["given"]:
            bodies = make_bodies(cues, vectors, asked.scopes, given=mode == "given")
            spent: dict[tuple[str, int], list[Seen]] = {}
            for number in track(range(asked.rounds + 1), f"recalls, vector {mode}", console=console):
                for clients in asked.clients:
                    for name, side in sides.items():
                        seconds = asked.seconds if number else 1.0
                        seen = uvloop.run(put_load(side, ports[name], bodies, clients, seconds))
                        if number and seen.answers:  # the first round warms
                            spent.setdefault((name, clients), []).append(seen)
            for (name, clients), rounds in spent.items():
                figures[f"{name} {mode} {clients}"] = sum_up(rounds)
    for name, row in figures.items():
        alone = figures.get(f"{name.rpartition(' ')[0]} {min(asked.clients)}")
        row["times_alone"] = row["p99_ms"] / alone["p50_ms"] if alone else 0.0
        few = figures.get(f"{name.rpartition(' ')[0]} {FEW}")
        row["of_few"] = row["per_s"] / few["per_s"] if few else 1.0
        row["within_bar"] = float(
            row["times_alone"] <= MOST_TIMES_ALONE
            and row["refused_p99_ms"] <= MOST_REFUSAL_MS
            and row["of_few"] >= LEAST_OF_FEW
            and row["refused_in_a_row"] <= MOST_IN_A_ROW
        )
    return figures


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="", help="a commit to compare with")
    parser.add_argument("--workers", type=int, default=1, help="processes that serve, on the side of this checkout")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--scopes", type=int, default=64)
    parser.add_argument("--memories", type=int, default=500, help="in one scope")
    parser.add_argument("--seconds", type=float, default=10.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("load-texts"))
        _, cues, _, vectors = asyncio.run(prepare(folder, asked.scopes * asked.memories, CUES))
        checkouts = {"now": ROOT}
        if asked.before:
            checkouts = {"before": stack.enter_context(check_out(asked.before, folder)), **checkouts}
        sides: dict[str, Side] = {}
        for name, checkout in checkouts.items():
            console.print(f"{name}: {asked.scopes} scopes of {asked.memories}")
            options = ["--workers", str(asked.workers)] if name == "now" and asked.workers > 1 else []
            sides[name] = Side(checkout, folder, asked, options)
            stack.callback(sides[name].close)
        figures = measure(sides, asked, cues, vectors)
    OUT.mkdir(exist_ok=True)
    (OUT / "load.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures)


def print_figures(figures: dict[str, dict[str, float]]) -> None:
    """Print what was measured."""
    table = Table(
        "side, vector, clients", "recalls/s", "CPU ms: program", "database", "p50 ms", "p99 ms", "p99, of p50 alone"
    )
    table.add_column("503/s")
    table.add_column("their p99 ms")
    for heading in ("most in a row", f"of {FEW} clients", "within the bar"):
        table.add_column(heading)
    for name, row in figures.items():
        table.add_row(
            name,
            f"{row['per_s']:.1f}",
            *(f"{row[key]:.1f}" for key in ("program_ms", "server_ms", "p50_ms", "p99_ms")),
            f"{row['times_alone']:.1f} x",
            *(f"{row[key]:.0f}" for key in ("refused_per_s", "refused_p99_ms", "refused_in_a_row")),
            f"{row['of_few']:.2f}",
            "yes" if row["within_bar"] else "no",
        )
    console.print(table)


if __name__ == "__main__":
    main()

"""Simulate tenants spread over many servers: how evenly they lie, and what must move while they grow.

    uv run python bench/scale.py                       # 100 million scopes over 32 servers, under a minute
    uv run python bench/scale.py --scopes 200000 --tenants 200 --servers 16 --months 3     # the short form that CI runs

Nothing is stored: size and traffic of every scope are drawn by power laws, and added up by tenant and bucket, as a
scope's number holds them. A placement is a tenant, or a range of its buckets, on one server. Every policy sees the same
tenants, the same growth and the same arrivals.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ground import OUT
from recollect.core.service.numbers import BUCKET_BITS

BUCKETS = 1 << BUCKET_BITS
MEMORY_BYTES = 4_156
"""Of one memory with its indexes, as bench/growth.py measures it."""
MEMORIES, SIZE_POWER = 100, 1.5
"""Memories of a scope in the mean, and the power of the tail of their distribution (Pareto)."""
TRAFFIC_POWER = 2.5
"""The power by which scopes of one size differ in traffic, which grows with the root of the size."""
TENANT_SPREAD = 0.7
"""How much tenants differ in traffic (sigma of a log-normal factor)."""
GROWTH, ARRIVALS = 0.10, 0.03
"""Of everything in a month; and the new tenants among it, for those there are, as large as these were at first."""
DRIFT, NOISE = 0.03, 0.10
"""How much tenants differ in growth, always and by month (sigmas of log-normal factors)."""
KNOWN = 1_024
"""Tenants, the largest ones, whose buckets are told apart; the others are far too small to be split."""
FULL = 0.64
"""Of a server's capacity, at first: 32 servers of 2 TB with 10 billion memories."""
FLEET, SERVER, REST, PIECE = 0.70, 0.85, 0.75, 0.10
"""Of capacity: the fleet beyond which a server is added, the server from which parts are moved, until how full it is
then, and the placement that is split."""
CHUNK = 4_000_000
BYTES, TRAFFIC = 0, 1
LOADS = (BYTES, TRAFFIC)
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
console = Console(width=150)


@dataclass(frozen=True, slots=True)
class Policy:
    """How a server is chosen, whether large tenants are split, and which loads count."""

    name: str
    random: bool
    split: bool
    counted: tuple[int, ...] = LOADS


POLICIES = (
    Policy("random, whole tenants", random=True, split=False),
    Policy("random, large ones split", random=True, split=True),
    Policy("least full, whole tenants", random=False, split=False),
    Policy("least full by bytes alone, large ones split", random=False, split=True, counted=(BYTES,)),
    Policy("least full, large ones split", random=False, split=True),
)


@dataclass(frozen=True, slots=True)
class Population:
    """Tenants: their loads month by month in capacities of a server, and how those of the largest lie over buckets."""

    months: list[Floats]
    row: Numbers
    """By tenant: its row in `before`, or -1."""
    before: Floats
    """By row, bucket and load: the share of the tenant that lies in earlier buckets."""
    seen: dict[str, float]

    def shares(self, tenants: Numbers, first: Numbers, last: Numbers) -> Floats:
        """Say how much of a tenant lies in a range of buckets, by load."""
        rows = self.row[tenants]
        found = self.before[rows, last] - self.before[rows, first]
        found[rows < 0] = 1.0
        return found


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated; `power` is Zipf's exponent of the tenants' scopes by rank."""

    scopes: int
    tenants: int
    servers: int
    months: int
    power: float
    seed: int


def count_scopes(plan: Plan) -> Numbers:
    """Divide the scopes among tenants by rank."""
    weights = 1.0 / np.arange(1, plan.tenants + 1) ** plan.power
    return np.maximum(1, np.round(weights / weights.sum() * plan.scopes)).astype(np.int64)


def draw_scopes(counts: Numbers, known: int, chance: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draw every scope: give the loads by tenant, by tenant and bucket for the known ones, and of the largest scope."""
    ends = np.cumsum(counts)
    loads, cells, most = np.zeros((len(counts), 2)), np.zeros((known * BUCKETS, 2)), np.zeros(2)
    eagerness = np.exp(chance.normal(0, TENANT_SPREAD, len(counts)))
    least = MEMORIES * (SIZE_POWER - 1) / SIZE_POWER
    for start in range(0, int(ends[-1]), CHUNK):
        count = min(CHUNK, int(ends[-1]) - start)
        owners = np.searchsorted(ends, np.arange(start, start + count), side="right")
        memories = least * draw_tail(SIZE_POWER, count, chance)
        traffic = np.sqrt(memories) * draw_tail(TRAFFIC_POWER, count, chance) * eagerness[owners]
        told = int(np.searchsorted(owners, known))
        cell = owners[:told] * BUCKETS + chance.integers(0, BUCKETS, told)
        for load, each in enumerate((memories, traffic)):
            loads[:, load] += np.bincount(owners, each, len(counts))
            cells[:, load] += np.bincount(cell, each[:told], known * BUCKETS)
            most[load] = max(most[load], each.max())
    return loads, cells.reshape(known, BUCKETS, 2), most


def draw_tail(power: float, count: int, chance: np.random.Generator) -> Floats:
    """Draw from a Pareto distribution whose smallest value is 1."""
    drawn: Floats = (1 - chance.random(count)) ** (-1 / power)
    return drawn


def make_population(plan: Plan) -> Population:
    """Draw the tenants and let them grow."""
    chance = np.random.default_rng(plan.seed)
    known = min(KNOWN, plan.tenants)
    loads, cells, most = draw_scopes(count_scopes(plan), known, chance)
    totals = loads.sum(axis=0)
    seen = {
        "memories": totals[BYTES],
        "memories in the largest scope": most[BYTES],
        "memories in the largest bucket": cells[:, :, BYTES].max(),
        "busiest scope, of a server's capacity": most[TRAFFIC] / totals[TRAFFIC] * plan.servers * FULL,
        "largest tenant, of all bytes": (loads[:, BYTES] / totals[BYTES]).max(),
        "busiest tenant, of all traffic": (loads[:, TRAFFIC] / totals[TRAFFIC]).max(),
        "bytes a server holds": totals[BYTES] * MEMORY_BYTES / plan.servers / FULL,
    }
    before = np.zeros((known, BUCKETS + 1, 2))
    before[:, 1:] = np.cumsum(cells, axis=1)
    before /= before[:, -1:]
    first, numbers = loads / totals * plan.servers * FULL, np.arange(plan.tenants)
    grown, row = let_grow(first, np.where(numbers < known, numbers, -1), plan.months, chance)
    return Population(grown, row, before, {name: float(value) for name, value in seen.items()})


def let_grow(first: Floats, row: Numbers, months: int, chance: np.random.Generator) -> tuple[list[Floats], Numbers]:
    """Let all tenants grow, some faster, and others arrive; all of it together grows by the same share every month."""
    grown, drift = [first], chance.normal(0, DRIFT, len(first))
    for _ in range(months):
        last = grown[-1]
        arrived = chance.integers(0, len(first), round(len(last) * ARRIVALS))
        row = np.concatenate([row, row[arrived]])
        risen = last * np.exp(drift[:, None] + chance.normal(0, NOISE, last.shape))
        new = first[arrived]
        risen *= (last.sum(axis=0) * (1 + GROWTH) - new.sum(axis=0)) / risen.sum(axis=0)
        grown.append(np.concatenate([risen, new]))
        drift = np.concatenate([drift, chance.normal(0, DRIFT, len(new))])
    return grown, row


class Fleet:
    """Servers and what is placed on them, under one policy."""

    def __init__(self, population: Population, policy: Policy, plan: Plan) -> None:
        self.population, self.policy, self.servers = population, policy, plan.servers
        self.counted = list(policy.counted)
        self.chance = np.random.default_rng(plan.seed)
        self.tenant = self.first = self.last = self.server = np.zeros(0, np.int64)
        self.share = np.zeros((0, 2))
        self.known = 0
        self.take_in(0)

    def take_in(self, month: int) -> None:
        """Let a month begin: loads have grown, new tenants are placed, and what is too large is split."""
        loads = self.population.months[month]
        new = np.arange(self.known, len(loads))
        self.known = len(loads)
        self.append(new, np.zeros_like(new), np.full_like(new, BUCKETS), np.full_like(new, -1))
        self.load = self.share * loads[self.tenant]
        if self.policy.split:
            self.split(loads)
        self.measure()
        waiting = np.flatnonzero(self.server < 0)
        for piece in waiting[np.argsort(-self.load[waiting].max(axis=1))]:
            self.put(piece, self.choose(piece, -1))

    def append(self, tenant: Numbers, first: Numbers, last: Numbers, server: Numbers) -> None:
        """Add placements; those on server -1 wait for one."""
        self.share = np.concatenate([self.share, self.population.shares(tenant, first, last)])
        self.tenant, self.first = np.concatenate([self.tenant, tenant]), np.concatenate([self.first, first])
        self.last, self.server = np.concatenate([self.last, last]), np.concatenate([self.server, server])

    def split(self, loads: Floats) -> None:
        """Halve ranges of buckets until none is too large. Both halves stay where they are: nothing moves by that."""
        while True:
            large = (self.load[:, self.counted].max(axis=1) > PIECE) & (self.last - self.first > 1)
            chosen = np.flatnonzero(large & (self.population.row[self.tenant] >= 0))
            if not len(chosen):
                return
            middle = (self.first[chosen] + self.last[chosen]) // 2
            tenant, last = self.tenant[chosen], self.last[chosen]
            self.last[chosen] = middle
            self.share[chosen] = self.population.shares(tenant, self.first[chosen], middle)
            self.append(tenant, middle, last, self.server[chosen])
            self.load = self.share * loads[self.tenant]

    def measure(self) -> None:
        """Add up what every server bears."""
        placed = self.server >= 0
        sums = [np.bincount(self.server[placed], self.load[placed, load], self.servers) for load in LOADS]
        self.used: Floats = np.stack(sums, axis=1).astype(np.float64)  # what nothing is placed on counts in integers

    def choose(self, piece: int, source: int) -> int:
        """Choose a server: by chance or the least full; -1 if it is to be moved and finds no room."""
        peaks = (self.used + self.load[piece])[:, self.counted].max(axis=1)
        if source < 0:
            return int(self.chance.integers(self.servers)) if self.policy.random else int(peaks.argmin())
        peaks[source] = np.inf
        if not self.policy.random:
            return int(peaks.argmin()) if peaks.min() <= SERVER else -1
        room = np.flatnonzero(peaks <= SERVER)
        return int(self.chance.choice(room)) if len(room) else -1

    def put(self, piece: int, server: int) -> None:
        """Let a server bear a placement."""
        if self.server[piece] >= 0:
            self.used[self.server[piece]] -= self.load[piece]
        self.server[piece] = server
        self.used[server] += self.load[piece]

    def add_servers(self) -> None:
        """Add empty servers until the fleet is not too full."""
        while self.used[:, self.counted].sum(axis=0).max() / self.servers > FLEET:
            self.servers += 1
            self.used = np.concatenate([self.used, np.zeros((1, 2))])

    def relieve(self) -> list[int]:
        """Move placements away from servers that are too full; return which."""
        moved: list[int] = []
        for source in np.flatnonzero(self.used[:, self.counted].max(axis=1) > SERVER):
            while self.used[source, self.counted].max() > REST:
                piece = self.pick(int(source))
                target = self.choose(piece, int(source)) if piece >= 0 else -1
                if target < 0:
                    break
                self.put(piece, target)
                moved.append(piece)
        return moved

    def pick(self, source: int) -> int:
        """Pick the placement that relieves a server most for the bytes it moves; -1 if only one is left."""
        held = np.flatnonzero(self.server == source)
        if len(held) < 2:
            return -1
        tight = max(self.counted, key=lambda load: float(self.used[source, load]))
        relief = self.load[held, tight]
        fits = relief <= self.used[source, tight] - REST
        if not fits.any():
            return int(held[relief.argmin()])
        return int(held[np.where(fits, relief**2 / self.load[held, BYTES], -1).argmax()])

    def pass_month(self, month: int) -> dict[str, float]:
        """Let a month pass, and say what it took."""
        self.take_in(month)
        self.add_servers()
        moved = self.relieve()
        return self.describe() | {
            "moves": len(moved),
            "moved": self.load[moved, BYTES].sum() / self.load[:, BYTES].sum(),
        }

    def describe(self) -> dict[str, float]:
        """Say how evenly the servers are loaded."""
        even = self.used.max(axis=0) / self.used.mean(axis=0)
        return {
            "servers": self.servers,
            "placements": len(self.tenant),
            "full": float(self.used[:, BYTES].mean()),
            "bytes": float(even[BYTES]),
            "traffic": float(even[TRAFFIC]),
            "over": float((self.used.max(axis=1) > 1).sum()),
        }


def simulate(population: Population, policy: Policy, plan: Plan) -> list[dict[str, float]]:
    """Let all months pass under one policy."""
    fleet = Fleet(population, policy, plan)
    placed = fleet.describe() | {"moves": 0.0, "moved": 0.0}
    return [placed, *(fleet.pass_month(month) for month in range(1, len(population.months)))]


def print_policies(figures: dict[str, list[dict[str, float]]]) -> None:
    """Print one line for each policy."""
    table = Table(title="the fullest server by the mean, as placed and later (median of the months), and what it takes")
    table.add_column("policy", no_wrap=True)
    for heading in ("bytes", "later", "traffic", "later", "over 100 %", "moves", "moved", "servers", "placements"):
        table.add_column(heading, no_wrap=True)
    for name, months in figures.items():
        first, last, later = months[0], months[-1], months[1:]
        table.add_row(
            name,
            *(f"{value:.2f} x" for load in ("bytes", "traffic")
              for value in (first[load], np.median([month[load] for month in later]))),
            f"{sum(month['over'] for month in later) / sum(month['servers'] for month in later):.1%}",
            f"{np.mean([month['moves'] for month in later]):,.0f}",
            f"{np.mean([month['moved'] for month in later]):.1%}",
            *(f"{first[key]:,.0f} to {last[key]:,.0f}" for key in ("servers", "placements")),
        )  # fmt: skip
    console.print(table)
    console.print("over 100 %: of all servers, in all months. moves, moved: in a month, the latter of all bytes")


def print_months(months: list[dict[str, float]], tenants: list[Floats]) -> None:
    """Print every sixth month of one policy."""
    table = Table("month", "tenants", "servers", "full", "fullest, bytes", "traffic", "moves", "moved")
    for number in range(0, len(months), 6):
        month = months[number]
        table.add_row(
            str(number), f"{len(tenants[number]):,}", f"{month['servers']:.0f}", f"{month['full']:.0%}",
            f"{month['bytes']:.2f} x", f"{month['traffic']:.2f} x", f"{month['moves']:,.0f}", f"{month['moved']:.1%}",
        )  # fmt: skip
    console.print(table)


def main() -> None:
    """Simulate every policy and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("scopes", 100_000_000), ("tenants", 10_000), ("servers", 32), ("months", 24), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--power", type=float, default=1.0, help="Zipf's exponent: above 1 fewer tenants hold more")
    plan = Plan(**vars(parser.parse_args()))
    population = make_population(plan)
    for name, value in population.seen.items():
        console.print(f"{name}: {value:,.0f}" if value > 1 else f"{name}: {value:.2%}")
    figures = {policy.name: simulate(population, policy, plan) for policy in POLICIES}
    print_policies(figures)
    print_months(figures[POLICIES[-1].name], population.months)
    OUT.mkdir(exist_ok=True)
    (OUT / "scale.json").write_text(json.dumps({"seen": population.seen, "policies": figures}, indent=1))


if __name__ == "__main__":
    main()

"""Measure items as ratios within one run: each operation of a mind against the same question in bare SQL.

    uv run python bench/items.py                               # 20,000 items in a scope; about a minute
    uv run python bench/items.py --items 500 --rounds 10       # the short form that CI runs

The bare side asks a plain table with a primary key, on an open connection, without tenants, policies or revisions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable

import psycopg
import uvloop
from rich.console import Console
from rich.table import Table

from ground import OUT, alternate, open_folder, running
from recollect import Mind
from recollect.models.items import PutItem
from recollect.store.embedded.cluster import Cluster

FOLDERS, BATCH = 500, 1_000
BARE = """
    create table bare (folder text, key text, value jsonb, updated_at timestamptz default clock_timestamp(),
                       primary key (folder, key));
    insert into bare (folder, key, value)
    select 'folder-' || n % {folders}, n::text, jsonb_build_object('n', n, 'colour', 'c' || n % 7)
    from generate_series(0, {items} - 1) as n;
    analyze bare;
"""
GET = "select value from bare where folder = %s and key = %s"
NEWEST = "select * from bare where folder = %s order by updated_at desc limit 10"
ALL = "select * from bare order by updated_at desc limit 10"
WHERE = "select * from bare where value -> 'n' = %s::jsonb order by updated_at desc limit 10"
PUT = """
    insert into bare (folder, key, value) values ('new', %s, '{"n": 1}')
    on conflict (folder, key) do update set value = excluded.value, updated_at = clock_timestamp()
"""
Pair = tuple[Callable[[int], Awaitable[object]], Callable[[int], Awaitable[object]]]


def folder(number: int) -> str:
    """Name the folder of an item."""
    return f"folder-{number % FOLDERS}"


async def fill(mind: Mind, items: int) -> None:
    """Put as many items, as the bare table has them."""
    for first in range(0, items, BATCH):
        await mind.items.batch(
            [
                PutItem((folder(number),), str(number), {"n": number, "colour": f"c{number % 7}"})
                for number in range(first, min(first + BATCH, items))
            ]
        )


def pair_up(mind: Mind, bare: psycopg.AsyncConnection, items: int) -> dict[str, Pair]:
    """Set each operation beside its bare twin."""

    async def ask(query: str, *values: object) -> object:
        return await (await bare.execute(query.encode(), values)).fetchall()

    async def put(number: int) -> object:
        return await bare.execute(PUT.encode(), [str(number)])

    return {
        "get": (
            lambda n: mind.items.get((folder(n),), str(n % items)),
            lambda n: ask(GET, folder(n), str(n % items)),
        ),
        "put": (lambda n: mind.items.put(("new",), str(n), {"n": 1}), put),
        "find under a path": (lambda n: mind.items.find((folder(n),)), lambda n: ask(NEWEST, folder(n))),
        "find over all": (lambda _: mind.items.find(), lambda _: ask(ALL)),
        "find over all, by a field": (
            lambda n: mind.items.find(where={"n": n % items}),
            lambda n: ask(WHERE, str(n % items)),
        ),
    }


async def measure(items: int, rounds: int) -> dict[str, dict[str, float]]:
    """Time each operation in turns with its twin."""
    figures: dict[str, dict[str, float]] = {}
    with open_folder("items") as place, Cluster(place / "postgres") as cluster:
        async with running(cluster, "items") as recollect:
            mind = await recollect.mind("bench")
            await fill(mind, items)
            connecting = psycopg.AsyncConnection.connect(recollect.addresses.owner, autocommit=True)
            async with await connecting as bare:
                await bare.execute(BARE.format(folders=FOLDERS, items=items).encode())
                for name, pair in pair_up(mind, bare, items).items():
                    ours, theirs = await alternate(rounds, *pair)
                    figures[name] = {"ms": ours, "bare_ms": theirs, "ratio": ours / theirs}
                found = await mind.items.find(where={"n": 1})
                figures["found"] = {"items": len(found)}
    return figures


def show(figures: dict[str, dict[str, float]], items: int) -> None:
    """Print the figures, and keep them."""
    table = Table(f"{items:,} items", "ms", "bare ms", "ratio")
    for name, row in figures.items():
        if "ratio" in row:
            table.add_row(name, f"{row['ms']:.2f}", f"{row['bare_ms']:.2f}", f"{row['ratio']:.1f}")
    Console().print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "items.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=60)
    chosen = parser.parse_args()
    show(uvloop.run(measure(chosen.items, chosen.rounds)), chosen.items)

"""Measure what a memory takes on disk and in the log, and what calls touch while the memories of others grow in number.

    uv run python bench/growth.py                                         # 100,000, then 3,000,000; about an hour
    uv run python bench/growth.py --memories 2000 4000 --calls 5          # the short form that CI runs

A scope of 100 memories, half of them messages, is written through the library and then copied into other scopes, which
grow side by side as they would in service. Bytes are those of the files. WAL is read record by record. Buffers are the
pages that the statements of a call touched, in memory or not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import psycopg
import uvloop
from rich.console import Console
from rich.progress import track
from rich.table import Table

import filler
from ground import DIMENSIONS, LARGE_MACHINE, OUT, open_folder, running
from recollect import Mind, NewMemory
from recollect.core.service.numbers import number_scope
from recollect.core.text.terms import TERM_BITS, scope_bits
from recollect.models import Cue
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.store.embedded.cluster import Cluster
from space import VECTORS
from yardstick import read_texts

PER_SCOPE, ROUNDS, TENANT, PROBED = 100, 10, 4_000, 1_000
"""Memories of a scope, in how many rounds it grew, whose the copies are, and the size of the scope that is asked."""
AT_ONCE = 500
"""Scopes that one statement fills."""
COPIED = ("memories", "memory_features", VECTORS, "memory_terms", "memory_keywords", "messages", "context_vectors")
SHARED = ("keyword_strengths", "conversations", "segments")
SETTINGS = {
    **LARGE_MACHINE,
    "autovacuum": "on",
    "max_parallel_workers_per_gather": "0",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
}
SIZES = """
select table_name, relation, pg_relation_size(relation::regclass) as bytes from (
    select relname as table_name, oid::regclass::text as relation from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace
    union all
    select c.relname, i.indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indrelid
    where c.relnamespace = 'public'::regnamespace
    union all
    select relname, reltoastrelid::regclass::text from pg_class where reltoastrelid <> 0 and relkind = 'r'
      and relnamespace = 'public'::regnamespace
) each
"""
WRITTEN = """
select coalesce(held.relname, named.relname, 'other') as table_name,
       sum(records.bytes - records.images)::bigint as bytes, sum(records.images)::bigint as images
from (
    select max(relfilenode) as file, max(record_length) as bytes, sum(coalesce(block_fpi_length, 0)) as images
    from pg_get_wal_block_info(%(start)s, %(end)s) group by start_lsn
) records
left join pg_class named on named.relfilenode = records.file
left join pg_index i on i.indexrelid = named.oid
left join pg_class held on held.oid = i.indrelid
group by 1
"""
TOUCHED = """
select coalesce(sum(shared_blks_hit + shared_blks_read), 0) from pg_stat_statements s
join pg_roles r on r.oid = s.userid where r.rolname = 'recollect_service'
"""
console = Console()
Owner = psycopg.Connection[Any]


async def write_scope(mind: Mind, texts: list[tuple[str, str]], seed: int) -> None:
    """Write one scope through the library: events first, then the turns of a conversation."""
    count = len(texts)
    vectors = filler.unit_vectors(count, DIMENSIONS, np.random.default_rng(seed))
    half = count // 2
    for start in range(0, half, 50):
        await mind.remember(
            [
                NewMemory(content, speaker=speaker, keywords=("tea", f"word{number % 7}"), embedding=vectors[number])
                for number, (speaker, content) in enumerate(texts[start : min(start + 50, half)], start)
            ]
        )
    talk = mind.conversation("talk")
    for number in range(half, count, 2):
        turn = [
            NewMessage(role, texts[number + place][1], name=texts[number + place][0], embedding=vectors[number + place])
            for place, role in enumerate((Role.USER, Role.ASSISTANT))
        ]
        await talk.append(turn)


def columns_of(owner: Owner, table: str) -> list[str]:
    """List a table's columns."""
    query = (
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped "
        "and attgenerated = '' order by attnum"
    )
    return [name for (name,) in owner.execute(query, [table])]


def copy_statement(owner: Owner, table: str, *, in_rounds: bool) -> str:
    """Write the statement that copies the template's rows into scopes of the temporary table."""
    values = {name: f"row.{name}" for name in columns_of(owner, table)} | {"scope_id": "target.id"}
    if table == "memory_terms":
        values["terms"] = (
            f"array(select target.bits | term & {(1 << TERM_BITS) - 1} from unnest(row.terms) as term order by 1)"
        )
    source = f"select {', '.join(values.values())} from targets target cross join {table} row"
    part = "join rounds on rounds.id = row.id and rounds.round = %(round)s" if in_rounds else ""
    names = ", ".join(f'"{name}"' for name in values)
    return (
        f"insert into {table} ({names}) {source} {part} where row.scope_id = %(template)s "
        f"and target.number between %(first)s and %(last)s order by target.id{', row.id' if in_rounds else ''}"
    )


def grow(owner: Owner, template: int, first: int, last: int, per_scope: int = PER_SCOPE) -> None:
    """Copy the template into scopes of a range, which grow side by side."""
    owner.execute("set session_replication_role = replica; set synchronous_commit = off; set work_mem = '256MB'")
    owner.execute("insert into tenants (id, name) values (%s, 'others') on conflict do nothing", [TENANT])
    owner.execute("drop table if exists targets, rounds")
    owner.execute("create temporary table targets (id bigint primary key, number integer, bits bigint)")
    owner.execute(
        "create temporary table rounds as select id, (row_number() over (partition by kind order by id) - 1) "
        f"/ {per_scope // 2 // ROUNDS} as round from memories where scope_id = %s",
        [template],
    )
    with owner.cursor().copy("copy targets from stdin") as copy:
        for number in range(first, last):
            scope = number_scope(TENANT, number % 4096, number // 4096 + 1)
            copy.write_row((scope, number, scope_bits(scope)))
    owner.execute("analyze targets; analyze rounds")
    names = [name for name in columns_of(owner, "scopes") if name not in {"id", "tenant_id", "user"}]
    listed = ", ".join(names)
    owner.execute(
        f'insert into scopes (id, tenant_id, "user", {listed}) '
        f"select target.id, {TENANT}, target.number::text, {listed} "
        "from targets target cross join scopes where scopes.id = %s",
        [template],
    )
    portions = [(start, min(start + AT_ONCE, last) - 1) for start in range(first, last, AT_ONCE)]
    for table in SHARED:
        statement = copy_statement(owner, table, in_rounds=False)
        for start, end in portions:
            owner.execute(statement, {"template": template, "first": start, "last": end})
    statements = [copy_statement(owner, table, in_rounds=True) for table in COPIED]
    steps = [(number, start, end) for number in range(ROUNDS) for start, end in portions]
    for number, start, end in track(steps, f"{(last - first) * per_scope:,} memories", console=console):
        for statement in statements:
            owner.execute(statement, {"template": template, "first": start, "last": end, "round": number})
    owner.execute("reset session_replication_role")
    owner.execute("vacuum analyze")


def measure_sizes(owner: Owner) -> dict[str, int]:
    """Read the bytes of all relations, by table."""
    sizes: dict[str, int] = {}
    for table, _, size in owner.execute(SIZES):
        sizes[table] = sizes.get(table, 0) + size
    return sizes


def divide_sizes(owner: Owner, empty: dict[str, int], count: int) -> dict[str, float]:
    """Give the bytes of a memory, by table, where it takes any."""
    added = {table: size - empty.get(table, 0) for table, size in measure_sizes(owner).items()}
    return {table: size / count for table, size in added.items() if size > count}


async def measure_wal(owner: Owner, calls: int, call: Callable[[int], Awaitable[object]]) -> dict[str, float]:
    """Count the bytes of the log that a call writes, by table; the images of pages since a checkpoint apart."""
    owner.execute("checkpoint")
    for number in range(3):
        await call(number)
    here = "select pg_current_wal_insert_lsn()"
    start = owner.execute(here).fetchone()
    for number in range(calls):
        await call(number + 3)
    end = owner.execute(here).fetchone()
    assert start and end
    rows = owner.execute(WRITTEN, {"start": start[0], "end": end[0]}).fetchall()
    written = {table: size / calls for table, size, _ in rows}
    return written | {"all": sum(written.values()), "images of pages": sum(images for _, _, images in rows) / calls}


async def measure_buffers(owner: Owner, calls: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Count the pages that a call touches."""
    for number in range(3):
        await call(number)
    owner.execute("select pg_stat_statements_reset()")
    for number in range(calls):
        await call(number + 3)
    row = owner.execute(TOUCHED).fetchone()
    assert row
    return float(row[0]) / calls


async def measure(owner: Owner, mind: Mind, calls: int, texts: list[str]) -> dict[str, float]:
    """Count what a recall, a memory and a turn touch and write in one scope."""
    cues = filler.unit_vectors(calls + 3, DIMENSIONS, np.random.default_rng(len(texts)))

    async def recall(number: int) -> object:
        return await mind.recall(Cue(texts[number], embedding=cues[number]))

    async def remember(number: int) -> object:
        return await mind.remember(NewMemory(texts[number], embedding=cues[number]))

    async def append(number: int) -> object:
        turn = [NewMessage(role, texts[number], embedding=cues[number]) for role in (Role.USER, Role.ASSISTANT)]
        return await mind.conversation(f"talk-{number % 5}").append(turn)

    made = {f"{name} buffers": await measure_buffers(owner, calls, call)
            for name, call in (("recall", recall), ("remember", remember), ("turn", append))}  # fmt: skip
    for name, call in (("remember", remember), ("turn", append)):
        made |= {f"{name} wal {table}": size for table, size in (await measure_wal(owner, calls, call)).items()}
    return made


async def run(cluster: Cluster, sizes: list[int], calls: int) -> dict[str, dict[str, float]]:
    """Grow the tables from size to size, and measure at each."""
    figures: dict[str, dict[str, float]] = {}
    async with running(cluster, "growth") as recollect:
        with psycopg.connect(recollect.addresses.owner, autocommit=True) as owner:
            owner.execute("create extension pg_stat_statements; create extension pg_walinspect")
            template, probed = await recollect.mind("template"), await recollect.mind("probed")
            texts, _ = read_texts(PER_SCOPE + PROBED + len(sizes) * (calls + 3))
            await write_scope(template, texts[:PER_SCOPE], 0)
            await write_scope(probed, texts[PER_SCOPE : PER_SCOPE + PROBED], 1)
            [(number,)] = owner.execute("select id from scopes where agent = 'template'").fetchall()
            owner.execute("vacuum analyze")
            empty = measure_sizes(owner)
            filled = 0
            for position, size in enumerate(sizes):
                first = PER_SCOPE + PROBED + position * (calls + 3)
                said = [content for _, content in texts[first : first + calls + 3]]
                grow(owner, number, filled // PER_SCOPE, size // PER_SCOPE)
                filled = size
                figures[f"{size:,} bytes"] = divide_sizes(owner, empty, size)
                figures[f"{size:,}"] = await measure(owner, probed, calls, said)
                if position == 0:
                    for index in (f"{VECTORS}_pkey", "memory_terms_by_term"):
                        owner.execute(f"reindex index concurrently {index}")
                    figures[f"{size:,} bytes, built anew"] = divide_sizes(owner, empty, size)
    return figures


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, nargs="+", default=[100_000, 3_000_000], help="of others, growing")
    parser.add_argument("--calls", type=int, default=40)
    asked = parser.parse_args()
    with open_folder("growth") as folder, Cluster(folder / "postgres", settings=SETTINGS) as cluster:
        figures = uvloop.run(run(cluster, asked.memories, asked.calls))
    for title, rows in figures.items():
        table = Table("", "", title=title)
        for name, value in rows.items():
            table.add_row(name, f"{value:,.0f}")
        if "bytes" in title:
            table.add_row("all", f"{sum(rows.values()):,.0f}")
        console.print(table)
    OUT.mkdir(exist_ok=True)
    (OUT / "growth.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

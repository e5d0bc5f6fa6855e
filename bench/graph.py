"""Measure a walk along facts as a ratio within one run: three hops from five hubs against the same beam in bare SQL.

    uv run python bench/graph.py                               # 100,000 facts in a scope; about a minute
    uv run python bench/graph.py --facts 2000 --rounds 10      # the short form that CI runs

The bare side walks a narrow table of edges without policies, times or texts, by a function of the database. Ours is the
whole call: it binds the tenant, looks the hubs up, walks what is believed and true now, and reads every fact's text.
"""

from __future__ import annotations

import argparse
import json
from uuid import UUID

import numpy as np
import psycopg
import uvloop
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ground import OUT, alternate, open_folder, running
from recollect import Recollect
from recollect.models import Cue
from recollect.models.filters import Filter
from recollect.models.knowledge import GraphFormat
from recollect.store.embedded.cluster import Cluster
from recollect.store.knowledge import graph
from recollect.store.knowledge.graph import WalkLimits

console = Console()
HUBS, BEAM, FAN, CHUNK = (0, 1, 2, 10, 50), 100, 10, 5_000
FIRST_FACT = 0x0190 << 112 | 7 << 76
"""Ids that rise as those of real facts do."""
OVER = 0.1
"""Which part of the facts is true no more."""
TABLES = """
    create temp table drawn (number integer, subject integer, object integer, over boolean, weight real);
    create table edge (source integer not null, target integer not null, weight real not null, over boolean not null);
    create index on edge (source, weight desc) where not over;
    create index on edge (target, weight desc) where not over;
"""
BARE = """
create function bare_beam(starts integer[], hops integer, fan integer, beam integer)
    returns table (entity integer, depth integer, score double precision) language plpgsql stable as $$
declare
    frontier integer[] := starts;
    scores double precision[] := array_fill(1.0::double precision, array[cardinality(starts)]);
    seen integer[] := starts;
begin
    for hop in 1 .. hops loop
        select array_agg(best.entity), array_agg(best.score) into frontier, scores from (
            select touching.entity, max(each.score * touching.weight * 0.5) as score
            from unnest(frontier, scores) as each (id, score) cross join lateral (
                (select target as entity, weight from edge where source = each.id and not over
                 order by weight desc limit fan)
                union all
                (select source, weight from edge where target = each.id and not over order by weight desc limit fan)
            ) touching
            where touching.entity <> all (seen)
            group by touching.entity order by 2 desc limit beam
        ) best;
        exit when frontier is null;
        seen := seen || frontier;
        return query select reached.id, hop, reached.score from unnest(frontier, scores) as reached (id, score);
    end loop;
end $$
"""
FILL = (
    """
    insert into entities (scope_id, id, name, normalised, type)
    select %(scope)s, lpad(to_hex(number + 1), 32, '0')::uuid, 'Entity ' || number, 'entity ' || number, 'thing'
    from generate_series(0, %(entities)s - 1) number
    """,
    """
    insert into mentions (scope_id, source_id, entity_id, normalised, name)
    select scope_id, %(source)s, id, normalised, name from entities where scope_id = %(scope)s
    """,
    """
    insert into memories (scope_id, id, kind, content, importance, origin, trust, occurred_at, created_at)
    select %(scope)s, (%(first)s || lpad(to_hex(number), 12, '0'))::uuid, 'fact',
           'Entity ' || subject || ' has to do with entity ' || object, 5, 'bench', 50, now(), now()
    from drawn
    """,
    """
    insert into beliefs (scope_id, id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at,
                         created_at)
    select %(scope)s, (%(first)s || lpad(to_hex(number), 12, '0'))::uuid,
           (%(first)s || lpad(to_hex(number), 12, '0'))::uuid, 1, lpad(to_hex(subject + 1), 32, '0')::uuid,
           'has to do with ' || number, lpad(to_hex(object + 1), 32, '0')::uuid, now() - interval '1 year',
           case when over then now() - interval '1 day' end, now()
    from drawn where number between %(begin)s and %(end)s
    """,
    "insert into edge select subject, object, weight, over from drawn",
    "vacuum analyze",
)


async def fill(recollect: Recollect, facts: int, progress: Progress) -> int:
    """Write facts whose ends follow a power law, past every verb; return the scope."""
    mind = await recollect.mind("hub")
    [receipt] = await mind.remember("the first memory makes the scope")
    randomness = np.random.default_rng(5)
    entities = max(facts // 5, 100)
    shares = 1 / np.arange(1, entities + 1) ** 0.9
    ends = randomness.choice(entities, (2, facts), p=shares / shares.sum())
    over, weights = randomness.random(facts) < OVER, randomness.random(facts)
    task = progress.add_task(f"{facts:,} facts", total=facts)
    with psycopg.connect(recollect.addresses.owner, autocommit=True) as owner:
        owner.execute(TABLES)
        owner.execute(BARE)
        [(scope,)] = owner.execute("select id from scopes").fetchall()
        with owner.cursor().copy("copy drawn from stdin") as copy:
            for number in range(facts):
                copy.write_row((number, *map(int, ends[:, number]), bool(over[number]), float(weights[number])))
        shape = {"scope": scope, "entities": entities, "first": f"{FIRST_FACT >> 48:020x}", "source": receipt.id}
        for statement in FILL:
            for begin in range(0, facts if "drawn where" in statement else 1, CHUNK):
                owner.execute(statement, shape | {"begin": begin, "end": begin + CHUNK - 1})
                progress.advance(task, CHUNK if "drawn where" in statement else 0)
    return scope


async def measure_walk(recollect: Recollect, hops: int, rounds: int) -> dict[str, float]:
    """Compare a walk from the hubs with the bare one."""
    mind = await recollect.mind("hub")
    starts = [UUID(int=hub + 1) for hub in HUBS]
    bounds = WalkLimits(hops, BEAM, Filter())
    found: list[int] = []
    async with await psycopg.AsyncConnection.connect(recollect.addresses.owner, autocommit=True) as bare:

        async def walk_bare(_: int) -> object:
            asked = (list(HUBS), hops, FAN, BEAM)
            answer = await bare.execute("select * from bare_beam(%s, %s, %s, %s)", asked)
            return await answer.fetchall()

        async def walk_facts(_: int) -> object:
            walked = (await graph.walk(recollect.parts.database, mind.access.scope, starts, bounds))[1]
            found.append(len(walked.relations))
            return walked

        bare_ms, walk_ms = await alternate(rounds, walk_bare, walk_facts)
    return {"bare_ms": bare_ms, "walk_ms": walk_ms, "ratio": walk_ms / bare_ms, "facts": found[-1]}


async def measure_recall(recollect: Recollect, rounds: int) -> dict[str, float]:
    """Time what the channel adds to a recall by words: where the cue names a hub, and where it names nothing."""
    mind = await recollect.mind("hub")

    def recall(text: str, *channels: str) -> object:
        async def ask(_: int) -> object:
            return await mind.recall(Cue(text, channels=channels, touch=False))

        return ask

    named, unnamed = "What has entity 10 to do with?", "What was it that happened here yesterday?"
    asked = [recall(text, *channels) for text in (unnamed, named) for channels in (("text",), ("text", "graph"))]
    plain, without, words, hub = await alternate(rounds, *asked)  # type: ignore[arg-type]
    return {"unnamed_ms": plain, "unnamed_added_ms": without - plain, "hub_ms": words, "hub_added_ms": hub - words}


async def measure_export(recollect: Recollect) -> dict[str, float]:
    """Time an export of the whole graph, piece by piece."""
    mind = await recollect.mind("hub")
    pieces: list[int] = []

    async def write(_: int) -> object:
        pieces[:] = [len(piece) async for piece in mind.knowledge.export(GraphFormat.GRAPHML)]
        return pieces

    [milliseconds] = await alternate(1, write)
    return {"seconds": milliseconds / 1000, "characters": sum(pieces), "largest_piece": max(pieces)}


async def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=100)
    asked = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with open_folder("graph") as folder, Cluster(folder / "postgres") as cluster:
        async with running(cluster, "graph") as recollect:
            with Progress(console=console) as progress:
                await fill(recollect, asked.facts, progress)
            for hops in (1, 2, 3):
                figures[f"walk {hops}"] = await measure_walk(recollect, hops, asked.rounds)
            figures["recall"] = await measure_recall(recollect, asked.rounds)
            figures["export"] = await measure_export(recollect)
    OUT.mkdir(exist_ok=True)
    (OUT / "graph.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures, asked.facts)


def print_figures(figures: dict[str, dict[str, float]], facts: int) -> None:
    """Print what was measured next to the goal."""
    table = Table("", "bare", "ours", "ratio", "goal", title=f"{facts:,} facts, 5 hubs, beam {BEAM}")
    for hops in (1, 2, 3):
        row = figures[f"walk {hops}"]
        goal = "<= 3 x" if hops == 3 else ""
        table.add_row(
            f"{hops} hops", f"{row['bare_ms']:.2f} ms", f"{row['walk_ms']:.2f} ms", f"{row['ratio']:.2f} x", goal
        )
    console.print(table)
    recall, export = figures["recall"], figures["export"]
    console.print(
        f"The channel adds {recall['unnamed_added_ms']:.2f} ms to a recall that names nothing "
        f"({recall['unnamed_ms']:.2f} ms), {recall['hub_added_ms']:.2f} ms to one that names a hub."
    )
    console.print(f"Export: {export['seconds']:.1f} s, {export['characters']:,.0f} characters.")


if __name__ == "__main__":
    uvloop.run(main())

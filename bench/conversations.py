"""Measure history and append on conversations of two sizes as ratios within one run, and beside the naive way.

    uv run python bench/conversations.py             # 1,000 and 100,000 messages with 5,000 branches; three minutes
    uv run python bench/conversations.py --sizes 300 2000 --rounds 10      # the short form that CI runs

Machines are noisy: the sizes alternate call by call. The naive way reads the newest 500 messages, as Dify does, then
walks and counts in Python.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import psycopg
import uvloop
from psycopg.rows import dict_row
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ground import DIMENSIONS, LARGE_MACHINE, OUT, WARMING, open_folder, running
from recollect import Mind, Recollect, Settings
from recollect.core.conversations.messages import count_tokens
from recollect.core.conversations.threads import MAX_DIFY_TURNS, ThreadNode, walk
from recollect.doors.http.app import create_app
from recollect.llm.tokens.count import Tokenizer, load_tokenizers
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.memories import Role
from recollect.models.service import Right
from recollect.store.conversations.conversations import QUERIES
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.database.proxy import Proxy

BUDGET = 4_000
STRETCH, REACH = 20, 60
"""Every twentieth message begins a branch, at one of the sixty before it."""
SENTENCE = (
    "The tram to the old harbour leaves at a quarter past eight, and if it rains we can sit in the small library "
    "behind the church until the others arrive with the keys."
)
CHUNK = 10_000
TABLES = ("messages", "memories", "conversations")
FILL_MEMORIES = """
    insert into memories (scope_id, id, kind, content, importance, origin, trust, occurred_at, created_at)
    select %(scope)s, (%(prefix)s || lpad(to_hex(n), 24, '0'))::uuid, 'message', %(content)s, 5, 'bench', 50,
           now(), now()
    from generate_series(%(first)s::bigint, %(last)s::bigint) n
"""
FILL_MESSAGES = """
    insert into messages (scope_id, id, conversation_id, number, parent_id, turn_id, role, status, occurred_at, tokens)
    select %(scope)s, (%(prefix)s || lpad(to_hex(n), 24, '0'))::uuid, %(conversation)s, n,
           (%(prefix)s || lpad(to_hex(nullif(parent, 0)), 24, '0'))::uuid,
           (%(prefix)s || lpad(to_hex(n - (n + 1) %% 2), 24, '0'))::uuid,
           case when n %% 2 = 1 then 'user' else 'assistant' end, 'done', now() + n * interval '1 ms', %(tokens)s::jsonb
    from generate_series(%(first)s::bigint, %(last)s::bigint) n
    cross join lateral (
        select case when n %% %(stretch)s = 1 and n > 1 then (n - 1 - abs(hashint8(n)) %% least(n, %(reach)s)) / 2 * 2
                    else n - 1 end as parent
    ) place
"""
LEAVES = """
    select id from messages leaf where scope_id = %s and conversation_id = %s and number > %s
      and not exists (select from messages child where child.scope_id = leaf.scope_id and child.parent_id = leaf.id)
"""
NEWEST = """
    select newest.id, newest.parent_id, newest.role, said.content
    from (
        select scope_id, id, parent_id, role, number from messages
        where scope_id = %s and conversation_id = %s order by number desc limit %s
    ) newest cross join lateral (
        select content from memories
        where memories.scope_id = newest.scope_id and memories.id between newest.id and newest.id
        order by memories.id limit 1
    ) said
    order by newest.number desc
"""
console = Console()
Figures = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class BuiltConversation:
    """A conversation that was made up, and where its threads end."""

    name: str
    size: int
    scope_id: int
    leaves: list[UUID]


def build(recollect: Recollect, scope_id: int, size: int, progress: Progress) -> BuiltConversation:
    """Write a conversation past every verb: as long and as branched as it is asked for."""
    name, task = f"talk-{size}", progress.add_task(f"{size:,} messages, {size // STRETCH:,} branches", total=size)
    costs = {
        each.name: each.frame + each.count(SENTENCE)
        for each in load_tokenizers(["o200k_base", "cl100k_base", "estimate"])
    }
    shape: dict[str, Any] = {
        "scope": scope_id, "conversation": name, "prefix": f"{size:08x}", "content": SENTENCE,
        "tokens": json.dumps(costs), "stretch": STRETCH, "reach": REACH,
    }  # fmt: skip
    with psycopg.connect(recollect.addresses.owner, autocommit=True) as connection:
        connection.execute(
            "insert into conversations (scope_id, id, last_number, created_at, updated_at, changed_at) "
            "values (%s, %s, %s, now(), now(), now())",
            (scope_id, name, size),
        )
        for first in range(1, size + 1, CHUNK):
            last = min(first + CHUNK - 1, size)
            for statement in (FILL_MEMORIES, FILL_MESSAGES):
                connection.execute(statement, shape | {"first": first, "last": last})
            progress.advance(task, last - first + 1)
        connection.execute("vacuum analyze messages, memories, conversations")
        deep_enough = 3 * BUDGET // costs["o200k_base"]
        found = connection.execute(LEAVES, (scope_id, name, deep_enough)).fetchall()
    return BuiltConversation(name, size, scope_id, [row[0] for row in found])


async def time_each(rounds: int, calls: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, list[float]]:
    """Time calls in turns, and give the milliseconds of each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    with Progress(console=console) as progress:
        for _ in progress.track(range(rounds + WARMING), description=f"{rounds} rounds of {len(calls)} calls"):
            for name, call in calls.items():
                started = time.perf_counter()
                await call()
                times[name].append((time.perf_counter() - started) * 1000)
    return {name: measured[WARMING:] for name, measured in times.items()}


def summarise(measured: list[float]) -> dict[str, float]:
    """Give the middle and the twentieth that took longest."""
    marks = quantiles(measured, n=20)
    return {"p50_ms": marks[9], "p95_ms": marks[18]}


async def measure_history(mind: Mind, conversations: list[BuiltConversation], rounds: int) -> Figures:
    """Read histories of every size in turns: at the newest message, at random leaves, and the naive way."""
    chance = random.Random(7)
    [tokenizer] = load_tokenizers(["o200k_base"])

    def at_newest(conversation: BuiltConversation) -> Awaitable[object]:
        return mind.conversation(conversation.name).history(BUDGET)

    def at_leaf(conversation: BuiltConversation) -> Awaitable[object]:
        return mind.conversation(conversation.name).history(
            HistoryOptions(BUDGET, leaf=chance.choice(conversation.leaves))
        )

    def naively(conversation: BuiltConversation) -> Awaitable[object]:
        return read_naively(mind, conversation, tokenizer)

    ways = {"newest": at_newest, "leaf": at_leaf, "naive": naively}
    calls = {
        f"{way} {conversation.size}": (lambda ask=ask, conversation=conversation: ask(conversation))
        for way, ask in ways.items()
        for conversation in conversations
    }
    figures = {name: summarise(measured) for name, measured in (await time_each(rounds, calls)).items()}
    for conversation in conversations:
        history = await mind.conversation(conversation.name).history(BUDGET)
        figures[f"newest {conversation.size}"] |= {"messages": len(history.messages), "tokens": history.tokens}
        figures[f"naive {conversation.size}"] |= await judge_naive(mind, conversation, tokenizer, chance)
    return figures


async def read_naively(
    mind: Mind, conversation: BuiltConversation, tokenizer: Tokenizer, leaf: UUID | None = None
) -> list[UUID]:
    """Read the newest 500 messages, walk among them from a leaf, and count what fits, all in Python."""
    async with mind.access.parts.database.reading(mind.access.scope.tenant_id) as connection:
        found = await connection.execute(NEWEST, (conversation.scope_id, conversation.name, MAX_DIFY_TURNS))
    rows = {str(row["id"]): row for row in await found.fetchall()}
    nodes = [
        ThreadNode(identity, str(row["parent_id"]) if row["parent_id"] else None) for identity, row in rows.items()
    ]
    if leaf is not None and str(leaf) not in rows:
        return []
    kept, spent = list[UUID](), 0
    for identity in walk(nodes, str(leaf) if leaf else next(iter(rows))):
        row = rows[identity]
        message = NewMessage(Role(row["role"]), row["content"])
        spent += count_tokens(message, tokenizer.count, tokenizer.frame, tokenizer.naming)
        if spent > BUDGET:
            break
        kept.append(row["id"])
    return kept


async def judge_naive(
    mind: Mind, conversation: BuiltConversation, tokenizer: Tokenizer, chance: random.Random
) -> dict[str, float]:
    """Say how much of the histories at random leaves is among the newest 500 messages at all."""
    shares = []
    for leaf in chance.sample(conversation.leaves, min(20, len(conversation.leaves))):
        true = [
            message.id
            for message in (
                await mind.conversation(conversation.name).history(HistoryOptions(BUDGET, leaf=leaf))
            ).messages
        ]
        naive = set(await read_naively(mind, conversation, tokenizer, leaf))
        shares.append(len(naive.intersection(true)) / len(true))
    return {"found": fmean(shares)}


async def count_rows(recollect: Recollect, mind: Mind, conversation: BuiltConversation) -> dict[str, float]:
    """Let the server say how many rows it looked at for a history, and how many it returned."""
    scope = mind.access.scope
    asked = {
        "agent": scope.agent, "user": scope.user, "conversation": conversation.name, "leaf": conversation.leaves[-1],
        "tokenizer": "o200k_base", "image_tokens": 0, "unanswered": False, "budget": BUDGET,
        "at": None, "before": None,
    }  # fmt: skip
    async with await psycopg.AsyncConnection.connect(
        recollect.addresses.service, autocommit=True, prepare_threshold=None, row_factory=dict_row
    ) as connection:
        await connection.execute("select set_config('recollect.tenant', %s, false)", [str(mind.access.scope.tenant_id)])
        returned = len(await (await connection.execute(QUERIES["walk"], asked)).fetchall())
        explained = await connection.execute(f"explain (analyze, buffers, format json) {QUERIES['walk']}", asked)
        row = await explained.fetchone()
    plan = row["QUERY PLAN"][0] if row else {}
    nodes = [node for node in flatten(plan["Plan"]) if node.get("Relation Name") in TABLES]
    read = sum((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in nodes)
    return {
        "returned": returned,
        "read": round(read),
        "server_ms": plan["Execution Time"],
        "plan_ms": plan["Planning Time"],
    }


def flatten(node: dict[str, Any]) -> list[dict[str, Any]]:
    """List a plan's steps."""
    return [node, *(below for child in node.get("Plans", ()) for below in flatten(child))]


async def measure_append(mind: Mind, conversations: list[BuiltConversation], rounds: int) -> Figures:
    """Append single turns to every size in turns, then from eight writers at once."""
    vector = np.ones(DIMENSIONS, dtype=np.float32)
    turn = [NewMessage(role, SENTENCE, embedding=vector) for role in (Role.USER, Role.ASSISTANT)]
    calls = {
        f"append {each.size}": (lambda each=each: mind.conversation(each.name).append(turn)) for each in conversations
    }  # fmt: skip
    figures: Figures = {}
    for name, measured in (await time_each(rounds, calls)).items():
        figures[name] = summarise(measured) | {"per_second": 1000 / fmean(measured)}

    async def write(conversation: BuiltConversation) -> None:
        for _ in range(max(1, rounds // 4)):
            await mind.conversation(conversation.name).append(turn)

    for conversation in conversations:
        started = time.perf_counter()
        await asyncio.gather(*(write(conversation) for _ in range(8)))
        figures[f"append {conversation.size}"]["per_second_of_8"] = (
            8 * max(1, rounds // 4) / (time.perf_counter() - started)
        )
    return figures


async def count_round_trips(recollect: Recollect) -> dict[str, float]:
    """Count how often a request over HTTP waits for PostgreSQL."""
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy(recollect.addresses.service))
        addresses = replace(recollect.addresses, service=proxy.dsn)
        behind = await stack.enter_async_context(connected(Settings(pool_size=1), addresses, None))
        _, secret = await behind.create_key(await behind.operator.act_for("default"), "bench", tuple(Right), 50)
        app = create_app(recollect=behind)
        app.state.recollect = behind
        client = await stack.enter_async_context(
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://bench")
        )
        client.headers["Authorization"] = f"Bearer {secret}"
        # A key that was not seen for a minute is asked for before a body is read: one trip more, once.
        await client.get("/v1/memories", params={"agent": "bench"})
        conversation = {"agent": "bench", "conversation": "talk-http"}
        counted: dict[str, float] = {}
        said = {"question": SENTENCE, "answer": SENTENCE}
        for name, path, more in (("append", "/v1/messages", said), ("history", "/v1/history", {"max_tokens": BUDGET})):
            before = proxy.round_trips
            (await client.post(path, json=conversation | more)).raise_for_status()
            counted[name] = proxy.round_trips - before
    return counted


async def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs=2, default=[1_000, 100_000], help="messages, of the small one first")
    parser.add_argument("--rounds", type=int, default=400, help="calls of each sort")
    asked = parser.parse_args()
    with open_folder("conversations") as folder, Cluster(folder / "postgres", settings=LARGE_MACHINE) as cluster:
        async with running(cluster, "conversations") as recollect:
            figures = await measure(recollect, asked.sizes, asked.rounds)
    OUT.mkdir(exist_ok=True)
    (OUT / "conversations.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures, asked.sizes)


async def measure(recollect: Recollect, sizes: list[int], rounds: int) -> Figures:
    """Make the conversations, then measure reading, writing and round trips."""
    mind = await recollect.mind("bench")
    await mind.conversation("talk-first").append(NewMessage(Role.USER, SENTENCE, embedding=np.ones(DIMENSIONS)))
    with psycopg.connect(recollect.addresses.owner) as connection:
        row = connection.execute("select id from scopes").fetchone()
        scope_id = row[0] if row else 0
    with Progress(console=console) as progress:
        conversations = [build(recollect, scope_id, size, progress) for size in sizes]
    figures = await measure_history(mind, conversations, rounds)
    for conversation in conversations:
        figures[f"rows {conversation.size}"] = await count_rows(recollect, mind, conversation)
    figures |= await measure_append(mind, conversations, max(1, rounds // 2))
    small, large = sizes
    figures["ratio"] = {
        way: figures[f"{way} {large}"]["p95_ms"] / figures[f"{way} {small}"]["p95_ms"] for way in ("newest", "leaf")
    }
    figures["round_trips"] = await count_round_trips(recollect)
    return figures


def print_figures(figures: Figures, sizes: list[int]) -> None:
    """Print what was measured, a column for each size."""
    lines: dict[str, Callable[[int], str]] = {
        "history at the newest message": lambda size: in_time(figures[f"newest {size}"]),
        "history at a random leaf": lambda size: in_time(figures[f"leaf {size}"]),
        "messages it returns": lambda size: f"{figures[f'newest {size}']['messages']:.0f}",
        "rows read for rows returned": lambda size: "{read:.0f} for {returned:.0f}".format(**figures[f"rows {size}"]),
        "server: planning + running": lambda size: "{plan_ms:.1f} + {server_ms:.1f} ms".format(
            **figures[f"rows {size}"]
        ),
        "newest 500, walked in Python": lambda size: in_time(figures[f"naive {size}"]),
        "of a random leaf's history it sees": lambda size: f"{figures[f'naive {size}']['found']:.0%}",
        "append a turn": lambda size: in_time(figures[f"append {size}"]),
        "turns a second, one writer, eight": lambda size: "{per_second:.0f}, {per_second_of_8:.0f}".format(
            **figures[f"append {size}"]
        ),
    }
    table = Table("conversation of", *(f"{size:,}" for size in sizes))
    for title, show in lines.items():
        table.add_row(title, *map(show, sizes))
    console.print(table)
    ratio, trips = figures["ratio"], figures["round_trips"]
    console.print(f"p95 of the long one: {ratio['newest']:.2f} x newest, {ratio['leaf']:.2f} x random leaf; goal 2 x")
    console.print(f"round trips over HTTP: append {trips['append']:.0f}, history {trips['history']:.0f}; goal 3")


def in_time(row: dict[str, float]) -> str:
    """Write the middle and the slow end."""
    return f"{row['p50_ms']:.1f} ms, p95 {row['p95_ms']:.1f} ms"


if __name__ == "__main__":
    uvloop.run(main())  # the loop that the server runs on

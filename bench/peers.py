"""Compare a recall with the stores that others would take, in one run on the same texts and vectors.

    uv run --with chromadb==1.5.9 --with mem0ai==2.2.1 --with langgraph-checkpoint-postgres==3.2.0 \
        python bench/peers.py                                     # a scope of 10,000; some five minutes
    uv run python bench/peers.py --peers bare --scope 300 --rounds 2       # the short form that CI runs

All take turns, call by call, with the cue's vector given. What is compared is processor time of program and server
together; the wall time stands beside it. mem0 embeds nothing here and asks no model (`infer=False`).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bare import WINNERS, Bare, Spent, Vectors
from ground import DIMENSIONS, ONE_PROCESS, OUT, WARMING, open_folder, processor_seconds
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from yardstick import Side, open_sides, prepare, sum_up

CHUNK = 500
USER = "ada"
console = Console()
Search = Callable[[int], list[str]]
"""Search by the cue of a number, and give the texts found."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """What every store is filled with and asked for, and where it may lie."""

    texts: Sequence[str]
    vectors: Vectors
    cues: Sequence[str]
    cue_vectors: Vectors
    folder: Path
    cluster: Cluster
    limit: int = WINNERS
    """How many texts a search is to give."""
    label: str = ""
    """Which of several it is, where they share a cluster."""

    def embed(self) -> dict[str, list[float]]:
        """Give every text its vector, for stores that insist on embedding."""
        known = dict(zip(self.texts, self.vectors.tolist(), strict=True))
        known |= dict(zip(self.cues, self.cue_vectors.tolist(), strict=True))
        # mem0 strips what it is asked.
        return {text.strip(): vector for text, vector in known.items()} | known


@dataclass(slots=True)
class Peer:
    """A store that was filled, and the process that serves it, if that is another one."""

    search: Search
    server: int | None = None

    def measure(self, number: int) -> tuple[Spent, list[str]]:
        """Search once, and tell what it took."""
        served = processor_seconds(self.server) if self.server else 0.0
        wall, program = time.perf_counter(), time.process_time()
        found = self.search(number)
        program, wall = time.process_time() - program, time.perf_counter() - wall
        served = processor_seconds(self.server) - served if self.server else 0.0
        return Spent(program * 1000, served * 1000, wall * 1000), found


def open_postgres_store(shelf: Shelf, stack: ExitStack, kind: str) -> Peer:
    """Fill LangGraph's store, with an exact search or with its default index."""
    store_of = importlib.import_module("langgraph.store.postgres").PostgresStore
    put = importlib.import_module("langgraph.store.base").PutOp
    known = shelf.embed()
    name = f"store_{kind}{shelf.label}"
    asyncio.run(ensure_database(shelf.cluster.dsn(), name))
    index: dict[str, Any] = {
        "dims": DIMENSIONS,
        "embed": lambda texts: [known[text] for text in texts],
        "fields": ["text"],
    }
    if kind == "flat":
        index["ann_index_config"] = {"kind": "flat"}
    store = stack.enter_context(store_of.from_conn_string(shelf.cluster.dsn(name), index=index))
    store.setup()
    chunks = range(0, len(shelf.texts), CHUNK)
    for start in track(chunks, f"PostgresStore, {kind}", console=console, transient=True):
        pairs = enumerate(shelf.texts[start : start + CHUNK], start)
        store.batch([put((USER, "notes"), str(number), {"text": text}) for number, text in pairs])
    store.conn.execute("vacuum analyze")

    def search(number: int) -> list[str]:
        found = store.search((USER, "notes"), query=shelf.cues[number], limit=shelf.limit)
        return [item.value["text"] for item in found]

    return Peer(search, store.conn.info.backend_pid)


def open_chroma(shelf: Shelf, where: dict[str, str] | None) -> Peer:
    """Fill a collection on disk; a filter names the owner of all that it holds."""
    chroma = importlib.import_module("chromadb")
    settings = importlib.import_module("chromadb.config").Settings(anonymized_telemetry=False)
    client = chroma.PersistentClient(str(shelf.folder / f"chroma-{bool(where)}"), settings=settings)
    space = {"hnsw:space": "cosine"}
    collection = client.create_collection("notes", embedding_function=None, metadata=space)
    chunks = range(0, len(shelf.texts), CHUNK)
    for start in track(chunks, "Chroma", console=console, transient=True):
        texts = list(shelf.texts[start : start + CHUNK])
        ids = [str(number) for number in range(start, start + len(texts))]
        vectors = shelf.vectors[start : start + CHUNK]
        collection.add(ids=ids, embeddings=vectors, documents=texts, metadatas=[{"user": USER}] * len(texts))

    def search(number: int) -> list[str]:
        found = collection.query(
            query_embeddings=[shelf.cue_vectors[number]], n_results=min(shelf.limit, len(shelf.texts)), where=where
        )
        return list(found["documents"][0])

    return Peer(search)


def open_mem0(shelf: Shelf) -> Peer:
    """Fill mem0 with its store in the process; one by one, as it is filled."""
    os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none", "MEM0_DIR": str(shelf.folder / "mem0")}
    known = shelf.embed()
    qdrant = {"path": str(shelf.folder / "qdrant"), "collection_name": "notes", "embedding_model_dims": DIMENSIONS}
    vector_store = {"provider": "qdrant", "config": qdrant | {"on_disk": True}}
    config = {"vector_store": vector_store, "history_db_path": str(shelf.folder / "history.db")}
    memory = importlib.import_module("mem0").Memory.from_config(config)
    memory.embedding_model = SimpleNamespace(
        config=SimpleNamespace(embedding_dims=DIMENSIONS),
        embed=lambda text, *_, **__: known[text],
        embed_batch=lambda texts, *_, **__: [known[text] for text in texts],
    )
    for text in track(shelf.texts, "mem0", console=console, transient=True):
        memory.add(text, user_id=USER, infer=False)

    def search(number: int) -> list[str]:
        found = memory.search(shelf.cues[number], filters={"user_id": USER}, top_k=shelf.limit)
        return [each["memory"] for each in found["results"]]

    return Peer(search)


def open_bare(shelf: Shelf, stack: ExitStack) -> Peer:
    """Search by vector alone in the plain tables of the yardstick."""
    asyncio.run(ensure_database(shelf.cluster.dsn(), "bare"))
    bare = Bare(shelf.cluster.dsn("bare"))
    stack.callback(bare.connection.close)
    bare.fill(1, [("", text) for text in shelf.texts], shelf.vectors)
    bare.connection.execute("vacuum analyze")

    def search(number: int) -> list[str]:
        bare.search(1, shelf.cues[number], shelf.cue_vectors[number])
        return []

    return Peer(search, bare.connection.info.backend_pid)


OPENERS: dict[str, Callable[[Shelf, ExitStack], Peer]] = {
    "bare": open_bare,
    "PostgresStore, exact": lambda shelf, stack: open_postgres_store(shelf, stack, "flat"),
    "PostgresStore, default index": lambda shelf, stack: open_postgres_store(shelf, stack, "hnsw"),
    "Chroma": lambda shelf, _: open_chroma(shelf, None),
    "Chroma, filtered": lambda shelf, _: open_chroma(shelf, {"user": USER}),
    "mem0": lambda shelf, _: open_mem0(shelf),
}


def compare(peers: dict[str, Peer], ours: Side, rounds: int) -> dict[str, dict[str, float]]:
    """Ask all in turns."""
    spent: dict[str, list[dict[str, Any]]] = {}
    exact = 0
    for number in track(range(rounds + WARMING), "searches", console=console):
        found: dict[str, list[str]] = {}
        for name, peer in peers.items():
            taken, found[name] = peer.measure(number)
            spent.setdefault(name, []).append(asdict(taken))
        for name, channels in (("Recollect", []), ("Recollect, vector alone", ["vector"])):
            spent.setdefault(name, []).append(ours("recall", scope="notes", number=number, channels=channels))
        right = set(found.get("PostgresStore, exact", ()))
        exact += len(right.intersection(found.get("PostgresStore, default index", ())))
    figures = {name: sum_up(taken) for name, taken in spent.items()}
    if "PostgresStore, default index" in figures:
        figures["PostgresStore, default index"]["right"] = exact / (WINNERS * (rounds + WARMING))
    return figures


def main() -> None:
    """Fill every store, ask all in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scope", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--peers", nargs="+", choices=list(OPENERS), default=list(OPENERS))
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder("peers"))
        pairs, cues, vectors, cue_vectors = asyncio.run(prepare(folder, asked.scope, asked.rounds + WARMING))
        cluster = stack.enter_context(Cluster(folder / "postgres", settings=ONE_PROCESS))
        # Numbered, because some stores keep equal texts once.
        texts = [f"{speaker}: {content} #{number}" for number, (speaker, content) in enumerate(pairs)]
        shelf = Shelf(texts, vectors, cues, cue_vectors, folder, cluster)
        ours = stack.enter_context(open_sides("", folder))["now"]
        ours("load", scope="notes", count=asked.scope)
        ours("vacuum")
        peers = {name: OPENERS[name](shelf, stack) for name in asked.peers}
        figures = compare(peers, ours, asked.rounds)
    OUT.mkdir(exist_ok=True)
    (OUT / "peers.json").write_text(json.dumps(figures, indent=1))
    print_figures(figures)


def print_figures(figures: dict[str, dict[str, float]]) -> None:
    """Print what a search took, and how a recall compares with it."""
    table = Table("", "program ms", "server ms", "both", "wall", "Recollect, of it", "right of ten")
    ours = figures["Recollect"]["cpu"]
    for name, row in figures.items():
        cells = [f"{row[key]:.2f}" for key in ("program", "server", "cpu", "wall")]
        table.add_row(name, *cells, f"{ours / row['cpu']:.2f} x", f"{row['right']:.1%}" if "right" in row else "")
    console.print(table)


if __name__ == "__main__":
    main()

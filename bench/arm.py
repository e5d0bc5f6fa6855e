"""One checkout of Recollect on a server of its own, told line by line what to do: the other side of bench/yardstick.py.

It runs with the code of whatever checkout is first on PYTHONPATH, so it uses only what every version has.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import uvloop
from pgvector.psycopg import register_vector_async

import filler
from ground import DIMENSIONS, ONE_PROCESS, open_folder, processor_seconds, running
from recollect import Mind, NewMemory, Recollect
from recollect.doors.imports.files import read_documents
from recollect.models import Cue
from recollect.models.conversations import NewMessage
from recollect.models.imports import FileImport, Format
from recollect.models.memories import Role
from recollect.store.embedded.cluster import Cluster
from space import VECTORS

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHUNK = 2_000
ROLES = (Role.USER, Role.ASSISTANT)
HELD = {
    "memories": (
        "scope_id, kind, content, speaker, importance, subject, predicate, object, idle, depth, keywords, origin, "
        "trust, case when kind = 'message' then occurred_at end, embedding_text, metadata, withheld, expires_at"
    ),
    "memory_features": (
        "scope_id, kind, importance, length, tells, pinned, speaker, conversation_id, role, number, state, origin"
    ),
    # The weights of messages depend on which conversations came before, and these came side by side.
    "memory_terms": "scope_id, kind, trust, terms, case when kind = 'event' then weights end, draw",
    VECTORS: "scope_id, kind, trust, idle, importance, embedding",
    "messages": (
        "scope_id, conversation_id, number, parent_id is null, role, status, occurred_at, tokens, images, parts, "
        "attachments, external_id"
    ),
    "conversations": "scope_id, id, name, state, last_number, metadata, created_at, updated_at",
    "scopes": "id, memory_count, event_count, term_count",
    "pending_embeddings": "scope_id",
    "changes": "scope_id, operation, unnest(ids) is null",
}
"""What both sides must hold alike."""


class Arm:
    """The scopes of one checkout, and what is asked of them."""

    def __init__(self, recollect: Recollect, folder: Path) -> None:
        self.recollect = recollect
        if (folder / "texts.json").exists():
            self.texts: list[tuple[str, str]] = json.loads((folder / "texts.json").read_text())
            self.cues: list[str] = json.loads((folder / "cues.json").read_text())
            self.vectors = np.load(folder / "vectors.npy", mmap_mode="r")
            self.cue_vectors = np.load(folder / "cue_vectors.npy")
        self.watcher = psycopg.connect(recollect.addresses.owner, autocommit=True)
        self.minds: dict[str, Mind] = {}
        self.folder = folder
        self.new: list[NewMemory] = []
        self.loaded: list[UUID] = []
        self.ready: filler.Ready = []
        self.owner: psycopg.AsyncConnection[Any] | None = None

    async def mind(self, name: str) -> Mind:
        """Open a scope once."""
        if name not in self.minds:
            self.minds[name] = await self.recollect.mind(name)
        return self.minds[name]

    async def load(self, scope: str, count: int) -> None:
        """Load the first texts into a scope, one after the other over a year."""
        mind = await self.mind(scope)
        for start in range(0, count, CHUNK):
            new = [
                NewMemory(
                    self.texts[number][1],
                    speaker=self.texts[number][0],
                    occurred_at=NOW - timedelta(days=365) * ((count - number) / count),
                    embedding=self.vectors[number].tolist(),
                )
                for number in range(start, min(count, start + CHUNK))
            ]
            await mind.load(new)

    async def vacuum(self) -> None:
        """Bring the tables into the state that they have after a while."""
        with psycopg.connect(self.recollect.addresses.owner, autocommit=True) as connection:
            connection.execute("vacuum analyze")

    async def recall(self, scope: str, number: int, channels: list[str]) -> list[str]:
        """Recall by one cue, with its vector given."""
        vector = self.cue_vectors[number].tolist()
        cue = Cue(self.cues[number], embedding=vector, channels=tuple(channels), touch=True, now=NOW)
        found = await (await self.mind(scope)).recall(cue)
        return [hit.memory.content for hit in found.hits]

    async def append(self, scope: str, number: int, size: int) -> None:
        """Append one turn to a conversation."""
        said = [
            NewMessage(
                role=ROLES[place % 2],
                content=self.texts[number + place][1],
                name=self.texts[number + place][0],
                embedding=self.vectors[number + place].tolist(),
            )
            for place in range(size)
        ]
        await (await self.mind(scope)).conversation(f"c{number % 20}").append(said)

    async def append_at_once(self, scopes: int, writers: int, turns: int, first: int) -> None:
        """Let writers append turns at the same time, each to conversations of its own."""

        async def write(writer: int) -> None:
            for turn in range(turns):
                await self.append(f"busy-{writer % scopes}", (first + writer + turn * writers) * 2, 2)

        await asyncio.gather(*[write(writer) for writer in range(writers)])

    async def remember(self, scope: str, number: int) -> None:
        """Remember one event."""
        speaker, content = self.texts[number]
        await (await self.mind(scope)).remember(
            NewMemory(content, speaker=speaker, embedding=self.vectors[number].tolist())
        )

    async def make(self, first: int, count: int) -> None:
        """Make the memories of the next bulk load."""
        self.new = filler.memories(first, count, np.random.default_rng(first), DIMENSIONS)

    async def load_made(self) -> None:
        """Load what was made."""
        self.loaded = await (await self.mind("loaded")).load(self.new)

    async def fetch_loaded(self) -> None:
        """Read what was loaded as rows that are ready to be copied into another scope."""
        twin = await self.mind("copied")
        await twin.remember("the first memory makes the scope")
        scope_id = (await filler.place_of(self.recollect, twin)).scope_id or 0
        async with await psycopg.AsyncConnection.connect(self.recollect.addresses.owner) as connection:
            await register_vector_async(connection)
            self.ready = await filler.fetch_rows(connection, self.loaded, scope_id)
        if self.owner is None:
            self.owner = await psycopg.AsyncConnection.connect(self.recollect.addresses.owner, autocommit=True)
            await register_vector_async(self.owner)

    async def copy_ready(self) -> None:
        """Copy the ready rows with the driver's own COPY, past every policy."""
        assert self.owner
        await filler.copy_bare(self.owner, self.ready)

    async def bring(self, file: str) -> int:
        """Import a file of ChatGPT, and return how many messages came over."""
        documents = read_documents(self.folder / file, Format.CHATGPT)
        wanted = FileImport(Format.CHATGPT, "imported", "li")
        return (await self.recollect.operator.imports.file(wanted, "default", documents, lambda *_: None)).messages

    async def digest(self) -> dict[str, str]:
        """Hash what the tables hold, without ids and the times of writing."""
        found: dict[str, str] = {}
        for table, columns in HELD.items():
            query = f"select sum(hashtextextended(row::text, 0)) from (select {columns} from {table}) row"
            found[table] = str(self.watcher.execute(query).fetchone())
        return found

    def server_seconds(self) -> dict[int, float]:
        """Read the processor time of every backend that serves us."""
        query = "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
        seconds: dict[int, float] = {}
        for (pid,) in self.watcher.execute(query).fetchall():
            with suppress(FileNotFoundError, ProcessLookupError):  # a backend may end between the two looks
                seconds[pid] = processor_seconds(pid)
        return seconds

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Do as a line says, and tell what it took."""
        call = getattr(self, order.pop("call"))
        before = self.server_seconds()
        wall, program = time.perf_counter(), time.process_time()
        answer = await call(**order)
        program, wall = time.process_time() - program, time.perf_counter() - wall
        server = sum(seconds - before.get(pid, 0.0) for pid, seconds in self.server_seconds().items())
        return {"program": program * 1000, "server": server * 1000, "wall": wall * 1000, "answer": answer}


async def main() -> None:
    """Open a server, say that it is ready, then obey."""
    folder = Path(sys.argv[1])
    with open_folder("arm") as data, Cluster(data / "postgres", settings=ONE_PROCESS) as cluster:
        async with running(cluster, "arm") as recollect:
            arm = Arm(recollect, folder)
            answers = os.fdopen(os.dup(1), "w", buffering=1)
            os.dup2(2, 1)  # what others print must not stand among the answers
            answers.write("{}\n")
            for line in sys.stdin:
                answers.write(json.dumps(await arm.obey(json.loads(line))) + "\n")


if __name__ == "__main__":
    uvloop.run(main())

"""One checkout of Recollect with a server of its own, full of memories, for bench/load.py to put load on.

It runs with the code of whatever checkout is first on PYTHONPATH, so it uses only what every version has.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
import uvloop

from ground import DIMENSIONS, ONE_PROCESS, NoEmbedder, open_folder
from recollect import NewMemory, Recollect, Settings
from recollect.llm.build import has_minilm
from recollect.mind.service import Addresses
from recollect.models.service import Right
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare

DATABASE = "load"


@dataclass(frozen=True)
class Named(NoEmbedder):
    """The space of the local model, without the model: every vector is given here."""

    model: str = "all-MiniLM-L6-v2@1" if has_minilm() else "bench@1"
    dimensions: int = DIMENSIONS


async def fill(recollect: Recollect, folder: Path, scopes: int, memories: int) -> None:
    """Load every scope."""
    texts = json.loads((folder / "texts.json").read_text())
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    for scope in range(scopes):
        mind = await recollect.mind("load", f"u{scope}")
        numbers = range(scope * memories, (scope + 1) * memories)
        await mind.load([NewMemory(texts[n][1], speaker=texts[n][0], embedding=vectors[n].tolist()) for n in numbers])
    with psycopg.connect(recollect.addresses.owner, autocommit=True) as connection:
        connection.execute("vacuum analyze")


async def main() -> None:
    """Open a server, fill it, say where it is, and keep it until the input ends."""
    folder, scopes, memories = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with open_folder("load") as data, Cluster(data / "postgres", settings=ONE_PROCESS) as cluster:
        await ensure_database(cluster.dsn(), DATABASE)
        addresses = Addresses(cluster.dsn(DATABASE, "recollect_service"), cluster.dsn(DATABASE))
        await prepare(addresses, Named())
        async with connected(Settings(request_timeout_seconds=120), addresses, None) as recollect:
            await fill(recollect, folder, scopes, memories)
            caller = await recollect.operator.act_for("default")
            _, secret = await recollect.create_key(caller, "load", tuple(Right), 100)
        sys.stdout.write(json.dumps({"service": addresses.service, "owner": addresses.owner, "key": secret}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    uvloop.run(main())

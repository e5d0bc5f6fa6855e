"""Write the whole schema as one file, as the migrations leave it: `python tools/schema.py` after a new migration."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import psycopg

from recollect.store.database.migrate import migrate
from recollect.store.embedded.account import find_programs
from recollect.store.embedded.cluster import Cluster
from support.programs.folders import open_folder

SCHEMA = Path(__file__).parents[1] / "src" / "recollect" / "store" / "database" / "schema.sql"
HEADING = (
    "-- The whole schema as all migrations leave it, made by `make schema`; the job engine's objects are left out.\n"
)
OBJECT = re.compile(r"^--\n-- Name: .*\n--\n", re.MULTILINE)
NOISE = re.compile(r"^(\\.*|SET .*|--.*)$\n?", re.MULTILINE)
FOREIGN = re.compile(r"procrastinate|schema_migrations|EXTENSION|SCHEMA public FROM|SCHEMA public TO PUBLIC")


def dump(dsn: str) -> str:
    """Describe a database's own objects, separated by empty lines."""
    command = [str(find_programs() / "pg_dump"), "--schema-only", "--no-owner", "--dbname", dsn]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    objects = [NOISE.sub("", part).strip() for part in OBJECT.split(text)[1:]]
    return HEADING + "\n\n".join(each for each in objects if each and not FOREIGN.search(each)) + "\n"


def main() -> None:
    with open_folder("schema") as folder, Cluster(folder / "postgres") as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("create database fresh")
        asyncio.run(migrate(cluster.dsn("fresh")))
        SCHEMA.write_text(dump(cluster.dsn("fresh")), encoding="utf-8")
    sys.stdout.write(f"{SCHEMA} written\n")


if __name__ == "__main__":
    main()

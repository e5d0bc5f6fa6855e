"""The yardstick: what PostgreSQL and pgvector alone need for the searches and the insert that a memory is made of.

Plain tables of its own, in a database of its own, with prepared statements and no policies: no change of our schema
touches it. It is not changed, so that figures of different times compare.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector
from pgvector.psycopg import register_vector

from ground import processor_seconds
from recollect.core.text.terms import analyse, analyse_cue

Vectors = NDArray[np.float32]
CANDIDATES, WINNERS = 200, 10
SLOTS = 1_000_000_000
SATURATION, LENGTH_SHARE = 1.2, 0.75
"""BM25's two constants."""
TABLES = """
create extension if not exists vector;
create table bare_vectors (
    scope_id bigint, id bigint, kind smallint, importance real, embedding halfvec(384),
    primary key (scope_id, id) include (kind, importance, embedding)
);
alter table bare_vectors alter embedding set storage plain;
create table bare_terms (
    scope_id bigint, id bigint, kind smallint, terms bigint[], weights sparsevec(1000000000), primary key (scope_id, id)
);
create index bare_terms_by_term on bare_terms using gin (terms);
create table bare_memories (
    scope_id bigint, id bigint, kind smallint, created_at timestamptz default now(), importance real, speaker text,
    content text, primary key (scope_id, id)
);
create table bare_accesses (scope_id bigint, id bigint, last_accessed_at timestamptz, primary key (scope_id, id));
create table bare_keywords (scope_id bigint, keyword text, id bigint, primary key (scope_id, keyword, id));
"""
VECTOR = """
select id, -(embedding <#> %(vector)s) from bare_vectors where scope_id = %(scope)s
order by embedding <#> %(vector)s limit 200
"""
TERMS = """
select id, -(weights <#> %(weights)s) from bare_terms where scope_id = %(scope)s and terms && %(terms)s
order by weights <#> %(weights)s limit 200
"""
ROWS = """
select id, kind, created_at, importance, speaker, content from bare_memories
where scope_id = %(scope)s and id = any (%(ids)s)
"""
INSERT = """
with memory as (
    insert into bare_memories (scope_id, id, kind, importance, speaker, content)
    values (%(scope)s, %(id)s, 0, 5, %(speaker)s, %(content)s)
), vector as (
    insert into bare_vectors values (%(scope)s, %(id)s, 0, 5, %(vector)s)
), term as (
    insert into bare_terms values (%(scope)s, %(id)s, 0, %(terms)s, %(weights)s)
), keyword as (
    insert into bare_keywords select %(scope)s, keyword, %(id)s from unnest(%(keywords)s::text[]) as keyword
)
insert into bare_accesses values (%(scope)s, %(id)s, now())
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """Milliseconds of processor time that a call took in the program and in the server, and how long it lasted."""

    program: float
    server: float
    wall: float


class Bare:
    """One connection to the plain tables."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=0)
        self.connection.execute(TABLES, prepare=False)
        register_vector(self.connection)
        self.frequencies: dict[int, Counter[str]] = {}
        self.sizes: dict[int, int] = {}

    def fill(self, scope: int, texts: Sequence[tuple[str, str]], vectors: Vectors) -> None:
        """Copy one scope into the tables."""
        counts = [Counter(analyse(f"{speaker} {content}")) for speaker, content in texts]
        average = sum(map(Counter.total, counts)) / len(counts)
        self.frequencies[scope] = Counter(term for counted in counts for term in counted)
        self.sizes[scope] = len(texts)
        tables = {
            "bare_vectors": [(scope, id_, 0, 5.0, HalfVector(vector)) for id_, vector in enumerate(vectors)],
            "bare_terms": [
                (scope, id_, 0, [hash_term(scope, term) for term in counted], weigh(counted, average))
                for id_, counted in enumerate(counts)
            ],
        }
        kinds = {
            "bare_vectors": "int8 int8 int2 float4 halfvec",
            "bare_terms": "int8 int8 int2 int8[] sparsevec",
            "bare_memories": "int8 int8 int2 float4 text text",
        }
        for table, rows in tables.items():
            with self.connection.cursor().copy(f"copy {table} from stdin (format binary)") as copy:  # type: ignore[arg-type]
                copy.set_types(kinds[table].split())
                for row in rows:
                    copy.write_row(row)
        columns = "(scope_id, id, kind, importance, speaker, content)"
        with self.connection.cursor().copy(f"copy bare_memories {columns} from stdin (format binary)") as copy:  # type: ignore[arg-type]
            copy.set_types(kinds["bare_memories"].split())
            for id_, (speaker, content) in enumerate(texts):
                copy.write_row((scope, id_, 0, 5.0, speaker, content))

    def search(self, scope: int, text: str, vector: Vectors) -> dict[str, Spent]:
        """Do what a recall needs of the engine: the nearest vectors, the best by terms, and ten rows."""
        terms = analyse_cue(text)
        weights = SparseVector({slot_of(term): self.rarity(scope, term) for term in terms}, SLOTS)
        hashes = [hash_term(scope, term) for term in terms]
        by_vector, nearest = self.run(VECTOR, {"scope": scope, "vector": HalfVector(vector)})
        by_terms, _ = self.run(TERMS, {"scope": scope, "weights": weights, "terms": hashes})
        rows, _ = self.run(ROWS, {"scope": scope, "ids": [row[0] for row in nearest[:WINNERS]]})
        return {"vector": by_vector, "text": by_terms, "rows": rows}

    def insert(self, scope: int, id_: int, said: tuple[str, str], vector: Vectors) -> Spent:
        """Insert what a memory is made of by one statement."""
        counted = Counter(analyse(" ".join(said)))
        parameters = {
            "scope": scope, "id": id_, "speaker": said[0], "content": said[1], "vector": HalfVector(vector),
            "terms": [hash_term(scope, term) for term in counted], "weights": weigh(counted, 20.0),
            "keywords": list(counted)[:5],
        }  # fmt: skip
        spent, _ = self.run(INSERT, parameters)
        return spent

    def run(self, query: str, parameters: dict[str, object]) -> tuple[Spent, list[tuple[int, ...]]]:
        """Run one statement, and say what it took."""
        server = self.connection.info.backend_pid
        wall, program, backend = time.perf_counter(), time.process_time(), processor_seconds(server)
        answer = self.connection.execute(query, parameters, binary=True)  # type: ignore[arg-type]
        rows = answer.fetchall() if answer.description else []
        spent = Spent(
            (time.process_time() - program) * 1000,
            (processor_seconds(server) - backend) * 1000,
            (time.perf_counter() - wall) * 1000,
        )
        return spent, rows

    def rarity(self, scope: int, term: str) -> float:
        """Say how rare a term is in a scope."""
        containing = self.frequencies[scope][term]
        return math.log(1 + (self.sizes[scope] - containing + 0.5) / (containing + 0.5))


def weigh(counted: Counter[str], average: float) -> SparseVector:
    """Weigh the terms of a text as BM25 does."""
    length = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * counted.total() / average)
    weights = {slot_of(term): count * (SATURATION + 1) / (count + length) for term, count in counted.items()}
    return SparseVector(weights, SLOTS)


def hash_term(scope: int, term: str) -> int:
    """Give a term of a scope its number."""
    return int.from_bytes(blake2b(f"{scope}\0{term}".encode(), digest_size=8).digest(), "big", signed=True)


def slot_of(term: str) -> int:
    """Give a term its place among the weights."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big") % SLOTS

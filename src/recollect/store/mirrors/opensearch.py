"""The mirror in OpenSearch: text with analysis of Chinese, Japanese and Korean, and vectors; one index per generation.

Documents are routed by their scope, so that a query goes to one shard. Their version is the scope's change number, so
that an older document never replaces a newer one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import OpenSearchException

from recollect.core.mirrors.questions import MirrorHits, MirrorQuestion, interleave
from recollect.core.mirrors.rows import MirrorBatch, MirroredRow, MirroredTable, RowKey
from recollect.errors import MirrorError
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import translate_engine_errors

NAME = "opensearch"
MAX_BYTES = 4_000_000
"""Maximum size of one request in bytes."""
PAGE = 500
MAX_IDS = 10_000
"""Maximum number of IDs in one query."""
APPLIED = frozenset({200, 201, 404, 409})
"""Done; nothing to delete; a newer document exists."""
WRITE_COUNT_KEY = "beats"
TOMBSTONES = "1h"
"""How long the version of a deleted document is known: earlier writes may arrive after the deletion."""


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The names and shards of indexes."""

    prefix: str = "recollect"
    shards: int = 4
    replicas: int = 1

    def name(self, generation: Generation) -> str:
        """Return the name of a generation's index."""
        return f"{self.prefix}-{generation.place}"


class OpenSearchMirror:
    """Memories in OpenSearch."""

    name = NAME
    tables = frozenset({MirroredTable.MEMORIES})

    def __init__(self, client: AsyncOpenSearch, layout: IndexLayout) -> None:
        self._client = client
        self._layout = layout

    async def create(self, generation: Generation) -> None:
        """Create the index of a generation, unless it exists."""
        index = self._layout.name(generation)
        with translate_engine_errors(NAME, OpenSearchException):
            if not await self._client.indices.exists(index=index):
                await self._client.indices.create(index=index, body=describe_index(self._layout, generation))
        await self._await_shards(generation)

    async def switch(self, generation: Generation) -> None:
        """Point the alias at the index of this generation, in addition to those of other servers."""
        index, alias = self._layout.name(generation), self._layout.prefix
        others = {"remove": {"index": f"{alias}-{generation.family}*", "alias": alias, "must_exist": False}}
        body = {"actions": [others, {"add": {"index": index, "alias": alias}}]}
        with translate_engine_errors(NAME, OpenSearchException):
            await self._client.indices.update_aliases(body=body)

    async def remove(self, generation: Generation) -> None:
        """Delete the index of a generation."""
        index = self._layout.name(generation)
        with translate_engine_errors(NAME, OpenSearchException):
            await self._client.indices.delete(index=index, params={"ignore_unavailable": "true"})

    async def apply(self, generation: Generation, batches: Sequence[MirrorBatch]) -> None:
        """Send present and gone rows; then write how far each scope was followed, and refresh for searches."""
        index = self._layout.name(generation)
        lines = (line for batch in batches for line in write_changes(index, batch))
        for body in pack(lines):
            await self._bulk(body)
        marks = [write_position(index, batch) for batch in batches]
        # Searches see earlier changes together with them: they are on the same shards.
        await self._bulk("".join(marks), refresh=True)

    async def read_positions(self, generation: Generation, scopes: Sequence[int]) -> dict[int, int]:
        """Read the positions that were written last."""
        asked = [{"_id": str(scope_id), "routing": str(scope_id)} for scope_id in scopes]
        found = await self._get(generation, asked)
        return {int(each["_id"]): each["_source"]["position"] for each in found}

    async def find_held(self, generation: Generation, scope_id: int, keys: Sequence[RowKey]) -> set[RowKey]:
        """Search for these rows."""
        held: set[RowKey] = set()
        for first in range(0, len(keys), MAX_IDS):
            wanted = [str(key.id) for key in keys[first : first + MAX_IDS]]
            body = {"size": len(wanted), "query": among(scope_id, wanted), "_source": ["id"]}
            answer = await self._search(generation, scope_id, body)
            held |= {RowKey(MirroredTable.MEMORIES, read_id(hit)) for hit in answer["hits"]["hits"]}
        return held

    async def walk(self, generation: Generation, scope_id: int) -> AsyncIterator[Sequence[MirroredRow]]:
        """Read all documents of a scope, in the order of their ids."""
        await self._await_shards(generation)
        body: dict[str, Any] = {"size": PAGE, "query": among(scope_id), "sort": [{"id": "asc"}]}
        while True:
            hits = (await self._search(generation, scope_id, body))["hits"]["hits"]
            if not hits:
                return
            yield [to_row(hit["_source"]) for hit in hits]
            body["search_after"] = hits[-1]["sort"]

    async def search_mirror(self, generation: Generation, question: MirrorQuestion) -> MirrorHits:
        """Search by words and by meaning, and read how far the scope was followed, in one request."""
        head = {"index": self._layout.name(generation), "routing": str(question.scope_id)}
        bodies = [*write_searches(question), find_position(question.scope_id)]
        lines = [json.dumps(each) for body in bodies for each in (head, body)]
        with translate_engine_errors(NAME, OpenSearchException):
            answer = await self._client.msearch(body="\n".join(lines) + "\n")
        responses = answer.get("responses", ())
        if len(responses) != len(bodies):
            raise MirrorError("OpenSearch returned a partial result.")
        *found, marks = [require_whole(each)["hits"]["hits"] for each in responses]
        position = marks[0]["_source"]["position"] if marks else 0
        return MirrorHits(interleave([[read_id(hit) for hit in hits] for hits in found], question.limit), position)

    async def store_write_count(self, generation: Generation, beats: int) -> None:
        """Store how many times it was written to."""
        index = self._layout.name(generation)
        await self._bulk(write_mark(index, WRITE_COUNT_KEY, {"position": beats}, beats))

    async def read_beats(self, generation: Generation) -> int:
        """Read how many times it was written to."""
        found = await self._get(generation, [{"_id": WRITE_COUNT_KEY, "routing": WRITE_COUNT_KEY}])
        return found[0]["_source"]["position"] if found else 0

    async def close_mirror(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _bulk(self, body: str, *, refresh: bool = False) -> None:
        """Send changes; a change that is not acknowledged is an error."""
        with translate_engine_errors(NAME, OpenSearchException):
            answer = await self._client.bulk(body=body, params={"refresh": "true"} if refresh else {})
        outcomes = [outcome for item in answer.get("items", ()) for outcome in item.values()]
        wanted = sum(line.startswith(('{"index"', '{"delete"')) for line in body.splitlines())
        refused = [outcome["status"] for outcome in outcomes if outcome["status"] not in APPLIED]
        if refused or len(outcomes) != wanted:
            raise MirrorError(f"OpenSearch did not accept all changes ({refused[:1] or 'a partial answer'}).")

    async def _get(self, generation: Generation, asked: Sequence[Mapping[str, str]]) -> list[Any]:
        """Get documents by ID, in the last written state."""
        if not asked:
            return []
        with translate_engine_errors(NAME, OpenSearchException):
            answer = await self._client.mget(index=self._layout.name(generation), body={"docs": list(asked)})
        docs = answer.get("docs", ())
        if len(docs) != len(asked) or any("error" in each for each in docs):
            raise MirrorError("OpenSearch returned a partial result.")
        return [each for each in docs if each["found"]]

    async def _search(self, generation: Generation, scope_id: int, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        index = self._layout.name(generation)
        with translate_engine_errors(NAME, OpenSearchException):
            answer = await self._client.search(index=index, body=body, params={"routing": str(scope_id)})
        return require_whole(answer)

    async def _await_shards(self, generation: Generation) -> None:
        """Wait until the index is open: a node answers before its shards are, as if they were empty."""
        index = self._layout.name(generation)
        wanted = {"wait_for_status": "yellow", "wait_for_no_initializing_shards": "true"}
        with translate_engine_errors(NAME, OpenSearchException):
            answer = await self._client.cluster.health(index=index, params=wanted)
        if answer.get("timed_out", True):
            raise MirrorError("The mirror opensearch has shards that are not open.")


def describe_index(layout: IndexLayout, generation: Generation) -> dict[str, Any]:
    """Describe the index of a generation: only the fields named here are stored."""
    properties: dict[str, Any] = {
        **{name: {"type": "keyword"} for name in ("scope", "id", "kind", "speaker")},
        "occurred_at": {"type": "date"},
        "position": {"type": "long"},
        "text": {"type": "text", "analyzer": "english", "fields": {"cjk": {"type": "text", "analyzer": "cjk"}}},
    }
    if generation.space is not None:
        properties["vector"] = {
            "type": "knn_vector",
            "dimension": generation.space.dimensions,
            "space_type": "innerproduct",
            "method": {"name": "hnsw", "engine": "lucene", "parameters": {"m": 16, "ef_construction": 128}},
        }
    settings = {
        "number_of_shards": layout.shards,
        "number_of_replicas": layout.replicas,
        "knn": generation.space is not None,
        "gc_deletes": TOMBSTONES,
    }
    mappings = {"dynamic": "strict", "_routing": {"required": True}, "properties": properties}
    return {"settings": {"index": settings}, "mappings": mappings}


def among(scope_id: int, ids: Sequence[str] | None = None) -> dict[str, Any]:
    """Write the condition that all searches have: this scope, and the given IDs if there are any."""
    named: list[dict[str, Any]] = [{"term": {"scope": str(scope_id)}}, {"exists": {"field": "id"}}]
    return {"bool": {"filter": named if ids is None else [*named, {"terms": {"id": list(ids)}}]}}


def write_searches(question: MirrorQuestion) -> list[dict[str, Any]]:
    """Write the searches for a query: by words, and by meaning if it has a vector."""
    only = among(question.scope_id, None if question.allowed is None else [str(each) for each in question.allowed])
    shown = {"size": question.limit, "_source": ["id"]}
    searches: list[dict[str, Any]] = []
    if question.vector is not None:
        near = {"vector": question.vector.tolist(), "k": question.limit, "filter": only}
        searches.append({**shown, "query": {"knn": {"vector": near}}})
    if question.text:
        words = {"query": question.text, "fields": ["text", "text.cjk"], "type": "most_fields"}
        searches.append({**shown, "query": {"bool": {"must": [{"multi_match": words}], **only["bool"]}}})
    return searches


def find_position(scope_id: int) -> dict[str, Any]:
    """Write the search for how far a scope was followed, as other searches see it."""
    return {"size": 1, "query": {"ids": {"values": [str(scope_id)]}}, "_source": ["position"]}


def require_whole(answer: Any) -> Any:  # noqa: ANN401 - JSON
    """Refuse an answer in which not every shard has answered in time: it would be incomplete."""
    shards = answer.get("_shards", {})
    partial = shards.get("failed", 1) or shards.get("successful") != shards.get("total")
    if partial or answer.get("timed_out", True):
        raise MirrorError("OpenSearch returned a partial result.")
    return answer


def write_changes(index: str, batch: MirrorBatch) -> Iterator[str]:
    """Write the changes of a scope, each with its version there."""
    scope = str(batch.scope_id)
    for row in batch.present:
        values = {**row.values, "scope": scope, "id": str(row.id)}
        yield write_action("index", index, f"{scope}:{row.id}", scope, batch.version) + write_document(values)
    for key in batch.gone:
        yield write_action("delete", index, f"{scope}:{key.id}", scope, batch.version)


def write_position(index: str, batch: MirrorBatch) -> str:
    """Write how far a scope was followed: a document under the zero ID, which no memory has."""
    return write_mark(index, str(batch.scope_id), {"position": batch.position}, batch.position)


def write_mark(index: str, name: str, values: Mapping[str, Any], version: int) -> str:
    """Write a document that is not a memory."""
    return write_action("index", index, name, name, version) + write_document(values)


def write_action(action: str, index: str, identity: str, routing: str, version: int) -> str:
    """Write the line before a document."""
    told = {"_index": index, "_id": identity, "routing": routing, "version": version, "version_type": "external_gte"}
    return json.dumps({action: told}) + "\n"


def write_document(values: Mapping[str, Any]) -> str:
    """Write a document as one line."""
    return json.dumps(values, ensure_ascii=False, default=write_value) + "\n"


def write_value(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """Convert a value that JSON has no type for."""
    return value.tolist() if isinstance(value, np.ndarray) else value.isoformat()


def pack(lines: Iterator[str]) -> Iterator[str]:
    """Join lines into requests of limited size."""
    waiting: list[str] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= MAX_BYTES:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


def read_id(hit: Mapping[str, Any]) -> UUID:
    """Read the ID of a memory."""
    return UUID(hit["_source"]["id"])


def to_row(source: Mapping[str, Any]) -> MirroredRow:
    """Convert a document to a row."""
    values = {name: each for name, each in source.items() if name not in {"scope", "id"}}
    values["occurred_at"] = datetime.fromisoformat(values["occurred_at"])
    if "vector" in values:
        values["vector"] = np.array(values["vector"], dtype=np.float32)
    return MirroredRow(MirroredTable.MEMORIES, UUID(source["id"]), values)

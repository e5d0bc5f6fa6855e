"""The mirror in OpenSearch: text with analysis of Chinese, Japanese and Korean, and vectors; one index per filling.

Documents are routed by their scope, so that a question goes to one shard, and carry the scope's change number as their
version, so that an older one never takes the place of a newer one.
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

from recollect.core.mirrors.questions import MirrorQuestion, Proposed, take_turns
from recollect.core.mirrors.rows import Batch, MirroredRow, MirroredTable, RowKey
from recollect.errors import MirrorError
from recollect.store.mirrors.generations import Generation
from recollect.store.mirrors.mirror import told_as_ours

NAME = "opensearch"
MOST_BYTES = 4_000_000
"""How much is sent in one request."""
PAGE = 500
MOST_IDS = 10_000
"""How many ids one question names."""
APPLIED = frozenset({200, 201, 404, 409})
"""Done; nothing was there to delete; something newer is there."""
BEATS = "beats"
TOMBSTONES = "1h"
"""How long the version of a deleted document is known: what was sent before the deletion may come after it."""


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """How indexes are named and spread."""

    prefix: str = "recollect"
    shards: int = 4
    replicas: int = 1

    def name(self, generation: Generation) -> str:
        """Name the index of a generation."""
        return f"{self.prefix}-{generation.place}"


class OpenSearchMirror:
    """Memories in OpenSearch."""

    name = NAME
    tables = frozenset({MirroredTable.MEMORIES})

    def __init__(self, client: AsyncOpenSearch, layout: IndexLayout) -> None:
        self._client = client
        self._layout = layout

    async def create(self, generation: Generation) -> None:
        """Make the index of a generation, unless it is there."""
        index = self._layout.name(generation)
        with told_as_ours(NAME, OpenSearchException):
            if not await self._client.indices.exists(index=index):
                await self._client.indices.create(index=index, body=describe_index(self._layout, generation))
        await self._await_shards(generation)

    async def switch(self, generation: Generation) -> None:
        """Point the alias at the index of this generation, beside those of other servers."""
        index, alias = self._layout.name(generation), self._layout.prefix
        others = {"remove": {"index": f"{alias}-{generation.family}*", "alias": alias, "must_exist": False}}
        body = {"actions": [others, {"add": {"index": index, "alias": alias}}]}
        with told_as_ours(NAME, OpenSearchException):
            await self._client.indices.update_aliases(body=body)

    async def remove(self, generation: Generation) -> None:
        """Delete the index of a generation."""
        index = self._layout.name(generation)
        with told_as_ours(NAME, OpenSearchException):
            await self._client.indices.delete(index=index, params={"ignore_unavailable": "true"})

    async def apply(self, generation: Generation, batches: Sequence[Batch]) -> None:
        """Send what is present and what is gone; then, for searches to see, how far each scope was followed."""
        index = self._layout.name(generation)
        lines = (line for batch in batches for line in write_changes(index, batch))
        for body in pack(lines):
            await self._bulk(body)
        marks = [write_position(index, batch) for batch in batches]
        # What was sent before is seen with them: they lie on the same shards.
        await self._bulk("".join(marks), refresh=True)

    async def read_positions(self, generation: Generation, scopes: Sequence[int]) -> dict[int, int]:
        """Read the positions that were written last."""
        asked = [{"_id": str(scope_id), "routing": str(scope_id)} for scope_id in scopes]
        found = await self._get(generation, asked)
        return {int(each["_id"]): each["_source"]["position"] for each in found}

    async def find_held(self, generation: Generation, scope_id: int, keys: Sequence[RowKey]) -> set[RowKey]:
        """Search for these rows."""
        held: set[RowKey] = set()
        for first in range(0, len(keys), MOST_IDS):
            wanted = [str(key.id) for key in keys[first : first + MOST_IDS]]
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

    async def ask(self, generation: Generation, question: MirrorQuestion) -> Proposed:
        """Search by words and by meaning, and see how far the scope was followed, in one request."""
        head = {"index": self._layout.name(generation), "routing": str(question.scope_id)}
        bodies = [*write_searches(question), find_position(question.scope_id)]
        lines = [json.dumps(each) for body in bodies for each in (head, body)]
        with told_as_ours(NAME, OpenSearchException):
            answer = await self._client.msearch(body="\n".join(lines) + "\n")
        responses = answer.get("responses", ())
        if len(responses) != len(bodies):
            raise MirrorError("The mirror opensearch gave a partial answer.")
        *found, marks = [require_whole(each)["hits"]["hits"] for each in responses]
        position = marks[0]["_source"]["position"] if marks else 0
        return Proposed(take_turns([[read_id(hit) for hit in hits] for hits in found], question.limit), position)

    async def note_beat(self, generation: Generation, beats: int) -> None:
        """Note how many times it was written to."""
        index = self._layout.name(generation)
        await self._bulk(write_mark(index, BEATS, {"position": beats}, beats))

    async def read_beats(self, generation: Generation) -> int:
        """Read how many times it was written to."""
        found = await self._get(generation, [{"_id": BEATS, "routing": BEATS}])
        return found[0]["_source"]["position"] if found else 0

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _bulk(self, body: str, *, refresh: bool = False) -> None:
        """Send changes; what is not acknowledged one by one is an error."""
        with told_as_ours(NAME, OpenSearchException):
            answer = await self._client.bulk(body=body, params={"refresh": "true"} if refresh else {})
        outcomes = [outcome for item in answer.get("items", ()) for outcome in item.values()]
        wanted = sum(line.startswith(('{"index"', '{"delete"')) for line in body.splitlines())
        refused = [outcome["status"] for outcome in outcomes if outcome["status"] not in APPLIED]
        if refused or len(outcomes) != wanted:
            raise MirrorError(f"The mirror opensearch did not take all changes ({refused[:1] or 'a partial answer'}).")

    async def _get(self, generation: Generation, asked: Sequence[Mapping[str, str]]) -> list[Any]:
        """Get documents by their ids, as they were written last."""
        if not asked:
            return []
        with told_as_ours(NAME, OpenSearchException):
            answer = await self._client.mget(index=self._layout.name(generation), body={"docs": list(asked)})
        docs = answer.get("docs", ())
        if len(docs) != len(asked) or any("error" in each for each in docs):
            raise MirrorError("The mirror opensearch gave a partial answer.")
        return [each for each in docs if each["found"]]

    async def _search(self, generation: Generation, scope_id: int, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        index = self._layout.name(generation)
        with told_as_ours(NAME, OpenSearchException):
            answer = await self._client.search(index=index, body=body, params={"routing": str(scope_id)})
        return require_whole(answer)

    async def _await_shards(self, generation: Generation) -> None:
        """Wait until the index is open: a node answers before its shards are, as if they were empty."""
        index = self._layout.name(generation)
        wanted = {"wait_for_status": "yellow", "wait_for_no_initializing_shards": "true"}
        with told_as_ours(NAME, OpenSearchException):
            answer = await self._client.cluster.health(index=index, params=wanted)
        if answer.get("timed_out", True):
            raise MirrorError("The mirror opensearch has shards that are not open.")


def describe_index(layout: IndexLayout, generation: Generation) -> dict[str, Any]:
    """Describe the index of a generation: nothing is held but what is named here."""
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
    """Write the condition that all searches have: of this scope, and of these ids if some are named."""
    named: list[dict[str, Any]] = [{"term": {"scope": str(scope_id)}}, {"exists": {"field": "id"}}]
    return {"bool": {"filter": named if ids is None else [*named, {"terms": {"id": list(ids)}}]}}


def write_searches(question: MirrorQuestion) -> list[dict[str, Any]]:
    """Write the searches of a question: by words, and by meaning if it has a vector."""
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
    """Refuse an answer that not every shard has given in time: a part must not be taken for the whole."""
    shards = answer.get("_shards", {})
    partial = shards.get("failed", 1) or shards.get("successful") != shards.get("total")
    if partial or answer.get("timed_out", True):
        raise MirrorError("The mirror opensearch gave a partial answer.")
    return answer


def write_changes(index: str, batch: Batch) -> Iterator[str]:
    """Write the changes of a scope, each under the version that it has there."""
    scope = str(batch.scope_id)
    for row in batch.present:
        values = {**row.values, "scope": scope, "id": str(row.id)}
        yield write_action("index", index, f"{scope}:{row.id}", scope, batch.version) + write_document(values)
    for key in batch.gone:
        yield write_action("delete", index, f"{scope}:{key.id}", scope, batch.version)


def write_position(index: str, batch: Batch) -> str:
    """Write how far a scope was followed; the first document of its id, which no memory has."""
    return write_mark(index, str(batch.scope_id), {"position": batch.position}, batch.position)


def write_mark(index: str, name: str, values: Mapping[str, Any], version: int) -> str:
    """Write a document that is no memory."""
    return write_action("index", index, name, name, version) + write_document(values)


def write_action(action: str, index: str, identity: str, routing: str, version: int) -> str:
    """Write the line before a document."""
    told = {"_index": index, "_id": identity, "routing": routing, "version": version, "version_type": "external_gte"}
    return json.dumps({action: told}) + "\n"


def write_document(values: Mapping[str, Any]) -> str:
    """Write a document as one line."""
    return json.dumps(values, ensure_ascii=False, default=write_value) + "\n"


def write_value(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """Write what JSON has no word for."""
    return value.tolist() if isinstance(value, np.ndarray) else value.isoformat()


def pack(lines: Iterator[str]) -> Iterator[str]:
    """Join lines to requests of a bearable size."""
    waiting: list[str] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= MOST_BYTES:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


def read_id(hit: Mapping[str, Any]) -> UUID:
    """Read the id of a memory."""
    return UUID(hit["_source"]["id"])


def to_row(source: Mapping[str, Any]) -> MirroredRow:
    """Turn a document into a row."""
    values = {name: each for name, each in source.items() if name not in {"scope", "id"}}
    values["occurred_at"] = datetime.fromisoformat(values["occurred_at"])
    if "vector" in values:
        values["vector"] = np.array(values["vector"], dtype=np.float32)
    return MirroredRow(MirroredTable.MEMORIES, UUID(source["id"]), values)

"""LangGraph's long-term store on items: every batch of operations is one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
    validate_op_namespace,
)
from recollect_langchain.connection import Connection

from recollect.models import DropItem, FindItems, FoundItem, GetItem, ListPaths, PutItem
from recollect.models import Item as Kept

ROOT = "store"
"""What all paths begin with, so that checkpoints and other items of the scope are not listed."""
MAX_TEXT, MAX_QUERY = 32_000, 8_000
"""How many characters of a text, and of a query, the server takes; what is longer is sent up to there."""
Vectors = Mapping[str, Sequence[float]]


class RecollectStore(BaseStore):
    """A store in one scope; with an index texts are searched by meaning, by the server's embedder or by your own."""

    __slots__ = ("_connection", "_dimensions", "_embeddings", "_fields")

    def __init__(self, connection: Connection, *, index: IndexConfig | None = None) -> None:
        given = index or {}
        fields = given.get("fields") or ["$"]
        self._connection = connection
        self._fields = None if index is None else [fields] if isinstance(fields, str) else fields
        self._embeddings = ensure_embeddings(given["embed"]) if given.get("embed") else None
        self._dimensions = given.get("dims")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the reads on what was before, then the writes in their order, all or nothing."""
        asked = list(ops)
        vectors, cues = {}, {}
        if self._embeddings and (texts := self._texts(asked)):
            vectors = dict(zip(texts, self._embeddings.embed_documents(texts), strict=True))
        if self._embeddings:
            cues = {cue: self._embeddings.embed_query(cue) for cue in queries(asked)}
        operations = self._translate(asked, vectors, cues)
        answers = self._connection.mind.items.batch(operations) if operations else []
        return [read(op, answer) for op, answer in zip(asked, answers, strict=True)]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same from an event loop."""
        asked = list(ops)
        vectors, cues = {}, {}
        if self._embeddings and (texts := self._texts(asked)):
            vectors = dict(zip(texts, await self._embeddings.aembed_documents(texts), strict=True))
        if self._embeddings:
            cues = {cue: await self._embeddings.aembed_query(cue) for cue in queries(asked)}
        operations = self._translate(asked, vectors, cues)
        mind = await self._connection.open_mind()
        answers = await mind.items.batch(operations) if operations else []
        return [read(op, answer) for op, answer in zip(asked, answers, strict=True)]

    def _texts(self, ops: Sequence[Op]) -> list[str]:
        texts = (self._text(op) for op in ops if isinstance(op, PutOp))
        return list(dict.fromkeys(text for text in texts if text))

    def _text(self, put: PutOp) -> str:
        if self._fields is None or put.value is None or put.index is False:
            return ""
        fields = self._fields if put.index is None else put.index
        return "\n".join(text for field in fields for text in get_text_at_path(put.value, field)).strip()

    def _translate(self, ops: Sequence[Op], vectors: Vectors, cues: Vectors) -> list[Any]:
        for vector in (*vectors.values(), *cues.values()):
            if self._dimensions and len(vector) != self._dimensions:
                raise ValueError(f"embed gave {len(vector)} dimensions; the index says {self._dimensions}")
        return [self._operation(op, vectors, cues) for op in ops]

    def _operation(self, op: Op, vectors: Vectors, cues: Vectors) -> Any:  # noqa: ANN401 - one of five operations
        validate_op_namespace(op)
        if isinstance(op, GetOp):
            return GetItem((ROOT, *op.namespace), op.key)
        if isinstance(op, PutOp):
            return self._write(op, vectors)
        if isinstance(op, ListNamespacesOp):
            return to_paths(op)
        by_server = self._fields is not None and not self._embeddings
        meaning = (op.query or "").strip()[:MAX_QUERY] if by_server else ""
        vector = cues.get(op.query or "")
        where = dict(op.filter or {})
        return FindItems((ROOT, *op.namespace_prefix), where, meaning, vector, op.limit, op.offset)

    def _write(self, put: PutOp, vectors: Vectors) -> PutItem | DropItem:
        path = (ROOT, *put.namespace)
        if put.value is None:
            return DropItem(path, put.key)
        text = self._text(put)
        # A text with a vector of the caller's own needs no other: it stays out of the scope's memories.
        own = self._embeddings is not None
        cut = text[:MAX_TEXT]
        return PutItem(path, put.key, put.value, text=cut, embedding=vectors.get(text), memory=not own)


def queries(ops: Sequence[Op]) -> list[str]:
    """List what is searched by meaning, each once."""
    return list(dict.fromkeys(op.query for op in ops if isinstance(op, SearchOp) and op.query))


def to_paths(op: ListNamespacesOp) -> ListPaths:
    """Ask for namespaces as paths below the root."""
    ends: dict[str, tuple[str, ...]] = {}
    for condition in op.match_conditions or ():
        if condition.match_type in ends:
            raise ValueError(f"ask with one {condition.match_type} at a time")
        ends[condition.match_type] = tuple(condition.path)
    prefix, suffix = ends.get("prefix", ()), ends.get("suffix", ())
    # A suffix may not reach into the root: the namespace alone must have that many labels.
    missing = ("*",) * (len(suffix) - len(prefix))
    depth = None if op.max_depth is None else op.max_depth + 1
    return ListPaths((ROOT, *prefix, *missing), suffix, depth, op.limit, op.offset)


def read(op: Op, answer: Any) -> Result:  # noqa: ANN401 - what the operation answers
    """Turn an answer into LangGraph's own values."""
    if isinstance(op, GetOp):
        return None if answer is None else Item(**fields_of(answer))
    if isinstance(op, SearchOp):
        found: Sequence[FoundItem] = answer
        return [SearchItem(**fields_of(each.item), score=each.score) for each in found]
    if isinstance(op, ListNamespacesOp):
        return [path[1:] for path in answer]
    return None


def fields_of(kept: Kept) -> dict[str, Any]:
    """Name an item's parts as LangGraph does."""
    return {
        "namespace": kept.path[1:],
        "key": kept.key,
        "value": dict(kept.value),
        "created_at": kept.created_at,
        "updated_at": kept.updated_at,
    }

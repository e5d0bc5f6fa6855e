"""The sections of an export: which tables of a scope it holds, in which order, and what is left out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one table, one JSON object a line, in the order of their key."""

    room: str
    table: str
    key: tuple[str, ...]
    text: tuple[str, ...] = ()
    """The columns of the key that are sorted as text, byte by byte: a database may have an order of its own."""
    omitted: tuple[str, ...] = ()
    """Columns that the database computes, or that mean nothing elsewhere."""
    query: str = "rows"
    """The query that reads them."""

    @property
    def name(self) -> str:
        """Name the section as in the file, without its ending."""
        return f"{self.room}/{self.table}"


SECTIONS = (
    Section("memories", "memories", ("id",)),
    Section("memories", "memory_features", ("id",)),
    Section("memories", "memory_terms", ("id",), query="termed_rows"),
    Section("memories", "memory_keywords", ("keyword", "kind", "id"), ("keyword", "kind")),
    Section("memories", "keyword_strengths", ("kind", "keyword"), ("kind", "keyword")),
    Section("memories", "evidence", ("memory_id", "source_id")),
    Section("memories", "accesses", ("id",), query="folded_accesses"),
    Section("memories", "withheld_memories", ("id",), query="termed_rows"),
    Section("topics", "topics", ("id",)),
    Section("topics", "topic_links", ("topic_id", "memory_id")),
    Section("topics", "related_topics", ("topic_id", "memory_id", "related_id")),
    Section("conversations", "conversations", ("id",), ("id",), omitted=("updated_hour", "idle_hour", "running")),
    Section("conversations", "messages", ("id",)),
    Section("conversations", "past_messages", ("id",)),
    Section("conversations", "shown_memories", ("conversation_id", "memory_id"), ("conversation_id",)),
    Section("conversations", "purge_receipts", ("id",), omitted=("tenant_id",)),
    Section("knowledge", "runs", ("id",)),
    Section("knowledge", "segments", ("id",)),
    Section("knowledge", "extractions", ("segment_id", "run_id")),
    Section("knowledge", "entities", ("id",), omitted=("initials",)),
    Section("knowledge", "mentions", ("source_id", "entity_id", "normalised"), ("normalised",)),
    Section("knowledge", "entity_merges", ("absorbed_id", "merged_at")),
    Section("knowledge", "beliefs", ("id",), omitted=("withheld_for",)),
    Section("items", "items", ("path", "key"), ("path", "key")),
    Section("recall", "recalls", ("id",)),
    Section("agents", "feedback", ("recall_id", "memory_id")),
)
"""Rows of tables; each section comes after those that its rows refer to."""
PROFILE, COUNTERS = "agents/profile", "service/counters"
"""Two sections of one line: what the agent goes by, and the counters of the scope."""
VECTORS = "vectors/"
"""The beginning of sections with the vectors of one embedding space each, of which the name is the space's number."""
LEFT_OUT: Mapping[str, str] = {
    "access_log": "it is in accesses, added up",
    "awaited_mirrors": "of mirrors of another record",
    "change_readers": "readers of another log",
    "changes": "the log of another record: an import is logged as what it stores",
    "cold_objects": "of another object storage",
    "context_vectors": "with the vectors",
    "entity_vectors": "with the vectors",
    "idempotency_keys": "they repeat answers of another server, for some days",
    "job_effects": "of jobs that another server has done",
    "ledger": "what was paid was paid there",
    "mirror_positions": "of mirrors of another record",
    "pending_embeddings": "found again by what has no vector",
    "unmirrored": "of mirrors of another record",
    "withheld_vectors": "with the vectors",
}
"""Tables of a scope that have no section, and why."""


ERASED_FIRST = (
    *("access_log", "context_vectors", "entity_vectors", "idempotency_keys", "pending_embeddings"),
    "withheld_vectors",
)
"""What is erased with a scope beside its sections. Logs that hold numbers and ids alone stay, as in every erasure."""


KEPT_HOT = ("idempotency_keys", "purge_receipts")
"""What stays where a scope is when its rows go to object storage: a repeated write is known, and so is a receipt."""


def is_section(name: str) -> bool:
    """Tell whether an export may have a section of this name."""
    return name in KNOWN or (name.startswith(VECTORS) and name.isascii() and name.removeprefix(VECTORS).isdecimal())


KNOWN = {*(section.name for section in SECTIONS), PROFILE, COUNTERS}

"""The sections of an export: the tables of a scope in their order, and the tables that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one table, one JSON object per line, in the order of their key."""

    room: str
    table: str
    key: tuple[str, ...]
    text: tuple[str, ...] = ()
    """Columns of the key that are sorted as text, by bytes: the collation of a database may differ."""
    omitted: tuple[str, ...] = ()
    """Columns that the database computes, or that have no meaning in another database."""
    query: str = "rows"
    """The query that reads the rows."""

    @property
    def name(self) -> str:
        """Return the path of the section in the file, without its extension."""
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
    Section("conversations", "forgotten_messages", ("conversation_id", "external_hash"), ("conversation_id",)),
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
"""Tables; each section comes after the sections that its rows refer to."""
PROFILE, COUNTERS = "agents/profile", "service/counters"
"""Two sections with one line each: the settings of the agent, and the counters of the scope."""
VECTORS = "vectors/"
"""The prefix of sections with the vectors of one embedding space each; the number of the space follows."""
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
"""Tables of a scope that have no section, and the reason."""


ERASED_FIRST = (
    *("access_log", "context_vectors", "entity_vectors", "idempotency_keys", "pending_embeddings"),
    "withheld_vectors",
)
"""Tables that an erasure of a scope clears in addition to its sections. Logs with only numbers and IDs stay."""


RECENTLY_USED = ("idempotency_keys", "purge_receipts")
"""Tables that stay when the rows of a scope move to object storage, to recognize repeated writes and to keep
receipts."""


def is_section(name: str) -> bool:
    """Return whether an export may have a section of this name."""
    return name in KNOWN or (name.startswith(VECTORS) and name.isascii() and name.removeprefix(VECTORS).isdecimal())


KNOWN = {*(section.name for section in SECTIONS), PROFILE, COUNTERS}

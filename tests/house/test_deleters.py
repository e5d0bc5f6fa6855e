"""Every statement that deletes rows of tenants is listed with the operation that owns it; a new one fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "recollect"
DELETES = re.compile(
    r"\b(?:delete\s+from|truncate(?:\s+table)?|drop\s+table(?:\s+if\s+exists)?)\s+(?:only\s+)?([\w{}%.]+)"
)
PLACES = re.compile(r"^-- name: (\w+)$|^create (?:or replace )?function (\w+)", re.MULTILINE)
COMMENT = re.compile(r"--(?! name:)[^\n]*")
OTHERS = frozenset({
    "awaited_mirrors", "former_incarnations", "incarnations", "mirror_positions", "mirrors", "pg_statistic",
    "placements", "procrastinate_jobs", "readers", "staged_memories", "unmirrored",
})  # fmt: skip
"""Tables without data of a tenant: places, jobs, positions of mirrors, a table of one transaction."""
OWNERS = {
    "store/cold/tiers.sql delete {table}": "cold: rows leave after their object was read back",
    "store/cold/tiers.sql forget_object cold_objects": "cold: the object is removed",
    "store/conversations/lifecycle.sql close_purge conversations": "purge",
    "store/conversations/lifecycle.sql close_purge forgotten_messages": "purge",
    "0002_memories.sql erase_side_rows %I": "follows a deleted memory",
    "0002_memories.sql fold_accesses access_log": "adds up: the sum stays",
    "0002_memories.sql unfile keyword_strengths": "follows a deleted memory",
    "0002_memories.sql unfile memory_keywords": "follows a deleted memory",
    "0003_memories_spaces.sql erase_vectors %I": "follows a deleted memory",
    "0004_memories_withholding.sql erase_memories evidence": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql erase_memories feedback": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql erase_memories idempotency_keys": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql erase_memories memories": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql erase_memories messages": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql erase_memories past_messages": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql erase_memories withheld_memories": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql erase_memories withheld_vectors": "forget, purge, retention: the one function",
    "0004_memories_withholding.sql restore_memories withheld_memories": "moves rows back into the search",
    "0004_memories_withholding.sql restore_memories withheld_vectors": "moves rows back into the search",
    "0004_memories_withholding.sql withhold_memories %I": "moves rows out of the search",
    "0004_memories_withholding.sql withhold_memories accesses": "moves rows out of the search",
    "0004_memories_withholding.sql withhold_memories memory_terms": "moves rows out of the search",
    "0004_memories_withholding.sql withhold_memories pending_embeddings": "moves rows out of the search",
    "0005_topics.sql absorb_topic related_topics": "topics merge: links move",
    "0005_topics.sql absorb_topic topic_links": "topics merge: links move",
    "0005_topics.sql absorb_topic topics": "topics merge: links move",
    "0005_topics.sql drop_related_topics related_topics": "topics unlink",
    "0005_topics.sql follow_into_topics topic_links": "follows a changed memory",
    "0005_topics.sql tidy_topics topics": "an empty topic goes with its last memory",
    "0006_recall.sql erase_recalls_of recalls": "forget: saved recalls that name it",
    "0008_conversations.sql erase_follower_vectors %I": "purge: vectors of the messages after it",
    "0008_conversations.sql erase_follower_vectors context_vectors": "purge: vectors of the messages after it",
    "0008_conversations.sql erase_follower_vectors withheld_vectors": "purge: vectors of the messages after it",
    "0008_conversations.sql erase_messages messages": "follows a deleted memory",
    "0009_items.sql drop_items items": "items: deleted by their caller or by their time",
    "0010_knowledge.sql erase_extracted mentions": "follows a deleted memory",
    "0010_knowledge.sql erase_segments extractions": "forget, purge",
    "0010_knowledge.sql erase_segments segments": "forget, purge",
    "0011_knowledge_facts.sql drop_facts_to_rederive evidence": "forget: a fact without its source",
    "0011_knowledge_facts.sql drop_facts_to_rederive memories": "forget: a fact without its source",
    "0011_knowledge_facts.sql tidy_entities entities": "an entity goes with its last fact",
    "0016_service_upkeep.sql prune_kept api_keys": "retention of logs and expired keys",
    "0016_service_upkeep.sql prune_kept changes": "retention of logs and expired keys",
    "0016_service_upkeep.sql prune_kept idempotency_keys": "retention of logs and expired keys",
    "0016_service_upkeep.sql prune_kept ledger": "retention of logs and expired keys",
    "0016_service_upkeep.sql prune_kept recalls": "retention of logs and expired keys",
    "0016_service_upkeep.sql prune_kept shown_memories": "retention of logs and expired keys",
    "0017_knowledge_entities.sql drop_entity_vectors entity_vectors": "follows a changed entity",
    "0018_memories_versions.sql give_back_message past_messages": "undo of a correction",
    "0018_memories_versions.sql read_segment_again extractions": "enrichment reads a segment again",
    "store/imports/erasures.sql erase {table}": "erasure",
    "store/imports/exports.sql store_vectors pending_embeddings": "queue of vectors",
    "store/knowledge/entity_vectors.sql remove_pending pending_embeddings": "queue of vectors",
    "store/knowledge/reruns.sql drop_mentions mentions": "rerun: replaced by the new run",
    "store/memories/embeddings.sql remove_pending pending_embeddings": "queue of vectors",
    "store/memories/memories.sql forget memories": "forget",
    "store/memories/memories.sql release_claim idempotency_keys": "a failed write releases its key",
    "store/memories/spaces.sql delete_space embedding_spaces": "an embedding space is dropped",
    "store/memories/spaces.sql drop_vectors {vectors}": "an embedding space is dropped",
    "store/service/ledger.sql fold ledger": "adds up: the sum stays",
    "store/topics/topics.sql unlink topic_links": "topics unlink",
}
"""The operation, by file, query or function, and table."""


def find_deletes() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.sql")):
        if path.name == "schema.sql" and path.parent.name == "database":
            continue
        text = COMMENT.sub("", path.read_text(encoding="utf-8"))
        places = [(found.start(), found[1] or found[2]) for found in PLACES.finditer(text)]
        for found in DELETES.finditer(text):
            place = max((each for each in places if each[0] < found.start()), default=(0, ""))[1]
            if found[1] not in OTHERS:
                file = path.relative_to(SOURCE).as_posix().removeprefix("store/database/migrations/")
                yield f"{file} {place} {found[1]}"


def test_every_statement_that_deletes_has_an_owner():
    assert sorted({*find_deletes()}) == sorted(OWNERS)


def test_no_statement_hides_in_python():
    hidden = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r"(?i)[\"'(]\s*(delete from|truncate|drop table) ", path.read_text(encoding="utf-8"))
    ]
    assert hidden == []

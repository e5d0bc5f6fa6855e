"""Statements that put rows into tables which only a model or another engine fills, for every scope that there is."""

from __future__ import annotations

KNOWLEDGE = (
    "insert into entity_merges select scope_id, id, now(), gen_random_uuid() from entities",
    "insert into past_messages select * from messages",
    "insert into forgotten_messages select id, 'told', 'hash', gen_random_uuid() from scopes",
    """insert into segments (scope_id, conversation_id, first_number, last_number, ending)
       select id, 'told', 1, 2, 'asked' from scopes""",
    """insert into extractions (scope_id, segment_id, model, prompt_version, content)
       select scope_id, id, '', '', '{}' from segments where conversation_id = 'told'""",
    "insert into entities (scope_id, name, normalised, type) select id, 'Ann', 'ann', 'person' from scopes",
    """insert into mentions (scope_id, source_id, entity_id, normalised, name)
       select scope_id, gen_random_uuid(), id, 'ann', 'Ann' from entities""",
    """insert into beliefs (scope_id, id, lineage, version, created_at)
       select id, gen_random_uuid(), gen_random_uuid(), 1, now() from scopes""",
)
MIRRORS = (
    "insert into mirror_positions (scope_id, mirror, generation, position) select id, 'opensearch', 1, 1 from scopes",
    "insert into unmirrored (scope_id, number) select id, 1 from scopes",
    "insert into cold_objects (scope_id, name) select id, 'object' from scopes",
    "insert into awaited_mirrors select id, gen_random_uuid(), 'opensearch', 1 from scopes",
)

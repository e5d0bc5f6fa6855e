"""Facts written past every verb, so that a test decides on each of their times."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import psycopg

NOW = datetime.now(UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
ADD_ENTITY = "insert into entities (scope_id, id, name, normalised, type) values (%s, %s, %s, lower(%s), %s)"
ADD_MENTION = (
    "insert into mentions (scope_id, source_id, entity_id, normalised, name) values (%s, %s, %s, lower(%s), %s)"
)
ADD_MEMORY = (
    "insert into memories (scope_id, id, kind, content, importance, subject, predicate, object, origin, trust, "
    "occurred_at, created_at) values (%s, %s, 'fact', %s, 5, %s, %s, %s, 'test', %s, %s, %s)"
)
ADD_FEATURES = (
    "insert into memory_features (scope_id, id, kind, occurred_at, importance, length, tells, pinned, speaker, origin) "
    "values (%s, %s, 'fact', %s, 5, 1, 0, false, '', '')"
)
ADD_TERMS = (
    "insert into memory_terms (scope_id, id, kind, trust, terms, weights, draw) "
    "values (%s, %s, 'fact', %s, '{}', '{}/1000000000', 0)"
)
ADD_BELIEF = (
    "insert into beliefs (scope_id, id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at, "
    "created_at, superseded_at) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
ADD_EVIDENCE = "insert into evidence (scope_id, memory_id, source_id) values (%s, %s, %s)"


@dataclass
class FactRows:
    """One scope's entities by name, and its facts in the order in which they were added."""

    connection: psycopg.Connection
    scope_id: int
    entities: dict[str, UUID] = field(default_factory=dict)
    facts: list[UUID] = field(default_factory=list)

    def entity(self, name, kind="thing"):
        """Add an entity unless it is there; every later one has a greater id."""
        if name not in self.entities:
            entity_id = self.entities[name] = UUID(int=(0xE << 120) + (self.scope_id << 16) + len(self.entities))
            self.connection.execute(ADD_ENTITY, [self.scope_id, entity_id, name, name, kind])
        return self.entities[name]

    def mention(self, name, alias, source):
        """Let a source call an entity something."""
        entity_id = self.entity(name)
        self.connection.execute(ADD_MENTION, [self.scope_id, source, entity_id, alias, alias])

    def fact(self, subject, predicate, object, *, text="", evidence=(), lineage=None, version=1, trust=50, **times):  # noqa: A002
        """Add a fact; every later one has a greater id."""
        fact_id = UUID(int=(0x0190 << 112) + (7 << 76) + (self.scope_id << 20) + len(self.facts) + 1)
        self.facts.append(fact_id)
        known = {"valid_at": LONG_AGO, "invalid_at": None, "created_at": LONG_AGO, "superseded_at": None} | times
        ends = [self.entity(subject), self.entity(object)]
        said = text or f"{subject} {predicate} {object}"
        moments = [LONG_AGO, known["created_at"]]
        self.connection.execute(ADD_MEMORY, [self.scope_id, fact_id, said, subject, predicate, object, trust, *moments])
        self.connection.execute(ADD_TERMS, [self.scope_id, fact_id, trust])
        self.connection.execute(ADD_FEATURES, [self.scope_id, fact_id, LONG_AGO])
        self.connection.execute(
            ADD_BELIEF,
            [self.scope_id, fact_id, lineage or fact_id, version, ends[0], predicate, ends[1], *known.values()],
        )
        for source in evidence:
            self.connection.execute(ADD_EVIDENCE, [self.scope_id, fact_id, source])
        for name in dict.fromkeys((subject, object)):
            self.mention(name, name, fact_id)
        return fact_id

    def withhold(self, fact_id, reason):
        """Take a fact out of recall, as its conversation's state or time does."""
        self.connection.execute("select withhold_memories(%s, %s, %s)", [self.scope_id, [fact_id], reason])


async def open_facts(mind, owner):
    """Give a mind's scope an empty graph."""
    [receipt] = await mind.remember("the first memory makes the scope")
    await mind.forget([receipt.id])
    [(scope_id,)] = owner.execute(
        'select id from scopes where tenant_id = %s and agent = %s and "user" = %s',
        [mind.access.scope.tenant_id, mind.access.scope.agent, mind.access.scope.user],
    ).fetchall()
    return FactRows(owner, scope_id)

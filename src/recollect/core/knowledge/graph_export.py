"""Format facts and their entities for other programs, page by page: GraphML and Cypher.

Memories can contain any text. In GraphML it is escaped, and characters that XML does not allow are replaced; in Cypher
all of it is in parameters of constant statements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

from recollect.models.knowledge import Entity, Relation

ENTITY_FIELDS = ("name", "type")
FACT_FIELDS = ("fact_id", "version", "predicate", "text", "valid_at", "invalid_at", "created_at", "superseded_at")
UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that an XML document cannot contain, not even escaped."""
REPLACEMENT = "\ufffd"
TYPES: Mapping[str, str] = {"version": "int"}
"""GraphML types other than text; it has no type for times."""
ADD_ENTITIES = (
    "UNWIND $entities AS each MERGE (entity:Entity {id: each.id}) SET entity.name = each.name, entity.type = each.type"
)
ADD_FACTS = (
    "UNWIND $facts AS each MATCH (subject:Entity {id: each.subject}) MATCH (object:Entity {id: each.object}) "
    "MERGE (subject)-[fact:FACT {id: each.id}]->(object) SET fact.fact_id = each.fact_id, "
    "fact.version = each.version, fact.predicate = each.predicate, fact.text = each.text, "
    "fact.valid_at = datetime(each.valid_at), fact.invalid_at = datetime(each.invalid_at), "
    "fact.created_at = datetime(each.created_at), fact.superseded_at = datetime(each.superseded_at)"
)


class GraphText(Protocol):
    """A graph that is formatted page by page."""

    def begin(self) -> str:
        """Return the text before the first page."""
        ...

    def write_page(self, page: Sequence[Relation]) -> str:
        """Return one page of facts, after their new entities."""
        ...

    def write_end(self) -> str:
        """Return the text after the last page."""
        ...


class GraphmlText:
    """A GraphML document."""

    def __init__(self) -> None:
        self._seen: set[UUID] = set()

    def begin(self) -> str:
        """Declare the fields, and open the graph."""
        return "".join(_open_graphml())

    def write_page(self, page: Sequence[Relation]) -> str:
        """Return one page; every entity comes before the first fact about it."""
        return "".join([*map(_write_entity, _take_new(page, self._seen)), *map(_write_fact, page)])

    def write_end(self) -> str:
        """Close the document."""
        return "</graph>\n</graphml>\n"


class CypherText:
    """Statements with parameters as JSON, in the format of Neo4j's HTTP API."""

    def __init__(self) -> None:
        self._seen: set[UUID] = set()
        self._between = "\n"

    def begin(self) -> str:
        """Open the list of statements."""
        return '{"statements": ['

    def write_page(self, page: Sequence[Relation]) -> str:
        """Return the statements of one page: entities first, because facts refer to them."""
        lines = [json.dumps(each, ensure_ascii=False) for each in _to_statements(page, self._seen)]
        before, self._between = self._between, ",\n"
        return before + ",\n".join(lines)

    def write_end(self) -> str:
        """Close the list."""
        return "\n]}\n"


def _take_new(page: Sequence[Relation], seen: set[UUID]) -> list[Entity]:
    """List the entities of a page that were on no earlier page."""
    entities = {end.id: end for relation in page for end in (relation.subject, relation.object)}
    new = [entity for entity in entities.values() if entity.id not in seen]
    seen.update(entities)
    return new


def _open_graphml() -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for end, fields in (("node", ENTITY_FIELDS), ("edge", FACT_FIELDS)):
        for field in fields:
            kind = TYPES.get(field, "string")
            yield f'<key id="{end}_{field}" for="{end}" attr.name="{field}" attr.type="{kind}"/>\n'
    yield '<graph id="facts" edgedefault="directed">\n'


def _write_entity(entity: Entity) -> str:
    values = {"name": entity.name, "type": entity.type.value}
    return f"<node id={_quote(entity.id)}>{_write_data('node', values)}</node>\n"


def _write_fact(relation: Relation) -> str:
    ends = f"source={_quote(relation.subject.id)} target={_quote(relation.object.id)}"
    values = {field: _to_text(getattr(relation, field)) for field in FACT_FIELDS}
    return f"<edge id={_quote(relation.memory_id)} {ends}>{_write_data('edge', values)}</edge>\n"


def _write_data(end: str, values: Mapping[str, str | None]) -> str:
    return "".join(
        f'<data key="{end}_{field}">{_escape(value)}</data>' for field, value in values.items() if value is not None
    )


def _escape(text: str) -> str:
    # XML parsers read a bare carriage return as the end of a line.
    return escape(UNWRITABLE.sub(REPLACEMENT, text), {"\r": "&#13;"})


def _quote(value: UUID) -> str:
    return quoteattr(str(value))


def _to_text(value: object) -> str | None:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return None if value is None else str(value)


def _to_statements(page: Sequence[Relation], seen: set[UUID]) -> Iterator[dict[str, object]]:
    new = _take_new(page, seen)
    if new:
        entities = [{"id": str(each.id), "name": each.name, "type": each.type.value} for each in new]
        yield {"statement": ADD_ENTITIES, "parameters": {"entities": entities}}
    facts = [
        {"id": str(each.memory_id), "subject": str(each.subject.id), "object": str(each.object.id)}
        | {field: _to_text(getattr(each, field)) for field in FACT_FIELDS}
        | {"version": each.version}
        for each in page
    ]
    yield {"statement": ADD_FACTS, "parameters": {"facts": facts}}

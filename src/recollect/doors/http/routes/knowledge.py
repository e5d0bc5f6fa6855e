"""Routes for facts and entities, and the graph that they make."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from recollect.doors.http.auth import JSON, AsOf, At, Cursor, IdempotencyKey, id_of, ids_in_query, most
from recollect.doors.http.bodies.fields import (
    AT,
    EXAMPLE_ID,
    Body,
    Moment,
    Number,
    ScopeBody,
    build,
    build_example_config,
)
from recollect.doors.http.routing import forward, serve
from recollect.doors.http.transfers import answer_in_pieces
from recollect.mind.mind import Mind
from recollect.models.knowledge import AnyTime, EntityOrder, EntityType, Fact, GraphFormat, NewFact

router = APIRouter(tags=["knowledge"])
FactId, EntityId = id_of("the fact, or of any version of it"), id_of("the entity")
EndName = Annotated[str, Field(max_length=200)]
XML = "application/xml"
Start = Annotated[UUID, Query(description="ID of the first entity.", examples=[EXAMPLE_ID])]
End = Annotated[UUID, Query(description="ID of the second entity.", examples=[EXAMPLE_ID])]
Limit = most(200, "items on a page")
WRITTEN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The graph: GraphML, or an object with a list of Cypher statements and their parameters.",
        "content": {XML: {"schema": {"type": "string"}}, JSON: {"schema": {"type": "object"}}},
    }
}


class FactBody(Body):
    """One fact that joins two entities."""

    subject: EndName = Field("", description="Name of the subject.")
    subject_id: UUID | None = Field(None, description="Entity ID, instead of the name.")
    subject_type: EntityType | None = Field(
        None, description="Type of the subject. Default: any entity of this name, else `other`."
    )
    predicate: str = Field(min_length=1, max_length=500, description="Relation, for example `lives in`.")
    object: EndName = Field("", description="Name of the object.")
    object_id: UUID | None = Field(None, description="Entity ID, instead of the name.")
    object_type: EntityType | None = Field(None, description="What sort of thing that is.")
    text: str = Field(
        "", max_length=32_000, description="The fact as a sentence. Default: subject, predicate and object."
    )
    valid_at: Moment | None = Field(None, description="When it became true. Default: when it was stated.")
    invalid_at: Moment | None = Field(None, description="When it stopped being true.")
    occurred_at: Moment | None = Field(None, description="When it was stated. Default: now.")
    replaces: list[UUID] = Field(
        default_factory=list[UUID], max_length=64, description="IDs of facts that it contradicts."
    )
    evidence: list[UUID] = Field(
        default_factory=list[UUID], max_length=256, description="IDs of memories that support it."
    )
    importance: Number | None = Field(
        None,
        ge=1,
        le=10,
        description="1 (trivial) to 10 (life-changing). Default: estimated by rules, then by enrichment.",
    )

    def to_value(self) -> NewFact:
        """Turn the body into a value; an id has precedence over a name."""
        fact = build(NewFact, self)
        return replace(fact, subject=self.subject_id or fact.subject, object=self.object_id or fact.object)


class AddFactsBody(ScopeBody):
    """Facts for one scope."""

    model_config = build_example_config(
        {
            "agent": "ada",
            "user": "zhang-wei",
            "facts": [
                {
                    "subject": "张伟",
                    "subject_type": "person",
                    "predicate": "住在",
                    "object": "深圳",
                    "object_type": "place",
                    "valid_at": "2026-01-31T00:00:00+08:00",
                }
            ],
        }
    )

    facts: list[FactBody] = Field(min_length=1, max_length=200, description="One to 200 facts.")


class EndFactBody(ScopeBody):
    """When a fact ends."""

    model_config = build_example_config({"agent": "ada", "invalid_at": "2026-01-31T12:00:00+08:00"})

    invalid_at: Moment = Field(description="When it stopped being true.")


class MergeEntitiesBody(ScopeBody):
    """The duplicate to merge."""

    model_config = build_example_config({"agent": "ada", "absorbed": EXAMPLE_ID})

    absorbed: UUID = Field(description="ID of the duplicate. Its names and facts move to this entity.")


@serve(router, "knowledge.add", errors=[409])
async def add_facts(mind: Mind, body: AddFactsBody, idempotency_key: IdempotencyKey = "") -> list[Fact]:
    """State a list of facts."""
    return await mind.knowledge.add([fact.to_value() for fact in body.facts], idempotency_key=idempotency_key)


forward(
    router,
    "list_facts",
    "knowledge.facts",
    about=Annotated[
        UUID | None, Query(description="Only facts about this entity, or this fact, by its ID or that of any version.")
    ],
    predicate=Annotated[str, Query(max_length=200, description="Only facts of this predicate.")],
    as_of=AsOf,
    at=Annotated[
        Moment | AnyTime | None,
        Query(description=f"{AT} `any`: also those that are over or were corrected; of an entity by `valid_at`."),
    ],
    cursor=Cursor,
    limit=Limit,
)
forward(router, "end_fact", "knowledge.end", EndFactBody, errors=[404, 409], fact_id=FactId)
forward(
    router,
    "list_entities",
    "knowledge.entities",
    search=Annotated[str, Query(max_length=200, description="Part of a name, or a text to compare with.")],
    ids=ids_in_query("Exactly these entities, in this order; unknown ones are omitted."),
    type=Annotated[EntityType | None, Query(description="Only entities of this type.")],
    order=Annotated[
        EntityOrder,
        Query(description="`age`: oldest first; `facts`: most facts first; `meaning`, `words`: most like `search`."),
    ],
    as_of=AsOf,
    cursor=Cursor,
    limit=Limit,
)
forward(
    router,
    "list_duplicate_entities",
    "knowledge.duplicates",
    judge=Annotated[bool, Query(description="Ask the chat model to confirm duplicates.")],
    cursor=Cursor,
    limit=Limit,
)
forward(router, "merge_entities", "knowledge.merge", MergeEntitiesBody, errors=[404, 409], entity_id=EntityId)
forward(router, "split_entity", "knowledge.split", ScopeBody, errors=[404, 409], entity_id=EntityId)
forward(
    router,
    "list_neighbors",
    "knowledge.neighbors",
    errors=[404],
    entity_id=EntityId,
    hops=Annotated[int, Query(ge=1, le=3, description="Number of hops.")],
    beam=most(500, "facts to follow in one hop, the newest first"),
    as_of=AsOf,
    at=At,
)
forward(
    router,
    "list_paths",
    "knowledge.paths",
    errors=[404],
    start=Start,
    end=End,
    hops=most(6, "facts on a path"),
    limit=most(50, "paths to list"),
    as_of=AsOf,
    at=At,
)


@serve(router, "knowledge.export", gives=Response, response_class=Response, responses=WRITTEN)
async def export_graph(
    mind: Mind,
    format: Annotated[GraphFormat, Query(description="How to write it.")] = GraphFormat.GRAPHML,  # noqa: A002 - its name
    as_of: AsOf = None,
    at: At = None,
) -> StreamingResponse:
    """Send the graph piece by piece."""
    pieces = mind.knowledge.export(format, as_of=as_of, at=at)
    return await answer_in_pieces(pieces, XML if format is GraphFormat.GRAPHML else JSON)

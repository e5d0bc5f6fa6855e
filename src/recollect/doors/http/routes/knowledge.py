"""Routes for facts and entities, and the graph that they make."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from recollect.doors.http.auth import JSON, AsOf, At, Cursor, IdempotencyKey, id_of, most
from recollect.doors.http.bodies.fields import AT, EXAMPLE_ID, Body, Moment, Number, OfScope, build, show
from recollect.doors.http.serve import forward, serve
from recollect.doors.http.transfers import answer_in_pieces
from recollect.mind.mind import Mind
from recollect.models.knowledge import AnyTime, EntityType, Fact, GraphFormat, NewFact

router = APIRouter(tags=["knowledge"])
FactId, EntityId = id_of("the fact, or of any version of it"), id_of("the entity")
EndName = Annotated[str, Field(max_length=200)]
XML = "application/xml"
Start = Annotated[UUID, Query(description="The id of the entity to begin at.", examples=[EXAMPLE_ID])]
End = Annotated[UUID, Query(description="The id of the entity to arrive at.", examples=[EXAMPLE_ID])]
Limit = most(200, "items on a page")
WRITTEN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The graph: GraphML, or an object with a list of Cypher statements and their parameters.",
        "content": {XML: {"schema": {"type": "string"}}, JSON: {"schema": {"type": "object"}}},
    }
}


class FactBody(Body):
    """One fact that joins two entities."""

    subject: EndName = Field("", description="Whom or what it is about, by a name.")
    subject_id: UUID | None = Field(None, description="The same by the id of an entity, instead of a name.")
    subject_type: EntityType | None = Field(
        None, description="What sort of thing that is; whatever is called so, or `other`, if left out."
    )
    predicate: str = Field(min_length=1, max_length=500, description="What joins the two, as in `lives in`.")
    object: EndName = Field("", description="What it is joined to, by a name.")
    object_id: UUID | None = Field(None, description="The same by the id of an entity, instead of a name.")
    object_type: EntityType | None = Field(None, description="What sort of thing that is.")
    text: str = Field("", max_length=32_000, description="The fact in a sentence; its three parts if left out.")
    valid_at: Moment | None = Field(
        None, description="From when it is true, with an offset; since it was said if left out and not over by then."
    )
    invalid_at: Moment | None = Field(None, description="From when it is no longer true.")
    occurred_at: Moment | None = Field(None, description="When it was said; now if left out.")
    replaces: list[UUID] = Field(
        default_factory=list[UUID], max_length=64, description="The facts that it contradicts, by their ids."
    )
    evidence: list[UUID] = Field(
        default_factory=list[UUID], max_length=256, description="The memories that say so, by their ids."
    )
    importance: Number | None = Field(
        None,
        ge=1,
        le=10,
        description="1 (mundane) to 10 (life-changing); scored by rules, then by enrichment, if left out.",
    )

    def to_value(self) -> NewFact:
        """Turn the body into a value; an id has precedence over a name."""
        fact = build(NewFact, self)
        return replace(fact, subject=self.subject_id or fact.subject, object=self.object_id or fact.object)


class AddFactsBody(OfScope):
    """Facts for one scope."""

    model_config = show(
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


class EndBody(OfScope):
    """When a fact ends."""

    model_config = show({"agent": "ada", "at": "2026-01-31T12:00:00+08:00"})

    at: Moment = Field(description="From when it is no longer true, with an offset.")


class AbsorbBody(OfScope):
    """Which entity is the same as another."""

    model_config = show({"agent": "ada", "absorbed": EXAMPLE_ID})

    absorbed: UUID = Field(description="The id of the entity that is absorbed: its names and facts go to the other.")


@serve(router, "knowledge.add", errors=[409])
async def add_facts(mind: Mind, body: AddFactsBody, idempotency_key: IdempotencyKey = "") -> list[Fact]:
    """State a list of facts."""
    return await mind.knowledge.add([fact.to_value() for fact in body.facts], idempotency_key=idempotency_key)


forward(
    router,
    "list_facts",
    "knowledge.facts",
    entity=Annotated[UUID | None, Query(description="Only facts that join this entity to something.")],
    predicate=Annotated[str, Query(max_length=200, description="Only facts of this predicate.")],
    as_of=AsOf,
    at=Annotated[
        Moment | AnyTime | None, Query(description=f"{AT} `any`: also facts that are over or were corrected.")
    ],
    cursor=Cursor,
    limit=Limit,
)
forward(router, "list_fact_versions", "knowledge.fact_versions", errors=[404], fact_id=FactId)
forward(router, "end_fact", "knowledge.end", EndBody, errors=[404, 409], fact_id=FactId)
forward(
    router,
    "list_entities",
    "knowledge.entities",
    search=Annotated[str, Query(max_length=200, description="Only those with this in one of their names.")],
    type=Annotated[EntityType | None, Query(description="Only those of this type.")],
    meaning=Annotated[str, Query(max_length=200, description="The nearest to this text first, on one page.")],
    as_of=AsOf,
    cursor=Cursor,
    limit=Limit,
)
forward(
    router,
    "list_entities_by_facts",
    "knowledge.entities_by_facts",
    search=Annotated[str, Query(max_length=200, description="Only those with this in one of their names.")],
    type=Annotated[EntityType | None, Query(description="Only those of this type.")],
    cursor=Cursor,
    limit=Limit,
)
forward(router, "read_entity", "knowledge.entity", errors=[404], entity_id=EntityId, as_of=AsOf)
forward(router, "merge_entities", "knowledge.merge", AbsorbBody, errors=[404, 409], entity_id=EntityId)
forward(
    router,
    "list_proposed_merges",
    "knowledge.proposed_merges",
    judge=Annotated[bool, Query(description="Ask the chat model which of them surely are one.")],
    cursor=Cursor,
    limit=Limit,
)
forward(router, "split_entity", "knowledge.split", OfScope, errors=[404, 409], entity_id=EntityId)
forward(
    router,
    "list_neighbours",
    "knowledge.neighbours",
    errors=[404],
    entity_id=EntityId,
    hops=Annotated[int, Query(ge=1, le=3, description="How many facts to follow one after the other.")],
    beam=most(500, "facts to follow in one hop, the newest first"),
    as_of=AsOf,
    at=At,
)
forward(
    router,
    "read_timeline",
    "knowledge.timeline",
    errors=[404],
    entity_id=EntityId,
    as_of=AsOf,
    cursor=Annotated[str, Query(max_length=100, description="next_cursor of the page before.")],
    limit=most(200, "versions on a page"),
)
forward(
    router,
    "list_connections",
    "knowledge.connections",
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

"""Routes for facts and entities, and the graph that they make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.auth import JSON, Admitted, Agent, AskedTimes, User
from recollect.doors.http.bodies.memories import AGENT, AS_OF, USER, Body, Moment, Name, Number, UserName
from recollect.doors.http.problems import describe
from recollect.mind.mind import Mind
from recollect.models.knowledge import (
    Entities,
    Entity,
    EntityType,
    Fact,
    FactPath,
    Facts,
    GraphFormat,
    Neighbourhood,
    NewFact,
    Timeline,
)

FACT, FACTS = TypeAdapter(Fact), TypeAdapter(Facts)
ENTITY, ENTITIES = TypeAdapter(Entity), TypeAdapter(Entities)
router = APIRouter(prefix="/v1", tags=["knowledge"])
ID = "01a1dd05-b16b-7000-b535-83c8ebea4fa9"
FactId = Annotated[UUID, Path(description="The id of the fact, or of any version of it.", examples=[ID])]
EntityId = Annotated[UUID, Path(description="The id of the entity.", examples=[ID])]
EndName = Annotated[str, Field(max_length=200)]
XML = "application/xml"
NEIGHBOURHOOD, TIMELINE = TypeAdapter(Neighbourhood), TypeAdapter(Timeline)
WRITTEN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The graph: GraphML, or an object with a list of Cypher statements and their parameters.",
        "content": {XML: {"schema": {"type": "string"}}, JSON: {"schema": {"type": "object"}}},
    }
}


async def read_scope(agent: Agent, user: User = "") -> tuple[str, str]:
    """Read which scope is asked for; async like its peers, or each would cost a thread."""
    return agent, user


async def read_page(
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Most items on a page.")] = 50,
) -> tuple[UUID | None, int]:
    """Read which page is asked for."""
    return cursor, limit


Asked: TypeAlias = Annotated[tuple[str, str], Depends(read_scope)]
AskedPage: TypeAlias = Annotated[tuple[UUID | None, int], Depends(read_page)]


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
    importance: Number = Field(5.0, ge=1, le=10, description="1 (mundane) to 10 (life-changing).")

    def to_value(self) -> NewFact:
        """Turn the body into a value."""
        return NewFact(
            subject=self.subject_id or self.subject,
            predicate=self.predicate,
            object=self.object_id or self.object,
            text=self.text,
            subject_type=self.subject_type,
            object_type=self.object_type,
            valid_at=self.valid_at,
            invalid_at=self.invalid_at,
            occurred_at=self.occurred_at,
            replaces=tuple(self.replaces),
            evidence=tuple(self.evidence),
            importance=self.importance,
        )


class StateBody(Body):
    """Facts for one scope."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
            ]
        }
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    facts: list[FactBody] = Field(min_length=1, max_length=200, description="One to 200 facts.")


class EndBody(Body):
    """When a fact ends."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "at": "2026-01-31T12:00:00+08:00"}]})

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    at: Moment = Field(description="From when it is no longer true, with an offset.")


class StatedFacts(BaseModel):
    """The version of each fact that is believed now, in the order they were stated."""

    facts: list[Fact]


class Versions(BaseModel):
    """All versions of a fact, oldest first."""

    versions: list[Fact]


@router.post("/facts", status_code=201, response_model=StatedFacts, responses=describe(409))
async def state_facts(
    body: StateBody,
    admit: Admitted,
    idempotency_key: Annotated[
        str, Header(max_length=255, description="Send the same key to state the same facts only once.")
    ] = "",
) -> Response:
    """State facts in one transaction, without a model: known ones are recognised, and what they replace ends."""
    mind = await admit(body.agent, body.user)
    stated = await mind.knowledge.state([fact.to_value() for fact in body.facts], idempotency_key=idempotency_key)
    return Response(StatedFacts(facts=stated).model_dump_json(), 201, media_type=JSON)


@router.get("/facts", response_model=Facts, responses=describe())
async def list_facts(
    scope: Asked,
    admit: Admitted,
    times: AskedTimes,
    page: AskedPage,
    entity: Annotated[UUID | None, Query(description="Only facts that join this entity to something.")] = None,
    predicate: Annotated[str, Query(max_length=200, description="Only facts of this predicate.")] = "",
) -> Response:
    """List facts in the order they were written, as believed and true now, or as of and at a moment."""
    mind = await admit(*scope)
    cursor, limit = page
    found = await mind.knowledge.facts(entity, predicate, as_of=times.as_of, at=times.at, cursor=cursor, limit=limit)
    return Response(FACTS.dump_json(found), media_type=JSON)


@router.get("/facts/{fact_id}/versions", response_model=Versions, responses=describe(404))
async def list_fact_versions(fact_id: FactId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """List every version of a fact, oldest first: when it was believed, and what it said was true when."""
    mind = await admit(agent, user)
    versions = await mind.knowledge.fact_versions(fact_id)
    return Response(Versions(versions=versions).model_dump_json(), media_type=JSON)


@router.post("/facts/{fact_id}/end", response_model=Fact, responses=describe(404, 409))
async def end_fact(fact_id: FactId, body: EndBody, admit: Admitted) -> Response:
    """End a fact at a moment, by a further version of it; nothing is overwritten."""
    mind = await admit(body.agent, body.user)
    return Response(FACT.dump_json(await mind.knowledge.end(fact_id, body.at)), media_type=JSON)


@router.get("/entities", response_model=Entities, responses=describe())
async def list_entities(
    scope: Asked,
    admit: Admitted,
    page: AskedPage,
    search: Annotated[str, Query(max_length=200, description="Only those with this in one of their names.")] = "",
    type: Annotated[EntityType | None, Query(description="Only those of this type.")] = None,  # noqa: A002 - its name
) -> Response:
    """List whom and what facts speak of, in the order in which they were first spoken of."""
    mind = await admit(*scope)
    cursor, limit = page
    found = await mind.knowledge.entities(search, type=type, cursor=cursor, limit=limit)
    return Response(ENTITIES.dump_json(found), media_type=JSON)


@router.get("/entities/{entity_id}", response_model=Entity, responses=describe(404))
async def read_entity(entity_id: EntityId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Read an entity: its name, its type, what else it is called, and the newest that was said of it."""
    mind = await admit(agent, user)
    return Response(ENTITY.dump_json(await mind.knowledge.entity(entity_id)), media_type=JSON)


async def find_mind(agent: Agent, admit: Admitted, user: User = "") -> Mind:
    """Turn the scope that a query names into a mind."""
    return await admit(agent, user)


AskedMind = Annotated[Mind, Depends(find_mind)]


class Paths(BaseModel):
    """How two entities are joined, the shortest path first."""

    paths: list[FactPath]


@router.get("/entities/{entity_id}/neighbours", response_model=Neighbourhood, responses=describe(404))
async def list_neighbours(
    entity_id: EntityId,
    mind: AskedMind,
    times: AskedTimes,
    hops: Annotated[int, Query(ge=1, le=3, description="How many facts to follow one after the other.")] = 1,
    beam: Annotated[int, Query(ge=1, le=500, description="Most facts to follow in one hop, the newest first.")] = 100,
) -> Response:
    """List the entities that facts lead to from one, nearest first, with every fact that was followed."""
    found = await mind.knowledge.neighbours(entity_id, hops, beam, as_of=times.as_of, at=times.at)
    return Response(NEIGHBOURHOOD.dump_json(found), media_type=JSON)


@router.get("/entities/{entity_id}/timeline", response_model=Timeline, responses=describe(404))
async def read_timeline(
    entity_id: EntityId,
    mind: AskedMind,
    as_of: Annotated[Moment | None, Query(description=AS_OF)] = None,
    cursor: Annotated[str, Query(max_length=100, description="next_cursor of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Most versions on a page.")] = 50,
) -> Response:
    """List all versions of the facts about an entity, in the order in which they came true in the world."""
    found = await mind.knowledge.timeline(entity_id, as_of=as_of, cursor=cursor, limit=limit)
    return Response(TIMELINE.dump_json(found), media_type=JSON)


@router.get("/paths", response_model=Paths, responses=describe(404))
async def list_paths(
    start: Annotated[UUID, Query(description="The id of the entity to begin at.", examples=[ID])],
    end: Annotated[UUID, Query(description="The id of the entity to arrive at.", examples=[ID])],
    mind: AskedMind,
    times: AskedTimes,
    hops: Annotated[int, Query(ge=1, le=6, description="Most facts on a path.")] = 4,
    limit: Annotated[int, Query(ge=1, le=50, description="Most paths to list.")] = 10,
) -> Response:
    """List how two entities are joined by facts, the shortest path first; no path meets an entity twice."""
    found = await mind.knowledge.paths(start, end, hops, limit, as_of=times.as_of, at=times.at)
    return Response(Paths(paths=found).model_dump_json(), media_type=JSON)


@router.get("/graph", response_class=Response, responses=WRITTEN | describe())
async def export_graph(
    mind: AskedMind,
    times: AskedTimes,
    format: Annotated[GraphFormat, Query(description="How to write it.")] = GraphFormat.GRAPHML,  # noqa: A002 - its name
) -> Response:
    """Write down all facts of a scope and the entities they join, as GraphML or as Cypher with parameters."""
    pieces = mind.knowledge.export(format, as_of=times.as_of, at=times.at)
    # Whatever can be refused is refused before the first piece, while there still is a status to say so by.
    first = await anext(pieces)
    return StreamingResponse(resume(first, pieces), media_type=XML if format is GraphFormat.GRAPHML else JSON)


async def resume(first: str, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    """Give the first piece and then the others."""
    yield first
    async for piece in rest:
        yield piece

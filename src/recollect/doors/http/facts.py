"""Routes for what is known: state facts, read them as believed and true at a moment, and read whom they speak of."""

from __future__ import annotations

from typing import Annotated, TypeAlias
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.bodies import AGENT, USER, Body, Moment, Name, Number, UserName
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe
from recollect.doors.http.times import AskedTimes
from recollect.models.knowledge import Entities, Entity, EntityType, Fact, Facts, NewFact

JSON = "application/json"
FACT, FACTS = TypeAdapter(Fact), TypeAdapter(Facts)
ENTITY, ENTITIES = TypeAdapter(Entity), TypeAdapter(Entities)
router = APIRouter(prefix="/v1", tags=["knowledge"])
Admitted = Annotated[Admission, Depends(admission)]
Agent = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]
ID = "01a1dd05-b16b-7000-b535-83c8ebea4fa9"
FactId = Annotated[UUID, Path(description="The id of the fact, or of any version of it.", examples=[ID])]
EntityId = Annotated[UUID, Path(description="The id of the entity.", examples=[ID])]
EndName = Annotated[str, Field(max_length=200)]


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

"""Routes for the graph of facts: what lies around an entity, how two are joined, a timeline, and all of it as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, TypeAdapter

from recollect.doors.http.bodies import AGENT, AS_OF, USER, Moment, Name, UserName
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe
from recollect.doors.http.times import AskedTimes
from recollect.mind.mind import Mind
from recollect.models.knowledge import FactPath, GraphFormat, Neighbourhood, Timeline

JSON, XML = "application/json", "application/xml"
NEIGHBOURHOOD, TIMELINE = TypeAdapter(Neighbourhood), TypeAdapter(Timeline)
router = APIRouter(prefix="/v1", tags=["knowledge"])
Admitted = Annotated[Admission, Depends(admission)]
Agent = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]
ID = "01a1dd05-b16b-7000-b535-83c8ebea4fa9"
EntityId = Annotated[UUID, Path(description="The id of the entity.", examples=[ID])]
WRITTEN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The graph: GraphML, or an object with a list of Cypher statements and their parameters.",
        "content": {XML: {"schema": {"type": "string"}}, JSON: {"schema": {"type": "object"}}},
    }
}


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

"""Routes for topics: the tree, what is filed under it and related to it, and the ways to put it in order."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.auth import JSON, Admitted, Agent, User
from recollect.doors.http.bodies.memories import AGENT, PATH, USER, Body, Moment, Name, ReachBody, TopicPath, UserName
from recollect.doors.http.problems import describe
from recollect.mind.mind import Mind
from recollect.models.topics import Filing, RelatedTopic, Topic, TopicLink, TopicTree

TREE, TOPIC = TypeAdapter(TopicTree), TypeAdapter(Topic)
router = APIRouter(prefix="/v1", tags=["topics"])
Asked = Annotated[TopicPath, Query(description=PATH, examples=["travel->Japan"])]
Below = Annotated[TopicPath, Query(description="Only this topic and what lies below it; all if empty.")]
MostTopics = Annotated[int, Query(ge=1, le=10_000, description="Most topics to list.")]
ID = "01a1dd05-b16b-7000-b535-83c8ebea4fa9"
SCOPE: dict[str, Any] = {"agent": "ada", "user": "zhang-wei"}


async def find_mind(agent: Agent, admit: Admitted, user: User = "") -> Mind:
    """Turn the scope that a query names into a mind."""
    return await admit(agent, user)


AskedMind = Annotated[Mind, Depends(find_mind)]


class TopicBody(Body):
    """A topic of a scope."""

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    path: TopicPath = Field(min_length=1, description=PATH)


class FilingBody(ReachBody):
    """A memory to file under a topic, and how."""

    memory_id: UUID = Field(description="The id of the memory.")
    related: list[TopicPath] = Field(
        default_factory=list[str], max_length=16, description="Paths of topics that it leads to from there."
    )
    occurred_at: Moment | None = Field(
        None, description="When it happened as far as the topic is concerned; as the memory says if left out."
    )

    def to_value(self) -> Filing:
        """Turn the body into a value."""
        return Filing(self.memory_id, self.to_reach(), tuple(self.related), self.occurred_at)


class LinkBody(TopicBody):
    """Memories to file under a topic."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [SCOPE | {"path": "travel->Japan", "memories": [{"memory_id": ID}]}]}
    )

    memories: list[FilingBody] = Field(min_length=1, max_length=1_000, description="One to 1,000 memories.")


class UnlinkBody(TopicBody):
    """Memories to take from a topic."""

    model_config = ConfigDict(json_schema_extra={"examples": [SCOPE | {"path": "travel->Japan", "ids": [ID]}]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories.")


class RenameBody(TopicBody):
    """Another name for a topic."""

    model_config = ConfigDict(json_schema_extra={"examples": [SCOPE | {"path": "travel->Japan", "name": "Nippon"}]})

    name: str = Field(min_length=1, max_length=100, description="Its new name; another path is a matter of move.")


class MoveBody(TopicBody):
    """Another place for a topic."""

    model_config = ConfigDict(json_schema_extra={"examples": [SCOPE | {"path": "travel->Japan", "under": "Asia"}]})

    under: TopicPath = Field("", description="The path of the topic to bring it under; to the roots if empty.")


class MergeBody(TopicBody):
    """Another topic to absorb a topic."""

    model_config = ConfigDict(json_schema_extra={"examples": [SCOPE | {"path": "trips", "into": "travel"}]})

    into: TopicPath = Field(min_length=1, description="The path of the topic that absorbs it.")


class Links(BaseModel):
    """What is filed, the newest first."""

    links: list[TopicLink]


class Related(BaseModel):
    """Which topics lead on from one, the strongest first."""

    related: list[RelatedTopic]


class Unlinked(BaseModel):
    """Which memories were taken from the topic."""

    unlinked: list[UUID]


@router.get("/topics", response_model=TopicTree, responses=describe(404))
async def list_topics(mind: AskedMind, path: Below = "", limit: MostTopics = 1_000) -> Response:
    """List the topics of a scope in the order of the tree, each with its number of memories."""
    return Response(TREE.dump_json(await mind.topics.tree(path, limit)), media_type=JSON)


@router.get("/topics/text", response_class=PlainTextResponse, responses=describe(404))
async def write_topics(mind: AskedMind, path: Below = "", limit: MostTopics = 1_000) -> PlainTextResponse:
    """Write the topics of a scope as text, one line each, as a prompt can show them."""
    return PlainTextResponse((await mind.topics.tree(path, limit)).text)


@router.get("/topics/links", response_model=Links, responses=describe())
async def list_topic_links(
    mind: AskedMind,
    path: Annotated[TopicPath, Query(description="What is filed under this topic.", examples=["travel->Japan"])] = "",
    memory_id: Annotated[UUID | None, Query(description="What this memory is filed under.", examples=[ID])] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Most links to list.")] = 50,
) -> Links:
    """List what is filed under a topic, or what a memory is filed under, the newest first."""
    return Links(links=await mind.topics.links(path, memory_id=memory_id, limit=limit))


@router.get("/topics/related", response_model=Related, responses=describe())
async def list_related_topics(
    mind: AskedMind, path: Asked, limit: Annotated[int, Query(ge=1, le=200, description="Most topics to list.")] = 50
) -> Related:
    """List the topics that what is filed under one leads to, the strongest first."""
    return Related(related=await mind.topics.related(path, limit))


@router.post("/topics/links", response_model=Topic, responses=describe(404))
async def link_topic(body: LinkBody, admit: Admitted) -> Response:
    """File memories under a topic, which comes to be if it is new; what is filed there already is filed anew."""
    mind = await admit(body.agent, body.user)
    return answer(await mind.topics.link(body.path, [memory.to_value() for memory in body.memories]))


@router.post("/topics/unlink", response_model=Unlinked, responses=describe(404))
async def unlink_topic(body: UnlinkBody, admit: Admitted) -> Unlinked:
    """Take memories from a topic; a topic that nothing needs any more goes."""
    mind = await admit(body.agent, body.user)
    return Unlinked(unlinked=await mind.topics.unlink(body.path, body.ids))


@router.post("/topics/rename", response_model=Topic, responses=describe(404, 409))
async def rename_topic(body: RenameBody, admit: Admitted) -> Response:
    """Give a topic another name, and so another path to it and to all below it."""
    mind = await admit(body.agent, body.user)
    return answer(await mind.topics.rename(body.path, body.name))


@router.post("/topics/move", response_model=Topic, responses=describe(404, 409))
async def move_topic(body: MoveBody, admit: Admitted) -> Response:
    """Bring a topic with all below it under another one, which comes to be if it is new."""
    mind = await admit(body.agent, body.user)
    return answer(await mind.topics.move(body.path, body.under))


@router.post("/topics/merge", response_model=Topic, responses=describe(404))
async def merge_topic(body: MergeBody, admit: Admitted) -> Response:
    """Let one topic absorb another with all below it; what is filed under both is filed as its newer link says."""
    mind = await admit(body.agent, body.user)
    return answer(await mind.topics.merge(body.path, body.into))


def answer(topic: Topic) -> Response:
    """Show a topic as it is now."""
    return Response(TOPIC.dump_json(topic), media_type=JSON)

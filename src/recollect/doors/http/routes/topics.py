"""Routes for topics: the tree, the memories filed under it and related to it, and how to reorganize it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from pydantic import Field

from recollect.doors.http.auth import AskedMind, most
from recollect.doors.http.bodies.fields import (
    EXAMPLE_ID,
    PATH,
    SCOPE,
    Moment,
    ScopeBody,
    TopicPath,
    build,
    build_example_config,
)
from recollect.doors.http.bodies.memories import LinkStrengthBody
from recollect.doors.http.problems import document_problems
from recollect.doors.http.routing import forward, serve
from recollect.mind.mind import Mind
from recollect.models.topics import NewTopicLink, Topic

router = APIRouter(tags=["topics"])
Below = Annotated[TopicPath, Query(description="Only this topic and its subtopics. Default: all.")]
Filed = Annotated[TopicPath, Query(description="Only links of this topic.", examples=["travel->Japan"])]
FiledMemory = Annotated[UUID | None, Query(description="Only links of this memory.", examples=[EXAMPLE_ID])]
MostTopics = Annotated[int, Query(ge=1, le=10_000, description="Maximum number of topics.")]


class TopicBody(ScopeBody):
    """A topic of a scope."""

    path: TopicPath = Field(min_length=1, description=PATH)


class TopicLinkBody(LinkStrengthBody):
    """A memory to file under a topic, and how."""

    memory_id: UUID = Field(description="Memory ID.")
    related: list[TopicPath] = Field(default_factory=list[str], max_length=16, description="Paths of related topics.")
    occurred_at: Moment | None = Field(None, description="When it happened, for this topic. Default: as the memory.")


class LinkBody(TopicBody):
    """Memories to file under a topic."""

    model_config = build_example_config(SCOPE | {"path": "travel->Japan", "memories": [{"memory_id": EXAMPLE_ID}]})

    memories: list[TopicLinkBody] = Field(min_length=1, max_length=1_000, description="One to 1,000 memories.")


class UnlinkBody(TopicBody):
    """Memories to take from a topic."""

    model_config = build_example_config(SCOPE | {"path": "travel->Japan", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories.")


class UpdateTopicBody(TopicBody):
    """Another name or place for a topic, or another topic to absorb it."""

    model_config = build_example_config(SCOPE | {"path": "travel->Japan", "name": "Nippon", "parent": "Asia"})

    name: str | None = Field(None, min_length=1, max_length=100, description="New name. Default: unchanged.")
    parent: TopicPath | None = Field(None, description="Path of the new parent. Empty = root. Default: unchanged.")
    into: TopicPath | None = Field(None, description="Path of the topic to merge it into, without `name` and `parent`.")


forward(router, "list_topics", "topics.tree", errors=[404], path=Below, limit=MostTopics)


@router.get("/v1/topics/text", response_class=PlainTextResponse, responses=document_problems(404))
async def write_topics(mind: AskedMind, path: Below = "", limit: MostTopics = 1_000) -> PlainTextResponse:
    """Get the topic tree as text."""
    return PlainTextResponse((await mind.topics.tree(path, limit)).text)


forward(
    router,
    "list_topic_links",
    "topics.links",
    path=Filed,
    memory_id=FiledMemory,
    limit=most(200, "links to list"),
)


@serve(router, "topics.link", errors=[404])
async def link_topic(mind: Mind, body: LinkBody) -> Topic:
    """File each memory as it says."""
    return await mind.topics.link(body.path, [build(NewTopicLink, memory) for memory in body.memories])


forward(router, "unlink_topic", "topics.unlink", UnlinkBody, errors=[404])
forward(router, "update_topic", "topics.update", UpdateTopicBody, errors=[404, 409])

"""Routes for topics: the tree, what is filed under it and related to it, and how to reorganise it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from pydantic import Field

from recollect.doors.http.auth import AskedMind, most
from recollect.doors.http.bodies.fields import EXAMPLE_ID, PATH, SCOPE, Moment, OfScope, TopicPath, build, show
from recollect.doors.http.bodies.memories import ReachBody
from recollect.doors.http.problems import describe
from recollect.doors.http.serve import forward, serve
from recollect.mind.mind import Mind
from recollect.models.topics import Filing, Topic

router = APIRouter(tags=["topics"])
Asked = Annotated[TopicPath, Query(description=PATH, examples=["travel->Japan"])]
Below = Annotated[TopicPath, Query(description="Only this topic and what lies below it; all if empty.")]
Filed = Annotated[TopicPath, Query(description="What is filed under this topic.", examples=["travel->Japan"])]
FiledMemory = Annotated[UUID | None, Query(description="What this memory is filed under.", examples=[EXAMPLE_ID])]
MostTopics = Annotated[int, Query(ge=1, le=10_000, description="Most topics to list.")]


class TopicBody(OfScope):
    """A topic of a scope."""

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


class LinkBody(TopicBody):
    """Memories to file under a topic."""

    model_config = show(SCOPE | {"path": "travel->Japan", "memories": [{"memory_id": EXAMPLE_ID}]})

    memories: list[FilingBody] = Field(min_length=1, max_length=1_000, description="One to 1,000 memories.")


class UnlinkBody(TopicBody):
    """Memories to take from a topic."""

    model_config = show(SCOPE | {"path": "travel->Japan", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories.")


class RenameBody(TopicBody):
    """Another name for a topic."""

    model_config = show(SCOPE | {"path": "travel->Japan", "name": "Nippon"})

    name: str = Field(min_length=1, max_length=100, description="Its new name; another path is a matter of move.")


class MoveBody(TopicBody):
    """Another place for a topic."""

    model_config = show(SCOPE | {"path": "travel->Japan", "under": "Asia"})

    under: TopicPath = Field("", description="The path of the topic to bring it under; to the roots if empty.")


class MergeBody(TopicBody):
    """Another topic to absorb a topic."""

    model_config = show(SCOPE | {"path": "trips", "into": "travel"})

    into: TopicPath = Field(min_length=1, description="The path of the topic that absorbs it.")


forward(router, "list_topics", "topics.tree", errors=[404], path=Below, limit=MostTopics)


@router.get("/v1/topics/text", response_class=PlainTextResponse, responses=describe(404))
async def write_topics(mind: AskedMind, path: Below = "", limit: MostTopics = 1_000) -> PlainTextResponse:
    """Write the topics of a scope as text, one line each, as a prompt can show them."""
    return PlainTextResponse((await mind.topics.tree(path, limit)).text)


forward(
    router,
    "list_topic_links",
    "topics.links",
    path=Filed,
    memory_id=FiledMemory,
    limit=most(200, "links to list"),
)
forward(router, "list_related_topics", "topics.related", path=Asked, limit=most(200, "topics to list"))


@serve(router, "topics.link", errors=[404])
async def link_topic(mind: Mind, body: LinkBody) -> Topic:
    """File each memory as it says."""
    return await mind.topics.link(body.path, [build(Filing, memory) for memory in body.memories])


forward(router, "unlink_topic", "topics.unlink", UnlinkBody, errors=[404])
forward(router, "rename_topic", "topics.rename", RenameBody, errors=[404, 409])
forward(router, "move_topic", "topics.move", MoveBody, errors=[404, 409])
forward(router, "merge_topic", "topics.merge", MergeBody, errors=[404])

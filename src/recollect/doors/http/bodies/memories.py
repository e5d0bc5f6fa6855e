"""Bodies of requests about memories and cues: as flat and plain as tools like Dify need them."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, create_model

from recollect.doors.http.bodies.fields import (
    EXAMPLE_ID,
    SCOPE,
    Body,
    Integer,
    Moment,
    Number,
    OptionalMoment,
    PlainKind,
    PlainSource,
    ScopeBody,
    ScopeNames,
    TopicPath,
    Vector,
    build,
    build_example_config,
)
from recollect.errors import InvalidInputError
from recollect.loading import local_timezone
from recollect.models.filters import FILTER_FIELDS, FilterField
from recollect.models.memories import JSON, ImportanceFrom, Kind, NewMemory


class LinkStrengthBody(Body):
    """How readily something is recalled by the topic that it is filed under."""

    activation: Number = Field(default=0.55, ge=0, le=1, description="How strongly it belongs to the topic.")
    diffusion: Number = Field(default=0.35, ge=0, le=1, description="How far it spreads to related topics.")
    independence: Number = Field(default=0.5, ge=0, le=1, description="How understandable it is without context.")


class MemoryBody(LinkStrengthBody):
    """A memory to store."""

    content: str = Field(min_length=1, max_length=32_000, description="Text of the memory.")
    kind: PlainKind = Field(Kind.EVENT, description="One of message, event, chat, thought, fact, summary.")
    speaker: str = Field("", max_length=200, description="Name of the speaker. Searchable.")
    importance: Number | None = Field(
        None,
        ge=1,
        le=10,
        description="1 (trivial) to 10 (life-changing). Default: estimated by rules, then by enrichment.",
    )
    subject: str = Field("", max_length=500, description="The person or thing it is about, as in `Klaus Mueller`.")
    predicate: str = Field("", max_length=500, description="What the subject does or is, as in `reads`.")
    object: str = Field("", max_length=500, description="The person or thing affected, as in `a book`.")
    idle: bool | None = Field(
        None, strict=True, description="Whether nothing happens in it. Default: derived from the triple."
    )
    keywords: list[Annotated[str, Field(max_length=500)]] = Field(
        default_factory=list[str],
        max_length=64,
        description="Keywords. Default: subject and object (for thoughts also the predicate).",
    )
    occurred_at: Moment | None = Field(None, description="When it happened. Default: now.")
    evidence: list[UUID | Integer] = Field(
        default_factory=list[UUID | int],
        max_length=256,
        description="Memories it is based on: IDs, or positions of earlier memories in this request (from 0).",
    )
    embedding_text: str = Field("", max_length=8_000, description="Text to embed instead of speaker and content.")
    embedding: Vector = Field(default_factory=list[float], description="Its vector, if you have one.")
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON], description="Any JSON up to 16 KB. Filter by it with `where`."
    )
    expires_at: Moment | None = Field(None, description="Exclude from recall after this time. Default: never.")
    topic: TopicPath = Field(default="", description="Topic path, for example travel->Japan.")
    related_topics: list[TopicPath] = Field(
        default_factory=list[str], max_length=16, description="Paths of related topics."
    )

    pinned: bool = Field(default=False, strict=True, description="Include it in every prompt.")
    importance_from: PlainSource = Field(ImportanceFrom.CALLER, description="Who set the importance, if one is given.")


class RememberBody(ScopeBody, MemoryBody):
    """Memories for one scope: as a list, or one with its fields next to the scope's."""

    model_config = build_example_config(
        {
            "agent": "ada",
            "user": "zhang-wei",
            "memories": [{"content": "张伟是一位资深软件工程师，在腾讯工作了五年", "importance": 6}],
        }
    )

    content: str = Field("", max_length=32_000, description="Instead of `memories`: the text of one memory.")
    memories: list[MemoryBody] = Field(
        default_factory=list[MemoryBody], max_length=1_000, description="One to 1,000 memories with their own fields."
    )

    if_new: Literal["", "same", "near"] = Field(
        "",
        description="Skip duplicates: `same` compares texts, `near` also similar words.",
    )

    def to_values(self) -> list[NewMemory]:
        """Turn the body into values."""
        if not self.memories and not self.content:
            raise InvalidInputError("Nothing to remember: send `memories` or `content`.")
        if self.memories and self.content:
            raise InvalidInputError("Send either memories, or one content.")
        if not self.memories:
            return [build(NewMemory, self)]
        usual = RememberBody.model_validate({"agent": self.agent})
        if any(getattr(self, field) != getattr(usual, field) for field in MemoryBody.model_fields):
            raise InvalidInputError("With `memories`, set the fields on each memory.")
        return [build(NewMemory, memory) for memory in self.memories]


class UpdateBody(ScopeBody):
    """Fields to change. Omitted or empty fields stay the same."""

    model_config = build_example_config({"agent": "ada", "content": "The dentist is at five."})

    content: str = Field("", max_length=32_000, description="New text.")
    importance: Number | None = Field(None, ge=1, le=10, description="1 (trivial) to 10 (life-changing).")
    speaker: str = Field("", max_length=200, description="Name of the speaker.")
    keywords: list[Annotated[str, Field(max_length=500)]] = Field(
        default_factory=list[str], max_length=64, description="New keywords. Replaces the existing ones."
    )
    occurred_at: Moment | None = Field(None, description="When it happened, with an offset.")
    expires_at: Moment | None = Field(None, description="Exclude from recall after this time.")
    embedding_text: str = Field("", max_length=8_000, description="Text to embed instead of speaker and content.")
    embedding: Vector = Field(default_factory=list[float], description="Its vector, if you have one.")
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON], description="Your own JSON, in place of the old."
    )
    topic: TopicPath = Field(default="", description="New topic. Replaces the existing ones.")
    related_topics: list[TopicPath] = Field(
        default_factory=list[str], max_length=16, description="Paths of topics that it leads to from that topic."
    )
    pinned: bool | None = Field(None, strict=True, description="Include it in every prompt.")


class LoadBody(ScopeBody):
    """Memories of an import for one scope."""

    model_config = build_example_config({"agent": "ada", "memories": [{"content": "张伟是一位资深软件工程师"}]})

    memories: list[MemoryBody] = Field(min_length=1, max_length=1_000, description="One to 1,000 memories.")


Weight = Annotated[Number, Field(ge=0, le=1000)]


class StreamWeightsBody(Body):
    """Weights of the three factors of the stream channel. Default: from the agent's profile."""

    mode: str = Field(
        "", pattern="^(newest|original|paper)?$", description="newest, original or paper: how recency is computed."
    )
    recency: Weight | None = Field(default=None, description="Weight of recency.")
    similarity: Weight | None = Field(default=None, description="Weight of similarity.")
    importance: Weight | None = Field(default=None, description="Weight of importance.")
    gains: list[Weight] = Field(
        default_factory=list[float],
        max_length=3,
        description="Multipliers of the three weights.",
    )
    decay: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="Recency factor from one rank to the next (in mode `paper`: from one hour to the next).",
    )


def describe_body_field(each: FilterField) -> tuple[Any, Any]:
    """Return the type and the rules of a filter's field in a body."""
    if each.many:
        least = 1 if each.name == "topics" else None
        text = Annotated[str, Field(min_length=least, max_length=each.bounds.get("length"))]
        items = GenericAlias(list, text if each.type is str else each.type)
        return items, Field(default_factory=list[Any], max_length=each.bounds["items"], description=each.help)
    if each.type is datetime:
        return OptionalMoment, Field(None, description=f"{each.help} ISO 8601 with offset.")
    if issubclass(each.type, Enum):
        return str, Field("", pattern=f"^({'|'.join(map(str, each.type))})?$", description=each.help)
    if each.type is bool:
        usual = None if each.optional else False
        return bool | None if each.optional else bool, Field(default=usual, strict=True, description=each.help)
    return Integer if each.type is int else Number, Field(each.type(0), description=each.help, **each.bounds)


if TYPE_CHECKING:

    class FilterBody(Body):
        """What a read is restricted to."""

else:
    FilterBody = create_model(
        "FilterBody",
        __base__=Body,
        __doc__="What a read is restricted to.",
        __module__=__name__,
        **{each.name: describe_body_field(each) for each in FILTER_FIELDS},
    )


class RecallOptionsBody(StreamWeightsBody, FilterBody):
    """A query and recall options."""

    text: str = Field("", max_length=8_000, description="Query, in any language. Empty = newest memories.")
    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(
        None, description="Maximum number of hits. Default: from the profile, or 10."
    )
    channels: list[Annotated[str, Field(max_length=20)]] = Field(
        default_factory=list[str],
        max_length=16,
        description="Channels to use: text, vector, stream, keyword, graph, topic, date, recent. Default: text, "
        "vector, keyword, graph, topic, date.",
    )
    weights: dict[str, Annotated[Number, Field(ge=-1000, le=1000)]] = Field(
        default_factory=dict[str, float],
        max_length=64,
        description="Weights of channels and preferences by name. Others keep their defaults.",
    )
    zone: str = Field(
        default_factory=local_timezone,
        min_length=1,
        max_length=64,
        description="IANA time zone of the user, for example Asia/Shanghai. Default: the server's.",
    )
    consult: bool | None = Field(
        None,
        strict=True,
        description="Ask the chat model to add topics and dates that rules do not find. Default: from the profile.",
    )
    judge: bool | None = Field(
        None,
        strict=True,
        description="Ask the chat model to drop irrelevant hits. Default: from the profile.",
    )
    min_relevance: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None,
        description="Minimum relevance, 0 to 1. Default: none for a recall; prompts omit hits that are very unlikely "
        "to help.",
    )
    keep: bool | None = Field(
        None,
        strict=True,
        description="Save the recall for explain and replay. Default: as configured.",
    )
    explain: bool = Field(
        default=False, strict=True, description="Include the explanation in the response. Nothing is saved."
    )
    also: ScopeNames = Field(
        default_factory=list[str],
        description="More scopes to search, as agent or agent/user. Default: from the profile.",
    )
    touch: bool = Field(
        default=True, strict=True, description="Count the hits as accessed, which makes them more recent."
    )
    now: Moment | None = Field(None, description="Time of the recall, for simulations.")
    embedding: Vector = Field(default_factory=list[float], description="Vector of the query, if you have one.")


class RecallBody(ScopeBody, RecallOptionsBody):
    """A cue for one scope."""

    model_config = build_example_config(SCOPE | {"text": "张伟在哪里工作？", "limit": 5})


class RecallEachBody(ScopeBody):
    """Several cues for one scope."""

    model_config = build_example_config(
        {"agent": "ada", "cues": [{"text": "Klaus", "channels": ["stream"]}, {"text": "the party"}]}
    )

    cues: list[RecallOptionsBody] = Field(min_length=1, max_length=64, description="One to 64 cues.")
    isolated: bool = Field(
        default=False,
        strict=True,
        description="Use one snapshot. Otherwise each query sees the accesses of the previous ones.",
    )


class ForgetBody(ScopeBody, FilterBody):
    """Memories of one scope to delete: by their ids, or all that the other fields admit."""

    model_config = build_example_config({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(
        default_factory=list[UUID], max_length=1_000, description="Memory IDs. Omit to use a filter."
    )
    dry_run: bool = Field(default=False, strict=True, description="Only list what would be deleted.")

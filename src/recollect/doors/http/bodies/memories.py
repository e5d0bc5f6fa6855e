"""Bodies of requests about memories and cues: as flat and plain as tools like Dify need them."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from recollect.doors.http.bodies.fields import (
    AS_OF,
    AT,
    EXAMPLE_ID,
    SCOPE,
    Body,
    Integer,
    Moment,
    Number,
    OfScope,
    PlainKind,
    PlainSource,
    ScopeNames,
    TopicPath,
    Vector,
    build,
    show,
)
from recollect.errors import InvalidInputError
from recollect.loading import own_zone
from recollect.models.memories import JSON, ImportanceFrom, Kind, NewMemory, Role


class ReachBody(Body):
    """How readily something is recalled by the topic that it is filed under."""

    activation: Number = Field(default=0.55, ge=0, le=1, description="How strongly it belongs to its topic.")
    diffusion: Number = Field(
        default=0.35, ge=0, le=1, description="How far it leads on from there, to related topics."
    )
    independence: Number = Field(default=0.5, ge=0, le=1, description="How well it can be understood by itself.")


class MemoryBody(ReachBody):
    """One thing to remember."""

    content: str = Field(min_length=1, max_length=32_000, description="What is remembered, as it was said or seen.")
    kind: PlainKind = Field(Kind.EVENT, description="One of message, event, chat, thought, fact, summary.")
    speaker: str = Field("", max_length=200, description="Who said it; searchable with the content.")
    importance: Number | None = Field(
        None,
        ge=1,
        le=10,
        description="1 (mundane) to 10 (life-changing); scored by rules, then by enrichment, if left out.",
    )
    subject: str = Field("", max_length=500, description="Who or what it is about, as in `Klaus Mueller`.")
    predicate: str = Field("", max_length=500, description="What the subject does or is, as in `reads`.")
    object: str = Field("", max_length=500, description="Whom or what it concerns, as in `a book`.")
    idle: bool | None = Field(
        None, strict=True, description="Whether nothing happens in it; as subject to object say if left out."
    )
    keywords: list[Annotated[str, Field(max_length=500)]] = Field(
        default_factory=list[str],
        max_length=64,
        description="Words to file it under; subject and object, a thought's predicate too, if left out.",
    )
    occurred_at: Moment | None = Field(None, description="When it happened, with an offset; now if left out.")
    evidence: list[UUID | Integer] = Field(
        default_factory=list[UUID | int],
        max_length=256,
        description="The memories it was made from: ids, or positions of earlier ones in this call, from 0.",
    )
    embedding_text: str = Field("", max_length=8_000, description="What to embed instead of speaker and content.")
    embedding: Vector = Field(
        default_factory=list[float], description="Its vector in the active space, if you have one."
    )
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON], description="Your own JSON, at most 16 KB; stored, not searched."
    )
    expires_at: Moment | None = Field(
        None, description="From when on it is not recalled any more, with an offset; never if left out."
    )
    topic: TopicPath = Field(default="", description="The path of the topic to file it under, as in `travel->Japan`.")
    related_topics: list[TopicPath] = Field(
        default_factory=list[str], max_length=16, description="Paths of topics that it leads to from its topic."
    )

    pinned: bool = Field(default=False, strict=True, description="Whether every context shows it, whatever the cue.")
    importance_from: PlainSource = Field(
        ImportanceFrom.CALLER, description="Who said how important it is, where an importance is given."
    )


class RememberBody(OfScope, MemoryBody):
    """Memories for one scope: as a list, or one with its fields next to the scope's."""

    model_config = show(
        {
            "agent": "ada",
            "user": "zhang-wei",
            "memories": [{"content": "张伟是一位资深软件工程师，在腾讯工作了五年", "importance": 6}],
        }
    )

    content: str = Field(
        "", max_length=32_000, description="Instead of memories: the one thing to remember, as it was said or seen."
    )
    memories: list[MemoryBody] = Field(
        default_factory=list[MemoryBody], max_length=1_000, description="One to 1,000 memories with their own fields."
    )

    if_new: Literal["", "same", "near"] = Field(
        "",
        description="Store only what is not known yet: `same` compares folded texts, `near` also their terms.",
    )

    def to_values(self) -> list[NewMemory]:
        """Turn the body into values."""
        if not self.memories and not self.content:
            raise InvalidInputError("There is nothing to remember: send memories, at least one, or one content.")
        if self.memories and self.content:
            raise InvalidInputError("Send either memories, or one content.")
        if not self.memories:
            return [build(NewMemory, self)]
        usual = RememberBody.model_validate({"agent": self.agent})
        if any(getattr(self, field) != getattr(usual, field) for field in MemoryBody.model_fields):
            raise InvalidInputError("With memories, each has its own fields: leave them out beside the list.")
        return [build(NewMemory, memory) for memory in self.memories]


class ReviseBody(OfScope):
    """What a revision changes of a memory; what is left out, or empty, stays as it is."""

    model_config = show({"agent": "ada", "content": "The dentist is at five."})

    content: str = Field("", max_length=32_000, description="What is remembered from now on.")
    importance: Number | None = Field(None, ge=1, le=10, description="1 (mundane) to 10 (life-changing).")
    speaker: str = Field("", max_length=200, description="Who said it.")
    keywords: list[Annotated[str, Field(max_length=500)]] = Field(
        default_factory=list[str], max_length=64, description="Words to file it under, in place of the others."
    )
    occurred_at: Moment | None = Field(None, description="When it happened, with an offset.")
    expires_at: Moment | None = Field(None, description="From when on it is not recalled any more, with an offset.")
    embedding_text: str = Field("", max_length=8_000, description="What to embed instead of speaker and content.")
    embedding: Vector = Field(
        default_factory=list[float], description="Its vector in the active space, if you have one."
    )
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON], description="Your own JSON, in place of the old."
    )
    topic: TopicPath = Field(default="", description="The path of the topic to file it under, in place of the others.")
    related_topics: list[TopicPath] = Field(
        default_factory=list[str], max_length=16, description="Paths of topics that it leads to from that topic."
    )
    pinned: bool | None = Field(None, strict=True, description="Whether every context shows it, whatever the cue.")


class LoadBody(OfScope):
    """Memories of an import for one scope."""

    model_config = show({"agent": "ada", "memories": [{"content": "张伟是一位资深软件工程师"}]})

    memories: list[MemoryBody] = Field(min_length=1, max_length=1_000, description="One to 1,000 memories.")


Names = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=64)]
Weight = Annotated[Number, Field(ge=0, le=1000)]


class WeighingBody(Body):
    """How the stream channel weighs its three factors; what is left out is taken from the agent's profile."""

    mode: str = Field(
        "", pattern="^(newest|original|paper)?$", description="newest, original or paper: how recency is computed."
    )
    recency: Weight | None = Field(default=None, description="Weight of recency.")
    similarity: Weight | None = Field(default=None, description="Weight of similarity.")
    importance: Weight | None = Field(default=None, description="Weight of importance.")
    gains: list[Weight] = Field(
        default_factory=list[float],
        max_length=3,
        description="What the three weights are multiplied with: three numbers, or none for the usual ones.",
    )
    decay: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="What recency keeps from one rank to the next; from one hour to the next in mode paper.",
    )


class FilterBody(Body):
    """What a read is restricted to."""

    kinds: list[Kind] = Field(default_factory=list[Kind], max_length=6, description="Only these kinds; all if empty.")
    conversations: Names = Field(default_factory=list[str], description="Only messages of these conversations.")
    roles: list[Role] = Field(default_factory=list[Role], max_length=4, description="Only messages of these roles.")
    speakers: Names = Field(default_factory=list[str], description="Only what these have said.")
    origins: Names = Field(default_factory=list[str], description="Only what came in by these ways.")
    topics: list[Annotated[str, Field(min_length=1, max_length=2_000)]] = Field(
        default_factory=list[str],
        max_length=16,
        description="Paths of topics, as in travel->Japan: what is filed there comes first; lists have nothing else.",
    )
    below: bool = Field(
        default=False, strict=True, description="Whether what lies below these topics counts as theirs."
    )
    topics_only: bool = Field(
        default=False, strict=True, description="Whether only what is filed under these topics is recalled."
    )
    since: Moment | None = Field(None, description="Only what happened then or later, with an offset.")
    until: Moment | None = Field(None, description="Only what happened before, with an offset.")
    min_trust: Integer = Field(0, ge=0, le=100, description="Only memories trusted at least this much.")
    min_importance: Number = Field(0.0, ge=0, le=10, description="Only memories at least this important, of 1 to 10.")
    as_of: Moment | None = Field(None, description=AS_OF)
    at: Moment | None = Field(None, description=AT)
    pinned: bool | None = Field(
        default=None, strict=True, description="Only what is pinned, or only what is not; both if left out."
    )
    state: str = Field(
        "",
        pattern="^(current|in_archived|faded|past|withheld)?$",
        description="Only what is in this state: current, in_archived, faded, past or withheld.",
    )
    where: list[Annotated[str, Field(max_length=2_000)]] = Field(
        default_factory=list[str],
        max_length=16,
        description="Conditions on metadata, as in project == alpha; with ==, !=, <, <=, >, >=, in, contains, exists.",
    )


class CueBody(WeighingBody, FilterBody):
    """A cue, and how to recall by it."""

    text: str = Field(
        "", max_length=8_000, description="What to be reminded of, in any language; if empty, the newest are listed."
    )
    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(
        None, description="Most hits to return; as the agent's profile has it, or 10, if left out."
    )
    channels: list[Annotated[str, Field(max_length=20)]] = Field(
        default_factory=list[str],
        max_length=16,
        description="Ways of recalling: any of text, vector, stream, keyword, graph, topic, date, recent; "
        "the usual ones if empty.",
    )
    weights: dict[str, Annotated[Number, Field(ge=-1000, le=1000)]] = Field(
        default_factory=dict[str, float],
        max_length=64,
        description="What channels and preferences weigh, by name; as usual for what is not named.",
    )
    zone: str = Field(
        default_factory=own_zone,
        min_length=1,
        max_length=64,
        description="Time zone of who asks, by its IANA name, as in Asia/Shanghai; that of the server if left out.",
    )
    consult: bool | None = Field(
        None,
        strict=True,
        description="Whether the chat model also reads the cue, for topics and days that rules do not find; as the "
        "agent's profile has it if left out.",
    )
    judge: bool | None = Field(
        None,
        strict=True,
        description="Whether the chat model looks the hits over and drops useless ones; as the agent's profile has it "
        "if left out.",
    )
    min_relevance: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None,
        description="Only hits that help with the cue at least so likely, 0 to 1. If left out, a recall returns all, "
        "and a prompt leaves out what is hardly likely to.",
    )
    keep: bool | None = Field(
        None,
        strict=True,
        description="Whether to keep the recall, to explain and replay it; as set if left out.",
    )
    explain: bool = Field(
        default=False, strict=True, description="Whether the answer says how it came about; nothing is kept for it."
    )
    also: ScopeNames = Field(
        default_factory=list[str],
        description="More scopes of the tenant to read beside this one, each as agent or agent/user; as the agent's "
        "profile has them if empty.",
    )
    touch: bool = Field(
        default=True, strict=True, description="Whether the hits count as accessed, and so as more recent from now on."
    )
    now: Moment | None = Field(None, description="The moment of the recall, for simulations with their own clock.")
    embedding: Vector = Field(default_factory=list[float], description="The cue's vector, if you have one.")


class RecallBody(OfScope, CueBody):
    """A cue for one scope."""

    model_config = show(SCOPE | {"text": "张伟在哪里工作？", "limit": 5})


class RecallEachBody(OfScope):
    """Several cues for one scope."""

    model_config = show({"agent": "ada", "cues": [{"text": "Klaus", "channels": ["stream"]}, {"text": "the party"}]})

    cues: list[CueBody] = Field(min_length=1, max_length=64, description="One to 64 cues.")
    isolated: bool = Field(
        default=False,
        strict=True,
        description="Answer all on one snapshot; if not, each cue notices that the hits before were accessed.",
    )


class ForgetBody(OfScope, FilterBody):
    """Memories of one scope to delete: by their ids, or all that the other fields admit."""

    model_config = show({"agent": "ada", "ids": [EXAMPLE_ID]})

    ids: list[UUID] = Field(
        default_factory=list[UUID], max_length=1_000, description="Ids of the memories to delete, without a filter."
    )
    dry_run: bool = Field(default=False, strict=True, description="Only list what would be deleted.")

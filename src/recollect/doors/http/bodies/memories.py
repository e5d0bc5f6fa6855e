"""What travels over HTTP: the bodies that callers send, as flat and plain as tools like Dify need them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, cast
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from recollect.errors import InvalidInputError
from recollect.models.memories import JSON, Kind, NewMemory, Receipt, Triple
from recollect.models.recall import Cue, Mode, Recollection, Weighing
from recollect.models.service import ApiKey, Bounds, Right
from recollect.models.topics import Reach

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{0,128}$")]
"""An agent's name; a key that is bound to an agent may leave it empty."""
FullName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{1,128}$")]
UserName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{0,128}$")]
PlainKind = Annotated[Kind, WithJsonSchema({"type": "string", "enum": [*map(str, Kind)]})]
"""A kind that the document describes in its place: tools like Dify do not follow a reference there."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Integer = Annotated[int, Field(strict=True)]
TopicPath = Annotated[str, Field(max_length=2_000)]
PATH = "The path of a topic, as in `travel->Japan`."
AGENT = "Whose memory it is; may be empty where the key is bound to an agent."
USER = "Whom it is about or with; empty for an agent alone."
AS_OF = "By what was stored by then, in the versions that were believed; with an offset, now if left out."
AT = "By what was true in the world then, or had happened; with an offset, by what is not over if left out."


def check_written(value: object) -> object:
    """Take moments as text only: a bare number could mean seconds or milliseconds."""
    written = isinstance(value, str) and value[4:5] == "-"
    if not (written or value is None or isinstance(value, datetime)):
        raise ValueError("must be written as in 2026-01-31T12:00:00+08:00")
    return value


Moment = Annotated[datetime, BeforeValidator(check_written)]


class Body(BaseModel):
    """A body that refuses unknown fields, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReachBody(Body):
    """How readily something comes to mind by the topic that it is filed under."""

    activation: Number = Field(default=0.55, ge=0, le=1, description="How strongly it belongs to its topic.")
    diffusion: Number = Field(
        default=0.35, ge=0, le=1, description="How far it leads on from there, to related topics."
    )
    independence: Number = Field(default=0.5, ge=0, le=1, description="How well it can be understood by itself.")

    def to_reach(self) -> Reach:
        """Turn the three into a value."""
        return Reach(self.activation, self.diffusion, self.independence)


class MemoryBody(ReachBody):
    """One thing to remember."""

    content: str = Field(min_length=1, max_length=32_000, description="What is remembered, as it was said or seen.")
    kind: PlainKind = Field(Kind.EVENT, description="One of message, event, chat, thought, fact, summary.")
    speaker: str = Field("", max_length=200, description="Who said it; searchable with the content.")
    importance: Number = Field(5.0, ge=1, le=10, description="1 (mundane) to 10 (life-changing).")
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
    embedding: list[Number] = Field(
        default_factory=list[float], max_length=4096, description="Its vector in the active space, if you have one."
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

    def to_value(self) -> NewMemory:
        """Turn the body into a value."""
        return NewMemory(
            content=self.content,
            kind=self.kind,
            speaker=self.speaker,
            importance=self.importance,
            triple=Triple(self.subject, self.predicate, self.object),
            idle=self.idle,
            keywords=tuple(self.keywords),
            occurred_at=self.occurred_at,
            evidence=tuple(self.evidence),
            embedding=self.embedding or None,
            embedding_text=self.embedding_text,
            metadata=self.metadata,
            expires_at=self.expires_at,
            topic=self.topic,
            related_topics=tuple(self.related_topics),
            reach=self.to_reach(),
        )


class RememberBody(MemoryBody):
    """Memories for one scope: as a list, or one with its fields beside the scope's."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agent": "ada",
                    "user": "zhang-wei",
                    "memories": [{"content": "张伟是一位资深软件工程师，在腾讯工作了五年", "importance": 6}],
                }
            ]
        }
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    content: str = Field(
        "", max_length=32_000, description="Instead of memories: the one thing to remember, as it was said or seen."
    )
    memories: list[MemoryBody] = Field(
        default_factory=list[MemoryBody], max_length=1_000, description="One to 1,000 memories with their own fields."
    )

    def to_values(self) -> list[NewMemory]:
        """Turn the body into values."""
        if not self.memories and not self.content:
            raise InvalidInputError("There is nothing to remember: send memories, at least one, or one content.")
        if self.memories and self.content:
            raise InvalidInputError("Send either memories, or one content.")
        if not self.memories:
            return [self.to_value()]
        usual = RememberBody.model_validate({"agent": self.agent})
        if any(getattr(self, field) != getattr(usual, field) for field in MemoryBody.model_fields):
            raise InvalidInputError("With memories, each has its own fields: leave them out beside the list.")
        return [memory.to_value() for memory in self.memories]


class LoadBody(Body):
    """Memories of an import for one scope."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent": "ada", "memories": [{"content": "张伟是一位资深软件工程师"}]}]}
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    memories: list[MemoryBody] = Field(min_length=1, max_length=1_000, description="One to 1,000 memories.")


class Loaded(BaseModel):
    """The ids of what was stored, in the order it was sent."""

    ids: list[UUID]


Weight = Annotated[Number, Field(ge=0, le=1000)]


class WeighingBody(Body):
    """How the stream channel weighs its three factors; what is left out is as the agent's profile has it, or usual."""

    mode: str = Field(
        "", pattern="^(newest|original|paper)?$", description="newest, original or paper: how recency is computed."
    )
    recency: Weight | None = Field(default=None, description="Weight of recency.")
    relevance: Weight | None = Field(default=None, description="Weight of relevance.")
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

    def to_weighing(self) -> Weighing:
        """Turn the body into a value."""
        mode = Mode(self.mode) if self.mode else None
        gains = cast("tuple[float, float, float]", tuple(self.gains)) if self.gains else None
        return Weighing(mode, self.recency, self.relevance, self.importance, gains, self.decay)


class CueBody(WeighingBody):
    """A cue, and how to recall by it."""

    text: str = Field("", max_length=8_000, description="What to be reminded of, in any language.")
    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(
        None, description="Most hits to return; as the agent's profile has it, or 10, if left out."
    )
    kinds: list[Kind] = Field(default_factory=list[Kind], max_length=6, description="Only these kinds; all if empty.")
    min_trust: Integer = Field(0, ge=0, le=100, description="Only memories trusted at least this much.")
    as_of: Moment | None = Field(None, description=AS_OF)
    at: Moment | None = Field(None, description=AT)
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
        "UTC", min_length=1, max_length=64, description="Time zone of who asks, by its IANA name, as in Asia/Shanghai."
    )
    since: Moment | None = Field(
        None, description="Begin of the period asked about, with an offset; read from the text if left out."
    )
    until: Moment | None = Field(None, description="End of that period, itself not within; with an offset.")
    topics: list[Annotated[str, Field(min_length=1, max_length=2_000)]] = Field(
        default_factory=list[str], max_length=16, description="Paths of topics asked about, as in travel->Japan."
    )
    descendants: bool = Field(
        default=False, strict=True, description="Whether what lies below these topics counts as theirs."
    )
    consult: bool = Field(
        default=False,
        strict=True,
        description="Whether the chat model also reads the cue, for topics and days that rules do not find.",
    )
    judge: bool = Field(
        default=False, strict=True, description="Whether the chat model looks the hits over and drops useless ones."
    )
    keep: bool | None = Field(
        None,
        strict=True,
        description="Whether to keep the recall, to explain and replay it; as set if left out.",
    )
    touch: bool = Field(
        default=True, strict=True, description="Whether the hits count as accessed, and so as more recent from now on."
    )
    now: Moment | None = Field(None, description="The moment of the recall, for simulations with their own clock.")
    embedding: list[Number] = Field(
        default_factory=list[float], max_length=4096, description="The cue's vector, if you have one."
    )

    def to_cue(self) -> Cue:
        """Turn the body into a value."""
        return Cue(
            text=self.text,
            embedding=self.embedding or None,
            limit=self.limit,
            kinds=tuple(self.kinds),
            min_trust=self.min_trust,
            as_of=self.as_of,
            at=self.at,
            channels=tuple(self.channels),
            weighing=self.to_weighing(),
            touch=self.touch,
            now=self.now,
            zone=self.zone,
            since=self.since,
            until=self.until,
            topics=tuple(self.topics),
            descendants=self.descendants,
            weights=self.weights,
            consult=self.consult,
            judge=self.judge,
            keep=self.keep,
        )


class RecallBody(CueBody):
    """A cue for one scope."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent": "ada", "user": "zhang-wei", "text": "张伟在哪里工作？", "limit": 5}]}
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)


class RecallEachBody(Body):
    """Several cues for one scope."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"agent": "ada", "cues": [{"text": "Klaus", "channels": ["stream"]}, {"text": "the party"}]}]
        }
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    cues: list[CueBody] = Field(min_length=1, max_length=64, description="One to 64 cues.")
    isolated: bool = Field(
        default=False,
        strict=True,
        description="Answer all on one snapshot; if not, each cue notices that the hits before were accessed.",
    )


class Recollections(BaseModel):
    """The answers to several cues, in their order."""

    recollections: list[Recollection]


class ForgetBody(Body):
    """Memories of one scope to delete."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent": "ada", "ids": ["01a1dd05-b16b-7000-b535-83c8ebea4fa9"]}]}
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    ids: list[UUID] = Field(min_length=1, max_length=1_000, description="Ids of the memories to delete.")


class KeyBody(Body):
    """A key to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "web-bot", "rights": ["read", "write"]}]})

    name: str = Field(min_length=1, max_length=200, description="Shown as the origin of what the key remembers.")
    rights: list[Right] = Field(min_length=1, max_length=3, description="Any of read, write, admin.")
    trust: Integer = Field(50, ge=0, le=100, description="How far its memories are trusted; at most your own key's.")
    agent: FullName | None = Field(None, description="The only agent that it may name; any if left out.")
    user: UserName | None = Field(
        None, description="The only user of that agent that it may name; any if left out, the agent alone if empty."
    )

    def to_bounds(self) -> Bounds:
        """Turn the names into a value."""
        return Bounds(self.agent, self.user)


class Receipts(BaseModel):
    """What was stored, in the order it was sent."""

    memories: list[Receipt]


class Forgotten(BaseModel):
    """What was deleted: the memory and all that was derived from it."""

    forgotten: list[UUID]


class NewKey(BaseModel):
    """A fresh key; the secret is shown this once."""

    key: ApiKey
    secret: str


class Keys(BaseModel):
    """The keys of a tenant."""

    keys: list[ApiKey]

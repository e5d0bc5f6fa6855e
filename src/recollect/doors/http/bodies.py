"""What travels over HTTP: the bodies that callers send, as flat and plain as tools like Dify need them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from recollect.models import JSON, ApiKey, Cue, Kind, NewMemory, Receipt, Right

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{1,128}$")]
UserName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{0,128}$")]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Integer = Annotated[int, Field(strict=True)]
AGENT = "Whose memory it is."
USER = "Whom it is about or with; empty for an agent alone."


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


class MemoryBody(Body):
    """One thing to remember."""

    content: str = Field(min_length=1, max_length=32_000, description="What is remembered, as it was said or seen.")
    kind: Kind = Field(Kind.EVENT, description="One of message, event, chat, thought, fact, summary.")
    speaker: str = Field("", max_length=200, description="Who said it; searchable with the content.")
    importance: Number = Field(5.0, ge=1, le=10, description="1 (mundane) to 10 (life-changing).")
    keywords: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list[str], max_length=64, description="Words to file it under."
    )
    occurred_at: Moment | None = Field(None, description="When it happened, with an offset; now if left out.")
    evidence: list[UUID] = Field(
        default_factory=list[UUID], max_length=256, description="Ids of the memories it was made from."
    )
    embedding: list[Number] = Field(
        default_factory=list[float], max_length=4096, description="Its vector in the active space, if you have one."
    )
    metadata: dict[str, JSON] = Field(
        default_factory=dict[str, JSON], description="Your own JSON, at most 16 KB; stored, not searched."
    )

    def to_value(self) -> NewMemory:
        """Turn the body into a value."""
        return NewMemory(
            content=self.content,
            kind=self.kind,
            speaker=self.speaker,
            importance=self.importance,
            keywords=tuple(self.keywords),
            occurred_at=self.occurred_at,
            evidence=tuple(self.evidence),
            embedding=self.embedding or None,
            metadata=self.metadata,
        )


class RememberBody(Body):
    """Memories for one scope."""

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
    memories: list[MemoryBody] = Field(min_length=1, max_length=1_000, description="One to 1,000 memories.")


class RecallBody(Body):
    """A cue for one scope."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"agent": "ada", "user": "zhang-wei", "text": "张伟在哪里工作？", "limit": 5}]}
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    text: str = Field("", max_length=8_000, description="What to be reminded of, in any language.")
    limit: Integer = Field(10, ge=1, le=200, description="Most hits to return.")
    kinds: list[Kind] = Field(default_factory=list[Kind], max_length=6, description="Only these kinds; all if empty.")
    min_trust: Integer = Field(0, ge=0, le=100, description="Only memories trusted at least this much.")
    as_of: Moment | None = Field(None, description="Answer as at this moment, with an offset.")
    embedding: list[Number] = Field(
        default_factory=list[float], max_length=4096, description="The cue's vector, if you have one."
    )

    def to_value(self) -> Cue:
        """Turn the body into a value."""
        return Cue(
            text=self.text,
            embedding=self.embedding or None,
            limit=self.limit,
            kinds=tuple(self.kinds),
            min_trust=self.min_trust,
            as_of=self.as_of,
        )


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

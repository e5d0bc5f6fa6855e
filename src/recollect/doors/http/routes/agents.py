"""Routes for an agent: its profile, what it associates, and its reflections."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from recollect.doors.http.auth import AsOf, At
from recollect.doors.http.bodies.fields import (
    AS_OF,
    AT,
    EXAMPLE_ID,
    SCOPE,
    Body,
    Integer,
    Moment,
    Number,
    OfAgent,
    OfScope,
    ScopeNames,
    build,
    show,
)
from recollect.doors.http.bodies.memories import FilterBody, WeighingBody
from recollect.doors.http.routes.service import JobId
from recollect.doors.http.serve import forward, serve
from recollect.errors import InvalidInputError, NotFoundError
from recollect.mind.mind import Mind
from recollect.models.agents import Association, Feedback, Mark, Profile
from recollect.models.memories import Memory, Triple
from recollect.models.recall import Factors, Script

router = APIRouter(tags=["agents"])
Factor = Annotated[Number, Field(ge=0, le=1)]
Days = Annotated[Number, Field(ge=0, le=36_500)]
associations = APIRouter(tags=["memories"])
reflections = APIRouter(tags=["memories"])
Partner = Annotated[str, Query(min_length=1, max_length=500, description="With whom.", examples=["Maria Lopez"])]


class ProfileBody(OfAgent, WeighingBody, FilterBody):
    """An agent's settings, with what its recalls are restricted to; what is left out returns to its default."""

    model_config = show({"agent": "ada", "recency": 2.0})

    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(None, description="Most hits to return.")
    channels: list[Annotated[str, Field(max_length=20)]] = Field(
        default_factory=list[str], max_length=16, description="Ways of recalling; the usual ones if empty."
    )
    weights: dict[str, Annotated[Number, Field(ge=-1000, le=1000)]] = Field(
        default_factory=dict[str, float], max_length=64, description="What channels and preferences weigh, by name."
    )
    min_relevance: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None, description="Only hits that help with the cue at least so likely, 0 to 1."
    )
    consult: bool | None = Field(None, strict=True, description="Whether the chat model also reads the cues.")
    judge: bool | None = Field(None, strict=True, description="Whether the chat model drops useless hits.")
    also: ScopeNames = Field(
        default_factory=list[str],
        description="More scopes that every recall reads beside its own, each as agent or agent/user.",
    )
    reflection_threshold: Annotated[Number, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="How much importance must gather before the agent reflects; 0 means never."
    )
    archive_after_days: Days | None = Field(
        None, description="Days without use before a conversation is archived; 0 means never."
    )
    delete_after_days: Days | None = Field(
        None, description="Days without use before a conversation is deleted; 0 means never."
    )
    purge_after_days: Days | None = Field(
        None, description="Days between a conversation's deletion and its purge; 0 means never."
    )
    fading_days: Days | None = Field(
        None, description="Days over which a memory fades that nobody recalls; 0 means never."
    )
    fading_threshold: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None, description="What scores above it fades; 0.7 if left out."
    )
    fading_fact_days: Days | None = Field(
        None, description="How many days old a fact may grow; any age if left out or 0."
    )
    segment_depth: Annotated[Number, Field(ge=0, le=2)] | None = Field(
        None, description="How far likeness must dip where a topic ends; 0.5 if left out, 2 ends none."
    )
    idle_minutes: Annotated[Number, Field(ge=0, le=525_600)] | None = Field(
        None, description="Minutes of silence that end a segment; 60 if left out, 0 means never."
    )
    enrich: Literal["talk", "all"] = Field(
        "talk", description="What is learned from: talk, or all, which includes remembered events."
    )
    names: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list[str],
        max_length=20,
        description="What those are called whose memory it is; cues are read without their names.",
    )
    language: Literal["", "en", "zh"] = Field(
        "", description="The language of the words around memories in a prompt; the cue's if empty."
    )


class MarkBody(Body):
    """One hit judged useful or not, with what it was ranked by: shares, or the factors of the channel `stream`."""

    memory_id: UUID = Field(description="The hit's memory.")
    useful: bool = Field(strict=True, description="Whether it was of use.")
    shares: dict[str, Annotated[Number, Field(ge=-1, le=1)]] = Field(
        default_factory=dict[str, float],
        max_length=64,
        description="What each channel (`channels.NAME.share`) and preference (`preferences`) added to its score.",
    )
    recency: Factor | None = Field(None, description="Of `channels.stream.factors`, 0 to 1.")
    similarity: Factor | None = Field(None, description="Of `channels.stream.factors`, 0 to 1.")
    importance: Factor | None = Field(None, description="Of `channels.stream.factors`, 0 to 1.")
    rank: Annotated[Integer, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="The place by last access, of `channels.stream.factors`."
    )

    def to_mark(self) -> Mark:
        """Turn the body into a mark; the four factors are given together."""
        recency, similarity, importance, rank = self.recency, self.similarity, self.importance, self.rank
        if recency is not None and similarity is not None and importance is not None and rank is not None:
            return Mark(self.memory_id, self.useful, Factors(recency, similarity, importance, rank), self.shares)
        if any(factor is not None for factor in (recency, similarity, importance, rank)):
            raise InvalidInputError("a mark has recency, similarity, importance and rank, or none of them")
        return Mark(self.memory_id, self.useful, None, self.shares)


class FeedbackBody(OfScope):
    """What a caller says of the hits of one recall."""

    model_config = show(
        {
            "agent": "ada",
            "marks": [{"memory_id": EXAMPLE_ID, "useful": True, "shares": {"vector": 0.21, "coverage": 0.12}}],
        }
    )

    marks: list[MarkBody] = Field(min_length=1, max_length=200, description="One to 200 hits of the same recall.")
    candidates: Annotated[Integer, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="What the recall had in `tallies.stream.candidates`, where marks have factors."
    )
    script: Literal["words", "cjk"] = Field("words", description="What the recall had in `facets.script`.")
    recall_id: UUID | None = Field(None, description="A name of yours: sent again, it changes marks and counts once.")


class TuneBody(OfAgent):
    """An agent to tune."""

    model_config = show({"agent": "ada"})

    apply: bool = Field(
        default=False, strict=True, description="Whether to put what was learned into the profile, if it does no worse."
    )


class TripleBody(Body):
    """What is perceived, in three parts; any may be empty."""

    subject: str = Field("", max_length=500, description="Who or what it is about.")
    predicate: str = Field("", max_length=500, description="What it does.")
    object: str = Field("", max_length=500, description="To whom or what.")


class AssociateBody(OfScope, TripleBody):
    """Triples for one scope: a list, or one as its three parts."""

    model_config = show(
        {"agent": "ada", "triples": [{"subject": "Maria Lopez", "predicate": "drink", "object": "coffee"}]}
    )

    triples: list[TripleBody] = Field(
        default_factory=list[TripleBody],
        max_length=100,
        description="One to 100 perceived triples, each with subject, predicate and object; or send these three alone.",
    )
    limit: Integer = Field(
        30, ge=1, le=1_000, description="Most events, and most thoughts, for each; times the triples at most 10,000."
    )
    original: bool = Field(False, strict=True, description="Find what the code of Generative Agents would.")  # noqa: FBT003
    as_of: Moment | None = Field(None, description=AS_OF)
    at: Moment | None = Field(None, description=AT)

    def to_values(self) -> list[Triple]:
        """Turn the body into values."""
        alone = build(Triple, self)
        if bool(self.triples) == (alone != Triple()):
            raise InvalidInputError("Send either triples, or one subject, predicate and object.")
        return [build(Triple, triple) for triple in self.triples] or [alone]


class ReflectBody(OfScope):
    """A scope to reflect in."""

    model_config = show(SCOPE)

    now: Moment | None = Field(None, description="The moment to reflect at, with an offset; the present if left out.")


forward(router, "overview", "overview")
forward(
    router,
    "activity",
    "activity",
    days=Annotated[int, Query(ge=1, le=366, description="How many days to look back, today included.")],
    zone=Annotated[
        str,
        Query(
            max_length=64,
            description="Where days begin, by its IANA name, as in Asia/Shanghai; where the server is if left out.",
        ),
    ],
)
forward(router, "profile", "profile")


@serve(router, "set_profile", gives=Profile)
async def set_profile(mind: Mind, body: ProfileBody) -> Profile:
    """Answer with the profile as it is now."""
    chosen = build(Profile, body)
    await mind.set_profile(chosen)
    return chosen


forward(router, "metadata", "metadata")
forward(router, "tune", "tune", TuneBody)


@serve(router, "feedback")
async def feedback(mind: Mind, body: FeedbackBody) -> int:
    """Take marks with what the recall said of each hit."""
    marks = tuple(mark.to_mark() for mark in body.marks)
    return await mind.feedback(Feedback(marks, body.candidates, body.recall_id, Script(body.script)))


@serve(associations, "associate")
async def associate(mind: Mind, body: AssociateBody) -> list[Association]:
    """Take a list of triples, or one."""
    return await mind.associate(
        body.to_values(), limit=body.limit, original=body.original, as_of=body.as_of, at=body.at
    )


@serve(associations, "last_chat", errors=[404], gives=Memory)
async def last_chat(mind: Mind, name: Partner, as_of: AsOf = None, at: At = None) -> Memory:
    """Answer 404 where there was no chat."""
    chat = await mind.last_chat(name, as_of=as_of, at=at)
    if chat is None:
        raise NotFoundError("There is no chat with this name in this scope.")
    return chat


forward(reflections, "reflect", "reflect_later", ReflectBody, errors=[404])
forward(reflections, "read_reflection", "reflection", errors=[404], job_id=JobId)

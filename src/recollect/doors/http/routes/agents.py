"""Routes for an agent: its profile, its associations and its reflections."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from recollect.doors.http.bodies.fields import (
    AS_OF,
    AT,
    EXAMPLE_ID,
    SCOPE,
    AgentBody,
    Body,
    Integer,
    Moment,
    Number,
    ScopeBody,
    ScopeNames,
    build,
    build_example_config,
)
from recollect.doors.http.bodies.memories import FilterBody, StreamWeightsBody
from recollect.doors.http.routes.service import JobId
from recollect.doors.http.routing import forward, serve
from recollect.errors import InvalidInputError
from recollect.mind.mind import Mind
from recollect.models.agents import Association, Feedback, HitFeedback, Profile
from recollect.models.memories import Triple
from recollect.models.recall import Factors, Script

router = APIRouter(tags=["agents"])
Factor = Annotated[Number, Field(ge=0, le=1)]
Days = Annotated[Number, Field(ge=0, le=36_500)]
associations = APIRouter(tags=["memories"])
reflections = APIRouter(tags=["memories"])


class ProfileBody(AgentBody, StreamWeightsBody, FilterBody):
    """An agent's settings and the filter of its recalls; fields that are left out return to their defaults."""

    model_config = build_example_config({"agent": "ada", "recency": 2.0})

    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(None, description="Maximum number of hits.")
    channels: list[Annotated[str, Field(max_length=20)]] = Field(
        default_factory=list[str], max_length=16, description="Channels to search. Default: the usual ones."
    )
    weights: dict[str, Annotated[Number, Field(ge=-1000, le=1000)]] = Field(
        default_factory=dict[str, float], max_length=64, description="Weights of channels and preferences by name."
    )
    min_relevance: Annotated[Number, Field(ge=0, le=1)] | None = Field(None, description="Minimum relevance, 0 to 1.")
    consult: bool | None = Field(None, strict=True, description="Whether the chat model also reads the cues.")
    judge: bool | None = Field(None, strict=True, description="Whether the chat model drops useless hits.")
    also: ScopeNames = Field(
        default_factory=list[str],
        description="More scopes that every recall searches, as agent or agent/user.",
    )
    reflection_threshold: Annotated[Number, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="Total importance that triggers a reflection; 0 = never."
    )
    archive_after_days: Days | None = Field(
        None, description="Archive a conversation after this many idle days; 0 = never."
    )
    delete_after_days: Days | None = Field(
        None, description="Days without use before a conversation is deleted; 0 means never."
    )
    purge_after_days: Days | None = Field(
        None, description="Days between a conversation's deletion and its purge; 0 means never."
    )
    fading_days: Days | None = Field(None, description="Days until an unused memory fades; 0 = never.")
    fading_threshold: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None, description="Memories that score above this fade. Default: 0.7."
    )
    fading_fact_days: Days | None = Field(None, description="Maximum age of a fact in days; 0 = no limit (default).")
    segment_depth: Annotated[Number, Field(ge=0, le=2)] | None = Field(
        None, description="Similarity drop that ends a segment. Default: 0.5; 2 = never."
    )
    idle_minutes: Annotated[Number, Field(ge=0, le=525_600)] | None = Field(
        None, description="Idle minutes that end a segment. Default: 60; 0 = never."
    )
    enrich: Literal["talk", "all"] = Field(
        "talk", description="Learn from conversations (`talk`) or also from events (`all`)."
    )
    names: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list[str],
        max_length=20,
        description="Names of the agent and the user, ignored in queries.",
    )
    language: Literal["", "en", "zh"] = Field(
        "", description="Language of the headings in prompts. Default: that of the query."
    )


class MarkBody(Body):
    """One hit judged useful or not, with its ranking: shares, or the factors of the channel `stream`."""

    memory_id: UUID = Field(description="The hit's memory.")
    useful: bool = Field(strict=True, description="Whether the hit was useful.")
    shares: dict[str, Annotated[Number, Field(ge=-1, le=1)]] = Field(
        default_factory=dict[str, float],
        max_length=64,
        description="Share of each channel (`channels.NAME.share`) and preference in its score.",
    )
    recency: Factor | None = Field(None, description="Of `channels.stream.factors`, 0 to 1.")
    similarity: Factor | None = Field(None, description="Of `channels.stream.factors`, 0 to 1.")
    importance: Factor | None = Field(None, description="Of `channels.stream.factors`, 0 to 1.")
    rank: Annotated[Integer, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="Rank by last access, from `channels.stream.factors`."
    )

    def to_mark(self) -> HitFeedback:
        """Turn the body into a mark; the four factors are given together."""
        recency, similarity, importance, rank = self.recency, self.similarity, self.importance, self.rank
        if recency is not None and similarity is not None and importance is not None and rank is not None:
            return HitFeedback(self.memory_id, self.useful, Factors(recency, similarity, importance, rank), self.shares)
        if any(factor is not None for factor in (recency, similarity, importance, rank)):
            raise InvalidInputError("a mark needs all of recency, similarity, importance and rank, or none")
        return HitFeedback(self.memory_id, self.useful, None, self.shares)


class FeedbackBody(ScopeBody):
    """Feedback on the hits of one recall."""

    model_config = build_example_config(
        {
            "agent": "ada",
            "marks": [{"memory_id": EXAMPLE_ID, "useful": True, "shares": {"vector": 0.21, "coverage": 0.12}}],
        }
    )

    marks: list[MarkBody] = Field(min_length=1, max_length=200, description="One to 200 hits of the same recall.")
    candidates: Annotated[Integer, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="`tallies.stream.candidates` of the recall, if the marks have factors."
    )
    script: Literal["words", "cjk"] = Field("words", description="What the recall had in `facets.script`.")
    recall_id: UUID | None = Field(None, description="Your ID for this feedback. Sending it again replaces the marks.")


class TripleBody(Body):
    """An observation in three parts; any may be empty."""

    subject: str = Field("", max_length=500, description="The person or thing that acts.")
    predicate: str = Field("", max_length=500, description="The action or relation.")
    object: str = Field("", max_length=500, description="The person or thing affected.")


class AssociateBody(ScopeBody, TripleBody):
    """Triples for one scope: a list, or one as its three parts."""

    model_config = build_example_config(
        {"agent": "ada", "triples": [{"subject": "Maria Lopez", "predicate": "drink", "object": "coffee"}]}
    )

    triples: list[TripleBody] = Field(
        default_factory=list[TripleBody],
        max_length=100,
        description="One to 100 perceived triples, each with subject, predicate and object; or send these three alone.",
    )
    limit: Integer = Field(30, ge=1, le=1_000, description="Maximum number of events and of thoughts per triple.")
    original: bool = Field(False, strict=True, description="Match the code of Generative Agents exactly.")  # noqa: FBT003
    as_of: Moment | None = Field(None, description=AS_OF)
    at: Moment | None = Field(None, description=AT)

    def to_values(self) -> list[Triple]:
        """Turn the body into values."""
        alone = build(Triple, self)
        if bool(self.triples) == (alone != Triple()):
            raise InvalidInputError("Send either triples, or one subject, predicate and object.")
        return [build(Triple, triple) for triple in self.triples] or [alone]


class ReflectBody(ScopeBody):
    """A scope to reflect in."""

    model_config = build_example_config(SCOPE)

    now: Moment | None = Field(None, description="Time of the reflection. Default: now.")


forward(
    router,
    "overview",
    "overview",
    days=Annotated[int, Query(ge=0, le=366, description="Count memories of the last days, including today.")],
    zone=Annotated[
        str,
        Query(
            max_length=64,
            description="IANA time zone in which days begin, for example Asia/Shanghai. Default: the server's.",
        ),
    ],
)
forward(router, "profile", "profile")


@serve(router, "set_profile")
async def set_profile(mind: Mind, body: ProfileBody) -> Profile:
    """Answer with the profile as it is now."""
    return await mind.set_profile(build(Profile, body))


@serve(router, "feedback")
async def feedback(mind: Mind, body: FeedbackBody) -> int:
    """Record marks with the recall's data about each hit."""
    marks = tuple(mark.to_mark() for mark in body.marks)
    return await mind.feedback(Feedback(marks, body.candidates, body.recall_id, Script(body.script)))


@serve(associations, "associate")
async def associate(mind: Mind, body: AssociateBody) -> list[Association]:
    """Find associations of one triple or a list."""
    return await mind.associate(
        body.to_values(), limit=body.limit, original=body.original, as_of=body.as_of, at=body.at
    )


forward(reflections, "reflect", "reflect_later", ReflectBody, errors=[404])
forward(reflections, "read_reflection", "reflection", errors=[404], job_id=JobId)

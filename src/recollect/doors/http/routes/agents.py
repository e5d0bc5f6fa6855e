"""Routes for an agent: its profile, what it associates, and its reflections."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.auth import JSON, Admitted, Agent, AskedTimes, User
from recollect.doors.http.bodies.memories import (
    AGENT,
    AS_OF,
    AT,
    USER,
    Body,
    Integer,
    Moment,
    Name,
    Number,
    UserName,
    WeighingBody,
)
from recollect.doors.http.problems import describe
from recollect.doors.http.routes.service import JobId
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.agents import Feedback, Mark, Overview, Profile, ReflectionProgress, Tuning
from recollect.models.memories import Kind, Memory, Triple
from recollect.models.recall import Association, Factors

OVERVIEW, PROFILE, TUNING = TypeAdapter(Overview), TypeAdapter(Profile), TypeAdapter(Tuning)
router = APIRouter(prefix="/v1", tags=["agents"])
Factor = Annotated[Number, Field(ge=0, le=1)]
Days = Annotated[Number, Field(ge=0, le=36_500)]
MEMORY = TypeAdapter(Memory)
associations = APIRouter(prefix="/v1", tags=["memories"])
PROGRESS = TypeAdapter(ReflectionProgress)
reflections = APIRouter(prefix="/v1", tags=["memories"])


class ProfileBody(WeighingBody):
    """What an agent is to go by; what is left out is as usual again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "recency": 2.0}]})

    agent: Name = Field(description=AGENT)
    kinds: list[Kind] = Field(
        default_factory=list[Kind], max_length=6, description="What the stream looks at; events and thoughts if empty."
    )
    limit: Annotated[Integer, Field(ge=1, le=200)] | None = Field(None, description="Most hits to return.")
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
    topic_threshold: Factor | None = Field(
        None, description="Below which cosine to a segment what the user says begins another topic; 0.7 if left out."
    )
    idle_minutes: Annotated[Number, Field(ge=0, le=525_600)] | None = Field(
        None, description="Minutes of silence that end a segment; 60 if left out, 0 means never."
    )
    names: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list[str],
        max_length=20,
        description="What those are called whose memory it is; cues are read without their names.",
    )

    def to_value(self) -> Profile:
        """Turn the body into a value."""
        return Profile(
            self.to_weighing(),
            tuple(self.kinds),
            self.limit,
            self.reflection_threshold,
            self.archive_after_days,
            self.delete_after_days,
            self.purge_after_days,
            self.fading_days,
            self.fading_threshold,
            self.fading_fact_days,
            topic_threshold=self.topic_threshold,
            idle_minutes=self.idle_minutes,
            names=tuple(self.names),
        )


class MarkBody(Body):
    """One hit judged useful or not, with the factors that the recall gave for it in `channels.stream.factors`."""

    memory_id: UUID = Field(description="The hit's memory.")
    useful: bool = Field(strict=True, description="Whether it was of use.")
    recency: Factor = Field(description="0 to 1, as the hit had it.")
    relevance: Factor = Field(description="0 to 1, as the hit had it.")
    importance: Factor = Field(description="0 to 1, as the hit had it.")
    rank: Integer = Field(ge=0, le=2**31 - 1, description="The place by last access, as the hit had it.")

    def to_value(self) -> Mark:
        """Turn the body into a value."""
        return Mark(self.memory_id, self.useful, Factors(self.recency, self.relevance, self.importance, self.rank))


class FeedbackBody(Body):
    """What a caller says of the hits of one recall."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agent": "ada",
                    "marks": [
                        {
                            "memory_id": "01a1dd05-b16b-7000-b535-83c8ebea4fa9",
                            "useful": True,
                            "recency": 0.9,
                            "relevance": 1.0,
                            "importance": 0.5,
                            "rank": 12,
                        }
                    ],
                    "candidates": 200,
                }
            ]
        }
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    marks: list[MarkBody] = Field(min_length=1, max_length=200, description="One to 200 hits of the same recall.")
    candidates: Integer = Field(ge=1, le=2**31 - 1, description="What the recall had in `tallies.stream.candidates`.")

    recall_id: UUID | None = Field(None, description="A name of yours: sent again, it changes marks and counts once.")

    def to_value(self) -> Feedback:
        """Turn the body into a value."""
        return Feedback(tuple(mark.to_value() for mark in self.marks), self.candidates, self.recall_id)


class TuneBody(Body):
    """An agent to tune."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada"}]})

    agent: Name = Field(description=AGENT)
    apply: bool = Field(
        default=False, strict=True, description="Whether to put what was learned into the profile, if it does no worse."
    )


class AgentMetadata(BaseModel):
    """What callers keep of an agent for themselves."""

    metadata: dict[str, Any]


class Marked(BaseModel):
    """How many hits were marked."""

    marked: int


@router.get("/overview", response_model=Overview, responses=describe())
async def overview(agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Say what a scope holds, in numbers: memories by kind, what waits to be reflected upon, the strongest keywords."""
    mind = await admit(agent, user)
    return Response(OVERVIEW.dump_json(await mind.overview()), media_type=JSON)


@router.get("/profile", response_model=Profile, responses=describe())
async def profile(agent: Agent, admit: Admitted) -> Response:
    """Read an agent's default settings, which hold in all its scopes; null means the usual default."""
    mind = await admit(agent, "")
    return Response(PROFILE.dump_json(await mind.profile()), media_type=JSON)


@router.put("/profile", response_model=Profile, responses=describe())
async def set_profile(body: ProfileBody, admit: Admitted) -> Response:
    """Change an agent's default settings in all its scopes."""
    mind = await admit(body.agent, "")
    chosen = body.to_value()
    await mind.set_profile(chosen)
    return Response(PROFILE.dump_json(chosen), media_type=JSON)


@router.get("/metadata", response_model=AgentMetadata, responses=describe())
async def metadata(agent: Agent, admit: Admitted) -> Response:
    """Read what callers keep of an agent for themselves, such as what an import brought along."""
    mind = await admit(agent, "")
    return Response(AgentMetadata(metadata=dict(await mind.metadata())).model_dump_json(), media_type=JSON)


@router.post("/tune", response_model=Tuning, responses=describe())
async def tune(body: TuneBody, admit: Admitted) -> Response:
    """Learn an agent's weights from its feedback, before and after on feedback held out; `apply` needs `admin`."""
    mind = await admit(body.agent, "")
    return Response(TUNING.dump_json(await mind.tune(apply=body.apply)), media_type=JSON)


@router.post("/feedback", status_code=201, response_model=Marked, responses=describe())
async def feedback(body: FeedbackBody, admit: Admitted) -> Marked:
    """Mark hits of a recall as useful or not, so that the agent's weights can be learned from it."""
    mind = await admit(body.agent, body.user)
    return Marked(marked=await mind.feedback(body.to_value()))


class TripleBody(Body):
    """What is perceived, in three parts; any may be empty."""

    subject: str = Field("", max_length=500, description="Who or what it is about.")
    predicate: str = Field("", max_length=500, description="What it does.")
    object: str = Field("", max_length=500, description="To whom or what.")

    def to_value(self) -> Triple:
        """Turn the body into a value."""
        return Triple(self.subject, self.predicate, self.object)


class AssociateBody(TripleBody):
    """What one scope is to be reminded by: a list of triples, or one as its three parts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"agent": "ada", "triples": [{"subject": "Maria Lopez", "predicate": "drink", "object": "coffee"}]}
            ]
        }
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
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
        alone = self.to_value()
        if bool(self.triples) == (alone != Triple()):
            raise InvalidInputError("Send either triples, or one subject, predicate and object.")
        return [triple.to_value() for triple in self.triples] or [alone]


class Associations(BaseModel):
    """What each triple reminds of, in the order they were sent."""

    associations: list[Association]


@associations.post("/associate", response_model=Associations, responses=describe())
async def associate(body: AssociateBody, admit: Admitted) -> Response:
    """Give back which events and thoughts of a scope perceived triples remind of, by the keywords they share."""
    mind = await admit(body.agent, body.user)
    found = await mind.associate(
        body.to_values(), limit=body.limit, original=body.original, as_of=body.as_of, at=body.at
    )
    return Response(Associations(associations=found).model_dump_json(), media_type=JSON)


@associations.get("/last-chat", response_model=Memory, responses=describe(404))
async def last_chat(
    agent: Agent,
    admit: Admitted,
    name: Annotated[str, Query(min_length=1, max_length=500, description="With whom.", examples=["Maria Lopez"])],
    times: AskedTimes,
    user: User = "",
) -> Response:
    """Read the newest chat of a scope with somebody."""
    mind = await admit(agent, user)
    chat = await mind.last_chat(name, as_of=times.as_of, at=times.at)
    if chat is None:
        raise NotFoundError("There is no chat with this name in this scope.")
    return Response(MEMORY.dump_json(chat), media_type=JSON)


class ReflectBody(Body):
    """A scope to reflect in."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": "ada", "user": "zhang-wei"}]})

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
    now: Moment | None = Field(None, description="The moment to reflect at, with an offset; the present if left out.")


class Deferred(BaseModel):
    """What was left to the worker."""

    job: int = Field(description="The job's number; the same one while it waits.")


@reflections.post("/reflect", status_code=202, response_model=Deferred, responses=describe(404))
async def reflect(body: ReflectBody, admit: Admitted) -> Deferred:
    """Let the agent think about what has gathered in a scope: a job asks the chat model and remembers the thoughts."""
    mind = await admit(body.agent, body.user)
    return Deferred(job=await mind.reflect_later(body.now))


@reflections.get("/reflections/{job_id}", response_model=ReflectionProgress, responses=describe(404))
async def read_reflection(job_id: JobId, agent: Agent, admit: Admitted, user: User = "") -> Response:
    """Say how far a reflection is that was left to the worker, and once it has succeeded what came of it."""
    mind = await admit(agent, user)
    return Response(PROGRESS.dump_json(await mind.reflection(job_id)), media_type=JSON)

"""Routes for being reminded by keywords: associate, and the last chat with somebody."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.bodies import AGENT, AS_OF, AT, USER, Body, Integer, Moment, Name, UserName
from recollect.doors.http.door import Admission, admission
from recollect.doors.http.problems import describe
from recollect.doors.http.times import AskedTimes
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.memories import Memory, Triple
from recollect.models.recall import Association

JSON = "application/json"
MEMORY = TypeAdapter(Memory)
router = APIRouter(prefix="/v1", tags=["memories"])
Admitted = Annotated[Admission, Depends(admission)]
Agent = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]


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


@router.post("/associate", response_model=Associations, responses=describe())
async def associate(body: AssociateBody, admit: Admitted) -> Response:
    """Give back which events and thoughts of a scope perceived triples remind of, by the keywords they share."""
    mind = await admit(body.agent, body.user)
    found = await mind.associate(
        body.to_values(), limit=body.limit, original=body.original, as_of=body.as_of, at=body.at
    )
    return Response(Associations(associations=found).model_dump_json(), media_type=JSON)


@router.get("/last-chat", response_model=Memory, responses=describe(404))
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

"""Authentication of a request by its bearer key, the scope that it names, and parameters of many requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias, cast
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request
from fastapi.security import HTTPBearer
from pydantic import BeforeValidator

from recollect.doors.http.bodies.fields import AGENT, AS_OF, AT, EXAMPLE_ID, USER, Moment, Name
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect

DOOR = "http"
JSON = "application/json"
API_KEY_MISSING = "Send your API key as `Authorization: Bearer rec_...`."
MindOpener: TypeAlias = Callable[[str, str], Awaitable[Mind]]
bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key as a bearer token.")


async def running(request: Request) -> Recollect:
    """Find the Recollect that this application serves; async like its peers, as otherwise each would cost a thread."""
    return cast("Recollect", request.app.state.recollect)


def extend_deadline(request: Request, seconds: float) -> None:
    """Extend a request's deadline by `seconds`, and free its slot for other requests."""
    allow: Callable[[float], None] = request.scope["allow_seconds"]
    free: Callable[[], None] = request.scope["free_slot"]
    free()
    allow(seconds)


async def chat_time(request: Request) -> None:
    """Extend a request's deadline by the time that the chat model may take."""
    extend_deadline(request, (await running(request)).settings.chat.timeout_seconds)


async def secret(request: Request, _described: Annotated[object, Depends(bearer)]) -> str:
    """Return the key of the request, which `KeyCheck` has read."""
    return cast("str", request.scope["secret"])


def door_of(request: Request) -> str:
    """Return the name of the interface that a request used: the console's page, or any other program."""
    return cast("str", request.scope.get("door", DOOR))


async def mind_opener(request: Request, shown: Annotated[str, Depends(secret)]) -> MindOpener:
    """Return a function that opens the mind of a scope."""

    async def open_mind(agent: str, user: str) -> Mind:
        return await (await running(request)).authorize(shown, door_of(request), agent, user)

    return open_mind


OpenMind: TypeAlias = Annotated[MindOpener, Depends(mind_opener)]
Running: TypeAlias = Annotated[Recollect, Depends(running)]
Secret: TypeAlias = Annotated[str, Depends(secret)]
Agent: TypeAlias = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User: TypeAlias = Annotated[Name, Query(description=USER, examples=["zhang-wei"])]


async def find_mind(agent: Agent, open_mind: OpenMind, user: User = "") -> Mind:
    """Turn the scope that a query names into a mind."""
    return await open_mind(agent, user)


async def find_agent(agent: Agent, open_mind: OpenMind) -> Mind:
    """Turn the agent that a query names into a mind."""
    return await open_mind(agent, "")


AskedMind: TypeAlias = Annotated[Mind, Depends(find_mind)]
AskedAgent: TypeAlias = Annotated[Mind, Depends(find_agent)]
IdempotencyKey: TypeAlias = Annotated[
    str, Header(max_length=255, description="Idempotency key: a repeated request with the same key is executed once.")
]
Cursor: TypeAlias = Annotated[UUID | None, Query(description="`next_cursor` of the previous page.")]
AsOf: TypeAlias = Annotated[Moment | None, Query(description=AS_OF)]
At: TypeAlias = Annotated[Moment | None, Query(description=AT)]


def most(number: int, what: str) -> Any:  # noqa: ANN401 - a type
    """Describe a limit."""
    return Annotated[int, Query(ge=1, le=number, description=f"Maximum number of {what}.")]


def ids_in_query(what: str) -> Any:  # noqa: ANN401 - a type
    """Describe a list of IDs. An empty text in it is left out, so that a client can send a list without any."""
    given = BeforeValidator(lambda texts: [each for each in texts if each])
    return Annotated[list[UUID], given, Query(max_length=200, description=what)]


def id_of(what: str) -> Any:  # noqa: ANN401 - a type
    """Describe an id in a path."""
    return Annotated[UUID, Path(description=f"The id of {what}.", examples=[EXAMPLE_ID])]

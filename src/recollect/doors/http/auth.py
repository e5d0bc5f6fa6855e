"""Authentication of a request by its bearer key, the scope that it names, and parameters of many requests."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias, cast
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from recollect.doors.http.bodies.fields import AGENT, AS_OF, AT, EXAMPLE_ID, USER, Moment, Name
from recollect.errors import UnauthenticatedError
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.service import Caller

DOOR = "http"
JSON = "application/json"
SHOW_KEY = "Send your API key as `Authorization: Bearer rec_...`."
KNOWN_SECONDS = 60.0
MOST_KNOWN = 10_000
MindOpener: TypeAlias = Callable[[str, str], Awaitable[Mind]]
bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key as a bearer token.")


class KnownKeys:
    """Keys that were valid within the last minute: whose they are, and which limits they have.

    Nobody is let in by this: the database checks the key of every request.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, Caller]] = OrderedDict()

    def add(self, secret: str, caller: Caller) -> None:
        """Remember a key that the database has just accepted."""
        self._known[secret] = (time.monotonic() + KNOWN_SECONDS, caller)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def find(self, secret: str) -> Caller | None:
        """Find out whose key it is, if it was valid lately."""
        until, caller = self._known.get(secret, (0.0, None))
        return caller if until > time.monotonic() else None


async def running(request: Request) -> Recollect:
    """Find the Recollect that this application serves; async like its peers, as otherwise each would cost a thread."""
    return cast("Recollect", request.app.state.recollect)


def take_time(request: Request, seconds: float) -> None:
    """Let a request take so much longer than others, and take no place of theirs meanwhile."""
    allow: Callable[[float], None] = request.scope["allow_seconds"]
    free: Callable[[], None] = request.scope["free_slot"]
    free()
    allow(seconds)


async def chat_time(request: Request) -> None:
    """Let a request take as long as the chat model may in addition."""
    take_time(request, (await running(request)).settings.chat_seconds)


async def secret(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
    """Read the key of the request."""
    if credentials is None or not credentials.credentials:
        raise UnauthenticatedError(SHOW_KEY)
    return credentials.credentials


def door_of(request: Request) -> str:
    """Name the door that a request came by: the console's page, or any other program."""
    return cast("str", request.scope.get("door", DOOR))


async def mind_opener(request: Request, shown: Annotated[str, Depends(secret)]) -> MindOpener:
    """Give the route a function that turns the names of a scope into a mind."""

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
    str, Header(max_length=255, description="Send the same key to have the same done only once.")
]
Cursor: TypeAlias = Annotated[UUID | None, Query(description="next_cursor of the page before.")]
AsOf: TypeAlias = Annotated[Moment | None, Query(description=AS_OF)]
At: TypeAlias = Annotated[Moment | None, Query(description=AT)]


def most(number: int, what: str) -> Any:  # noqa: ANN401 - a type
    """Describe a limit."""
    return Annotated[int, Query(ge=1, le=number, description=f"Most {what}.")]


def id_of(what: str) -> Any:  # noqa: ANN401 - a type
    """Describe an id in a path."""
    return Annotated[UUID, Path(description=f"The id of {what}.", examples=[EXAMPLE_ID])]

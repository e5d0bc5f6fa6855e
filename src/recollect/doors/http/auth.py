"""How a request is let in: the bearer key, the scope that it names, and the two times of a read."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from recollect.doors.http.bodies.memories import AGENT, AS_OF, AT, USER, Moment, Name, UserName
from recollect.errors import UnauthenticatedError
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.recall import Times

DOOR = "http"
JSON = "application/json"
SHOW_KEY = "Send your API key as `Authorization: Bearer rec_...`."
KNOWN_SECONDS = 60.0
MOST_KNOWN = 10_000
Admission: TypeAlias = Callable[[str, str], Awaitable[Mind]]
bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key as a bearer token.")


class KnownKeys:
    """Keys that were valid within the last minute: they may send large bodies without being asked for first."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, float] = OrderedDict()

    def add(self, secret: str) -> None:
        """Remember a key that the database has just accepted."""
        self._until[secret] = time.monotonic() + KNOWN_SECONDS
        if len(self._until) > MOST_KNOWN:
            self._until.popitem(last=False)

    def has(self, secret: str) -> bool:
        """Tell whether a key was valid lately."""
        return self._until.get(secret, 0.0) > time.monotonic()


async def running(request: Request) -> Recollect:
    """Find the Recollect that this application serves; async like its peers, or each would cost a thread."""
    return cast("Recollect", request.app.state.recollect)


async def chat_time(request: Request) -> None:
    """Let a request take as long as the chat model may take for an answer, beside its own deadline."""
    allow: Callable[[float], None] = request.scope["allow_seconds"]
    allow((await running(request)).settings.chat_seconds)


async def secret(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
    """Read the key that was shown."""
    if credentials is None or not credentials.credentials:
        raise UnauthenticatedError(SHOW_KEY)
    return credentials.credentials


async def admission(request: Request, shown: Annotated[str, Depends(secret)]) -> Admission:
    """Give the route a way to turn the scope it was asked for into a mind."""

    async def admit(agent: str, user: str) -> Mind:
        mind = await (await running(request)).admit(shown, DOOR, agent, user)
        request.app.state.known_keys.add(shown)
        return mind

    return admit


Admitted: TypeAlias = Annotated[Admission, Depends(admission)]
Running: TypeAlias = Annotated[Recollect, Depends(running)]
Secret: TypeAlias = Annotated[str, Depends(secret)]
Agent: TypeAlias = Annotated[Name, Query(description=AGENT, examples=["ada"])]
User: TypeAlias = Annotated[UserName, Query(description=USER, examples=["zhang-wei"])]


async def read_times(
    as_of: Annotated[Moment | None, Query(description=AS_OF)] = None,
    at: Annotated[Moment | None, Query(description=AT)] = None,
) -> Times:
    """Read which times a read is bound to; async like its peers, or each would cost a thread."""
    return Times(as_of, at)


AskedTimes: TypeAlias = Annotated[Times, Depends(read_times)]

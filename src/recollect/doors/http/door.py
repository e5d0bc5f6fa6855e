"""How a request is let in: the bearer key, and the scope it names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from recollect.errors import UnauthenticatedError
from recollect.mind import Mind
from recollect.wiring import Recollect

DOOR = "http"
Admission: TypeAlias = Callable[[str, str], Awaitable[Mind]]
bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key as a bearer token.")


async def running(request: Request) -> Recollect:
    """Find the Recollect that this application serves; async like its peers, or each would cost a thread."""
    return cast("Recollect", request.app.state.recollect)


async def secret(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
    """Read the key that was shown."""
    if credentials is None or not credentials.credentials:
        raise UnauthenticatedError("Send your API key as `Authorization: Bearer rec_...`.")
    return credentials.credentials


async def admission(
    recollect: Annotated[Recollect, Depends(running)], shown: Annotated[str, Depends(secret)]
) -> Admission:
    """Give the route a way to turn the scope it was asked for into a mind."""

    async def admit(agent: str, user: str) -> Mind:
        return await recollect.admit(shown, DOOR, agent, user)

    return admit

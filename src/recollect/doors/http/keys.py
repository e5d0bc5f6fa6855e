"""Routes for API keys, for holders of the right `admin`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path

from recollect.doors.http.bodies import KeyBody, Keys, NewKey
from recollect.doors.http.door import DOOR, running, secret
from recollect.doors.http.problems import describe
from recollect.mind.service import Recollect
from recollect.models.service import ApiKey, Caller, Right

router = APIRouter(prefix="/v1", tags=["keys"])
ID = UUID("6f1d2c3b-8a4e-4f60-9b7a-1c2d3e4f5a6b")
Running = Annotated[Recollect, Depends(running)]


async def administrator(recollect: Running, shown: Annotated[str, Depends(secret)]) -> Caller:
    """Let only administrators in."""
    return await recollect.authenticate(shown, DOOR, Right.ADMIN)


Administrator = Annotated[Caller, Depends(administrator)]


@router.post("/keys", status_code=201, response_model=NewKey, responses=describe())
async def create_key(body: KeyBody, caller: Administrator, recollect: Running) -> NewKey:
    """Make a key for your tenant; the secret is shown this once."""
    key, fresh = await recollect.create_key(caller, body.name, body.rights, body.trust, body.to_bounds())
    return NewKey(key=key, secret=fresh)


@router.get("/keys", response_model=Keys, responses=describe())
async def list_keys(caller: Administrator, recollect: Running) -> Keys:
    """List the keys of your tenant, revoked ones included."""
    return Keys(keys=await recollect.list_keys(caller))


@router.delete("/keys/{key_id}", response_model=ApiKey, responses=describe(404))
async def revoke_key(
    key_id: Annotated[UUID, Path(description="The key's id.", examples=[ID])],
    caller: Administrator,
    recollect: Running,
) -> ApiKey:
    """Revoke a key of your tenant; the next request that shows it is refused."""
    return await recollect.revoke_key(caller, key_id)

"""The route for what models cost: sums of a tenant or of one scope, and what is left of the day's budget."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import TypeAdapter

from recollect.doors.http.bodies import USER, UserName
from recollect.doors.http.door import DOOR, running, secret
from recollect.doors.http.problems import describe
from recollect.mind.service import Recollect
from recollect.models.service import Ledger

LEDGER = TypeAdapter(Ledger)
router = APIRouter(prefix="/v1", tags=["ledger"])
Agent = Annotated[
    UserName, Query(description="Whose memory it is; all of your tenant's if left out.", examples=["ada"])
]


@router.get("/ledger", response_model=Ledger, responses=describe())
async def read_ledger(
    recollect: Annotated[Recollect, Depends(running)],
    shown: Annotated[str, Depends(secret)],
    agent: Agent = "",
    user: Annotated[UserName, Query(description=USER, examples=["zhang-wei"])] = "",
    days: Annotated[int, Query(ge=1, le=366, description="How many days to look back, today included.")] = 30,
) -> Response:
    """Add up what models cost by day, step and model, the latest day first, and see what is left of today."""
    caller = await recollect.authenticate(shown, DOOR)
    found = await recollect.ledger.read(caller, agent, user, days=days)
    return Response(LEDGER.dump_json(found), media_type="application/json")

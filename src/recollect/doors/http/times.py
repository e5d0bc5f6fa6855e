"""The two times of a read, as a query has them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends, Query

from recollect.doors.http.bodies import AS_OF, AT, Moment
from recollect.models.recall import Times


async def read_times(
    as_of: Annotated[Moment | None, Query(description=AS_OF)] = None,
    at: Annotated[Moment | None, Query(description=AT)] = None,
) -> Times:
    """Read which times a read is bound to; async like its peers, or each would cost a thread."""
    return Times(as_of, at)


AskedTimes: TypeAlias = Annotated[Times, Depends(read_times)]

"""Report errors of a retrieval as Dify expects them."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field

from recollect.doors.http.auth import API_KEY_MISSING
from recollect.doors.http.problems import document_problems
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError, RecollectError, UnauthenticatedError

RETRIEVAL = "/dify/retrieval"
NO_HEADER, NOT_ALLOWED, NO_KNOWLEDGE, UNREADABLE = 1001, 1002, 2001, 422
JSON = "application/json"


class DifyProblem(BaseModel):
    """An error as Dify's External Knowledge API describes it."""

    error_code: int = Field(description="1001: no key; 1002: invalid key or not allowed; 2001: unknown knowledge base.")
    error_msg: str = Field(description="The problem, and how to solve it.")


def refuse(problem: RecollectError) -> Response:
    """Answer an error; 403 for all that concerns the key, because Dify looks for it when a base is connected."""
    if isinstance(problem, UnauthenticatedError):
        return complain(403, NO_HEADER if str(problem) == API_KEY_MISSING else NOT_ALLOWED, str(problem))
    if isinstance(problem, ForbiddenError):
        return complain(403, NOT_ALLOWED, str(problem))
    if isinstance(problem, NotFoundError):
        return complain(404, NO_KNOWLEDGE, str(problem))
    if isinstance(problem, InvalidInputError):
        return complain(422, UNREADABLE, str(problem))
    raise problem


def complain(status: int, code: int, message: str) -> Response:
    """Build the answer for one problem."""
    return Response(DifyProblem(error_code=code, error_msg=message).model_dump_json(), status, media_type=JSON)


def describe_problems() -> dict[int | str, dict[str, Any]]:
    """Document what a retrieval can answer with instead of records."""
    told = {403: "The key is missing, not valid, or may not do that", 404: "No such knowledge", 422: "Not as described"}
    ours = {status: {"model": DifyProblem, "description": text} for status, text in told.items()}
    return {status: each for status, each in document_problems().items() if status not in {401, *told}} | ours

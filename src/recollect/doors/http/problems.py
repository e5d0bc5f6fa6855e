"""Turn every error into application/problem+json that says what to do and never echoes the input."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from recollect.errors import (
    BudgetError,
    ChatModelError,
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    RecollectError,
    UnauthenticatedError,
    UnavailableError,
)

PROBLEM = "application/problem+json"
STATUS: Mapping[type[RecollectError], int] = {
    InvalidInputError: 422,
    UnauthenticatedError: 401,
    ForbiddenError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    UnavailableError: 503,
    BudgetError: 503,
    ChatModelError: 502,
}
TITLES = {
    400: "The request cannot be read",
    401: "An API key is needed",
    403: "This API key may not do that",
    404: "Not found",
    405: "Method not allowed",
    409: "The request conflicts with what is there",
    413: "The request is too large",
    422: "The request cannot be accepted as it stands",
    502: "A model gave no usable answer",
    503: "Try again later",
}
CODES = {400: "unreadable", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
MESSAGES = {
    "uuid_parsing": "Input should be a valid UUID",
    "extra_forbidden": "This field is not known here: look for a misspelt name",
}
HEADERS: Mapping[int, Mapping[str, str]] = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}


class FieldProblem(BaseModel):
    """One field that cannot be accepted."""

    field: str = Field(description="Where in the request, e.g. body.memories.0.content.")
    message: str = Field(description="What is wrong with it.")


class Problem(BaseModel):
    """An error as RFC 9457 describes it."""

    type: str = Field(description="A stable name of the problem.", examples=["urn:recollect:problem:not_found"])
    title: str = Field(description="What sort of problem it is.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What happened, and what to do.")
    code: str = Field(description="The stable code to switch on.")
    errors: list[FieldProblem] = Field(default_factory=list[FieldProblem], description="The fields at fault.")


def describe(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Document the problems that an operation can answer with."""
    return {
        status: {
            "model": Problem,
            "description": TITLES[status],
            "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in (400, 401, 403, 413, 422, 503, *statuses)
    }


def respond(status: int, code: str, detail: str, errors: list[FieldProblem] | None = None) -> Response:
    """Build the answer for one problem."""
    body = {
        "type": f"urn:recollect:problem:{code}",
        "title": TITLES.get(status, "The request failed"),
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [error.model_dump() for error in errors or []],
    }
    return Response(json.dumps(body), status, dict(HEADERS.get(status, {})), PROBLEM)


async def on_recollect_error(_request: Request, error: Exception) -> Response:
    """Answer an error that was raised on purpose."""
    assert isinstance(error, RecollectError)  # noqa: S101 - registered for this class only
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    return respond(status, error.code, str(error))


async def on_invalid_request(_request: Request, error: Exception) -> Response:
    """Answer a request that does not fit its schema: places and messages, never the values."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    problems = [
        FieldProblem(field=name_place(item["loc"], item["type"]), message=str(MESSAGES.get(item["type"], item["msg"])))
        for item in error.errors()
    ]
    return respond(422, "invalid_input", "Some fields cannot be accepted: see errors.", problems[:20])


def name_place(place: Sequence[int | str], kind: str) -> str:
    """Say where a request went wrong; a name that only the caller knows is not repeated."""
    known = [*place[:-1], "(unknown field)"] if kind == "extra_forbidden" else place
    return ".".join(map(str, known))[:200]


async def on_http_error(_request: Request, error: Exception) -> Response:
    """Answer what the framework itself refuses: unknown paths, methods, unreadable bodies."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    code = CODES.get(error.status_code, "error")
    answer = respond(error.status_code, code, TITLES.get(error.status_code, "The request failed"))
    answer.headers.update(error.headers or {})
    return answer


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(RecollectError, on_recollect_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HTTPException, on_http_error)

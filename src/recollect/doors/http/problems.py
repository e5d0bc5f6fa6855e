"""Turn every error into application/problem+json that says what to do and never echoes a value that was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from recollect.doors.http.bodies.fields import SENTENCES
from recollect.errors import (
    BudgetError,
    ChatModelError,
    ColdStorageError,
    ConflictError,
    CursorExpiredError,
    ForbiddenError,
    InvalidInputError,
    MirrorError,
    NotFoundError,
    RateLimitError,
    RecollectError,
    SetupError,
    UnauthenticatedError,
    UnavailableError,
)
from recollect.misspelt import UNKNOWN, explain_name, known_fields, show_name

PROBLEM = "application/problem+json"
JSON = "application/json"
MAX_PROBLEMS = 20
STATUS: Mapping[type[RecollectError], int] = {
    InvalidInputError: 422,
    UnauthenticatedError: 401,
    ForbiddenError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    CursorExpiredError: 410,
    RateLimitError: 429,
    UnavailableError: 503,
    BudgetError: 503,
    ChatModelError: 502,
    ColdStorageError: 503,
    MirrorError: 503,
}
TITLES = {
    400: "Malformed request",
    401: "API key missing or invalid",
    403: "The API key is not allowed to do this",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict",
    410: "Cursor expired",
    413: "Request too large",
    422: "Invalid request",
    429: "Rate limit exceeded",
    502: "The model returned no usable answer",
    503: "Temporarily unavailable",
}
NOT_SET_UP = "Not configured"
CODES = {400: "unreadable", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
MESSAGES = {
    "uuid_parsing": "Input should be a valid UUID",
    "string_too_short": "This must not be empty",
}
HEADERS: Mapping[int, Mapping[str, str]] = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}


LATER = frozenset({429, 503})
RETRY_AFTER = {"Retry-After": {"description": "After how many seconds to try again.", "schema": {"type": "integer"}}}


class FieldProblem(BaseModel):
    """One field that cannot be accepted."""

    field: str = Field(description="Path of the field, for example body.memories.0.content.")
    message: str = Field(description="The fault of this field.")


class Problem(BaseModel):
    """An error as RFC 9457 describes it."""

    type: str = Field(
        description="Stable identifier of the problem type.", examples=["urn:recollect:problem:not_found"]
    )
    title: str = Field(description="Short summary.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="The problem, and how to solve it.")
    code: str = Field(description="Stable error code for programs.")
    errors: list[FieldProblem] = Field(default_factory=list[FieldProblem], description="Invalid fields.")


def document_problems(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Document the problems that an operation can answer with."""
    return {
        status: {
            "description": TITLES[status],
            "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            **({"headers": RETRY_AFTER} if status in LATER else {}),
        }
        for status in (400, 401, 403, 413, 422, 429, 503, *statuses)
    }


def respond(status: int, code: str, detail: str, errors: list[FieldProblem] | None = None) -> Response:
    """Build the answer for one problem."""
    # A retry does not help before somebody has acted.
    lasting = code == SetupError.code
    body = {
        "type": f"urn:recollect:problem:{code}",
        "title": NOT_SET_UP if lasting else TITLES.get(status, "The request failed"),
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [error.model_dump() for error in errors or []],
    }
    return Response(json.dumps(body), status, {} if lasting else dict(HEADERS.get(status, {})), PROBLEM)


def answer_error(error: RecollectError) -> Response:
    """Answer an error that was raised on purpose."""
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    return respond(status, error.code, str(error))


async def on_recollect_error(_request: Request, error: Exception) -> Response:
    """Answer an error that no route has answered."""
    assert isinstance(error, RecollectError)  # noqa: S101 - registered for this class only
    return answer_error(error)


async def on_invalid_request(request: Request, error: Exception) -> Response:
    """Answer a request that does not fit its schema: places and messages, never the values."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    problems = [to_field_problem(request, item) for item in error.errors()[:MAX_PROBLEMS]]
    return respond(422, "invalid_input", "Invalid fields; see errors.", problems)


def to_field_problem(request: Request, item: Mapping[str, Any]) -> FieldProblem:
    """Return the place and the fault of a request; of its content only an unknown name is repeated, shortened."""
    place, message = item["loc"], MESSAGES.get(item["type"], item["msg"])
    if item["type"] == UNKNOWN:
        message = explain_name(str(place[-1]), known_names(request, place))
        place = (*place[:-1], show_name(str(place[-1])))
    elif item["type"] == "string_pattern_mismatch":
        message = SENTENCES.get(item["ctx"]["pattern"], message)
    elif tuple(place) == ("body",) and isinstance(item["input"], bytes):
        message = f"This is not read as JSON: send the header Content-Type: {JSON}"
    return FieldProblem(field=".".join(map(str, place))[:200], message=str(message))


def known_names(request: Request, place: Sequence[int | str]) -> list[str]:
    """List the names that a route knows next to a place in its query or its body."""
    route = request.scope["route"]
    if place[0] == "query":
        return list_parameters(route.dependant)
    return known_fields(route.body_field.field_info.annotation, place[1:])


def list_parameters(dependant: Dependant) -> list[str]:
    """List the parameters that a route, and its dependencies, read from the query."""
    below = [name for each in dependant.dependencies for name in list_parameters(each)]
    return [*dict.fromkeys([*below, *(field.alias for field in dependant.query_params)])]


async def check_query(request: Request) -> None:
    """Refuse parameters that a route does not know; async like its peers, as otherwise each would cost a thread."""
    if not request.scope["query_string"]:
        return
    known = frozenset(list_parameters(request.scope["route"].dependant))
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise RequestValidationError([{"type": UNKNOWN, "loc": ("query", name), "msg": ""} for name in unknown])


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

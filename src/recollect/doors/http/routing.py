"""Make routes from the list of operations: method, path, status, answer and description are declared there."""

# ruff: noqa: ANN401 - it joins the types and answers of all operations

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, TypeAlias, get_type_hints

from fastapi import APIRouter, Query, Response
from pydantic import Strict, TypeAdapter, create_model

from recollect.doors.http.auth import JSON, AskedAgent, AskedMind, OpenMind
from recollect.doors.http.bodies.fields import AgentBody, Body, ScopeBody
from recollect.doors.http.problems import document_problems
from recollect.mind.mind import OPERATIONS, Mind
from recollect.mind.operations import CONVERSATION, Operation

Handler: TypeAlias = Callable[..., Awaitable[Any]]
NAMED, REQUIRED = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty


def serve(
    router: APIRouter, key: str, *, errors: Sequence[int] = (), gives: Any = None, **more: Any
) -> Callable[[Handler], Handler]:
    """Serve an operation by a function that takes the mind and what the request holds, and gives the answer.

    The function's name is the operation's name over HTTP. Its answer is what the mind's method gives, unless `gives`
    names another type; `more` is for the framework.
    """

    def add_handler(handler: Handler) -> Handler:
        parameters = list(inspect.signature(handler, eval_str=True).parameters.values())[1:]
        add_route(router, handler, parameters, key, errors=errors, gives=gives, **more)
        return handler

    return add_handler


def forward(
    router: APIRouter,
    name: str,
    key: str,
    body: type[AgentBody] | None = None,
    *,
    errors: Sequence[int] = (),
    **parameters: Any,
) -> None:
    """Serve an operation under a name by passing on its body, or the named parameters of path and query."""
    operation, call = OPERATIONS[key]
    usual = inspect.signature(call).parameters

    async def call_operation(mind: Mind, *, body: Body | None = None, **given: Any) -> Any:
        arguments = given | (fields_of(body) if body else {})
        view = find_view(mind, operation, arguments)
        return await getattr(view, operation.name)(**arguments)

    call_operation.__name__ = name
    taken = [
        inspect.Parameter(each, NAMED, annotation=kind, default=usual[each].default if each in usual else REQUIRED)
        for each, kind in parameters.items()
    ]
    if body is not None:
        taken.append(inspect.Parameter("body", NAMED, annotation=body))
    add_route(router, call_operation, taken, key, errors=errors)


def in_query(body: type[Body]) -> list[inspect.Parameter]:
    """Return the fields of a body as parameters of a query, in which all values are text."""
    return [
        inspect.Parameter(
            name,
            NAMED,
            annotation=Annotated[
                field.annotation,
                *(rule for rule in field.metadata if not isinstance(rule, Strict)),
                Query(description=field.description),
            ],
            default=field.get_default(call_default_factory=True),
        )
        for name, field in body.model_fields.items()
    ]


def add_route(
    router: APIRouter,
    handler: Handler,
    parameters: Sequence[inspect.Parameter],
    key: str,
    *,
    errors: Sequence[int],
    gives: Any = None,
    **more: Any,
) -> None:
    """Join an operation, the function that serves it and the scope that a request names."""
    operation, call = OPERATIONS[key]
    kind = get_type_hints(inspect.unwrap(call))["return"] if gives is None else gives
    router.add_api_route(
        operation.path,
        answer_by(handler, parameters, operation, writer(operation, kind)),
        methods=[operation.method],
        name=handler.__name__,
        status_code=operation.status,
        response_model=shape(handler.__name__, operation, kind),
        description=operation.help,
        responses={**document_problems(*errors), **more.pop("responses", {})},
        **more,
    )


def answer_by(
    handler: Handler, parameters: Sequence[inspect.Parameter], operation: Operation, write: Callable[[Any], Response]
) -> Callable[..., Awaitable[Response]]:
    """Return the function that the framework calls: it finds the scope's mind, calls the handler, writes the answer."""
    in_body = any(each.name == "body" for each in parameters)

    async def answer(*, mind: Any, **given: Any) -> Response:
        if in_body:
            scope = given["body"]
            mind = await mind(scope.agent, "" if operation.agent_only else scope.user)
        return write(await handler(mind, **given))

    # If the query names the scope, the caller is known before the other parameters are checked.
    kind = OpenMind if in_body else AskedAgent if operation.agent_only else AskedMind
    taken = [inspect.Parameter("mind", NAMED, annotation=kind), *(each.replace(kind=NAMED) for each in parameters)]
    answer.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return answer


def fields_of(body: Body) -> dict[str, Any]:
    """Return the fields of a body, as they were read, without the names of the scope."""
    return {name: value for name, value in vars(body).items() if name not in ScopeBody.model_fields}


def find_view(mind: Mind, operation: Operation, arguments: dict[str, Any]) -> object:
    """Return the part of a mind through which an operation is called."""
    if operation.view == CONVERSATION:
        return mind.conversation(arguments.pop(CONVERSATION))
    return getattr(mind, operation.view) if operation.view else mind


def writer(operation: Operation, kind: Any) -> Callable[[Any], Response]:
    """Return a function that writes an answer: alone, or under the name of its field."""
    if kind is Response:
        return lambda answer: answer
    adapter = cache(partial(TypeAdapter[Any], kind))  # made for the first answer, because all together take long
    before, after = (f'{{"{operation.answer}":'.encode(), b"}") if operation.answer else (b"", b"")

    def write_response(answer: Any) -> Response:
        return Response(before + adapter().dump_json(answer) + after, operation.status, media_type=JSON)

    return write_response


def shape(name: str, operation: Operation, kind: Any) -> Any:
    """Describe an answer for the document; one that is no JSON is described by hand."""
    if not operation.answer:
        return None if kind is Response else kind
    title = "".join(word.capitalize() for word in name.split("_")) + "Answer"
    fields: Mapping[str, Any] = {operation.answer: (kind, ...)}
    return create_model(title, **fields)

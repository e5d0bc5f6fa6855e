"""Operations: what a caller can ask of a mind, each declared once, on the method that carries it out.

From these declarations the HTTP door makes its routes, `tools/clients.py` the clients, and the reference its tables.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast, get_type_hints

from recollect.mind.access import Access, within
from recollect.misspelt import check_arguments
from recollect.models.service import Right
from recollect.verbs.recovery import recover

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Method: TypeAlias = Callable[Concatenate[Any, Given], Coroutine[Any, Any, Answer]]
StreamingMethod: TypeAlias = Callable[Concatenate[Any, Given], AsyncIterator[Answer]]
DECLARED = "operation"
"""The attribute of a method that holds its declaration."""
CONVERSATION = "conversation"
"""The one view that is chosen by a name."""


class HasAccess(Protocol):
    """A mind, or a view of one of its parts."""

    @property
    def access(self) -> Access:
        """Return the caller and the scope of the call."""
        ...


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: its HTTP route, its right, and its description."""

    name: str
    """The method's name; with that of its view it is unique."""
    method: str
    path: str
    right: str
    """A right, or a sentence where the right depends on the arguments."""
    help: str
    answer: str = ""
    """The field of the answer over HTTP, if a method returns a list, a number or nothing."""
    status: int = 200
    agent_only: bool = False
    """Whether it applies to all scopes of an agent, so that no user is named."""
    command: str = ""
    """The command of the command line for it, if there is one."""
    tool: str = ""
    """The tool of the MCP door for it, if there is one."""
    view: str = ""
    """The part of a mind through which it is called; the mind itself if empty."""

    @property
    def key(self) -> str:
        """Return its name in a program, as in `topics.tree`."""
        return f"{self.view}.{self.name}" if self.view else self.name


def operation(
    http: str, right: Right | str, *, agent_only: bool = False, timed: bool = True, **more: str | int
) -> Callable[[Method[Given, Answer]], Method[Given, Answer]]:
    """Declare a method as an operation: its right is checked, and it ends by the deadline unless it is not timed.

    Where the right depends on the arguments, a sentence says so, and the method checks it. What else is declared are
    fields of an `Operation`.
    """

    def declare(carry_out: Method[Given, Answer]) -> Method[Given, Answer]:
        @wraps(carry_out)
        async def call(self: HasAccess, /, *arguments: Given.args, **named: Given.kwargs) -> Answer:
            check_arguments(carry_out, named)
            access = self.access
            if isinstance(right, Right):
                access.require(right, all_users=agent_only)

            async def again() -> Answer:
                view = replace(cast("Any", self), access=await access.renew_access())
                return await carry_out(view, *arguments, **named)

            async with within(access.deadline_seconds if timed else None):
                attempt = partial(carry_out, self, *arguments, **named)
                return await recover(access.parts.recoveries, access.scope.tenant_id, attempt, again)

        note(call, carry_out, http, right, agent_only=agent_only, **more)
        return call

    return declare


def streaming(
    http: str, right: Right, **more: str
) -> Callable[[StreamingMethod[Given, Answer]], StreamingMethod[Given, Answer]]:
    """Declare a method that yields its answer piece by piece, as long as it takes."""

    def declare(carry_out: StreamingMethod[Given, Answer]) -> StreamingMethod[Given, Answer]:
        @wraps(carry_out)
        async def call(self: HasAccess, /, *arguments: Given.args, **named: Given.kwargs) -> AsyncIterator[Answer]:
            check_arguments(carry_out, named)
            self.access.require(right)
            async for piece in carry_out(self, *arguments, **named):
                yield piece

        note(call, carry_out, http, right, **more)
        return call

    return declare


def note(call: object, carry_out: object, http: str, right: str, **more: Any) -> None:  # noqa: ANN401 - an Operation's
    """Attach the declaration to the method."""
    method, path = http.split()
    name, text = str(carry_out.__name__), (carry_out.__doc__ or "").split("\n")[0]  # type: ignore[attr-defined]
    setattr(call, DECLARED, Operation(name, method, path, str(right), text, **more))


def list_operations(mind: type) -> dict[str, tuple[Operation, Callable[..., Any]]]:
    """List the operations of a mind and its views: each by its key, with its method."""
    found = dict[str, tuple[Operation, Callable[..., Any]]]()
    for name, member in inspect.getmembers_static(mind):
        if isinstance(member, property) or name == CONVERSATION:
            view = get_type_hints(getattr(member, "fget", member))["return"]
            through = [(replace(each, view=name), call) for each, call in declared(view).values()]
            found |= {each.key: (each, call) for each, call in through}
    return declared(mind) | found


def declared(view: type) -> dict[str, tuple[Operation, Callable[..., Any]]]:
    """List the operations of one view."""
    calls = {name: call for name, call in inspect.getmembers_static(view) if hasattr(call, DECLARED)}
    return {name: (getattr(call, DECLARED), call) for name, call in calls.items()}

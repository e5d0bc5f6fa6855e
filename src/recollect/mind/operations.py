"""Operations: what a caller can ask of a mind, each declared once, on the method that carries it out.

From these declarations the HTTP door makes its routes, `tools/clients.py` the clients, and the reference its tables.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast, get_type_hints

from recollect.errors import NotFoundError, SchemaError, UnavailableError
from recollect.mind.access import RIGHT_TO_RECALL, Access
from recollect.models.service import Right
from recollect.store.database.calls import CALL
from recollect.verbs.parts import awake, fit_version
from recollect.verbs.service.moved import repeat

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Method: TypeAlias = Callable[Concatenate[Any, Given], Coroutine[Any, Any, Answer]]
StreamingMethod: TypeAlias = Callable[Concatenate[Any, Given], AsyncIterator[Answer]]
NEAR_SHARE = 0.25
"""The share of the deadline that a replica has to answer; then the primary is asked."""
REPLICA, PRIMARY = "replica", "primary"
DECLARED = "operation"
"""The attribute of a method that holds its declaration."""
CONVERSATION = "conversation"
"""The one view that is chosen by a name."""


class HasAccess(Protocol):
    """A mind, or a view of one of its parts."""

    @property
    def access(self) -> Access:
        """Return who asks, and for which scope."""
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

    Where the right depends on the arguments, a sentence says so, and the method sees to both. What else is declared
    are fields of an `Operation`.
    """

    def declare(carry_out: Method[Given, Answer]) -> Method[Given, Answer]:
        async def attempt(view: HasAccess, *arguments: Given.args, **named: Given.kwargs) -> Answer:
            carrying = partial(fit_version, partial(carry_out, view, *arguments, **named))
            fitting = partial(awake, view.access.parts, carrying)
            with view.access.folding():
                if not isinstance(right, Right):
                    return await fitting()
                if not timed:
                    view.access.require(right, all_users=agent_only)
                    return await fitting()
                async with view.access.asking(right, all_users=agent_only):
                    return await fitting()

        carry_on = read_near if timed and right in {Right.READ, RIGHT_TO_RECALL} else follow_moves

        @wraps(carry_out)
        async def call(self: HasAccess, /, *arguments: Given.args, **named: Given.kwargs) -> Answer:
            return await carry_on(self, lambda view: attempt(view, *arguments, **named))

        note(call, carry_out, http, right, agent_only=agent_only, **more)
        return call

    return declare


async def read_near(view: HasAccess, attempt: Callable[[HasAccess], Awaitable[Answer]]) -> Answer:
    """Make an attempt on a replica that has what the caller has seen; if there is none or it fails, on the primary."""
    access = view.access
    near = access.choose_replica()
    if near is not None:
        try:
            async with asyncio.timeout(NEAR_SHARE * access.deadline_seconds):
                answer = await attempt(with_access(view, access.asking_of(near)))
        except NotFoundError:
            # Somebody else may have written it just now, and have told its name.
            near.note()
        except (UnavailableError, SchemaError, TimeoutError) as problem:
            near.note(problem)
        else:
            near.note()
            note_server(REPLICA if near.asked else PRIMARY)
            return answer
    if access.parts.database.log is not None:
        note_server(PRIMARY)
    return await follow_moves(view, attempt)


def note_server(name: str) -> None:
    """Tell the call who has read for it."""
    if (call := CALL.get()) is not None:
        call.served_by = name


def with_access(view: HasAccess, access: Access) -> HasAccess:
    """Return the same view by way of another access."""
    return cast("HasAccess", replace(cast("Any", view), access=access))


async def follow_moves(view: HasAccess, attempt: Callable[[HasAccess], Awaitable[Answer]]) -> Answer:
    """Make an attempt; if the scope has gone to another server, or is going there, look for it and try again."""
    seen = [view]

    async def look() -> None:
        seen[0] = with_access(view, await view.access.follow())

    return await repeat(lambda: attempt(seen[0]), look)


def streaming(
    http: str, right: Right, **more: str
) -> Callable[[StreamingMethod[Given, Answer]], StreamingMethod[Given, Answer]]:
    """Declare a method that yields its answer piece by piece, as long as it takes."""

    def declare(carry_out: StreamingMethod[Given, Answer]) -> StreamingMethod[Given, Answer]:
        @wraps(carry_out)
        async def call(self: HasAccess, /, *arguments: Given.args, **named: Given.kwargs) -> AsyncIterator[Answer]:
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

"""The command that recalls: a cue with all it may ask for, shown as a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.markup import escape

from recollect.doors import recalled
from recollect.doors.terminal import Agent, Tenant, User, err, out, with_mind, with_options
from recollect.errors import InvalidInputError, UnavailableError
from recollect.models.memories import Kind
from recollect.models.recall import Cue, Status

MOMENTS = ("now", "as_of", "at", "since", "until")
"""What is given without an offset, and means UTC."""
PLAIN = ("zone", "descendants", "consult", "judge", "keep")
"""What a cue has under the same name."""
OPTIONS: dict[str, object] = {
    "kind": Annotated[list[Kind] | None, typer.Option(help="Only this kind; repeat for more.", show_default="all")],
    "weight": Annotated[
        list[str] | None,
        typer.Option(help="What a channel or preference weighs, as text=0.5; repeat.", metavar="NAME=NUMBER"),
    ],
    "zone": Annotated[str | None, typer.Option(help="Your time zone, as Asia/Shanghai.", show_default="UTC")],
    "since": Annotated[
        datetime | None, typer.Option(help="Begin of the period asked about, in UTC.", show_default="as the text says")
    ],
    "until": Annotated[datetime | None, typer.Option(help="End of that period, in UTC.", show_default="as it says")],
    "topic": Annotated[list[str] | None, typer.Option(help="Topic asked about, as travel->Japan; repeat for more.")],
    "descendants": Annotated[bool | None, typer.Option("--descendants", help="Count what lies below these topics.")],
    "consult": Annotated[bool | None, typer.Option("--consult", help="Let the chat model read the cue, too.")],
    "judge": Annotated[bool | None, typer.Option("--judge", help="Let the chat model drop useless hits.")],
    "keep": Annotated[
        bool | None, typer.Option("--keep/--no-keep", help="Keep it, to explain and replay.", show_default="as set")
    ],
    "now": Annotated[datetime | None, typer.Option(help="The moment of the recall, in UTC.", show_default="now")],
    "no_touch": Annotated[bool | None, typer.Option("--no-touch", help="Do not count the hits as accessed.")],
    "as_of": Annotated[datetime | None, typer.Option(help="By what was believed then, in UTC.", show_default="now")],
    "at": Annotated[
        datetime | None, typer.Option(help="By what was true then, in UTC.", show_default="what is not over")
    ],
}


@with_options(**OPTIONS)
def recall(
    text: Annotated[str, typer.Argument(help="What to be reminded of.")],
    agent: Agent,
    user: User = "",
    limit: Annotated[int | None, typer.Option(help="Most hits to show.", show_default="10")] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help="text, vector, stream, keyword, graph, topic, date or recent; repeat for more.",
            show_default="the usual ones",
        ),
    ] = None,
    tenant: Tenant = "default",
    **more: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show what a cue reminds of, best first, and why."""
    cue = Cue(text, limit=limit, channels=tuple(channel or ()), **read_options(more))
    recollection = with_mind(agent, user, tenant, lambda mind: mind.recall(cue))
    if recollection.status is Status.ERROR:
        raise UnavailableError(f"No channel could look. {recollection.message}")
    if recollection.hits:
        out.print(recalled.to_table(recollection))
    else:
        why = f": {recollection.message}" if recollection.message else ""
        out.print(f"nothing found{escape(why)}", highlight=False, soft_wrap=True)
    for name, method in recollection.methods.items():
        if method.startswith("skipped"):
            err.print(f"{name}: {escape(method)}", highlight=False)
    if recollection.recall_id is not None:
        err.print(f"kept as {recollection.recall_id}", highlight=False)


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Turn options into fields of a cue; what is not given is as usual."""
    moments = {name: given[name].replace(tzinfo=UTC) for name in MOMENTS if given[name]}
    plain = {name: given[name] for name in PLAIN if given[name] is not None}
    return {
        **moments,
        **plain,
        "kinds": tuple(given["kind"] or ()),
        "topics": tuple(given["topic"] or ()),
        "weights": dict(map(read_weight, given["weight"] or ())),
        "touch": not given["no_touch"],
    }


def read_weight(text: str) -> tuple[str, float]:
    """Read a weight that is written as name=number."""
    name, _, number = text.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise InvalidInputError("--weight must be written as in text=0.5") from None

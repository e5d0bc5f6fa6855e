"""Commands that recall: hits with their reasons, and a block for a prompt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from recollect.doors.cli.terminal import (
    FILTER_OPTIONS,
    Agent,
    Tenant,
    User,
    err,
    id_column,
    out,
    printing,
    read_filter,
    shorten_id,
    table_of,
    with_mind,
    with_options,
)
from recollect.doors.words import translate
from recollect.errors import InvalidInputError, UnavailableError
from recollect.models.memories import Memory
from recollect.models.recall import ChannelScore, Cue, Hit, Recollection, Status

if TYPE_CHECKING:
    from recollect.mind.mind import Mind
    from recollect.models.blocks import Block, Resolved

commands = typer.Typer()

PLAIN = ("min_relevance", "zone", "consult", "judge", "keep")
"""Options with the name of a cue's field."""
OPTIONS: dict[str, object] = {
    **FILTER_OPTIONS,
    "weight": Annotated[
        list[str] | None,
        typer.Option(help="What a channel or preference weighs, as text=0.5; repeat.", metavar="NAME=NUMBER"),
    ],
    "min_relevance": Annotated[
        float | None, typer.Option(help="Only what helps so likely, 0 to 1.", show_default="all; a block: 0.003")
    ],
    "zone": Annotated[
        str | None, typer.Option(help="Your time zone, as Asia/Shanghai.", show_default="of this machine")
    ],
    "consult": Annotated[bool | None, typer.Option("--consult", help="Let the chat model read the cue, too.")],
    "judge": Annotated[bool | None, typer.Option("--judge", help="Let the chat model drop useless hits.")],
    "keep": Annotated[
        bool | None, typer.Option("--keep/--no-keep", help="Keep it, to explain and replay.", show_default="as set")
    ],
    "now": Annotated[datetime | None, typer.Option(help="The moment of the recall, in UTC.", show_default="now")],
    "no_touch": Annotated[bool | None, typer.Option("--no-touch", help="Do not count the hits as accessed.")],
}
DIGITS = 3
SMALLEST_SHARE = 0.01


def show_recollection(found: Recollection) -> None:
    """Show hits, best first, and why; say on the other stream what was skipped."""
    if found.hits:
        out.print(to_table(found))
        if found.message:
            err.print(escape(found.message), highlight=False)
    else:
        why = f": {found.message}" if found.message else ""
        out.print(f"{translate('nothing found')}{escape(why)}", highlight=False, soft_wrap=True)
    for name, method in found.methods.items():
        if method.startswith("skipped"):
            err.print(f"{name}: {escape(method)}", highlight=False)
    if found.recall_id is not None:
        err.print(translate("kept as {id}", id=found.recall_id), highlight=False)


@commands.command()
@with_options(
    also=Annotated[
        list[str] | None, typer.Option(help="A scope to read as well, as agent or agent/user; repeat for more.")
    ],
    **OPTIONS,
)
@printing(show_recollection)
def recall(
    agent: Agent,
    text: Annotated[str, typer.Argument(help="What to be reminded of; the newest, if left out.")] = "",
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
) -> Recollection:
    """Show what a cue reminds of, best first, and why."""
    cue = Cue(text, limit=limit, channels=tuple(channel or ()), **read_options(more))

    async def work(mind: Mind) -> Recollection:
        found = await mind.recall(cue)
        if found.status is Status.ERROR:
            raise UnavailableError(f"No channel could look. {found.message}")
        return found

    return with_mind(agent, user, tenant, work)


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Turn options into fields of a cue; what is not given has its default."""
    plain = {name: given[name] for name in PLAIN if given[name] is not None}
    return {
        **read_filter(given),
        **plain,
        "now": given["now"].replace(tzinfo=UTC) if given["now"] else None,
        "weights": dict(map(read_weight, given["weight"] or ())),
        "touch": not given["no_touch"],
        "also": tuple(given.get("also") or ()),
    }


def read_weight(text: str) -> tuple[str, float]:
    """Read a weight that is written as name=number."""
    name, _, number = text.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise InvalidInputError("--weight must be written as in text=0.5") from None


def to_table(recollection: Recollection) -> Table:
    """Tabulate hits, best first; if the stream channel alone was asked, with its three factors."""
    if all(set(hit.channels) == {"stream"} for hit in recollection.hits):
        return to_factors(recollection)
    table = table_of(id_column("id"), "score", "relevance", "when", "memory, and why")
    for hit in recollection.hits:
        why = " ".join(f"{name} {share:.3f}" for name, share in share_out(hit).items())
        cells = (shorten_id(hit.memory.id), f"{hit.score:.3f}", write_relevance(hit.relevance), moment(hit))
        table.add_row(*cells, f"{escape(hit.memory.content)}\n[dim]{why}[/dim]")
    return table


def write_relevance(relevance: float | None) -> str:
    """Write how likely a hit helps, if it is known."""
    return "" if relevance is None else f"{relevance:.3f}"


def share_out(hit: Hit) -> dict[str, float]:
    """Return the parts of a hit's score, to the three digits that are shown; small ones are joined as `other`."""
    parts = {**{name: part.share for name, part in hit.channels.items()}, **hit.preferences}
    told = {name: round(share, DIGITS) for name, share in parts.items() if abs(share) >= SMALLEST_SHARE}
    # What is left over closes the sum: the parts add up to the score that is shown.
    rest = round(round(hit.score, DIGITS) - sum(told.values()), DIGITS)
    return {**told, **({"other": rest} if rest else {})}


def to_factors(recollection: Recollection) -> Table:
    """Tabulate the three factors of the stream, each scaled from 0 to 1 over all candidates."""
    tally = recollection.tallies["stream"]
    caption = f"{tally.candidates} candidates, {recollection.methods['stream']}, {recollection.milliseconds:.1f} ms"
    table = table_of("score", "recency", "similarity", "importance", "kind", "when", "memory", caption=caption)
    for hit in recollection.hits:
        part = hit.channels["stream"]
        table.add_row(
            f"{part.score:.3f}", *factors(part), hit.memory.kind.value, moment(hit), escape(hit.memory.content)
        )
    return table


def factors(part: ChannelScore) -> list[str]:
    """Write a hit's factors, as far as they are known."""
    known = part.factors
    return [f"{value:.3f}" for value in (known.recency, known.similarity, known.importance)] if known else [""] * 3


def moment(hit: Hit) -> str:
    """Write when a memory happened, to the minute."""
    return f"{hit.memory.occurred_at:%F %R}"


def show_block(made: Block) -> None:
    """Show a block, and on the other stream what it costs."""
    out.print(escape(made.text) if made.text else translate("nothing to show"), highlight=False, soft_wrap=True)
    rest = f", {made.left_out} found no room" if made.left_out else ""
    rest += f", {made.not_repeated} were shown before" if made.not_repeated else ""
    spent = {"tokens": made.tokens, "budget": made.budget, "tokenizer": made.tokenizer}
    err.print(translate("{tokens} of {budget} tokens by {tokenizer}", **spent) + rest, highlight=False)


@commands.command()
@with_options(
    conversation=Annotated[str | None, typer.Option(help="Whose blocks before this one count.", show_default="none's")],
    repeat=Annotated[
        bool | None, typer.Option("--repeat", help="Show again what was shown before, in fewer words as it fades.")
    ],
    limit=Annotated[int | None, typer.Option(help="Most lines to show.", show_default="what fits")],
    **OPTIONS,
)
@printing(show_block)
def block(
    text: Annotated[str, typer.Argument(help="What to be reminded of.")],
    agent: Agent,
    user: User = "",
    budget: Annotated[int, typer.Option(help="Most tokens that it may cost.")] = 2_000,
    tenant: Tenant = "default",
    **more: Any,  # noqa: ANN401 - what `with_options` names
) -> Block:
    """Show what a cue reminds of as text for a prompt, within a budget in tokens."""
    cue = Cue(text, limit=more["limit"], **read_options(more))
    conversation, repeat = more["conversation"] or "", bool(more["repeat"])
    made = with_mind(
        agent, user, tenant, lambda mind: mind.blocks.show(cue, budget, conversation=conversation, repeat=repeat)
    )
    if made.status is Status.ERROR:
        raise UnavailableError(f"No channel could look. {made.message}")
    return made


def show_resolved(found: Resolved) -> None:
    """Show a memory and its evidence."""
    out.print(to_evidence_table(found))


@commands.command()
@printing(show_resolved)
def resolve(
    short_id: Annotated[str, typer.Argument(help="As it stands in a block, as m1a2b.")],
    agent: Agent,
    user: User = "",
    conversation: Annotated[str, typer.Option(help="Which conversation was shown it.")] = "",
    tenant: Tenant = "default",
) -> Resolved:
    """Show the memory that a short id of a block stands for, and what it was made from."""
    return with_mind(agent, user, tenant, lambda mind: mind.blocks.resolve(short_id, conversation))


def to_evidence_table(found: Resolved) -> Table:
    """Tabulate a memory and its evidence."""
    table = table_of("", id_column("id"), "kind", "when", "memory")

    def add(what: str, memory: Memory) -> None:
        when = f"{memory.occurred_at:%F %R}"
        table.add_row(what, shorten_id(memory.id), memory.kind.value, when, escape(memory.content))

    add("memory", found.memory)
    for each in found.evidence:
        add("evidence", each)
    return table

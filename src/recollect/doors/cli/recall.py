"""The command that recalls: hits with their reasons, or a text for a prompt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from recollect.doors.cli.terminal import (
    FILTER_OPTIONS,
    err,
    id_column,
    on_mind,
    out,
    printing,
    read_filter,
    shorten_id,
    table_of,
    with_options,
)
from recollect.doors.greeting import translate
from recollect.errors import InvalidInputError, UnavailableError
from recollect.models.recall import ChannelScore, Cue, Hit, RecallResult, Status

if TYPE_CHECKING:
    from recollect.mind.mind import Mind
    from recollect.models.blocks import MemoryBlock

commands = typer.Typer()

PLAIN = ("min_relevance", "zone", "consult", "judge", "keep")
"""Options with the name of a cue's field."""
OPTIONS: dict[str, object] = {
    **FILTER_OPTIONS,
    "weight": Annotated[
        list[str] | None,
        typer.Option(
            help="Weight of a channel or preference, for example text=0.5. Repeatable.", metavar="NAME=NUMBER"
        ),
    ],
    "min_relevance": Annotated[
        float | None, typer.Option(help="Minimum relevance, 0 to 1.", show_default="all; with --prompt 0.003")
    ],
    "zone": Annotated[
        str | None, typer.Option(help="Time zone, for example Asia/Shanghai.", show_default="of this machine")
    ],
    "consult": Annotated[
        bool | None, typer.Option("--consult", help="Ask the chat model for topics and dates of the query.")
    ],
    "judge": Annotated[bool | None, typer.Option("--judge", help="Ask the chat model to drop irrelevant results.")],
    "keep": Annotated[
        bool | None,
        typer.Option("--keep/--no-keep", help="Save this recall for `recollect mind recalls`.", show_default="as set"),
    ],
    "now": Annotated[datetime | None, typer.Option(help="Time of the recall (UTC).", show_default="now")],
    "no_touch": Annotated[bool | None, typer.Option("--no-touch", help="Do not count the results as accessed.")],
}
DIGITS = 3
DEFAULT_BUDGET = 2_000
MIN_SHOWN_SHARE = 0.01


def show_recollection(found: RecallResult) -> None:
    """Show hits, best first, with reasons; print skipped channels to stderr."""
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


def show_block(made: MemoryBlock) -> None:
    """Show a block, and print its number of tokens to stderr."""
    out.print(escape(made.text) if made.text else translate("nothing to show"), highlight=False, soft_wrap=True)
    rest = f", {made.left_out} found no room" if made.left_out else ""
    rest += f", {made.not_repeated} were shown before" if made.not_repeated else ""
    spent = {"tokens": made.tokens, "budget": made.budget, "tokenizer": made.tokenizer}
    err.print(translate("{tokens} of {budget} tokens by {tokenizer}", **spent) + rest, highlight=False)


def show_found(found: RecallResult | MemoryBlock) -> None:
    """Show hits, or the text for a prompt."""
    if isinstance(found, RecallResult):
        show_recollection(found)
    else:
        show_block(found)


@commands.command()
@with_options(
    prompt=Annotated[bool | None, typer.Option("--prompt", help="Print the results as text for a prompt.")],
    budget=Annotated[int | None, typer.Option(help="Token budget of `--prompt`.", show_default="2000")],
    conversation=Annotated[
        str | None, typer.Option(help="With `--prompt`: do not repeat texts for this conversation.")
    ],
    repeat=Annotated[
        bool | None, typer.Option("--repeat", help="With `--conversation`: repeat memories, shorter each time.")
    ],
    also=Annotated[list[str] | None, typer.Option(help="Also search this scope, as agent or agent/user. Repeatable.")],
    **OPTIONS,
)
@printing(show_found)
@on_mind
async def recall(
    mind: Mind,
    text: Annotated[str, typer.Argument(help="Query. Lists the newest memories if omitted.")] = "",
    limit: Annotated[
        int | None, typer.Option(help="Maximum number of results.", show_default="10; with --prompt all that fit")
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help="Channel: text, vector, stream, keyword, graph, topic, date or recent. Repeatable.",
            show_default="the usual ones",
        ),
    ] = None,
    **more: Any,  # noqa: ANN401 - what `with_options` names
) -> RecallResult | MemoryBlock:
    """Search memories. Shows the best match first, with reasons, or all as prompt text (`--prompt`)."""
    cue = Cue(text, limit=limit, channels=tuple(channel or ()), **read_options(more))
    budget, conversation, repeat = more["budget"], more["conversation"], more["repeat"]
    if not more["prompt"] and (budget or conversation or repeat):
        raise InvalidInputError("--budget, --conversation and --repeat require --prompt")
    found: RecallResult | MemoryBlock = (
        await mind.blocks.show(cue, budget or DEFAULT_BUDGET, conversation=conversation or "", repeat=bool(repeat))
        if more["prompt"]
        else await mind.recall(cue)
    )
    if found.status is Status.ERROR:
        raise UnavailableError(f"Recall failed: no channel could search. {found.message}")
    return found


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Convert options to fields of a cue; options that are not given have their defaults."""
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


def to_table(recollection: RecallResult) -> Table:
    """Tabulate hits, best first; if the stream channel alone was asked, with its three factors."""
    if all(set(hit.channels) == {"stream"} for hit in recollection.hits):
        return to_factors(recollection)
    table = table_of(id_column("id"), "score", "relevance", "when", "memory, and why")
    for hit in recollection.hits:
        why = " ".join(f"{name} {share:.3f}" for name, share in split_score(hit).items())
        cells = (shorten_id(hit.memory.id), f"{hit.score:.3f}", write_relevance(hit.relevance), moment(hit))
        table.add_row(*cells, f"{escape(hit.memory.content)}\n[dim]{why}[/dim]")
    return table


def write_relevance(relevance: float | None) -> str:
    """Write how likely a hit helps, if it is known."""
    return "" if relevance is None else f"{relevance:.3f}"


def split_score(hit: Hit) -> dict[str, float]:
    """Return the parts of a hit's score, to the three digits that are shown; small ones are joined as `other`."""
    parts = {**{name: part.share for name, part in hit.channels.items()}, **hit.preferences}
    told = {name: round(share, DIGITS) for name, share in parts.items() if abs(share) >= MIN_SHOWN_SHARE}
    # The remainder closes the sum: the parts must add up to the score that is shown.
    rest = round(round(hit.score, DIGITS) - sum(told.values()), DIGITS)
    return {**told, **({"other": rest} if rest else {})}


def to_factors(recollection: RecallResult) -> Table:
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

"""Commands for an agent: its settings, what its scopes hold, associations, and learning from feedback."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from recollect.doors.cli.recall import read_weight
from recollect.doors.cli.terminal import (
    FILTER_OPTIONS,
    Agent,
    Tenant,
    User,
    err,
    id_column,
    on_mind,
    out,
    print_json,
    printing,
    read_filter,
    shorten_id,
    table_of,
    with_mind,
    with_options,
    with_service,
)
from recollect.doors.greeting import translate
from recollect.models.agents import Association, EnrichSource, FitQuality, Overview, Profile, Tuning, TuningTarget
from recollect.models.memories import Triple
from recollect.models.recall import Mode, StreamWeights
from recollect.models.service import Change

if TYPE_CHECKING:
    from recollect.mind.mind import Mind
    from recollect.mind.service import Recollect

commands = typer.Typer()

Perceived = Annotated[
    tuple[str, str, str],
    typer.Argument(metavar="SUBJECT PREDICATE OBJECT", help="Subject, predicate and object; '' for a missing part."),
]
STREAM_PRESETS = tuple(field.name for field in fields(StreamWeights))
FADING = ("fading_days", "fading_threshold", "fading_fact_days")
RETENTION = ("archive_after_days", "delete_after_days", "purge_after_days")
TOPICS = ("segment_depth", "idle_minutes")
NAMES, LANGUAGE, ENRICH = "names", "language", "enrich"
RECALL, ALSO = ("min_relevance", "consult", "judge"), "also"
PLAIN = (*RECALL, *RETENTION, *FADING, *TOPICS, ENRICH, LANGUAGE)
"""Options with the name of a profile's field, and its value."""
BEGAN, MAX_LISTED = "began", 20
TUNED = {TuningTarget.STREAM: "the stream", TuningTarget.USUAL: "the usual recall"}


def show_profile(profile: Profile) -> None:
    """Show a profile."""
    out.print(tabulate(profile))


@commands.command()
@with_options(
    mode=Annotated[Mode | None, typer.Option(help="newest, original or paper.")],
    recency=Annotated[float | None, typer.Option(help="Weight of recency.")],
    similarity=Annotated[float | None, typer.Option(help="Weight of similarity.")],
    importance=Annotated[float | None, typer.Option(help="Weight of importance.")],
    decay=Annotated[float | None, typer.Option(help="Recency factor from one rank to the next.")],
    limit=Annotated[int | None, typer.Option(help="Maximum number of hits.")],
    channels=Annotated[list[str] | None, typer.Option("--channel", help="Recall channel. Repeatable.")],
    weights=Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            help="Weight of a channel or preference, for example text=0.5. Repeatable.",
            metavar="NAME=NUMBER",
        ),
    ],
    min_relevance=Annotated[float | None, typer.Option(help="Minimum relevance, 0 to 1.")],
    consult=Annotated[
        bool | None, typer.Option("--consult/--no-consult", help="Ask the chat model for topics and dates of queries.")
    ],
    judge=Annotated[
        bool | None, typer.Option("--judge/--no-judge", help="Ask the chat model to drop irrelevant results.")
    ],
    also=Annotated[list[str] | None, typer.Option(help="Also search this scope, as agent or agent/user. Repeatable.")],
    **FILTER_OPTIONS,
    threshold=Annotated[float | None, typer.Option(help="Importance that triggers a reflection; 0 = never.")],
    archive_after_days=Annotated[
        float | None, typer.Option(help="Archive conversations after this many idle days; 0 = never.")
    ],
    delete_after_days=Annotated[
        float | None, typer.Option(help="Delete conversations after this many idle days; 0 = never.")
    ],
    purge_after_days=Annotated[
        float | None, typer.Option(help="Purge deleted conversations after this many days; 0 = never.")
    ],
    fading_days=Annotated[float | None, typer.Option(help="Days until an unused memory fades; 0 = never.")],
    fading_threshold=Annotated[float | None, typer.Option(help="Memories that score above this fade.")],
    fading_fact_days=Annotated[float | None, typer.Option(help="Maximum age of a fact in days; 0 = no limit.")],
    segment_depth=Annotated[float | None, typer.Option(help="Similarity drop that ends a segment; 2 = never.")],
    idle_minutes=Annotated[float | None, typer.Option(help="Close a segment after this many idle minutes; 0 = never.")],
    enrich=Annotated[EnrichSource | None, typer.Option(help="Learn from: talk (conversations) or all.")],
    names=Annotated[list[str] | None, typer.Option("--name", help="Names of the agent or user, ignored in queries.")],
    language=Annotated[str | None, typer.Option(help="Prompt language: en, zh, or '' for that of the query.")],
)
@printing(show_profile)
def profile(
    agent: Agent,
    reset: Annotated[bool, typer.Option("--reset", help="Reset to the default profile.")] = False,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> Profile:
    """Show or change an agent's default settings."""

    async def update_profile(mind: Mind) -> Profile:
        before = Profile() if reset else await mind.profile()
        after = change(before, {name: value for name, value in chosen.items() if value is not None})
        if reset or after != before:
            await mind.set_profile(after)
        return after

    return with_mind(agent, "", tenant, update_profile)


def change(before: Profile, chosen: Mapping[str, Any]) -> Profile:
    """Replace the given fields of a profile."""
    weighing = {name: value for name, value in chosen.items() if name in STREAM_PRESETS}
    return replace(
        before,
        weighing=replace(before.weighing, **weighing),
        limit=chosen.get("limit", before.limit),
        reflection_threshold=chosen.get("threshold", before.reflection_threshold),
        names=tuple(chosen.get(NAMES, before.names)),
        channels=tuple(chosen.get("channels", before.channels)),
        also=tuple(chosen.get(ALSO, before.also)),
        **read_filter(chosen),
        weights={**before.weights, **dict(map(read_weight, chosen.get("weights", ())))},
        **{
            name: value
            for name, value in chosen.items()
            if name in (*RECALL, *RETENTION, *FADING, *TOPICS, ENRICH, LANGUAGE)
        },
    )


def tabulate(profile: Profile, *, changed: bool = False) -> Table:
    """Show a profile, or only its changed fields; other fields have their defaults."""
    values = asdict(profile.weighing) | asdict(profile)
    table = table_of("profile", "")
    plain = (*FILTER_OPTIONS, "limit", "channels", "weights", *RECALL, ALSO, "reflection_threshold")
    for name in (*STREAM_PRESETS, *plain, *RETENTION, *FADING, *TOPICS, ENRICH, NAMES, LANGUAGE):
        usual = values[name] in (None, (), {}, "")
        if not (changed and usual):
            table.add_row(name, "usual" if usual else str(values[name]))
    return table


def show_overview(found: Overview) -> None:
    """Show numbers, the strongest keywords, and the settings that differ from the usual ones."""
    counts = table_of("memories", "")
    for name in (
        "memories",
        "events",
        "thoughts",
        "chats",
        "messages",
        "facts",
        "summaries",
        "conversations",
        "entities",
        "topics",
        "items",
        "unreflected_importance",
        "unreflected_memories",
        "to_rederive",
    ):
        counts.add_row(name, f"{getattr(found, name):g}")
    strengths = table_of("keyword", "kind", "strength")
    for each in found.strengths:
        strengths.add_row(escape(each.keyword), each.kind, str(each.strength))
    for table in (counts, strengths, tabulate(found.profile, changed=True)):
        if table.row_count:
            out.print(table)


@commands.command()
@printing(show_overview)
@on_mind
async def overview(mind: Mind) -> Overview:
    """Show statistics, top keywords and agent settings of a scope."""
    return await mind.overview()


@commands.command()
def watch(
    agent: Agent,
    user: User = "",
    since: Annotated[str, typer.Option(help="Resume after this cursor.", show_default="from now on")] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many changes.", show_default="never")
    ] = None,
    tenant: Tenant = "default",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per change.")] = False,
) -> None:
    """Stream changes of a scope until Ctrl-C, then print the cursor to resume from."""
    reached = since

    async def print_changes(mind: Mind) -> None:
        nonlocal reached
        seen = 0
        async for change in mind.changes(since):
            reached = change.cursor
            if json:
                print_json(change, indent=None)
            else:
                await show_change(mind, change)
            seen += change.operation != BEGAN
            if seen == limit:
                return

    with suppress(KeyboardInterrupt):
        with_mind(agent, user, tenant, print_changes)
    out.print(translate("Follow on with --since {cursor}", cursor=reached), highlight=False, soft_wrap=True)


async def show_change(mind: Mind, change: Change) -> None:
    """Print one change: its time and operation, and those of its memories that still exist."""
    about = (await mind.list(ids=change.ids[:MAX_LISTED])).memories if change.ids else ()
    lines = [each.content.replace("\n", " ") for each in about] or [f"{len(change.ids)} ids" if change.ids else ""]
    for line in lines:
        out.print(f"{change.at:%F %T} {change.operation:12} {escape(line)}", highlight=False, soft_wrap=True)


def show_association(found: Association) -> None:
    """Show events and thoughts."""
    table = table_of(id_column("id"), "kind", "keywords", "when", "memory")
    for memory in (*found.events, *found.thoughts):
        cells = (memory.kind, escape(", ".join(memory.keywords)), f"{memory.occurred_at:%F %R}", escape(memory.content))
        table.add_row(shorten_id(memory.id), *cells)
    out.print(table if table.row_count else translate("nothing found"))


@commands.command()
@printing(show_association)
@on_mind
async def associate(
    mind: Mind,
    triple: Perceived,
    limit: Annotated[int, typer.Option(help="Maximum number of events and of thoughts.")] = 30,
    original: Annotated[bool, typer.Option("--original", help="Match the code of Generative Agents exactly.")] = False,
) -> Association:
    """Find events and thoughts that share keywords with an observation."""
    return (await mind.associate(Triple(*triple), limit=limit, original=original))[0]


def show_tunings(tunings: list[Tuning]) -> None:
    """Show the learned weights and whether they were applied."""
    for tuning in tunings:
        out.print(show_tuning(tuning))
        out.print(format_tuning(tuning))


@commands.command()
@printing(show_tunings)
def tune(
    agent: Agent,
    apply: Annotated[bool, typer.Option("--apply", help="Apply the new weights if they are better.")] = False,
    tenant: Tenant = "default",
) -> list[Tuning]:
    """Learn an agent's ranking weights from feedback and show the effect on held-out feedback."""

    async def tune_here(recollect: Recollect) -> list[Tuning]:
        caller = await recollect.operator.act_for(tenant)
        return await recollect.tenant.tune(caller, agent, apply=apply)

    with err.status("learning"):
        return with_service(tenant, lambda client: client.tune(agent, apply=apply), tune_here)


def show_tuning(tuning: Tuning) -> Table:
    """Tabulate weights and fits before and after."""
    table = Table(TUNED[tuning.of], "before", "after")
    for name, before in tuning.before.items():
        table.add_row(name, f"{before:g}", f"{tuning.after[name]:g}")
    learned, held_out = tuning.recalls
    add_fits(table, f"learned from {learned} recalls", tuning.training)
    add_fits(table, f"held out: {held_out} recalls", tuning.held_out)
    table.add_row("explained by chance", "", f"± {tuning.margin:.3f}")
    return table


def format_tuning(tuning: Tuning) -> str:
    """Return whether learned weights were applied or are recommended."""
    if tuning.applied:
        return "Applied to the agent's profile."
    if tuning.recommended:
        return "Recommended: `--apply` puts it into the agent's profile."
    return "Not recommended: on the feedback held out it is worse, or no better than chance explains."


def add_fits(table: Table, title: str, fits: tuple[FitQuality, FitQuality]) -> None:
    """Add how well marked hits are ordered before and after."""
    before, after = fits
    table.add_section()
    table.add_row(title, "", "")
    table.add_row("pairs in the right order", f"{before.accuracy:.3f}", f"{after.accuracy:.3f}")
    table.add_row("reciprocal rank", f"{before.reciprocal_rank:.3f}", f"{after.reciprocal_rank:.3f}")

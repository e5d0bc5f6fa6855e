"""The command `recollect mind fade`: exclude unused memories from recall, show why, and restore them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from recollect.doors.cli.terminal import (
    Agent,
    Tenant,
    User,
    err,
    find_ids,
    id_column,
    out,
    shorten_id,
    table_of,
    with_mind,
    with_options,
)
from recollect.doors.greeting import translate
from recollect.models.memories import FadeDecision, FadeReport, FadingRules

if TYPE_CHECKING:
    from recollect.mind.mind import Mind

commands = typer.Typer()

PAGE = 200
EVERYTHING = "all"
FADED = {"state": "faded"}


@commands.command()
@with_options(
    days=Annotated[float | None, typer.Option(help="Days until an unused memory fades.", show_default="the agent's")],
    threshold=Annotated[
        float | None, typer.Option(help="Memories that score above this fade.", show_default="the agent's")
    ],
    fact_days=Annotated[
        float | None, typer.Option(help="Maximum age of a fact in days; 0 = no limit.", show_default="the agent's")
    ],
    restore=Annotated[list[str] | None, typer.Option(help="Restore this memory, or `all`. Repeatable.")],
)
def fade(
    agent: Agent,
    user: User = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would fade, and why.")] = False,
    faded: Annotated[bool, typer.Option("--list", help="List faded memories.")] = False,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Remove decayed and expired memories from recall and show why. You can restore them."""
    if chosen["restore"]:
        back = with_mind(agent, user, tenant, lambda mind: restore_faded(mind, chosen["restore"]))
        out.print(translate("{count} memories are back.", count=back), highlight=False)
        return
    if faded:
        out.print(tabulate(with_mind(agent, user, tenant, read_faded)))
        return
    rules = FadingRules(chosen["days"], chosen["threshold"], chosen["fact_days"])
    with Progress(console=err) as progress:
        task = progress.add_task("judging" if dry_run else "fading", total=None)

        async def fade_memories(mind: Mind) -> list[FadeReport]:
            progress.update(task, total=(await mind.overview()).memories)
            return await walk(mind, rules, lambda more: progress.advance(task, more), dry_run=dry_run)

        reports = with_mind(agent, user, tenant, fade_memories)
    print_fade_reports(reports, dry_run=dry_run)


async def walk(mind: Mind, rules: FadingRules, report: Callable[[int], None], *, dry_run: bool) -> list[FadeReport]:
    """Go through a whole scope, call after call, and report how many memories each looked at."""
    reports = [await mind.fade(rules, dry_run=dry_run)]
    report(reports[-1].looked_at)
    while reports[-1].next_cursor is not None:
        reports.append(await mind.fade(rules, dry_run=dry_run, cursor=reports[-1].next_cursor))
        report(reports[-1].looked_at)
    return reports


def print_fade_reports(reports: Sequence[FadeReport], *, dry_run: bool) -> None:
    """Show how often each rule decided, and why the first memories fade."""
    grounds: Counter[str] = Counter()
    for each in reports:
        grounds.update(each.grounds)
    table = Table("grounds", "memories")
    for name, count in grounds.most_common():
        table.add_row(name, str(count))
    judgements = [judgement for each in reports for judgement in each.judgements][:PAGE]
    if judgements:
        out.print(tabulate(judgements))
    if grounds:
        out.print(table)
    if not reports[0].rules.days:
        out.print("Only what has expired fades: the agent has no fading days, and none were given.")
    total = sum(each.faded for each in reports)
    said = "{count} memories would fade." if dry_run else "{count} memories have faded."
    out.print(translate(said, count=total), highlight=False)


def tabulate(memories: Sequence[FadeDecision]) -> Table:
    """Show memories by their ids, and why they fade, without their content."""
    table = table_of(id_column("memory"), "kind", "score", "grounds", "why")
    for each in memories:
        table.add_row(shorten_id(each.id), each.kind, f"{each.score:.3f}", each.grounds, each.reason)
    return table


async def read_faded(mind: Mind) -> list[FadeDecision]:
    """Read all that has faded in a scope, oldest first, with the reasons."""
    page, found = await mind.list(filter=FADED, limit=PAGE), list[FadeDecision]()
    while page.memories:
        found += (await mind.fade(ids=[each.id for each in page.memories], dry_run=True)).judgements
        if page.next_cursor is None:
            break
        page = await mind.list(filter=FADED, limit=PAGE, cursor=page.next_cursor)
    return found


async def restore_faded(mind: Mind, named: Sequence[str]) -> int:
    """Restore the named memories, or all, and count them."""
    everything = EVERYTHING in named
    ids = [each.id for each in await read_faded(mind)] if everything else await find_ids(mind, list(named))
    return sum([len(await mind.restore(ids[start : start + PAGE])) for start in range(0, len(ids), PAGE)])

"""Commands for memories: remember one, revise it, pin some, forget some, and let them fade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Column, Table

from recollect.doors.cli.terminal import (
    FILTER_OPTIONS,
    Agent,
    Steps,
    Tenant,
    User,
    Yes,
    err,
    out,
    read_filter,
    run,
    with_mind,
    with_options,
)
from recollect.doors.words import translate
from recollect.mind.mind import Mind
from recollect.mind.service import Recollect
from recollect.models.imports import UserErasure
from recollect.models.memories import Faded, Fading, FadingRules, IfNew, Judgement, Kind, NewMemory, Revision
from recollect.models.recall import Filter

commands = typer.Typer()

PAGE = 200
EVERYTHING = "all"


class NewBy(StrEnum):
    """How to tell whether something is new."""

    SAME = "same"
    NEAR = "near"


@commands.command()
@with_options(
    days=Annotated[
        float | None, typer.Option(help="Days over which what is unused fades.", show_default="the agent's")
    ],
    threshold=Annotated[float | None, typer.Option(help="What scores above it fades.", show_default="the agent's")],
    fact_days=Annotated[
        float | None, typer.Option(help="Days that a fact may grow old; 0 for any age.", show_default="the agent's")
    ],
    revive=Annotated[
        list[str] | None, typer.Option(help="Bring back instead: a memory by its id, or `all`; repeat for more.")
    ],
)
def fade(
    agent: Agent,
    user: User = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would fade, and why.")] = False,
    faded: Annotated[bool, typer.Option("--list", help="Show what has faded instead, and why.")] = False,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Let what has decayed or expired leave recall, and show why; all of it can be revived."""
    if chosen["revive"]:
        back = with_mind(agent, user, tenant, lambda mind: revive(mind, chosen["revive"]))
        out.print(translate("{count} memories are back.", count=back), highlight=False)
        return
    if faded:
        out.print(tabulate(with_mind(agent, user, tenant, read_faded)))
        return
    rules = FadingRules(chosen["days"], chosen["threshold"], chosen["fact_days"])
    with Progress(console=err) as progress:
        task = progress.add_task("judging" if dry_run else "fading", total=None)

        async def work(mind: Mind) -> list[Fading]:
            progress.update(task, total=(await mind.overview()).memories)
            return await walk(mind, rules, lambda more: progress.advance(task, more), dry_run=dry_run)

        reports = with_mind(agent, user, tenant, work)
    show(reports, dry_run=dry_run)


async def walk(mind: Mind, rules: FadingRules, report: Callable[[int], None], *, dry_run: bool) -> list[Fading]:
    """Go through a whole scope, call after call, and report how many memories each looked at."""
    reports = [await mind.fading.fade(rules, dry_run=dry_run)]
    report(reports[-1].looked_at)
    while reports[-1].next_cursor is not None:
        reports.append(await mind.fading.fade(rules, dry_run=dry_run, cursor=reports[-1].next_cursor))
        report(reports[-1].looked_at)
    return reports


def show(reports: Sequence[Fading], *, dry_run: bool) -> None:
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


def tabulate(memories: Sequence[Judgement | Faded]) -> Table:
    """Show memories by their ids, and why they fade, without their content."""
    table = Table(Column("memory", no_wrap=True, min_width=36), "kind", "score", "grounds", "why")
    for each in memories:
        table.add_row(str(each.id), each.kind, f"{each.score:.3f}", each.grounds, each.reason)
    return table


async def read_faded(mind: Mind) -> list[Faded]:
    """Read all that has faded in a scope."""
    page = await mind.fading.faded(limit=PAGE)
    found = list(page.faded)
    while page.next_cursor is not None:
        page = await mind.fading.faded(page.next_cursor, PAGE)
        found += page.faded
    return found


async def revive(mind: Mind, named: Sequence[str]) -> int:
    """Revive what is named, or everything, and count it."""
    ids = [each.id for each in await read_faded(mind)] if EVERYTHING in named else [to_id(name) for name in named]
    return sum([len(await mind.fading.revive(ids[start : start + PAGE])) for start in range(0, len(ids), PAGE)])


def to_id(name: str) -> UUID:
    """Read an id."""
    try:
        return UUID(name)
    except ValueError:
        raise typer.BadParameter("must be the id of a memory, or `all`", param_hint="--revive") from None


@commands.command()
@with_options(
    expires_at=Annotated[
        datetime | None, typer.Option(help="When to recall it no more, in UTC.", show_default="never")
    ],
    pin=Annotated[bool, typer.Option("--pin", help="Let every context show it.")],
    if_new=Annotated[
        NewBy | None, typer.Option(help="Only if it is not known: by the same text, or also by nearly the same terms.")
    ],
)
def remember(
    content: Annotated[str, typer.Argument(help="What to remember.")],
    agent: Agent,
    user: User = "",
    kind: Annotated[Kind, typer.Option(help="What sort of thing it is.")] = Kind.EVENT,
    importance: Annotated[float | None, typer.Option(help="1 to 10; by rules if left out.")] = None,
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Remember one thing."""
    expiry = chosen["expires_at"].replace(tzinfo=UTC) if chosen["expires_at"] else None
    memory = NewMemory(content, kind, importance=importance, expires_at=expiry, pinned=bool(chosen["pin"]))
    if_new: IfNew = chosen["if_new"].value if chosen["if_new"] else ""
    [receipt] = with_mind(agent, user, tenant, lambda mind: mind.remember(memory, if_new=if_new))
    out.print(f"{receipt.id} {'known' if receipt.known else receipt.progress}", highlight=False)


@commands.command()
@with_options(
    importance=Annotated[float | None, typer.Option(help="1 to 10.", show_default="as it is")],
    keyword=Annotated[
        list[str] | None, typer.Option(help="A word to file it under, in place of the others; repeat for more.")
    ],
    topic=Annotated[str | None, typer.Option(help="The topic to file it under.", show_default="as it is")],
    pin=Annotated[bool | None, typer.Option("--pin/--no-pin", help="Whether every context shows it.")],
    versions=Annotated[bool | None, typer.Option("--versions", help="Only show its versions.")],
)
def revise(
    memory_id: Annotated[UUID, typer.Argument(metavar="ID", help="The id of the memory.")],
    agent: Agent,
    content: Annotated[str, typer.Argument(help="What is remembered from now on.")] = "",
    user: User = "",
    tenant: Tenant = "default",
    **chosen: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Add a version of a memory in place of the current one, or show its versions."""
    if chosen["versions"]:
        table = Table(Column("version", no_wrap=True, min_width=36), "written", "until", "trust", "content")
        for each in with_mind(agent, user, tenant, lambda mind: mind.versions(memory_id)):
            until = "contested" if each.contested else each.superseded_at.isoformat() if each.superseded_at else ""
            table.add_row(str(each.id), each.created_at.isoformat(), until, str(each.trust), escape(each.content))
        out.print(table)
        return
    revision = Revision(
        content or None,
        chosen["importance"],
        keywords=tuple(chosen["keyword"]) if chosen["keyword"] else None,
        topic=chosen["topic"],
        pinned=chosen["pin"],
    )
    revised = with_mind(agent, user, tenant, lambda mind: mind.revise(memory_id, revision))
    said = "contested" if revised.contested else revised.progress if revised.changed else "unchanged"
    out.print(f"{revised.id} {said}", highlight=False)


@commands.command()
def pin(
    ids: Annotated[list[UUID], typer.Argument(help="Ids of memories.")],
    agent: Agent,
    user: User = "",
    off: Annotated[bool, typer.Option("--off", help="Let them go again.")] = False,
    tenant: Tenant = "default",
) -> None:
    """Let every context show memories, before what is recalled; or no longer."""
    found = with_mind(agent, user, tenant, lambda mind: mind.pin(ids, pinned=not off))
    said = "{count} of {all} memories are no longer pinned." if off else "{count} of {all} memories are pinned."
    out.print(translate(said, count=len(found), all=len(ids)), highlight=False)


@commands.command()
@with_options(
    yes=Yes,
    all_agents=Annotated[bool | None, typer.Option("--all-agents", help="All of the user, whatever agent it is of.")],
    **FILTER_OPTIONS,
)
def forget(
    agent: Annotated[str, typer.Option(help="Whose memory it is.")] = "",
    ids: Annotated[list[UUID] | None, typer.Argument(help="Ids of memories; or none, and a filter.")] = None,
    user: User = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    tenant: Tenant = "default",
    **given: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Delete memories for good, by their ids or all that the options admit, with all that was derived from them."""
    only = Filter(**read_filter(given))
    if given["all_agents"]:
        if agent or ids or only.named:
            raise typer.BadParameter("--all-agents erases the user: it takes no agent, ids or filter")
        erase_user(user, tenant, dry_run=dry_run, yes=bool(given["yes"]))
        return
    if not agent:
        raise typer.BadParameter("name --agent, or --user with --all-agents")
    if not (dry_run or given["yes"]):
        typer.confirm(translate("Delete them for good?"), abort=True, err=True)
    gone = with_mind(agent, user, tenant, lambda mind: mind.forget(ids or (), only, dry_run=dry_run))
    said = "{count} memories would be forgotten." if dry_run else "{count} memories are forgotten."
    out.print(translate(said, count=len(gone)), highlight=False)


def erase_user(user: str, tenant: str, *, dry_run: bool, yes: bool) -> None:
    """Erase a user over all agents, or only count what would go, and show the receipt."""
    if not (dry_run or yes):
        typer.confirm(f"Erase everything of {user}, over all agents, for good?", abort=True, err=True)
    with Progress(console=err) as progress:
        steps = Steps(progress)

        async def work(recollect: Recollect) -> UserErasure:
            caller = await recollect.operator.act_for(tenant)
            return await recollect.operator.erasures.forget_user(caller, user, steps, dry_run=dry_run)

        erased = run(work)
    table = Table("table", Column("rows", justify="right"))
    for name, rows in erased.removed.items():
        table.add_row(name, str(rows))
    out.print(table)
    where = "1 scope" if erased.scopes == 1 else f"{erased.scopes} scopes"
    done = f"is erased from {where}" if erased.erased_at else f"is erased from {where} so far, and a worker goes on"
    told = f"would be erased from {where}." if dry_run else f"{done}; receipt {erased.id}."
    out.print(f"{user} {told}", highlight=False, markup=False)

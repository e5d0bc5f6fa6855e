"""Commands for operators: embedding spaces, jobs, costs and readers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from recollect.doors.cli.terminal import Tenant, err, on_mind, out, printing, run, run_on_each, table_of
from recollect.doors.greeting import translate
from recollect.models.agents import NOTHING_THERE
from recollect.models.service import CostReport, DailyBudget, EmbeddingSpace, Job, Reader

if TYPE_CHECKING:
    from recollect.mind.mind import Mind
    from recollect.mind.service import Recollect

commands = typer.Typer()

jobs_app = typer.Typer(help="Show and retry background jobs.")
AnyAgent = Annotated[str, typer.Option(help="Agent.", show_default="all of the tenant's")]
NUMBERS = ("calls", "failed", "partial", "prompt", "completion", "seconds", "price")
sql_reader_app = typer.Typer(help="Manage SQL roles that can read a tenant's memories.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Role name.")]
embeddings_app = typer.Typer(help="Manage embedding spaces, one per embedding model.", no_args_is_help=True)


@commands.command()
@on_mind
async def reflect(mind: Mind) -> None:
    """Reflect on recent memories now, without a worker. Show the questions and the thoughts."""
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err) as progress:
        task = progress.add_task("looking back", total=None)
        reflection = await mind.reflect(report=lambda step: progress.update(task, description=escape(step)))
        thoughts = [await mind.get(receipt.id) for receipt in reflection.thoughts]
    if not thoughts:
        out.print(translate(reflection.reason or NOTHING_THERE))
        return
    table = Table("question", "thought", "importance", "depth", "evidence")
    for question in reflection.questions:
        answers = [thought for thought in thoughts if thought.metadata.get("question") == question]
        for place, thought in enumerate(answers):
            shown = escape(question) if place == 0 else ""
            numbers = (f"{thought.importance:g}", str(thought.depth), str(len(thought.evidence)))
            table.add_row(shown, escape(thought.content), *numbers)
        if not answers:
            table.add_row(escape(question), "[dim]nothing[/dim]", "", "", "")
    out.print(table)


def show_backlogs(backlogs: list[Any]) -> None:
    """Show jobs by task."""
    table = table_of("task", "state", "jobs", "newest", "attempts", "waits", "progress", "failed", "why")
    for backlog in backlogs:
        numbers = (str(backlog.jobs), backlog.newest, str(backlog.attempts))
        far = (show_span(backlog.lag_seconds), show_progress(backlog.done, backlog.total))
        table.add_row(backlog.task, backlog.state, *numbers, *far, show_time(backlog.failed_at), escape(backlog.reason))
    out.print(table if table.row_count else translate("No job waits, runs or has failed."))


@jobs_app.callback(invoke_without_command=True)
@printing(show_backlogs)
def jobs(context: typer.Context) -> list[Any] | None:
    """List the jobs that wait, run or have failed, by task, how long they wait, and why they failed the last time."""
    if context.invoked_subcommand is not None:
        return None
    return run(lambda recollect: recollect.jobs.unfinished())


def print_job(job: Job) -> None:
    """Print one job, a field a line."""
    table = table_of("", "", show_header=False)
    for name, value in (
        ("task", job.task),
        ("agent", job.agent),
        ("user", job.user),
        ("state", job.state.value),
        ("attempts", str(job.attempts)),
        ("deferred", show_time(job.deferred_at)),
        ("started", show_time(job.started_at)),
        ("scheduled", show_time(job.scheduled_at)),
        ("waits", show_span(job.lag_seconds)),
        ("progress", show_progress(job.done, job.total)),
        ("why", job.reason),
    ):
        table.add_row(name, escape(value))
    out.print(table)


@jobs_app.command("show")
@printing(print_job)
def show_job(job_id: Annotated[str, typer.Argument(help="Job ID.")]) -> Job:
    """Show a job: scope, state and last error."""
    return run(lambda recollect: recollect.jobs.find_job_anywhere(job_id))


@jobs_app.command("retry")
def retry_jobs(
    task: Annotated[str | None, typer.Option(help="Only jobs of this task.")] = None,
    job_id: Annotated[str | None, typer.Option("--id", help="Only this job.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only jobs of this tenant.")] = None,
) -> None:
    """Retry failed jobs: all, or those selected by options."""
    tried = run(lambda recollect: recollect.jobs.retry_all(task, job_id, tenant))
    out.print(translate("{count} jobs wait to be tried again.", count=len(tried)), highlight=False)


def show_time(moment: datetime | None) -> str:
    """Write a time to the second, or an empty text."""
    return f"{moment:%F %T}" if moment else ""


def show_span(seconds: float | None) -> str:
    """Write a span of time as hours, minutes and seconds, if there is one."""
    return "" if seconds is None else str(timedelta(seconds=round(seconds)))


def show_progress(done: int | None, total: int | None) -> str:
    """Write progress, and of how much, if it is known."""
    if done is None:
        return ""
    return str(done) if total is None else f"{done} of {total}"


def show_costs(found: CostReport) -> None:
    """Show costs by day, step and model."""
    table = table_of("day", "step", "model", *(Column(name, justify="right") for name in NUMBERS))
    for each in found.sums:
        counts = (each.calls, each.failed, each.partial, each.prompt_tokens, each.completion_tokens)
        spent = (f"{each.milliseconds / 1000:,.1f}", "" if each.price is None else f"{each.price:,.4f}")
        shown = (f"{count:,}" for count in counts)
        table.add_row(f"{each.day:%F}", escape(each.step), escape(each.model), *shown, *spent)
    out.print(table if table.row_count else translate("No model was asked."))
    out.print(describe_budget(found.budget), highlight=False)


@commands.command()
@printing(show_costs)
def costs(
    agent: AnyAgent = "",
    user: Annotated[str, typer.Option(help="User. Omit for the agent's own memory.")] = "",
    days: Annotated[int, typer.Option(help="Number of days, including today.")] = 30,
    tenant: Tenant = "default",
) -> CostReport:
    """Show model costs by day, step and model, and the rest of today's budget."""
    return run(lambda recollect: recollect.ledger(agent, user, days=days, tenant=tenant))


def describe_budget(budget: DailyBudget | None) -> str:
    """Return the rest of today's budget in one line; empty if there is no budget."""
    if budget is None:
        return ""
    if budget.limit is None:
        return f"{budget.used:,} tokens used today; there is no limit."
    waits = f" Enrichment waits until {budget.waits_until:%F %R %Z}." if budget.waits_until else ""
    return f"{budget.used:,} of {budget.limit:,} tokens used today.{waits}"


@sql_reader_app.command("create")
def create_reader(name: Name, tenant: Tenant = "default") -> None:
    """Create a role that may read a tenant's views, and show its login this once."""
    made = run(lambda recollect: recollect.operator.readers.create(name, tenant))
    out.print(made.dsn, highlight=False, soft_wrap=True, markup=False)


def show_readers(readers: tuple[Reader, ...]) -> None:
    """Show readers with their tenants."""
    table = table_of("name", "tenant", "made")
    for reader in readers:
        table.add_row(escape(reader.name), escape(reader.tenant), f"{reader.created_at:%F %T}")
    out.print(table if table.row_count else "There are no readers.")


@sql_reader_app.command("list")
@printing(show_readers)
def list_readers() -> tuple[Reader, ...]:
    """List all reader roles."""
    return run(lambda recollect: recollect.operator.readers.list())


@sql_reader_app.command("drop")
def drop_reader(name: Name) -> None:
    """Drop a reader role."""
    run(lambda recollect: recollect.operator.readers.drop(name))
    out.print(translate("dropped"))


def show_spaces(listed: list[tuple[EmbeddingSpace, str]]) -> None:
    """Show embedding spaces and the attributions of their models."""
    table = table_of("id", "model", "dimensions", "precision", "state")
    for space, _ in listed:
        table.add_row(str(space.id), escape(space.model), str(space.dimensions), space.precision, space.state)
    out.print(table)
    for space, attribution in listed:
        if attribution:
            out.print(f"{escape(space.model)} is made with {attribution}", soft_wrap=True)


@embeddings_app.command("list")
@printing(show_spaces)
def list_spaces() -> list[tuple[EmbeddingSpace, str]]:
    """List embedding spaces."""

    async def fetch_spaces(recollect: Recollect) -> list[tuple[EmbeddingSpace, str]]:
        spaces = recollect.operator.spaces
        return [(space, spaces.attribution(space)) for space, _ in await spaces.list()]

    return list(dict.fromkeys(each for some in run_on_each(fetch_spaces) for each in some))


@embeddings_app.command("change")
def change_model() -> None:
    """Re-embed everything with the configured model while serving, then switch to it."""
    with Progress(console=err) as progress:
        task = progress.add_task("embedding", total=None)
        report: Callable[[int], None] = lambda done: progress.update(task, completed=done)  # noqa: E731
        changed = run_on_each(lambda recollect: recollect.operator.spaces.change(report))
    space, refused = changed[0][0], sum(each for _, each in changed)
    out.print(f"Recall now reads space {space.id} ({escape(space.model)}).")
    if refused:
        out.print(f"{refused} memories have no vector in it: the model cannot take their text. Words still find them.")


@embeddings_app.command("drop")
def drop_space(space_id: int) -> None:
    """Delete a retired embedding space."""
    run_on_each(lambda recollect: recollect.operator.spaces.drop(space_id))
    out.print(translate("dropped"))


@embeddings_app.command("compact")
def compact_space(space_id: int) -> None:
    """Rebuild the primary key of a space to save about half of its size."""
    with err.status("building the key anew; nobody is blocked"):
        sizes = run_on_each(lambda recollect: recollect.operator.spaces.compact(space_id))
    for before, after in sizes:
        out.print(f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB now.")


@embeddings_app.command("index")
def index_large_scopes(
    at_least: Annotated[int, typer.Option(help="Minimum number of memories in a scope.")] = 100_000,
) -> None:
    """Build an approximate vector index for the largest scopes."""
    with err.status("building indexes; writers are not blocked"):
        indexed = run_on_each(lambda recollect: recollect.operator.spaces.index_large_scopes(at_least))
    out.print(f"{sum(map(len, indexed))} scopes indexed.")


commands.add_typer(jobs_app, name="jobs")
commands.add_typer(sql_reader_app, name="sql-reader")
commands.add_typer(embeddings_app, name="embeddings")

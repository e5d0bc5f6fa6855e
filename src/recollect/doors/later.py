"""Commands for what models and workers do: reflect now, and see what waits or has failed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from recollect.doors.terminal import Agent, Tenant, User, err, out, run, with_mind
from recollect.mind.mind import Mind
from recollect.models.agents import Reflection
from recollect.models.memories import Memory

jobs_app = typer.Typer(help="See what waits, runs or has failed, and let it be tried again.")


def reflect(agent: Agent, user: User = "", tenant: Tenant = "default") -> None:
    """Think about what has gathered, now and not by a worker; show the questions and the thoughts."""
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err) as progress:
        task = progress.add_task("looking back", total=None)

        async def work(mind: Mind) -> tuple[Reflection, list[Memory]]:
            reflection = await mind.reflect(report=lambda step: progress.update(task, description=escape(step)))
            return reflection, [await mind.get(receipt.id) for receipt in reflection.thoughts]

        reflection, thoughts = with_mind(agent, user, tenant, work)
    if not thoughts:
        out.print("There is nothing to reflect upon yet.")
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


@jobs_app.callback(invoke_without_command=True)
def jobs(context: typer.Context) -> None:
    """List the jobs that wait, run or have failed, by task, how long they wait, and why they failed the last time."""
    if context.invoked_subcommand is not None:
        return
    table = Table("task", "state", "jobs", "newest", "attempts", "waits", "progress", "failed", "why")
    for backlog in run(lambda recollect: recollect.unfinished_jobs()):
        numbers = (str(backlog.jobs), str(backlog.newest), str(backlog.attempts))
        far = (show_span(backlog.lag_seconds), show_progress(backlog.done, backlog.total))
        table.add_row(backlog.task, backlog.state, *numbers, *far, show_time(backlog.failed_at), escape(backlog.reason))
    out.print(table if table.row_count else "No job waits, runs or has failed.")


@jobs_app.command("show")
def show_job(number: Annotated[int, typer.Argument(help="The job's number.")]) -> None:
    """Show one job of a scope: whose it is, where it stands, and why it failed the last time."""
    job = run(lambda recollect: recollect.jobs.show(number))
    table = Table(show_header=False)
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


@jobs_app.command("retry")
def retry_jobs(
    task: Annotated[str | None, typer.Option(help="Only jobs of this task.")] = None,
    number: Annotated[int | None, typer.Option("--id", help="Only the job of this number.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only jobs of this tenant.")] = None,
) -> None:
    """Let failed jobs run again; without an option, all of them."""
    tried = run(lambda recollect: recollect.jobs.retry_all(task, number, tenant))
    out.print(f"{len(tried)} jobs wait to be tried again.", highlight=False)


def show_time(moment: datetime | None) -> str:
    """Write a moment down to the second, if there is one."""
    return f"{moment:%F %T}" if moment else ""


def show_span(seconds: float | None) -> str:
    """Write a span of time as hours, minutes and seconds, if there is one."""
    return "" if seconds is None else str(timedelta(seconds=round(seconds)))


def show_progress(done: int | None, total: int | None) -> str:
    """Write how far something is, and of how much, where that is known."""
    if done is None:
        return ""
    return str(done) if total is None else f"{done} of {total}"

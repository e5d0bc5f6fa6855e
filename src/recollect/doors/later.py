"""Commands for what models and workers do: reflect now, and see what waits or has failed."""

from __future__ import annotations

from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from recollect.doors.terminal import Agent, Tenant, User, err, out, run, with_mind
from recollect.mind import Mind
from recollect.models import Memory, Reflection


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


def jobs() -> None:
    """List the jobs that wait, run or have failed, by task, and why they failed the last time."""
    table = Table("task", "state", "jobs", "newest", "attempts", "failed", "why")
    for backlog in run(lambda recollect: recollect.unfinished_jobs()):
        failed = f"{backlog.failed_at:%F %T}" if backlog.failed_at else ""
        numbers = (str(backlog.jobs), str(backlog.newest), str(backlog.attempts))
        table.add_row(backlog.task, backlog.state, *numbers, failed, escape(backlog.reason))
    out.print(table if table.row_count else "No job waits, runs or has failed.")

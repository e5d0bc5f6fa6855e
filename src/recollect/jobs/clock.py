"""What workers do by the clock, and how they bear one that is set: what runs by it goes by the new time at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from procrastinate import App
from procrastinate.periodic import PeriodicDeferrer, TaskAtTime
from procrastinate.worker import Worker


@dataclass(frozen=True, slots=True)
class Pulse:
    """How often workers send a heartbeat, and when one without it has lost its jobs."""

    heartbeat_seconds: float = 5.0
    stalled_seconds: float = 20.0
    look_at: str = "* * * * * */10"
    """When to look for jobs of dead workers, as a cron line that ends with seconds."""


USUAL_PULSE = Pulse()


def schedule(app: App, name: str, cron: str, task: Callable[..., Awaitable[None]], *, lock: str | None = None) -> None:
    """Register a task that runs by the clock and waits at most once; with a lock, it never runs twice at a time."""
    registered = app.task(name=name, queue=name, queueing_lock=name, lock=lock, pass_context=True)(task)
    app.periodic(cron=cron, periodic_id=name)(registered)


class SteadyDeferrer(PeriodicDeferrer):
    """Defers what runs by the clock; the engine's own one waits an hour if the clock is set back by one."""

    def get_previous_tasks(self, at: float) -> Iterable[TaskAtTime]:
        """Give what is due; what was deferred at a time that is far from now says nothing about it."""
        near = {task: last for task, last in self.last_defers.items() if 0 <= at - last <= self.max_delay}
        self.last_defers = near
        return super().get_previous_tasks(at)


class SteadyWorker(Worker):
    """The engine's worker, whatever happens to its clock."""

    async def _periodic_deferrer(self) -> None:
        await SteadyDeferrer(self.app.periodic_registry).worker()

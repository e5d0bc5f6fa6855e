"""Periodic work, robust against changes of the clock: periodic jobs follow the new time at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from procrastinate import App
from procrastinate.periodic import PeriodicDeferrer, TaskAtTime
from procrastinate.worker import Worker


@dataclass(frozen=True, slots=True)
class HeartbeatConfig:
    """How often workers send a heartbeat, and when a silent worker loses its jobs."""

    heartbeat_seconds: float = 5.0
    stalled_seconds: float = 20.0
    look_at: str = "* * * * * */10"
    """When to look for jobs of dead workers, as a cron line that ends with seconds."""


DEFAULT_HEARTBEAT = HeartbeatConfig()


def schedule(app: App, name: str, cron: str, task: Callable[..., Awaitable[None]], *, lock: str | None = None) -> None:
    """Register a periodic task that waits at most once; with a lock, it never runs twice at the same time."""
    registered = app.task(name=name, queue=name, queueing_lock=name, lock=lock, pass_context=True)(task)
    app.periodic(cron=cron, periodic_id=name)(registered)


class ClockSafeDeferrer(PeriodicDeferrer):
    """Queues periodic tasks; the engine's class waits an hour if the clock is set back by one."""

    def get_previous_tasks(self, at: float) -> Iterable[TaskAtTime]:
        """Return due tasks; last runs at a time far from now are ignored."""
        near = {task: last for task, last in self.last_defers.items() if 0 <= at - last <= self.max_delay}
        self.last_defers = near
        return super().get_previous_tasks(at)


class ClockSafeWorker(Worker):
    """The engine's worker, robust against changes of its clock."""

    async def _periodic_deferrer(self) -> None:
        await ClockSafeDeferrer(self.app.periodic_registry).worker()

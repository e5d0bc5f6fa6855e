"""The engine's worker, made to bear a clock that is set: what runs by the clock goes by the new time at once."""

from __future__ import annotations

from collections.abc import Iterable

from procrastinate.periodic import PeriodicDeferrer, TaskAtTime
from procrastinate.worker import Worker


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

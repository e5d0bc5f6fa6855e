"""The agent of one scope: its profile, its associations and reflections, and feedback on its recalls: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.agents import Association, Feedback, Overview, Profile, Reflection, ReflectionProgress
    from recollect.models.memories import Triple
    from recollect.models.recall import RecallResult


class RemoteAgent(RemoteView):
    """An agent's operations; its profile and weights apply to all its scopes, on a server."""

    __slots__ = ()

    async def profile(self) -> Profile:
        """Get an agent's default settings and its metadata."""
        answer: Profile = await self.call("profile")
        return answer

    async def set_profile(self, profile: Profile) -> Profile:
        """Replace an agent's default settings. Omitted fields are reset; metadata is kept."""
        answer: Profile = await self.call("set_profile", profile=profile)
        return answer

    async def associate(
        self,
        triples: Triple | Sequence[Triple],
        *,
        limit: int = 30,
        original: bool = False,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> list[Association]:
        """Find events and thoughts that share keywords with each triple."""
        answer: list[Association] = await self.call(
            "associate", triples=triples, limit=limit, original=original, as_of=as_of, at=at
        )
        return answer

    async def feedback(
        self, given: RecallResult | Feedback, useful: Sequence[UUID] = (), *, useless: Sequence[UUID] | None = None
    ) -> int:
        """Mark hits as useful or not."""
        answer: int = await load("recollect.client.special").feedback(self, given, useful, useless=useless)
        return answer

    async def reflect(
        self,
        now: datetime | None = None,
        *,
        report: Callable[[str], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reflection:
        """Run a reflection on recent memories in a worker of the server, and wait for it: 10 minutes by default."""
        answer: Reflection = await load("recollect.client.special").reflect(
            self, now, report=report, timeout_seconds=timeout_seconds
        )
        return answer

    async def reflect_later(self, now: datetime | None = None) -> str:
        """Queue a reflection and return the job ID."""
        answer: str = await self.call("reflect_later", now=now)
        return answer

    async def reflection(self, job_id: str) -> ReflectionProgress:
        """Get the progress and result of a reflection."""
        answer: ReflectionProgress = await self.call("reflection", job_id=job_id)
        return answer

    async def overview(self, *, days: int = 0, zone: str = "") -> Overview:
        """Get statistics of a scope, and how many memories were stored on each of the last `days` days.

        Days begin as they do where the client is, unless a zone is named.
        """
        answer: Overview = await load("recollect.client.special").overview(self, days=days, zone=zone)
        return answer

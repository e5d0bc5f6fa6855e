"""The agent of one scope: its profile, its associations and reflections, and its learning from feedback: on a server.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.client.calls import RemoteView
from recollect.loading import load

if TYPE_CHECKING:
    from recollect.models.agents import (
        Association,
        DailyCount,
        Feedback,
        Overview,
        Profile,
        Reflection,
        ReflectionProgress,
        Tuning,
    )
    from recollect.models.memories import JSON, Memory, Triple
    from recollect.models.recall import RecallResult


class RemoteAgent(RemoteView):
    """An agent's operations; its profile, metadata and weights apply to all its scopes, on a server."""

    __slots__ = ()

    async def profile(self) -> Profile:
        """Get an agent's default settings."""
        answer: Profile = await self.call("profile")
        return answer

    async def set_profile(self, profile: Profile) -> None:
        """Replace an agent's default settings. Omitted fields are reset."""
        await self.call("set_profile", profile=profile)

    async def metadata(self) -> Mapping[str, JSON]:
        """Get an agent's metadata."""
        answer: Mapping[str, JSON] = await self.call("metadata")
        return answer

    async def tune(self, *, apply: bool = False) -> list[Tuning]:
        """Learn ranking weights from feedback and optionally apply them."""
        answer: list[Tuning] = await self.call("tune", apply=apply)
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

    async def last_chat(self, name: str, *, as_of: datetime | None = None, at: datetime | None = None) -> Memory | None:
        """Get the latest chat with someone."""
        answer: Memory | None = await load("recollect.client.special").last_chat(self, name, as_of=as_of, at=at)
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

    async def overview(self) -> Overview:
        """Get statistics of a scope."""
        answer: Overview = await self.call("overview")
        return answer

    async def activity(self, days: int = 30, zone: str = "") -> list[DailyCount]:
        """Count by day and kind the memories of the last days that recall can still find; the oldest day first.

        Days begin as they do where the client is, unless a zone is named.
        """
        answer: list[DailyCount] = await load("recollect.client.special").activity(self, days, zone)
        return answer

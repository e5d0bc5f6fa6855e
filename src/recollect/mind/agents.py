"""The agent of one scope: its profile, what it associates and reflects, and what it learns from feedback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from recollect.core.agents.feedback import judge
from recollect.loading import own_zone
from recollect.mind.access import Access, within
from recollect.mind.operations import operation
from recollect.models.agents import (
    ActiveDay,
    Association,
    Feedback,
    Overview,
    Profile,
    Reflection,
    ReflectionProgress,
    Tuning,
)
from recollect.models.memories import JSON, Memory, Triple
from recollect.models.recall import Filter, Recollection
from recollect.models.service import Right
from recollect.verbs.agents.associate import associate, last_chat
from recollect.verbs.agents.profile import (
    count_activity,
    feedback,
    overview,
    read_metadata,
    read_profile,
    set_profile,
    tune,
)
from recollect.verbs.agents.reflect import Occasion, defer_reflection, follow_reflection, reflect


class AgentVerbs:
    """An agent's operations; its profile, metadata and weights apply to all its scopes."""

    __slots__ = ()
    access: Access

    @operation("GET /v1/profile", Right.READ, agent_only=True, command="profile")
    async def profile(self) -> Profile:
        """Read the agent's default settings."""
        return await read_profile(self.access.parts, self.access.scope)

    @operation("PUT /v1/profile", Right.ADMIN, agent_only=True, command="profile")
    async def set_profile(self, profile: Profile) -> None:
        """Change the agent's default settings; unset fields return to their defaults."""
        await set_profile(self.access.parts, self.access.scope, profile)

    @operation("GET /v1/metadata", Right.READ, answer="metadata", agent_only=True)
    async def metadata(self) -> Mapping[str, JSON]:
        """Read the agent's metadata."""
        return await read_metadata(self.access.parts, self.access.scope)

    @operation("POST /v1/tune", "`read`; `admin` to apply", answer="tunings", agent_only=True, command="tune")
    async def tune(self, *, apply: bool = False) -> list[Tuning]:
        """Learn the agent's weights, of the stream and of the usual recall, from feedback; apply what does better."""
        access = self.access
        access.require(Right.ADMIN if apply else Right.READ, all_users=True)
        return await tune(access.parts, access.scope, apply=apply)

    @operation("POST /v1/associate", Right.READ, answer="associations", command="associate", tool="associate")
    async def associate(
        self,
        triples: Triple | Sequence[Triple],
        *,
        limit: int = 30,
        original: bool = False,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> list[Association]:
        """Return which events and thoughts each perceived triple reminds of, up to a limit of either."""
        perceived = [triples] if isinstance(triples, Triple) else triples
        only = Filter(as_of=as_of, at=at)
        return await associate(self.access.parts, self.access.scope, perceived, limit, original=original, only=only)

    @operation("GET /v1/last-chat", Right.READ)
    async def last_chat(self, name: str, *, as_of: datetime | None = None, at: datetime | None = None) -> Memory | None:
        """Return the newest chat with somebody, if there was one."""
        return await last_chat(self.access.parts, self.access.scope, name, Filter(as_of=as_of, at=at))

    @operation("POST /v1/feedback", Right.WRITE, answer="marked", status=201)
    async def feedback(
        self, given: Recollection | Feedback, useful: Sequence[UUID] = (), *, useless: Sequence[UUID] | None = None
    ) -> int:
        """Mark hits of a recollection as useful or useless, all others useless if none are named; count the marks."""
        marks = judge(given, useful, useless) if isinstance(given, Recollection) else given
        place = await self.access.locate()
        return await feedback(self.access.parts, self.access.scope, marks, place.profile)

    async def reflect(
        self,
        now: datetime | None = None,
        *,
        report: Callable[[str], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reflection:
        """Reflect on what has gathered, as long as the chat model takes; write every thought or none."""
        access = self.access
        access.require(Right.WRITE)
        async with within(timeout_seconds):
            return await reflect(access.parts, access.caller, access.scope, Occasion(now=now, report=report))

    @operation("POST /v1/reflect", Right.WRITE, answer="job", status=202)
    async def reflect_later(self, now: datetime | None = None) -> str:
        """Queue a reflection for the worker; return the number of the job, which may be waiting already."""
        return await defer_reflection(self.access.parts, self.access.scope, now)

    @operation("GET /v1/reflections/{job_id}", Right.WRITE)
    async def reflection(self, job_id: str) -> ReflectionProgress:
        """Return how far a reflection by the worker is, and its result."""
        return await follow_reflection(self.access.parts, self.access.scope, job_id)

    @operation("GET /v1/overview", Right.READ, command="overview")
    async def overview(self) -> Overview:
        """Return what the scope holds, in numbers."""
        return await overview(self.access.parts, self.access.scope)

    @operation("GET /v1/activity", Right.READ, answer="days")
    async def activity(self, days: int = 30, zone: str = "") -> list[ActiveDay]:
        """Count by day and kind what was stored on the last days that are still in sight; the oldest day first."""
        return await count_activity(self.access.parts, self.access.scope, days, zone or own_zone())

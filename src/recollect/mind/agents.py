"""The agent of one scope: its profile, its associations and reflections, and its learning from feedback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from recollect.core.agents.feedback import judge
from recollect.loading import local_timezone
from recollect.mind.access import Access, within
from recollect.mind.operations import operation
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
from recollect.models.recall import Filter, RecallResult
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
from recollect.verbs.agents.reflect import ReflectOptions, defer_reflection, follow_reflection, reflect


class AgentVerbs:
    """An agent's operations; its profile, metadata and weights apply to all its scopes."""

    __slots__ = ()
    access: Access

    @operation("GET /v1/profile", Right.READ, agent_only=True, command="mind profile")
    async def profile(self) -> Profile:
        """Get an agent's default settings."""
        return await read_profile(self.access.parts, self.access.scope)

    @operation("PUT /v1/profile", Right.ADMIN, agent_only=True, command="mind profile")
    async def set_profile(self, profile: Profile) -> None:
        """Replace an agent's default settings. Omitted fields are reset."""
        await set_profile(self.access.parts, self.access.scope, profile)

    @operation("GET /v1/metadata", Right.READ, answer="metadata", agent_only=True)
    async def metadata(self) -> Mapping[str, JSON]:
        """Get an agent's metadata."""
        return await read_metadata(self.access.parts, self.access.scope)

    @operation(
        "POST /v1/tune", "`read`; `admin` to apply", answer="tunings", agent_only=True, timed=False, command="mind tune"
    )
    async def tune(self, *, apply: bool = False) -> list[Tuning]:
        """Learn ranking weights from feedback and optionally apply them."""
        access = self.access
        access.require(Right.ADMIN if apply else Right.READ, all_users=True)
        return await tune(access.parts, access.scope, apply=apply)

    @operation("POST /v1/associate", Right.READ, answer="associations", command="mind associate", tool="associate")
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
        perceived = [triples] if isinstance(triples, Triple) else triples
        only = Filter(as_of=as_of, at=at)
        return await associate(self.access.parts, self.access.scope, perceived, limit, original=original, only=only)

    @operation("GET /v1/last-chat", Right.READ)
    async def last_chat(self, name: str, *, as_of: datetime | None = None, at: datetime | None = None) -> Memory | None:
        """Get the latest chat with someone."""
        return await last_chat(self.access.parts, self.access.scope, name, Filter(as_of=as_of, at=at))

    @operation("POST /v1/feedback", Right.WRITE, answer="marked", status=201)
    async def feedback(
        self, given: RecallResult | Feedback, useful: Sequence[UUID] = (), *, useless: Sequence[UUID] | None = None
    ) -> int:
        """Mark hits as useful or not."""
        marks = judge(given, useful, useless) if isinstance(given, RecallResult) else given
        place = await self.access.locate()
        return await feedback(self.access.parts, self.access.scope, marks, place.profile)

    async def reflect(
        self,
        now: datetime | None = None,
        *,
        report: Callable[[str], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reflection:
        """Reflect on recent memories, without a time limit by default. Store all thoughts or none."""
        access = self.access
        access.require(Right.WRITE)
        async with within(timeout_seconds):
            return await reflect(access.parts, access.caller, access.scope, ReflectOptions(now=now, report=report))

    @operation("POST /v1/reflect", Right.WRITE, answer="job", status=202)
    async def reflect_later(self, now: datetime | None = None) -> str:
        """Queue a reflection and return the job ID."""
        return await defer_reflection(self.access.parts, self.access.scope, now)

    @operation("GET /v1/reflections/{job_id}", Right.WRITE)
    async def reflection(self, job_id: str) -> ReflectionProgress:
        """Get the progress and result of a reflection."""
        return await follow_reflection(self.access.parts, self.access.scope, job_id)

    @operation("GET /v1/overview", Right.READ, command="mind overview")
    async def overview(self) -> Overview:
        """Get statistics of a scope."""
        return await overview(self.access.parts, self.access.scope)

    @operation("GET /v1/activity", Right.READ, answer="days")
    async def activity(self, days: int = 30, zone: str = "") -> list[DailyCount]:
        """Count stored memories per day and kind."""
        return await count_activity(self.access.parts, self.access.scope, days, zone or local_timezone())

"""The agent of one scope: its profile, its associations and reflections, and feedback on its recalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from recollect.core.agents.feedback import judge
from recollect.loading import local_timezone
from recollect.mind.access import Access, within
from recollect.mind.operations import operation
from recollect.models.agents import (
    Association,
    Feedback,
    Overview,
    Profile,
    Reflection,
    ReflectionProgress,
)
from recollect.models.filters import Filter
from recollect.models.memories import Triple
from recollect.models.recall import RecallResult
from recollect.models.service import Right
from recollect.verbs.agents.associate import associate
from recollect.verbs.agents.profile import (
    feedback,
    overview,
    read_profile,
    set_profile,
)
from recollect.verbs.agents.reflect import ReflectOptions, defer_reflection, follow_reflection, reflect


class AgentVerbs:
    """An agent's operations; its profile and weights apply to all its scopes."""

    __slots__ = ()
    access: Access

    @operation("GET /v1/profile", Right.READ, agent_only=True, command="mind profile")
    async def profile(self) -> Profile:
        """Get an agent's default settings and its metadata."""
        return await read_profile(self.access.parts, self.access.scope)

    @operation("PUT /v1/profile", Right.ADMIN, agent_only=True, command="mind profile")
    async def set_profile(self, profile: Profile) -> Profile:
        """Replace an agent's default settings. Omitted fields are reset; metadata is kept."""
        return await set_profile(self.access.parts, self.access.scope, profile)

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

    @operation("POST /v1/reflections", Right.WRITE, answer="job", status=202)
    async def reflect_later(self, now: datetime | None = None) -> str:
        """Queue a reflection and return the job ID."""
        return await defer_reflection(self.access.parts, self.access.scope, now)

    @operation("GET /v1/reflections/{job_id}", Right.WRITE)
    async def reflection(self, job_id: str) -> ReflectionProgress:
        """Get the progress and result of a reflection."""
        return await follow_reflection(self.access.parts, self.access.scope, job_id)

    @operation("GET /v1/overview", Right.READ, command="mind overview")
    async def overview(self, *, days: int = 0, zone: str = "") -> Overview:
        """Get statistics of a scope, and how many memories were stored on each of the last `days` days."""
        return await overview(self.access.parts, self.access.scope, days, zone or local_timezone())

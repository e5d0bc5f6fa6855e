"""The agent of one scope: its profile, what it associates and reflects, and what it learns from feedback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from recollect.core.agents.feedback import judge
from recollect.mind.access import Access, within
from recollect.models.agents import Feedback, Overview, Profile, Reflection, ReflectionProgress, Tuning
from recollect.models.memories import JSON, Memory, Triple
from recollect.models.recall import Association, Recollection, Times
from recollect.models.service import Right
from recollect.verbs.agents.associate import associate, last_chat
from recollect.verbs.agents.profile import feedback, overview, read_metadata, read_profile, set_profile, tune
from recollect.verbs.agents.reflect import Occasion, defer_reflection, follow_reflection, reflect


class AgentVerbs:
    """What one caller does with an agent; its profile, metadata and weights hold in all its scopes."""

    __slots__ = ()
    access: Access

    async def profile(self) -> Profile:
        """Read the agent's default settings."""
        async with self.access.asking(Right.READ, all_users=True) as access:
            return await read_profile(access.parts, access.scope)

    async def set_profile(self, profile: Profile) -> None:
        """Change the agent's default settings; unset fields return to their defaults."""
        async with self.access.asking(Right.ADMIN, all_users=True) as access:
            await set_profile(access.parts, access.scope, profile)

    async def metadata(self) -> Mapping[str, JSON]:
        """Read what callers keep of the agent for themselves."""
        async with self.access.asking(Right.READ, all_users=True) as access:
            return await read_metadata(access.parts, access.scope)

    async def tune(self, *, apply: bool = False) -> Tuning:
        """Learn the agent's weights from its feedback; apply them only if asked, and only if they do no worse."""
        access = self.access
        access.require(Right.ADMIN if apply else Right.READ, all_users=True)
        return await tune(access.parts, access.scope, apply=apply)

    async def associate(
        self,
        triples: Triple | Sequence[Triple],
        *,
        limit: int = 30,
        original: bool = False,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> list[Association]:
        """Give back which events and thoughts each perceived triple reminds of, up to a limit of either."""
        perceived = [triples] if isinstance(triples, Triple) else triples
        async with self.access.asking(Right.READ) as access:
            times = Times(as_of, at)
            return await associate(access.parts, access.scope, perceived, limit, original=original, times=times)

    async def last_chat(self, name: str, *, as_of: datetime | None = None, at: datetime | None = None) -> Memory | None:
        """Give back the newest chat with somebody, if there was one."""
        async with self.access.asking(Right.READ) as access:
            return await last_chat(access.parts, access.scope, name, Times(as_of, at))

    async def feedback(
        self, given: Recollection | Feedback, useful: Sequence[UUID] = (), *, useless: Sequence[UUID] | None = None
    ) -> int:
        """Mark hits of a recollection as useful or useless, all others useless if none are named; count the marks."""
        marks = judge(given, useful, useless) if isinstance(given, Recollection) else given
        async with self.access.asking(Right.WRITE) as access:
            return await feedback(access.parts, access.scope, marks)

    async def reflect(
        self,
        now: datetime | None = None,
        *,
        report: Callable[[str], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reflection:
        """Think about what has gathered, as long as the chat model takes; write every thought or none."""
        access = self.access
        access.require(Right.WRITE)
        async with within(timeout_seconds):
            return await reflect(access.parts, access.caller, access.scope, Occasion(now=now, report=report))

    async def reflect_later(self, now: datetime | None = None) -> int:
        """Leave a reflection to the worker; return the number of the job, which may be waiting already."""
        async with self.access.asking(Right.WRITE) as access:
            return await defer_reflection(access.parts, access.scope, now)

    async def reflection(self, job_id: int) -> ReflectionProgress:
        """Say how far a reflection is that was left to the worker, and what came of it."""
        async with self.access.asking(Right.WRITE) as access:
            return await follow_reflection(access.parts, access.scope, job_id)

    async def overview(self) -> Overview:
        """Say what the scope holds, in numbers."""
        async with self.access.asking(Right.READ) as access:
            return await overview(access.parts, access.scope)

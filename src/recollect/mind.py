"""Everything remembered in one scope, as one object: a method per verb, a right and a deadline for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from recollect.block_view import BlockView
from recollect.caller_view import CallerView, right_for, within
from recollect.conversation_view import ConversationView
from recollect.core.feedback import judge
from recollect.fading_view import FadingView
from recollect.items_view import ItemsView
from recollect.knowledge_view import KnowledgeView
from recollect.models import (
    JSON,
    Association,
    Conversations,
    ConversationState,
    Cue,
    Feedback,
    Memory,
    NewMemory,
    Overview,
    Page,
    Profile,
    Receipt,
    Recollection,
    Reflection,
    ReflectionProgress,
    Right,
    Times,
    Triple,
    Tuning,
)
from recollect.recalls_view import RecallsView
from recollect.store.scopes import Place, locate
from recollect.topics_view import TopicsView
from recollect.verbs.absence import recall_for
from recollect.verbs.associate import associate, last_chat
from recollect.verbs.browse import browse, get
from recollect.verbs.conversations import list_conversations
from recollect.verbs.feedback import feedback
from recollect.verbs.forget import forget
from recollect.verbs.load import load
from recollect.verbs.overview import overview
from recollect.verbs.profile import read_metadata, read_profile, set_profile
from recollect.verbs.reflect import Occasion, defer_reflection, follow_reflection, reflect
from recollect.verbs.remember import as_new, remember
from recollect.verbs.tune import tune


@dataclass(frozen=True, slots=True)
class AgentView(CallerView):
    """One caller's view of an agent: what holds in all its scopes."""

    async def profile(self) -> Profile:
        """Read what the agent goes by where a call says nothing else."""
        async with self._asking(Right.READ, all_users=True):
            return await read_profile(self.parts, self.scope)

    async def set_profile(self, profile: Profile) -> None:
        """Change what the agent goes by; what is left open is as usual again."""
        async with self._asking(Right.ADMIN, all_users=True):
            await set_profile(self.parts, self.scope, profile)

    async def metadata(self) -> Mapping[str, JSON]:
        """Read what callers keep of the agent for themselves."""
        async with self._asking(Right.READ, all_users=True):
            return await read_metadata(self.parts, self.scope)

    async def tune(self, *, apply: bool = False) -> Tuning:
        """Learn the agent's weights from its feedback; apply them only if asked, and only if they do no worse."""
        self._require(Right.ADMIN if apply else Right.READ, all_users=True)
        return await tune(self.parts, self.scope, apply=apply)


@dataclass(frozen=True, slots=True)
class ScopeView(AgentView):
    """One caller's view of one scope, and the ways to its parts."""

    located: list[Place] = field(default_factory=list[Place])
    """Where the scope lay when the caller was admitted: good for one recall, if nothing was written before it."""

    def conversation(self, conversation: str) -> ConversationView:
        """Choose a conversation by your own name for it; nothing is sent, and it begins with the first message."""
        return ConversationView(self.parts, self.caller, self.scope, self.deadline_seconds, conversation, self.located)

    @property
    def blocks(self) -> BlockView:
        """Give what a cue reminds of as text for a prompt, and what its short ids stand for."""
        return BlockView(self.parts, self.caller, self.scope, self.deadline_seconds, self.located)

    @property
    def fading(self) -> FadingView:
        """Give what fades in the scope, what has faded, and the way back."""
        return FadingView(self.parts, self.caller, self.scope, self.deadline_seconds)

    @property
    def items(self) -> ItemsView:
        """Give the scope's items: JSON values under names of your own."""
        return ItemsView(self.parts, self.caller, self.scope, self.deadline_seconds, self.located)

    @property
    def knowledge(self) -> KnowledgeView:
        """Give what is known in the scope: facts, and the entities that they speak of."""
        return KnowledgeView(self.parts, self.caller, self.scope, self.deadline_seconds, self.located)

    @property
    def topics(self) -> TopicsView:
        """Give the scope's topics: the tree, and what is filed under it."""
        return TopicsView(self.parts, self.caller, self.scope, self.deadline_seconds)

    @property
    def recalls(self) -> RecallsView:
        """Give the recalls that were kept in the scope, to be explained and replayed."""
        return RecallsView(self.parts, self.caller, self.scope, self.deadline_seconds)


@dataclass(frozen=True, slots=True)
class Mind(ScopeView):
    """Everything remembered in one scope: a method for each verb."""

    async def remember(
        self, memories: str | NewMemory | Sequence[str | NewMemory], *, idempotency_key: str = ""
    ) -> list[Receipt]:
        """Store one or many memories in one transaction."""
        async with self._asking(Right.WRITE):
            self.located.clear()
            return await remember(self.parts, self.caller, self.scope, as_new(memories), idempotency_key)

    async def load(self, memories: Sequence[NewMemory], *, idempotency_key: str = "") -> list[UUID]:
        """Load any number of memories in one transaction by COPY; vectors that are not given follow by a job."""
        self._require(Right.WRITE)
        self.located.clear()
        return await load(self.parts, self.caller, self.scope, memories, idempotency_key)

    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> Recollection:
        """Give back what a cue reminds of, best first."""
        asked = Cue(cue) if isinstance(cue, str) else cue
        asked = asked if limit is None else replace(asked, limit=limit)
        async with self._asking(right_for([asked])):
            place = self.located.pop() if self.located else await locate(self.parts.database, self.scope)
            return (await recall_for(self.parts, self.caller, self.scope, [asked], place))[0]

    async def recall_each(self, cues: Sequence[str | Cue], *, isolated: bool = False) -> list[Recollection]:
        """Recall by several cues in turn, each noticing the accesses before it; or all of them isolated."""
        asked = [Cue(cue) if isinstance(cue, str) else cue for cue in cues]
        async with self._asking(right_for(asked)):
            place = self.located.pop() if self.located else await locate(self.parts.database, self.scope)
            return await recall_for(self.parts, self.caller, self.scope, asked, place, isolated=isolated)

    async def get(self, memory_id: UUID) -> Memory:
        """Fetch one memory, in whichever version has this id."""
        async with self._asking(Right.READ):
            return await get(self.parts, self.scope, memory_id)

    async def browse(
        self, cursor: UUID | None = None, limit: int = 50, *, as_of: datetime | None = None, at: datetime | None = None
    ) -> Page:
        """Fetch one page of memories, oldest first; as they were believed as of a moment, or true at one."""
        async with self._asking(Right.READ):
            return await browse(self.parts, self.scope, cursor, limit, Times(as_of, at))

    async def forget(self, ids: Sequence[UUID]) -> list[UUID]:
        """Delete memories and all that was derived from them."""
        async with self._asking(Right.WRITE):
            return await forget(self.parts, self.scope, ids)

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
        async with self._asking(Right.READ):
            times = Times(as_of, at)
            return await associate(self.parts, self.scope, perceived, limit, original=original, times=times)

    async def last_chat(self, name: str, *, as_of: datetime | None = None, at: datetime | None = None) -> Memory | None:
        """Give back the newest chat with somebody, if there was one."""
        async with self._asking(Right.READ):
            return await last_chat(self.parts, self.scope, name, Times(as_of, at))

    async def feedback(
        self, given: Recollection | Feedback, useful: Sequence[UUID] = (), *, useless: Sequence[UUID] | None = None
    ) -> int:
        """Mark hits of a recollection as useful or useless, all others useless if none are named; count the marks."""
        marks = judge(given, useful, useless) if isinstance(given, Recollection) else given
        async with self._asking(Right.WRITE):
            return await feedback(self.parts, self.scope, marks)

    async def reflect(
        self,
        now: datetime | None = None,
        *,
        report: Callable[[str], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reflection:
        """Think about what has gathered, as long as the chat model takes; write every thought or none."""
        self._require(Right.WRITE)
        self.located.clear()
        async with within(timeout_seconds):
            return await reflect(self.parts, self.caller, self.scope, Occasion(now=now, report=report))

    async def reflect_later(self, now: datetime | None = None) -> int:
        """Leave a reflection to the worker; return the number of the job, which may be waiting already."""
        async with self._asking(Right.WRITE):
            return await defer_reflection(self.parts, self.scope, now)

    async def reflection(self, job_id: int) -> ReflectionProgress:
        """Say how far a reflection is that was left to the worker, and what came of it."""
        async with self._asking(Right.WRITE):
            return await follow_reflection(self.parts, self.scope, job_id)

    async def overview(self) -> Overview:
        """Say what the scope holds, in numbers."""
        async with self._asking(Right.READ):
            return await overview(self.parts, self.scope)

    async def conversations(
        self, state: ConversationState | None = None, *, cursor: str = "", limit: int = 50
    ) -> Conversations:
        """Fetch one page of conversations, the latest first; those in sight unless a state is named."""
        async with self._asking(Right.READ):
            return await list_conversations(self.parts, self.scope, state, cursor, limit)

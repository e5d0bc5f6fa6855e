"""Everything remembered in one scope, as one object: a method per verb, a right and a deadline for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from recollect.core.appends import Utterance, as_messages
from recollect.core.bounds import check_all_users, check_right
from recollect.core.feedback import judge
from recollect.errors import UnavailableError
from recollect.models import (
    JSON,
    Appended,
    Association,
    Caller,
    Context,
    Conversation,
    Conversations,
    ConversationState,
    Cue,
    Feedback,
    History,
    Leaf,
    Memory,
    NewMemory,
    Overview,
    Page,
    Profile,
    PurgeReceipt,
    Receipt,
    Recollection,
    Reflection,
    Reply,
    Right,
    Scope,
    Shares,
    Times,
    Triple,
    Tuning,
    Window,
)
from recollect.models.knowledge import StoredSegment
from recollect.store.scopes import Place, locate
from recollect.verbs.append import append
from recollect.verbs.associate import associate, last_chat
from recollect.verbs.browse import browse, get
from recollect.verbs.context import context
from recollect.verbs.conversations import describe, get_conversation, list_conversations, list_leaves
from recollect.verbs.converse import converse
from recollect.verbs.enrich import close_segment, list_segments
from recollect.verbs.feedback import feedback
from recollect.verbs.forget import forget
from recollect.verbs.history import history
from recollect.verbs.lifecycle import bring, list_receipts, purge
from recollect.verbs.load import load
from recollect.verbs.overview import overview
from recollect.verbs.parts import Parts
from recollect.verbs.profile import read_metadata, read_profile, set_profile
from recollect.verbs.prompt import Wanted
from recollect.verbs.recall import recall, recall_each
from recollect.verbs.reflect import Occasion, defer_reflection, reflect
from recollect.verbs.remember import as_new, remember
from recollect.verbs.tune import tune

if TYPE_CHECKING:
    from recollect.block_view import BlockView
    from recollect.fading_view import FadingView
    from recollect.items_view import ItemsView
    from recollect.knowledge_view import KnowledgeView
    from recollect.recalls_view import RecallsView
    from recollect.topics_view import TopicsView


@dataclass(frozen=True, slots=True)
class AgentView:
    """One caller's view of an agent: what holds in all its scopes."""

    parts: Parts
    caller: Caller
    scope: Scope
    deadline_seconds: float

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

    @asynccontextmanager
    async def _asking(self, right: Right, *, all_users: bool = False) -> AsyncIterator[None]:
        self._require(right, all_users=all_users)
        async with within(self.deadline_seconds):
            yield

    def _require(self, right: Right, *, all_users: bool = False) -> None:
        if all_users:
            check_all_users(self.caller)
        check_right(self.caller, right)


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
        from recollect.block_view import BlockView  # it is a view of an agent, too

        return BlockView(self.parts, self.caller, self.scope, self.deadline_seconds, self.located)

    @property
    def fading(self) -> FadingView:
        """Give what fades in the scope, what has faded, and the way back."""
        from recollect.fading_view import FadingView  # it is a view of an agent, too

        return FadingView(self.parts, self.caller, self.scope, self.deadline_seconds)

    @property
    def items(self) -> ItemsView:
        """Give the scope's items: JSON values under names of your own."""
        from recollect.items_view import ItemsView  # it is a view of an agent, too

        return ItemsView(self.parts, self.caller, self.scope, self.deadline_seconds, self.located)

    @property
    def knowledge(self) -> KnowledgeView:
        """Give what is known in the scope: facts, and the entities that they speak of."""
        from recollect.knowledge_view import KnowledgeView  # it is a view of an agent, too

        return KnowledgeView(self.parts, self.caller, self.scope, self.deadline_seconds, self.located)

    @property
    def topics(self) -> TopicsView:
        """Give the scope's topics: the tree, and what is filed under it."""
        from recollect.topics_view import TopicsView  # it is a view of an agent, too

        return TopicsView(self.parts, self.caller, self.scope, self.deadline_seconds)

    @property
    def recalls(self) -> RecallsView:
        """Give the recalls that were kept in the scope, to be explained and replayed."""
        from recollect.recalls_view import RecallsView  # it is a view of an agent, too

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

    async def load(self, memories: Sequence[NewMemory]) -> list[UUID]:
        """Load any number of memories in one transaction by COPY; vectors that are not given follow by a job."""
        self._require(Right.WRITE)
        self.located.clear()
        return await load(self.parts, self.caller, self.scope, memories)

    async def recall(self, cue: str | Cue, *, limit: int | None = None) -> Recollection:
        """Give back what a cue reminds of, best first."""
        asked = Cue(cue) if isinstance(cue, str) else cue
        asked = asked if limit is None else replace(asked, limit=limit)
        async with self._asking(right_for([asked])):
            place = self.located.pop() if self.located else await locate(self.parts.database, self.scope)
            return await recall(self.parts, self.scope, asked, place)

    async def recall_each(self, cues: Sequence[str | Cue], *, isolated: bool = False) -> list[Recollection]:
        """Recall by several cues in turn, each noticing the accesses before it; or all of them isolated."""
        asked = [Cue(cue) if isinstance(cue, str) else cue for cue in cues]
        async with self._asking(right_for(asked)):
            place = self.located.pop() if self.located else await locate(self.parts.database, self.scope)
            return await recall_each(self.parts, self.scope, asked, place, isolated=isolated)

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
        self, now: datetime | None = None, *, report: Callable[[str], None] = lambda _: None
    ) -> Reflection:
        """Think about what has gathered, as long as the chat model takes; write every thought or none."""
        self._require(Right.WRITE)
        self.located.clear()
        return await reflect(self.parts, self.caller, self.scope, Occasion(now=now, report=report))

    async def reflect_later(self) -> int:
        """Leave a reflection to the worker; return the number of the job, which may be waiting already."""
        async with self._asking(Right.WRITE):
            return await defer_reflection(self.parts, self.scope)

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


@dataclass(frozen=True, slots=True)
class ConversationView(AgentView):
    """One caller's view of one conversation."""

    conversation: str
    located: list[Place] = field(default_factory=list[Place])
    """The mind's own: where the scope lay when the caller was admitted."""

    async def append(self, messages: Utterance | Sequence[Utterance], *, idempotency_key: str = "") -> list[Appended]:
        """Append one or many messages in one transaction, each following the one before unless it names a parent."""
        async with self._asking(Right.WRITE):
            self.located.clear()
            new = as_messages(messages)
            return await append(self.parts, self.caller, self.scope, self.conversation, new, idempotency_key)

    async def history(self, window: Window | int = Window()) -> History:  # noqa: B008 - a frozen value
        """Give back the newest whole turns of a thread that fit a budget; a number is a budget in tokens."""
        wanted = Window(window) if isinstance(window, int) else window
        async with self._asking(Right.READ):
            return await history(self.parts, self.scope, self.conversation, wanted)

    async def context(
        self,
        cue: str | Cue,
        budget: int = 4_000,
        *,
        shares: Shares = Shares(),  # noqa: B008 - a frozen value
        window: Window = Window(),  # noqa: B008 - a frozen value
        system: str = "",
    ) -> Context:
        """Give back one prompt within a budget in tokens: the newest turns, what the cue reminds of, the summary.

        The window says which thread, which tokenizer and how; its own `max_tokens` is ignored, the budget rules.
        """
        wanted = Wanted(Cue(cue) if isinstance(cue, str) else cue, budget, shares, window, system)
        async with self._asking(right_for([wanted.cue])):
            place = self.located.pop() if self.located else None
            return await context(self.parts, self.scope, self.conversation, wanted, place)

    async def converse(
        self,
        text: str,
        budget: int = 4_000,
        *,
        window: Window = Window(),  # noqa: B008 - a frozen value
        system: str = "",
        report: Callable[[Context], None] = lambda _: None,
    ) -> Reply:
        """Answer by the chat model, as long as it takes; append question and answer together, or neither."""
        self._require(Right.WRITE)
        self.located.clear()
        wanted = Wanted(Cue(text), budget, Shares(), window, system)
        return await converse(self.parts, self.caller, self.scope, self.conversation, wanted, report)

    async def leaves(self, limit: int = 50) -> list[Leaf]:
        """List where the conversation's threads end, newest first; each can be a history's leaf."""
        async with self._asking(Right.READ):
            return await list_leaves(self.parts, self.scope, self.conversation, limit)

    async def segments(self, limit: int = 50, after: int = 0) -> list[StoredSegment]:
        """List the conversation's segments in order, each on one topic; `after` is the number of a message."""
        async with self._asking(Right.READ):
            return await list_segments(self.parts, self.scope, self.conversation, after, limit)

    async def close_segment(self) -> list[StoredSegment]:
        """End the topic that is still running, as if another had come; list all segments."""
        async with self._asking(Right.WRITE):
            return await close_segment(self.parts, self.scope, self.conversation)

    async def read(self) -> Conversation:
        """Read the conversation's name, state and times."""
        async with self._asking(Right.READ):
            return await get_conversation(self.parts, self.scope, self.conversation)

    async def describe(self, name: str | None = None, metadata: Mapping[str, JSON] | None = None) -> None:
        """Give the conversation a name, or metadata of your own; what is None stays as it is."""
        async with self._asking(Right.WRITE):
            await describe(self.parts, self.scope, self.conversation, name, metadata)

    async def archive(self) -> Conversation:
        """Take the conversation out of recall; it stays readable, and the next message brings it back."""
        return await self._bring(ConversationState.ARCHIVED)

    async def restore(self) -> Conversation:
        """Bring an archived or deleted conversation back as it was, with what was derived from it."""
        return await self._bring(ConversationState.ACTIVE)

    async def delete(self) -> Conversation:
        """Make the conversation invisible, with all that was derived from it; it can be restored until it is purged."""
        return await self._bring(ConversationState.DELETED)

    async def purge(self) -> PurgeReceipt:
        """Erase the conversation for good; what does not fit into the call is finished by a job."""
        async with self._asking(Right.WRITE):
            self.located.clear()
            return await purge(self.parts, self.caller, self.scope, self.conversation)

    async def receipts(self, limit: int = 50) -> list[PurgeReceipt]:
        """List what purges of conversations of this name removed, the latest first."""
        async with self._asking(Right.READ):
            return await list_receipts(self.parts, self.scope, self.conversation, limit)

    async def _bring(self, wanted: ConversationState) -> Conversation:
        async with self._asking(Right.WRITE):
            self.located.clear()
            return await bring(self.parts, self.caller, self.scope, self.conversation, wanted)


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """End work that takes too long, with an error that a caller can act on."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UnavailableError(f"No answer within {seconds:g} seconds; try again.") from None


def right_for(cues: Sequence[Cue]) -> Right:
    """Tell which right a recall needs: to date an access is to write, for it stays recent until then; so is keeping."""
    return Right.WRITE if any(cue.keep or (cue.now is not None and cue.touch) for cue in cues) else Right.READ

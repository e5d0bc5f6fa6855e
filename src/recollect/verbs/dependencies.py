"""The dependencies of all verbs, chosen once in wiring."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.channels.channel import Channel
from recollect.core.service.costs import Price
from recollect.errors import EmbedderError, InvalidInputError, ScopeRestoringError
from recollect.llm.chat import ChatModel
from recollect.llm.embedder import Embedder, RecentVectors
from recollect.llm.tokens.count import Tokenizer
from recollect.models.memories import Receipt
from recollect.models.service import Scope
from recollect.store.cold.storage import ColdStorage
from recollect.store.database.pool import Database
from recollect.store.mirrors.mirror import Mirror
from recollect.store.service.changes import ChangeFeeds
from recollect.store.shards.servers import Servers
from recollect.verbs.shared import SharedWrites

Given = ParamSpec("Given")
Result = TypeVar("Result")
MAX_RESTORE_ATTEMPTS = 5
"""Maximum number of restores in one call: it may read several scopes, and they may leave again."""
NO_CHAT_MODEL = "No chat model is configured: set RECOLLECT_CHAT_URL and RECOLLECT_CHAT_MODEL."


class EnrichStep(Protocol):
    """One step of enrichment; its input and output are defined by the steps."""

    @property
    def name(self) -> str:
        """Return the name of the step."""
        ...

    @property
    def stage(self) -> str:
        """Return the stage of the step."""
        ...

    @property
    def run(self) -> Callable[[Any, Any], Awaitable[Any]]:
        """Return the function of the step."""
        ...


class ScopeRestorer(Protocol):
    """Restores scopes from object storage."""

    observe: Callable[[float], None] | None
    """Called with the seconds that a restore took."""

    async def wake(self, scope_id: int) -> None:
        """Wait until a scope is hot, or raise WakingError."""
        ...


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The database, the channels, and the models if there are any."""

    database: Database
    """The database of the requested scope; of no scope before it is chosen among several servers."""
    servers: Servers
    channels: Sequence[Channel]
    embedder: Embedder | None
    embed_wait_seconds: float
    embed_batch: int
    chat: ChatModel | None = None
    tokenizers: Sequence[Tokenizer] = ()
    """Every message is counted by them; the first one is the default."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """The prices of models by name."""
    tokens_per_day: int = 0
    """The default of a tenant's daily tokens; 0 = no limit."""
    fading_days: float = 0.0
    """Days over which memories fade by default; 0 = never."""
    channel_seconds: float = 1.0
    """Seconds that a recall waits for one of several channels."""
    judge_seconds: float = 4.0
    """Seconds that a recall waits for the chat model to judge its hits, and to parse its query."""
    steps: Mapping[str, EnrichStep] = field(default_factory=dict[str, EnrichStep])
    """The steps of enrichment, each by its name and in order."""
    keep_share: float = 0.0
    """The share of recalls to save if their query does not specify it: from 0 for none to 1 for all."""
    mirrors: Mapping[str, Mirror] = field(default_factory=dict[str, Mirror])
    """The mirrors that this process has an address of, by name."""
    cold: ColdStorage | None = None
    """The storage of cold scopes, if this process has one."""
    waker: ScopeRestorer | None = None
    """Restores them."""
    recent_vectors: RecentVectors = field(default_factory=RecentVectors)
    """Vectors of recent messages, which are compared with each following message."""
    writes: SharedWrites[Any, list[Receipt]] = field(default_factory=SharedWrites[Any, list[Receipt]])
    """The writes that wait for others of their scope in this process."""
    feeds: ChangeFeeds | None = None
    """Wakes the followers of changes."""

    @property
    def channel_names(self) -> list[str]:
        """List the names of channels, including plugins."""
        return [channel.name for channel in self.channels]

    async def at(self, scope: Scope) -> Dependencies:
        """Return the dependencies for another scope of the same call, which may be on another server."""
        return replace(self, database=await self.servers.for_scope(scope))

    async def at_number(self, scope_id: int) -> Dependencies:
        """Return the dependencies for a scope by its number."""
        return replace(self, database=await self.servers.by_scope_id(scope_id))

    async def embed_in_time(self, texts: Sequence[str], *, cues: bool = False) -> NDArray[np.float32] | None:
        """Embed memories or queries if the model answers soon; None means to continue without vectors."""
        if self.embedder is None or len(texts) > self.embed_batch:
            return None
        try:
            async with asyncio.timeout(self.embed_wait_seconds):
                return await (self.embedder.embed_cues if cues else self.embedder.embed)(texts)
        except (EmbedderError, TimeoutError):
            return None


async def run_in_thread_if_heavy(
    heavy: bool,  # noqa: FBT001 - the one question it answers
    work: Callable[Given, Result],
    *arguments: Given.args,
    **named: Given.kwargs,
) -> Result:
    """Run heavy work in a thread, so that the event loop stays free, and light work at once."""
    return await asyncio.to_thread(work, *arguments, **named) if heavy else work(*arguments, **named)


async def with_scope_restored(parts: Dependencies, call: Callable[[], Awaitable[Result]]) -> Result:
    """Run a call; if its scope is not in the database, or about to leave, restore it and retry."""
    for _ in range(MAX_RESTORE_ATTEMPTS if parts.waker else 0):
        try:
            return await call()
        except ScopeRestoringError as met:
            if parts.waker is None or not met.scope_id:
                raise
            await parts.waker.wake(met.scope_id)
    return await call()


@asynccontextmanager
async def restore_once(parts: Dependencies) -> AsyncIterator[None]:
    """Restore the scope of a call that cannot be repeated here; raise the error, so that the caller retries later."""
    try:
        yield
    except ScopeRestoringError as met:
        if parts.waker is not None and met.scope_id:
            await parts.waker.wake(met.scope_id)
        raise


def require_chat_model(parts: Dependencies) -> ChatModel:
    """Return the chat model, or raise an error; calls use it through the ledger."""
    if parts.chat is None:
        raise InvalidInputError(NO_CHAT_MODEL)
    return parts.chat

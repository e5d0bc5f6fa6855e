"""The parts that every verb works with, chosen once in wiring."""

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
from recollect.core.text.variants import folding_by, text_version
from recollect.errors import EmbedderError, InvalidInputError, TextVersionError, WakingError
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
MOST_VERSIONS = 2
"""How often a write learns the version of its scope: once because it did not know, once because it has changed."""
MOST_MEETINGS = 5
"""How often a call brings scopes back: it may read some others, and they may leave again."""
NO_CHAT_MODEL = "No chat model is configured: set RECOLLECT_CHAT_URL and RECOLLECT_CHAT_MODEL."


class LearningStep(Protocol):
    """One step of enrichment; its input and output are defined by the steps."""

    @property
    def name(self) -> str:
        """Return the name of the step."""
        ...

    @property
    def stage(self) -> str:
        """Return what the step works on."""
        ...

    @property
    def run(self) -> Callable[[Any, Any], Awaitable[Any]]:
        """Run the step."""
        ...


class Waking(Protocol):
    """What brings scopes back from object storage."""

    observe: Callable[[float], None] | None
    """Who is told how many seconds that took."""

    async def wake(self, scope_id: int) -> None:
        """Wait until a scope is hot, or raise WakingError."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The database, the channels, and the models if there are any."""

    database: Database
    """The database of the scope that is asked for; where there are several servers, of no scope until one is."""
    servers: Servers
    channels: Sequence[Channel]
    embedder: Embedder | None
    embed_wait_seconds: float
    embed_batch: int
    chat: ChatModel | None = None
    tokenizers: Sequence[Tokenizer] = ()
    """Every message is counted by them; the first one is the default."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What models cost, by their names."""
    tokens_per_day: int = 0
    """The default of a tenant's tokens a day; 0 is no limit."""
    fading_days: float = 0.0
    """Over how many days memories fade by default; 0 is never."""
    channel_seconds: float = 1.0
    """How long a recall waits for one of several channels."""
    judge_seconds: float = 4.0
    """How long a recall waits for the chat model to judge its hits, and to read its cue."""
    steps: Mapping[str, LearningStep] = field(default_factory=dict[str, LearningStep])
    """The steps of enrichment, each by its name and in order."""
    keep_share: float = 0.0
    """The share of recalls that are kept where their cue does not say: from 0 for none to 1 for all."""
    mirrors: Mapping[str, Mirror] = field(default_factory=dict[str, Mirror])
    """The mirrors that this process has an address of, by their names."""
    cold: ColdStorage | None = None
    """Where cold scopes are, if this process knows it."""
    waker: Waking | None = None
    """What brings them back."""
    recent_vectors: RecentVectors = field(default_factory=RecentVectors)
    """Of what was said lately, which is compared again with every message that follows."""
    writes: SharedWrites[Any, list[Receipt]] = field(default_factory=SharedWrites[Any, list[Receipt]])
    """The writes that wait for others of their scope in this process."""
    feeds: ChangeFeeds | None = None
    """What wakes those who follow changes."""

    @property
    def channel_names(self) -> list[str]:
        """List the channels by name, ours and those that are plugged in."""
        return [channel.name for channel in self.channels]

    async def at(self, scope: Scope) -> Parts:
        """Return the parts for another scope of the same call: it may lie on another server."""
        return replace(self, database=await self.servers.of_scope(scope))

    async def at_number(self, scope_id: int) -> Parts:
        """Return the parts for a scope that is known by its number."""
        return replace(self, database=await self.servers.of_number(scope_id))

    async def embed_in_time(self, texts: Sequence[str], *, cues: bool = False) -> NDArray[np.float32] | None:
        """Embed memories or cues if the model answers soon; None means to go on without vectors."""
        if self.embedder is None or len(texts) > self.embed_batch:
            return None
        try:
            async with asyncio.timeout(self.embed_wait_seconds):
                return await (self.embedder.embed_cues if cues else self.embedder.embed)(texts)
        except (EmbedderError, TimeoutError):
            return None


async def spare_loop(
    heavy: bool,  # noqa: FBT001 - the one question it answers
    work: Callable[Given, Result],
    *arguments: Given.args,
    **named: Given.kwargs,
) -> Result:
    """Do heavy work in a thread, so that the event loop stays free, and light work at once."""
    return await asyncio.to_thread(work, *arguments, **named) if heavy else work(*arguments, **named)


async def fit_version(call: Callable[[], Awaitable[Result]]) -> Result:
    """Do something; if its scope folds texts by another version than it did, do it again by that one."""
    version = text_version()
    for _ in range(MOST_VERSIONS):
        try:
            with folding_by(version):
                return await call()
        except TextVersionError as other:
            version = other.version
    with folding_by(version):
        return await call()


async def awake(parts: Parts, call: Callable[[], Awaitable[Result]]) -> Result:
    """Do something; if it meets a scope whose rows are not here, or about to leave, bring that back and do it again."""
    for _ in range(MOST_MEETINGS if parts.waker else 0):
        try:
            return await call()
        except WakingError as met:
            if parts.waker is None or not met.scope_id:
                raise
            await parts.waker.wake(met.scope_id)
    return await call()


@asynccontextmanager
async def waking_met(parts: Parts) -> AsyncIterator[None]:
    """Bring a scope back that something meets which cannot be done twice: done again later, it goes on."""
    try:
        yield
    except WakingError as met:
        if parts.waker is not None and met.scope_id:
            await parts.waker.wake(met.scope_id)
        raise


def require_chat_model(parts: Parts) -> ChatModel:
    """Return the chat model, or raise; calls go through the ledger, not to it directly."""
    if parts.chat is None:
        raise InvalidInputError(NO_CHAT_MODEL)
    return parts.chat

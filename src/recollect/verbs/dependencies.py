"""The dependencies of all verbs, chosen once in wiring."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.channels.channel import Channel
from recollect.core.service.costs import Price
from recollect.errors import EmbedderError, InvalidInputError
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
from recollect.verbs.recovery import Recovery
from recollect.verbs.shared import SharedWrites

Given = ParamSpec("Given")
Result = TypeVar("Result")
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


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What an operator has chosen for all calls."""

    embed_wait_seconds: float = 0.0
    """Seconds that a call waits for the embedder."""
    embed_batch: int = 1
    """Maximum number of texts that are embedded together."""
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
    keep_share: float = 0.0
    """The share of recalls to save if their query does not specify it: from 0 for none to 1 for all."""


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What the calls in this process share."""

    recent_vectors: RecentVectors = field(default_factory=RecentVectors)
    """Vectors of recent messages, which are compared with each following message."""
    writes: SharedWrites[Any, list[Receipt]] = field(default_factory=SharedWrites[Any, list[Receipt]])
    """The writes that wait for others of their scope."""
    feeds: ChangeFeeds | None = None
    """Wakes the followers of changes."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The database, the channels, and the models if there are any."""

    database: Database
    """The database of the requested scope; of no scope before it is chosen among several servers."""
    servers: Servers
    channels: Sequence[Channel] = ()
    embedder: Embedder | None = None
    chat: ChatModel | None = None
    tokenizers: Sequence[Tokenizer] = ()
    """Every message is counted by them; the first one is the default."""
    steps: Mapping[str, EnrichStep] = field(default_factory=dict[str, EnrichStep])
    """The steps of enrichment, each by its name and in order."""
    mirrors: Mapping[str, Mirror] = field(default_factory=dict[str, Mirror])
    """The mirrors that this process has an address of, by name."""
    cold: ColdStorage | None = None
    """The storage of cold scopes, if this process has one."""
    recoveries: Sequence[Recovery] = ()
    """How calls continue after errors of optional parts."""
    options: EngineOptions = field(default_factory=EngineOptions)
    process: ProcessState = field(default_factory=ProcessState)

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
        if self.embedder is None or len(texts) > self.options.embed_batch:
            return None
        try:
            async with asyncio.timeout(self.options.embed_wait_seconds):
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


def require_chat_model(parts: Dependencies) -> ChatModel:
    """Return the chat model, or raise an error; calls use it through the ledger."""
    if parts.chat is None:
        raise InvalidInputError(NO_CHAT_MODEL)
    return parts.chat

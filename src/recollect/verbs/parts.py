"""What the verbs work with, chosen once in wiring and passed to every one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.channels.channel import Channel
from recollect.core.service.costs import Price
from recollect.errors import EmbedderError, InvalidInputError
from recollect.llm.chat import ChatModel
from recollect.llm.embedder import Embedder
from recollect.llm.tokens.count import Tokenizer
from recollect.store.database.pool import Database

Given = ParamSpec("Given")
Result = TypeVar("Result")
NO_CHAT_MODEL = "No chat model is configured: set RECOLLECT_CHAT_URL and RECOLLECT_CHAT_MODEL."


class LearningStep(Protocol):
    """One step of enrichment; what it is given and gives back is the business of the steps."""

    @property
    def name(self) -> str:
        """Say what the step is called."""
        ...

    @property
    def stage(self) -> str:
        """Say what the step works on."""
        ...

    @property
    def run(self) -> Callable[[Any, Any], Awaitable[Any]]:
        """Take the step."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The database, the channels, and the models if there are any."""

    database: Database
    channels: Sequence[Channel]
    embedder: Embedder | None
    embed_wait_seconds: float
    embed_batch: int
    chat: ChatModel | None = None
    tokenizers: Sequence[Tokenizer] = ()
    """By which every message is counted; the first one is the usual one."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What models cost, by their names."""
    tokens_per_day: int = 0
    """How many a tenant may use where the operator says nothing else; 0 is no limit."""
    fading_days: float = 0.0
    """Over how many days memories fade where an agent's profile says nothing else; 0 is never."""
    channel_seconds: float = 1.0
    """How long a recall waits for one of several channels."""
    judge_seconds: float = 4.0
    """How long a recall waits for the chat model to judge its hits, and to read its cue."""
    steps: Mapping[str, LearningStep] = field(default_factory=dict[str, LearningStep])
    """The steps of enrichment, each by its name and in order."""
    keep_share: float = 0.0
    """How many of the recalls are kept whose cues do not say it themselves: from 0 for none to 1 for all."""

    async def embed_in_time(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Embed if the model answers soon; None means that the work goes on without vectors."""
        if self.embedder is None or len(texts) > self.embed_batch:
            return None
        try:
            async with asyncio.timeout(self.embed_wait_seconds):
                return await self.embedder.embed(texts)
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


def require_chat_model(parts: Parts) -> ChatModel:
    """Give the chat model, or say that one is needed; calls go through the ledger, not to it directly."""
    if parts.chat is None:
        raise InvalidInputError(NO_CHAT_MODEL)
    return parts.chat

"""What the verbs work with, chosen once in wiring and passed to every one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.channels.channel import Channel
from recollect.errors import EmbedderError
from recollect.llm.chat import ChatModel
from recollect.llm.embedder import Embedder
from recollect.llm.tokens import Tokenizer
from recollect.store.db import Database


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

    async def embed_in_time(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Embed if the model answers soon; None means that the work goes on without vectors."""
        if self.embedder is None or len(texts) > self.embed_batch:
            return None
        try:
            async with asyncio.timeout(self.embed_wait_seconds):
                return await self.embedder.embed(texts)
        except (EmbedderError, TimeoutError):
            return None

"""Fake models for tests: an embedder by words and letters, a chat model with a script."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from recollect.errors import ChatModelError, EmbedderError
from recollect.llm.chat import Answer, ModelAnswer, Spent, Usage, spend_unseen
from recollect.llm.embedder import check_vectors
from recollect.llm.openai.chat import UnusableError, count_missing, read_value

WORD_WEIGHT, PAIR_WEIGHT = 1.0, 0.5
LONG = 2_000
NONSENSE = "colourless green ideas"
Line: TypeAlias = BaseModel | str | ModelAnswer
"""A value, or a text, or a text with its end and its cost."""
Lines: TypeAlias = Mapping[type[BaseModel], Line] | Callable[[str, type[BaseModel]], Line]


class FakeEmbedder:
    """Hash words and pairs of letters into buckets; an outage and a delay can be switched on."""

    def __init__(self, dimensions: int = 64) -> None:
        self.model = f"fake-{dimensions}@1"
        self.dimensions = dimensions
        self.delay_seconds = 0.0
        self.calls = 0
        self._outage: EmbedderError | None = None

    def reads(self, text: str) -> bool:  # noqa: ARG002 - as the protocol asks
        """Tell that any text is read."""
        return True

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, always the same for the same text."""
        self.calls += 1
        if self.delay_seconds > 0:
            await asyncio.sleep(self.delay_seconds)
        if self._outage is not None:
            raise self._outage
        if sum(map(len, texts)) > LONG:
            # In a thread, like a real one: the event loop does not wait for it.
            return await asyncio.to_thread(self._place_all, texts)
        return self._place_all(texts)

    async def embed_cues(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same vectors of cues."""
        return await self.embed(texts)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _place_all(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return check_vectors([self._place(text) for text in texts], len(texts), self.dimensions)

    def fail(self, *, lasting: bool = False) -> None:
        """Refuse every call from now on."""
        self._outage = EmbedderError("the fake embedder is switched off", lasting=lasting)

    def recover(self) -> None:
        """End the outage."""
        self._outage = None

    def _place(self, text: str) -> list[float]:
        row = [0.0] * self.dimensions
        for feature, weight in _features(text):
            number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
            sign = 1.0 if number & 1 else -1.0
            row[(number >> 1) % self.dimensions] += sign * weight
        if not any(row):
            row[0] = 1.0
        return row


class FakeChatModel:
    """Answer by a script: one line for each type, or a function of prompt and type; faults can be switched on."""

    model = "fake-chat@1"

    def __init__(self, script: Lines) -> None:
        self.script = script
        self.characters = 24_000
        self.prompts: list[str] = []
        self._garbled = 0
        self._outage: ChatModelError | None = None

    @property
    def calls(self) -> int:
        """Count what was asked."""
        return len(self.prompts)

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = spend_unseen) -> Answer:
        """Return what the script says, unless a fault is due; it is not asked twice."""
        said = await self.say(prompt, answer)
        spent(said.usage)
        try:
            return read_value(said, answer)
        except UnusableError:
            raise ChatModelError("the fake chat model answers nonsense", answered=True) from None

    async def say(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return the script's line as it is, and estimate its tokens."""
        self.prompts.append(prompt)
        if self._outage is not None:
            raise self._outage
        if self._garbled:
            self._garbled -= 1
            return count_missing(ModelAnswer(NONSENSE, whole=True, usage=Usage()), [prompt])
        line = self.script[answer] if isinstance(self.script, Mapping) else self.script(prompt, answer)
        if isinstance(line, BaseModel):
            line = line.model_dump_json()
        said = ModelAnswer(line, whole=True, usage=Usage()) if isinstance(line, str) else line
        return count_missing(said, [prompt])

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def garble(self, times: int = 1) -> None:
        """Answer the next calls with nothing usable."""
        self._garbled += times

    def fail(self, *, lasting: bool = False) -> None:
        """Be unavailable from now on."""
        self._outage = ChatModelError("the fake chat model is switched off", lasting=lasting)

    def recover(self) -> None:
        """End the outage."""
        self._outage = None


def _features(text: str) -> Iterator[tuple[str, float]]:
    yield "text", 0.01
    for word in re.findall(r"\w+", text.casefold()):
        yield f"word {word}", WORD_WEIGHT
        for first, second in pairwise(word):
            yield f"pair {first}{second}", PAIR_WEIGHT

"""The interface of chat models: a prompt in, a value of a requested type or text out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one call, as counted by the endpoint, or estimated."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The model's text, whether it is complete, and its tokens."""

    text: str
    whole: bool
    usage: Usage


Spent: TypeAlias = Callable[[Usage], None]
"""Called with the tokens of each call when it is answered, even if the answer is unusable."""


def ignore_cost(_: Usage) -> None:
    """Ignore the tokens of a call."""


class ChatModel(Protocol):
    """Answers prompts with values; raises only ChatModelError."""

    @property
    def model(self) -> str:
        """Return the name of the model."""
        ...

    @property
    def characters(self) -> int:
        """Return the maximum number of characters of notes in a prompt."""
        ...

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = ignore_cost) -> Answer:
        """Return a valid value of the requested type; the model is called twice if needed."""
        ...

    async def complete(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return the answer of one call unchecked: it may be cut off, empty or unusable."""
        ...

    async def close(self) -> None:
        """Release resources; the model cannot be called afterwards."""
        ...

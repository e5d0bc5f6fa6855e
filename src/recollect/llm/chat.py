"""What the rest of Recollect asks of a chat model: a prompt goes in, a value of the asked type or words come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one question cost, as the endpoint counts it, or an estimate."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model said, whether it was complete, and what it cost."""

    text: str
    whole: bool
    usage: Usage


Spent: TypeAlias = Callable[[Usage], None]
"""Called with the cost of each question as soon as it is answered, also if its answer is of no use."""


def spend_unseen(_: Usage) -> None:
    """Do not note the cost."""


class ChatModel(Protocol):
    """Answer prompts with values; raise nothing but ChatModelError."""

    @property
    def model(self) -> str:
        """Name the model."""
        ...

    @property
    def characters(self) -> int:
        """Say how many characters of notes a prompt may hold."""
        ...

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = spend_unseen) -> Answer:
        """Return the model's answer as a valid value of the asked type, asked twice if needed."""
        ...

    async def say(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return what the model said when asked for such a value, once: it may be cut off, empty or of no use."""
        ...

    async def close(self) -> None:
        """Release what the model holds; it cannot be asked afterwards."""
        ...

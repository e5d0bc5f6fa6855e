"""What the rest of Recollect asks of a chat model: a prompt goes in, a value of the asked type or words come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one question cost, as the endpoint counts it, or estimated where it does not."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model said, whether it came to its end, and what it cost."""

    text: str
    whole: bool
    usage: Usage


Spent: TypeAlias = Callable[[Usage], None]
"""Told what each question cost as soon as it is answered, also of one whose answer is of no use."""


def spend_unseen(_: Usage) -> None:
    """Leave what was spent unnoted."""


class ChatModel(Protocol):
    """Answer prompts with values; raise nothing but ChatModelError."""

    @property
    def model(self) -> str:
        """Name the model."""
        ...

    @property
    def characters(self) -> int:
        """Say how many characters of notes a prompt may carry."""
        ...

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = spend_unseen) -> Answer:
        """Return the model's answer as a valid value of the asked type, asked for a second time if need be."""
        ...

    async def say(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return what the model said when asked for such a value, once: also cut off, empty or of no use."""
        ...

    async def close(self) -> None:
        """Give back what the model holds; asking is over afterwards."""
        ...

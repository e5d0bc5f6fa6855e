"""What the rest of Recollect asks of a chat model: a prompt goes in, a value of the asked type comes out."""

from __future__ import annotations

from typing import Protocol, TypeVar

from pydantic import BaseModel

Answer = TypeVar("Answer", bound=BaseModel)


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

    async def ask(self, prompt: str, answer: type[Answer]) -> Answer:
        """Return the model's answer as a valid value of the asked type."""
        ...

    async def close(self) -> None:
        """Give back what the model holds; asking is over afterwards."""
        ...

"""A chat model with a script, for tests: it answers as told, and faults can be switched on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pydantic import BaseModel

from recollect.errors import ChatModelError
from recollect.llm.chat import Answer, ModelAnswer, Spent, Usage, ignore_cost
from recollect.llm.openai.chat import UnusableReplyError, count_missing, read_value

NONSENSE = "colourless green ideas"
Line: TypeAlias = BaseModel | str | ModelAnswer
"""A value, or a text, or a text with its end and its cost."""
Lines: TypeAlias = Mapping[type[BaseModel], Line] | Callable[[str, type[BaseModel]], Line]


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

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = ignore_cost) -> Answer:
        """Return what the script says, unless a fault is due; it is not asked twice."""
        said = await self.complete(prompt, answer)
        spent(said.usage)
        try:
            return read_value(said, answer)
        except UnusableReplyError:
            raise ChatModelError("the fake chat model answers nonsense", answered=True) from None

    async def complete(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
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

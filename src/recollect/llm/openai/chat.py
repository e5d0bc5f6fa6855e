"""An OpenAI-compatible chat endpoint, with retries and a timeout; its answers are checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import httpx
from pydantic import BaseModel, ValidationError

from recollect.core.text.tokens import estimate
from recollect.errors import ChatModelError, SetupError
from recollect.llm.chat import Answer, ModelAnswer, Spent, Usage, spend_unseen
from recollect.llm.endpoint import Breaker, EndpointAddress, EndpointClient, EndpointUnavailableError, RefusedError

CODE_BLOCK = re.compile(r"```\w*\s*(.*?)```", re.DOTALL)
THOUGHT_ENDS = "</think>"
MOST_PROBLEMS = 5
MOST_TOKENS = 1_000_000_000
"""No question costs more; larger counts of an endpoint are wrong."""
RUNGS = ("json_schema", "json_object", "text")
"""How an answer's schema is requested, from the strictest to what every endpoint understands."""
LIMITS = ("max_tokens", "max_completion_tokens", "")
"""Names of the parameter for the longest answer, the oldest first; none for endpoints that refuse it."""
STEPS_DOWN = frozenset({400, 415, 422, 500, 501})
"""Statuses by which endpoints refuse a schema form that they do not know."""
MOST_BYTES = 2_000_000
MOST_REPEATED = 8_000
ASK_FOR_JSON = "\n\nAnswer with one JSON object that fits this JSON schema, and with nothing else:\n{schema}"
ASK_AGAIN = "This answer cannot be used. {problem} Answer again, with one JSON object that fits the schema only."
ADVICE = {
    400: "check RECOLLECT_CHAT_MODEL, and lower RECOLLECT_CHAT_CHARACTERS if its window is small",
    401: "check RECOLLECT_CHAT_KEY",
    402: "the account has no balance",
    403: "the key may not use this model; check RECOLLECT_CHAT_KEY",
    404: "check RECOLLECT_CHAT_URL (it ends in /v1) and RECOLLECT_CHAT_MODEL",
    413: "lower RECOLLECT_CHAT_CHARACTERS",
    429: "lower the load or raise the endpoint's limit",
}
Message: TypeAlias = dict[str, str]


class UnusableError(Exception):
    """A reply without a value of the asked type, and why, in words that the model can act on."""


def read_reply(answer: Any) -> ModelAnswer:  # noqa: ANN401 - parsed JSON
    """Return what the endpoint's answer says, or raise; what it does not count is 0."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ChatModelError("the chat endpoint's answer has no message; check RECOLLECT_CHAT_URL", lasting=True)
    usage = answer.get("usage")
    spent = usage if isinstance(usage, dict) else {}
    counted = Usage(_read_count(spent.get("prompt_tokens")), _read_count(spent.get("completion_tokens")))
    return ModelAnswer(_read_text(message.get("content")), choice.get("finish_reason") != "length", counted)


def count_missing(said: ModelAnswer, asked: Iterable[str]) -> ModelAnswer:
    """Estimate what the endpoint did not count."""
    counted = said.usage
    prompt_tokens = counted.prompt_tokens or sum(map(estimate, asked))
    return replace(said, usage=Usage(prompt_tokens, counted.completion_tokens or estimate(said.text)))


def read_value(said: ModelAnswer, answer: type[Answer]) -> Answer:
    """Return what was said as a valid value."""
    if not said.whole:
        raise UnusableError("It was cut off before its end: write less.")
    if not said.text.strip():
        raise UnusableError("It was empty.")
    try:
        return answer.model_validate_json(unwrap(said.text))
    except ValidationError as problem:
        listed = problem.errors(include_url=False, include_context=False, include_input=False)[:MOST_PROBLEMS]
        places = ((".".join(map(str, item["loc"])), item["msg"]) for item in listed)
        raise UnusableError("; ".join(f"{place}: {words}" if place else words for place, words in places)) from None


def unwrap(text: str) -> str:
    """Extract the JSON object from a text: without thoughts, code marks and courtesies."""
    said = text.rpartition(THOUGHT_ENDS)[2]
    block = CODE_BLOCK.search(said)
    bare = block[1] if block else said
    first, last = bare.find("{"), bare.rfind("}")
    return bare[first : last + 1] if 0 <= first < last else bare


def _read_text(content: Any) -> str:  # noqa: ANN401 - parsed JSON
    """Read a message's content: a text, or a list of parts of which some are texts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _read_count(value: Any) -> int:  # noqa: ANN401 - parsed JSON
    return value if isinstance(value, int) and 0 < value <= MOST_TOKENS else 0


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """Where the model is, how to ask it, and how long to wait for it."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    seconds: float = 120.0
    """Longest time to wait for one answer, further attempts included."""
    attempts: int = 3
    characters: int = 24_000
    answer_tokens: int = 4_096
    """Limits an answer: a small model can repeat itself without end."""


@dataclass(frozen=True, slots=True)
class Total:
    """What was asked of an endpoint so far, and what it cost."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class OpenAIChatModel:
    """Ask an endpoint for values; the strictest form that it knows is found once and remembered."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        breaker: Breaker | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if not endpoint.model:
            raise SetupError("set RECOLLECT_CHAT_MODEL for the endpoint")
        self.model = endpoint.model
        self.characters = endpoint.characters
        self.total = Total()
        self._endpoint = endpoint
        self._line = EndpointClient(_reach(endpoint), breaker, transport=transport)
        self._rung, self._limit = 0, 0
        self._proven = False

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = spend_unseen) -> Answer:
        """Return a valid value, after one repair if needed, or raise ChatModelError."""
        messages = _pose(prompt, answer)
        said = await self._converse(messages, answer)
        spent(said.usage)
        try:
            return read_value(said, answer)
        except UnusableError as problem:
            again = ASK_AGAIN.format(problem=problem)
        messages += [
            {"role": "assistant", "content": said.text[:MOST_REPEATED]},
            {"role": "user", "content": again},
        ]
        said = await self._converse(messages, answer)
        spent(said.usage)
        try:
            return read_value(said, answer)
        except UnusableError as problem:
            message = f"the chat model gave no usable {answer.__name__}, asked twice. {problem}"
            raise ChatModelError(message, answered=True) from None

    async def say(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return the answer to one question as it is, or raise ChatModelError if there is none."""
        return await self._converse(_pose(prompt, answer), answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close()

    async def _converse(self, messages: list[Message], answer: type[BaseModel]) -> ModelAnswer:
        """Ask in the way that worked last, and in the next one where that is refused."""
        rung, limit = self._rung, self._limit
        while True:
            limited = {LIMITS[limit]: self._endpoint.answer_tokens} if LIMITS[limit] else {}
            try:
                said = await self._request(messages, limited, answer, rung)
            except RefusedError as error:
                if LIMITS[limit] and any(name in error.detail for name in filter(None, LIMITS)):
                    limit += 1
                elif error.status in STEPS_DOWN and rung + 1 < len(RUNGS):
                    rung += 1
                else:
                    raise ChatModelError(str(error), lasting=True) from None
            else:
                self._rung, self._limit, self._proven = rung, limit, True
                return said

    async def _request(
        self, messages: list[Message], limited: dict[str, int], answer: type[BaseModel], rung: int
    ) -> ModelAnswer:
        question = {"model": self.model, "messages": messages, **limited, **_shape(RUNGS[rung], answer)}
        # Some servers crash on a form that they do not know; once one has worked, a 500 is an error like any other.
        refusals = frozenset({501}) if self._proven or rung + 1 == len(RUNGS) else frozenset({500, 501})
        try:
            async with self._line.calling(self._endpoint.seconds) as until:
                answered = await self._line.post("/chat/completions", question, MOST_BYTES, until, refusals)
        except EndpointUnavailableError as error:
            raise ChatModelError(str(error)) from None
        said = count_missing(read_reply(answered), (message["content"] for message in messages))
        self.total = replace(
            self.total,
            requests=self.total.requests + 1,
            prompt_tokens=self.total.prompt_tokens + said.usage.prompt_tokens,
            completion_tokens=self.total.completion_tokens + said.usage.completion_tokens,
        )
        return said


def _pose(prompt: str, answer: type[BaseModel]) -> list[Message]:
    schema = json.dumps(answer.model_json_schema(), ensure_ascii=False)
    return [{"role": "user", "content": prompt + ASK_FOR_JSON.format(schema=schema)}]


def _shape(rung: str, answer: type[BaseModel]) -> dict[str, Any]:
    if rung == "text":
        return {}
    if rung == "json_object":
        return {"response_format": {"type": rung}}
    schema = {"name": answer.__name__, "strict": True, "schema": answer.model_json_schema()}
    return {"response_format": {"type": rung, rung: schema}}


def _reach(endpoint: ChatEndpoint) -> EndpointAddress:
    return EndpointAddress(
        name="the chat endpoint",
        settings="RECOLLECT_CHAT",
        advice=ADVICE,
        url=endpoint.url,
        key=endpoint.key,
        timeout_seconds=endpoint.seconds,
        attempts=endpoint.attempts,
        slow_seconds=endpoint.seconds / 2,
    )

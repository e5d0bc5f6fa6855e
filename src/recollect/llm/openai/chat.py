"""An OpenAI-compatible chat endpoint, with retries, a timeout, and checked answers."""

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
from recollect.llm.chat import Answer, ModelAnswer, Spent, Usage, ignore_cost
from recollect.llm.endpoint import Breaker, EndpointAddress, EndpointClient, EndpointUnavailableError, RefusedError

CODE_BLOCK = re.compile(r"```\w*\s*(.*?)```", re.DOTALL)
THOUGHT_ENDS = "</think>"
MAX_PROBLEMS = 5
MAX_TOKENS = 1_000_000_000
"""No call uses more tokens; larger counts of an endpoint are wrong."""
RUNGS = ("json_schema", "json_object", "text")
"""Ways to request an answer's schema, from the strictest to one that every endpoint understands."""
LIMITS = ("max_tokens", "max_completion_tokens", "")
"""Names of the parameter for the maximum length, the oldest first; empty for endpoints that refuse it."""
STEPS_DOWN = frozenset({400, 415, 422, 500, 501})
"""Status codes of endpoints that do not know a schema form."""
MAX_BYTES = 2_000_000
MAX_REPEATED_PROMPT_CHARACTERS = 8_000
ASK_FOR_JSON = "\n\nRespond with one JSON object that matches this JSON schema, and nothing else:\n{schema}"
ASK_AGAIN = "Invalid response: {problem} Respond again with only a JSON object that matches the schema."
ADVICE = {
    400: "check RECOLLECT_CHAT_MODEL, and lower RECOLLECT_CHAT__MAX_CHARACTERS if its window is small",
    401: "check RECOLLECT_CHAT_KEY",
    402: "the account has no balance",
    403: "the key may not use this model; check RECOLLECT_CHAT_KEY",
    404: "check RECOLLECT_CHAT_URL (it ends in /v1) and RECOLLECT_CHAT_MODEL",
    413: "lower RECOLLECT_CHAT__MAX_CHARACTERS",
    429: "lower the load or raise the endpoint's limit",
}
Message: TypeAlias = dict[str, str]


class UnusableReplyError(Exception):
    """A reply without a value of the requested type; the message is an instruction for the model."""


def read_reply(answer: Any) -> ModelAnswer:  # noqa: ANN401 - parsed JSON
    """Return the content of the endpoint's response, or raise; missing counts are 0."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ChatModelError("the chat endpoint returned no message; check RECOLLECT_CHAT_URL", lasting=True)
    usage = answer.get("usage")
    spent = usage if isinstance(usage, dict) else {}
    counted = Usage(_read_count(spent.get("prompt_tokens")), _read_count(spent.get("completion_tokens")))
    return ModelAnswer(_read_text(message.get("content")), choice.get("finish_reason") != "length", counted)


def count_missing(said: ModelAnswer, asked: Iterable[str]) -> ModelAnswer:
    """Estimate token counts that the endpoint did not return."""
    counted = said.usage
    prompt_tokens = counted.prompt_tokens or sum(map(estimate, asked))
    return replace(said, usage=Usage(prompt_tokens, counted.completion_tokens or estimate(said.text)))


def read_value(said: ModelAnswer, answer: type[Answer]) -> Answer:
    """Parse an answer as a valid value."""
    if not said.whole:
        raise UnusableReplyError("The answer was cut off. Write less.")
    if not said.text.strip():
        raise UnusableReplyError("The answer was empty.")
    try:
        return answer.model_validate_json(unwrap(said.text))
    except ValidationError as problem:
        listed = problem.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]
        places = ((".".join(map(str, item["loc"])), item["msg"]) for item in listed)
        raise UnusableReplyError(
            "; ".join(f"{place}: {words}" if place else words for place, words in places)
        ) from None


def unwrap(text: str) -> str:
    """Extract the JSON object from a text: without thoughts, code marks and other text."""
    said = text.rpartition(THOUGHT_ENDS)[2]
    block = CODE_BLOCK.search(said)
    bare = block[1] if block else said
    first, last = bare.find("{"), bare.rfind("}")
    return bare[first : last + 1] if 0 <= first < last else bare


def _read_text(content: Any) -> str:  # noqa: ANN401 - parsed JSON
    """Return a message's content as text; it may be a list with text parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _read_count(value: Any) -> int:  # noqa: ANN401 - parsed JSON
    return value if isinstance(value, int) and 0 < value <= MAX_TOKENS else 0


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """The address of the model, the form of requests, and the timeouts."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    seconds: float = 120.0
    """Maximum time for one answer, including retries."""
    attempts: int = 3
    characters: int = 24_000
    answer_tokens: int = 4_096
    """Limits an answer, because a small model can repeat itself endlessly."""


@dataclass(frozen=True, slots=True)
class ChatTotals:
    """The total number of requests and tokens of an endpoint."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class OpenAIChatModel:
    """Asks an endpoint for values; remembers the strictest schema form that works."""

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
        self.total = ChatTotals()
        self._endpoint = endpoint
        self._line = EndpointClient(_reach(endpoint), breaker, transport=transport)
        self._rung, self._limit = 0, 0
        self._proven = False

    async def ask(self, prompt: str, answer: type[Answer], spent: Spent = ignore_cost) -> Answer:
        """Return a valid value, after one repair if needed, or raise ChatModelError."""
        messages = _pose(prompt, answer)
        said = await self._converse(messages, answer)
        spent(said.usage)
        try:
            return read_value(said, answer)
        except UnusableReplyError as problem:
            again = ASK_AGAIN.format(problem=problem)
        messages += [
            {"role": "assistant", "content": said.text[:MAX_REPEATED_PROMPT_CHARACTERS]},
            {"role": "user", "content": again},
        ]
        said = await self._converse(messages, answer)
        spent(said.usage)
        try:
            return read_value(said, answer)
        except UnusableReplyError as problem:
            message = f"the chat model gave no usable {answer.__name__}, asked twice. {problem}"
            raise ChatModelError(message, answered=True) from None

    async def complete(self, prompt: str, answer: type[BaseModel]) -> ModelAnswer:
        """Return the unchecked answer to one prompt, or raise ChatModelError."""
        return await self._converse(_pose(prompt, answer), answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close_connections()

    async def _converse(self, messages: list[Message], answer: type[BaseModel]) -> ModelAnswer:
        """Use the schema form that worked last; if it is refused, use the next one."""
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
        # Some servers crash on an unknown form; after one form has worked, a 500 is a normal error.
        refusals = frozenset({501}) if self._proven or rung + 1 == len(RUNGS) else frozenset({500, 501})
        try:
            async with self._line.calling(self._endpoint.seconds) as until:
                answered = await self._line.post("/chat/completions", question, MAX_BYTES, until, refusals)
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

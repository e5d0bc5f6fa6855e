"""What an OpenAI-compatible chat endpoint answers, read with distrust."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from recollect.core.text.tokens import estimate
from recollect.errors import ChatModelError
from recollect.llm.chat import Answer, Said, Usage

FENCE = re.compile(r"```\w*\s*(.*?)```", re.DOTALL)
THOUGHT_ENDS = "</think>"
MOST_PROBLEMS = 5
MOST_TOKENS = 1_000_000_000
"""No question costs more; an endpoint that says so has not counted."""


class UnusableError(Exception):
    """A reply that holds no value of the asked type, and why, in words that the model can act on."""


def read_reply(answer: Any) -> Said:  # noqa: ANN401 - parsed JSON
    """Return what the endpoint's answer says, or say that it is none; what it does not count costs nothing yet."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ChatModelError("the chat endpoint's answer has no message; check RECOLLECT_CHAT_URL", lasting=True)
    usage = answer.get("usage")
    spent = usage if isinstance(usage, dict) else {}
    counted = Usage(_read_count(spent.get("prompt_tokens")), _read_count(spent.get("completion_tokens")))
    return Said(_read_text(message.get("content")), choice.get("finish_reason") != "length", counted)


def count_missing(said: Said, asked: Iterable[str]) -> Said:
    """Estimate what the endpoint did not count."""
    counted = said.usage
    prompt_tokens = counted.prompt_tokens or sum(map(estimate, asked))
    return replace(said, usage=Usage(prompt_tokens, counted.completion_tokens or estimate(said.text)))


def read_value(said: Said, answer: type[Answer]) -> Answer:
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
    """Take the JSON object out of a text: without what the model thought aloud, fences and courtesies."""
    said = text.rpartition(THOUGHT_ENDS)[2]
    fenced = FENCE.search(said)
    bare = fenced[1] if fenced else said
    first, last = bare.find("{"), bare.rfind("}")
    return bare[first : last + 1] if 0 <= first < last else bare


def _read_text(content: Any) -> str:  # noqa: ANN401 - parsed JSON
    """Read a message's content: a text, or a list of parts of which some are texts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _read_count(value: Any) -> int:  # noqa: ANN401 - parsed JSON
    return value if isinstance(value, int) and 0 < value <= MOST_TOKENS else 0

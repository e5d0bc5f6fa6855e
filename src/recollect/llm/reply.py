"""What an OpenAI-compatible chat endpoint answers, read with distrust."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from recollect.errors import ChatModelError
from recollect.llm.chat import Answer

FENCE = re.compile(r"```\w*\s*(.*?)```", re.DOTALL)
THOUGHT_ENDS = "</think>"
MOST_PROBLEMS = 5


class UnusableError(Exception):
    """A reply that holds no value of the asked type, and why, in words that the model can act on."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, whether it came to its end, and what it cost."""

    text: str
    whole: bool
    prompt_tokens: int
    completion_tokens: int


def read_reply(answer: Any) -> Reply:  # noqa: ANN401 - parsed JSON
    """Return what the endpoint's answer says, or say that it is none."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ChatModelError("the chat endpoint's answer has no message; check RECOLLECT_CHAT_URL", lasting=True)
    usage = answer.get("usage")
    spent = usage if isinstance(usage, dict) else {}
    return Reply(
        text=_read_text(message.get("content")),
        whole=choice.get("finish_reason") != "length",
        prompt_tokens=_read_count(spent.get("prompt_tokens")),
        completion_tokens=_read_count(spent.get("completion_tokens")),
    )


def read_value(reply: Reply, answer: type[Answer]) -> Answer:
    """Return the reply as a valid value."""
    if not reply.whole:
        raise UnusableError("It was cut off before its end: write less.")
    if not reply.text.strip():
        raise UnusableError("It was empty.")
    try:
        return answer.model_validate_json(unwrap(reply.text))
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
    return value if isinstance(value, int) and value > 0 else 0

"""Suggest what a caller may have meant by an unknown name: a field, a parameter, an argument."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

LONGEST_NAME = 40
MOST_LISTED = 12
NEAR = 0.7
UNKNOWN = "extra_forbidden"
"""Pydantic's type of the error of an unknown field."""
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("query", "q", "question", "prompt", "cue", "input"), ("text", "search", "content")),
    **dict.fromkeys(("text", "memory", "message", "data", "messages", "value"), ("content", "memories", "text")),
    **dict.fromkeys(("k", "n", "top_k", "topk", "n_results", "max_results", "size", "page_size"), ("limit",)),
    **dict.fromkeys(("bot", "assistant"), ("agent",)),
    **dict.fromkeys(("session", "thread", "run", "chat"), ("conversation",)),
    **dict.fromkeys(("type", "types", "category", "categories"), ("kind", "kinds")),
    **dict.fromkeys(("timestamp", "created_at", "date", "time"), ("occurred_at",)),
    **dict.fromkeys(("tags", "labels"), ("keywords", "topics")),
    **dict.fromkeys(("max_tokens", "token_limit", "tokens"), ("budget", "max_tokens")),
    **dict.fromkeys(("memory_id", "memory_ids", "id"), ("ids",)),
    **dict.fromkeys(("offset", "page", "after"), ("cursor",)),
}
"""Names in other memory systems, and their names here."""


def show_name(name: str) -> str:
    """Show a name that only the caller knows: cut, and without what does not print."""
    cut = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
    return repr(cut.replace("`", "'"))[1:-1]


def explain_name(name: str, known: Collection[str]) -> str:
    """Say that a name is unknown, and which one is the nearest, or which there are."""
    said = f"`{show_name(name)}` is not known here"
    meant = find_nearest(name, known)
    if meant:
        return f"{said}; did you mean `{meant}`?"
    if not known:  # every body and every tool has fields
        return f"{said}; nothing is read from the query"
    more = len(known) - MOST_LISTED
    listed = ", ".join(f"`{each}`" for each in [*known][:MOST_LISTED])
    return f"{said}; known are {listed}{f' and {more} more' if more > 0 else ''}"


def find_nearest(name: str, known: Collection[str]) -> str:
    """Find the known name that was meant most likely; empty if none is near."""
    plain = name[:LONGEST_NAME].lower().replace("-", "_")
    stem = re.sub("_?(id|name)$", "", plain)
    meant = [each for word in (plain, stem) for each in (*ELSEWHERE.get(word, ()), word) if each in known]
    return next(iter(meant or get_close_matches(plain, known, 1, NEAR)), "")


def known_fields(taken: object, place: Sequence[int | str]) -> list[str]:
    """List the known fields next to a place within a type: the place's last part is the unknown name."""
    models = models_in(taken)
    for part in place[:-1]:
        below = [each for model in models if part in model.model_fields for each in field_models(model, str(part))]
        # A position in a list, or the tag of one of several models, leads to no field of its own.
        models = below or [model for model in models if part in tags_of(model)] or models
    return [*dict.fromkeys(field for model in models for field in model.model_fields)]


def field_models(model: type[BaseModel], field: str) -> list[type[BaseModel]]:
    """List the models that a field may hold."""
    return models_in(model.model_fields[field].annotation)


def models_in(taken: object) -> list[type[BaseModel]]:
    """List the models that a type is made of."""
    if isinstance(taken, type) and issubclass(taken, BaseModel):
        return [taken]
    return [model for part in get_args(taken) for model in models_in(part)]


def tags_of(model: type[BaseModel]) -> set[Any]:
    """List the names of a model among several in an error's place: its name, or its discriminator."""
    return {model.__name__, *(value for field in model.model_fields.values() for value in get_args(field.annotation))}

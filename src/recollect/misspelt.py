"""Suggest what a caller may have meant by an unknown name: a field of a value or a filter, a parameter, an argument."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import CO_VARKEYWORDS, isfunction
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from recollect import models
from recollect.errors import InvalidInputError
from recollect.loading import load
from recollect.models.filters import FILTER_FIELDS, NO_FILTER, Filter, FilterLike

View = TypeVar("View")
MAX_NAME_LENGTH = 40
MAX_LISTED_NAMES = 12
NEAR = 0.7
UNKNOWN = "extra_forbidden"
"""Pydantic's type of the error of an unknown field."""
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("query", "q", "question", "prompt", "cue", "input"), ("cue", "text", "search", "content")),
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
    cut = name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}..."
    return repr(cut.replace("`", "'"))[1:-1]


def explain_name(name: str, known: Collection[str]) -> str:
    """Explain that a name is unknown; suggest the nearest name, or list the known ones."""
    said = f"`{show_name(name)}` is not known here"
    meant = find_nearest(name, known)
    if meant:
        return f"{said}; did you mean `{meant}`?"
    if not known:  # every body and every tool has fields
        return f"{said}; nothing is read from the query"
    more = len(known) - MAX_LISTED_NAMES
    listed = ", ".join(f"`{each}`" for each in [*known][:MAX_LISTED_NAMES])
    return f"{said}; known are {listed}{f' and {more} more' if more > 0 else ''}"


def read_filter(given: FilterLike | None) -> Filter:
    """Read a filter that may be written as a dict; suggest the near name for an unknown field."""
    if not isinstance(given, Mapping):
        return given or NO_FILTER
    known = [each.name for each in FILTER_FIELDS]
    for name in given:
        if name not in known:
            raise InvalidInputError(f"filter: {explain_name(name, known)}")
    try:
        return TypeAdapter(Filter).validate_python(given)
    except ValidationError as problem:
        found = problem.errors()[0]
        raise InvalidInputError(f"filter: {'.'.join(map(str, found['loc']))}: {found['msg']}") from None


def find_nearest(name: str, known: Collection[str]) -> str:
    """Find the known name that was meant most likely; empty if none is near."""
    plain = name[:MAX_NAME_LENGTH].lower().replace("-", "_")
    stem = re.sub("_?(id|name)$", "", plain)
    meant = [each for word in (plain, stem) for each in (*ELSEWHERE.get(word, ()), word) if each in known]
    return next(iter(meant or load("difflib").get_close_matches(plain, known, 1, NEAR)), "")


def known_fields(taken: object, place: Sequence[int | str]) -> list[str]:
    """List the known fields next to a place within a type: the place's last part is the unknown name."""
    models = models_in(taken)
    for part in place[:-1]:
        below = [each for model in models if part in model.model_fields for each in field_models(model, str(part))]
        # A position in a list, or the tag of one of several models, is no field.
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


def name_arguments(view: type[View]) -> type[View]:
    """Make the public methods of a class name the argument that was probably meant by an unknown one."""
    for name, method in list(vars(view).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(view, name, naming(method))
    return view


def naming(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that checks the names of its arguments."""

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - those of the method
        check_arguments(method, named)
        return method(*arguments, **named)

    return call


def check_arguments(method: Callable[..., Any], named: Mapping[str, object]) -> None:
    """Refuse an unknown keyword argument, and name the one that was probably meant."""
    code = method.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    for name in named:
        if name not in known and not code.co_flags & CO_VARKEYWORDS:
            raise TypeError(f"{method.__name__}(): {explain_argument(name, known, method.__annotations__)}")


def explain_argument(name: str, known: Collection[str], annotations: Mapping[str, str]) -> str:
    """Explain an unknown argument: suggest the nearest one, or the value that has a field of this name."""
    words = [(argument, word) for argument in known for word in re.findall(r"\w+", annotations.get(argument, ""))]
    for argument, word in () if find_nearest(name, known) else words:
        kind: Any = getattr(models, word, None)
        if is_dataclass(kind) and name in {field.name for field in fields(kind)}:
            return f"`{name}` is a field of {word}; pass {argument}={word}(..., {name}=...)"
    return explain_name(name, known)

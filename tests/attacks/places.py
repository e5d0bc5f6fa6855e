"""Where a request can name something: every place of every operation that the OpenAPI document lists."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LEFT_OUT = {"/health/live", "/health/ready", "/metrics", "/v1/changes", "/v1/import"}
"""They name nothing; their answer has no end; they take a file."""
OWN = {"agent", "user", "knowledge_id"}
"""Whose memory is meant: the attacker says so by the scope."""
LONGEST_NAME = 2_000
"""Longer texts are contents and questions."""
NOBODY = "01a00000-0000-7000-8000-000000000000"
REQUIRED = {"name": "Tom", "start": NOBODY, "end": NOBODY, "path": "somewhere", "format": "json"}


@dataclass(frozen=True)
class Place:
    """One place of one operation where an id can stand."""

    method: str
    path: str
    where: str
    """`path`, `query` or `body`."""
    keys: tuple[str | int, ...]
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    scoped: frozenset[str] = frozenset()
    """Which names of the scope the query takes."""
    known: frozenset[str] = frozenset()
    """Which fields the body has, and which of them it must have."""
    required: frozenset[str] = frozenset()
    uuid: bool = False
    """Whether nothing but a UUID is taken here."""

    @property
    def name(self) -> str:
        """Name what stands here: the last name on the way to it."""
        return next(key for key in reversed(self.keys) if isinstance(key, str))


def list_places(document: Mapping[str, Any]) -> list[Place]:
    """List every place of every operation; one that names nothing has one with no name."""
    found: list[Place] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path not in LEFT_OUT:
                found += places_of(document, method.upper(), path, operation)
    return found


def places_of(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> Iterator[Place]:
    every = [follow(document, each) for each in operation.get("parameters", [])]
    given = [each for each in every if each["name"] not in OWN and each["in"] != "header"]
    schema = read_body(document, operation)
    body = copy.deepcopy(schema.get("examples", [{}])[0]) if schema else None
    query = {each["name"]: REQUIRED[each["name"]] for each in given if each["in"] == "query" and each.get("required")}
    scoped = frozenset(each["name"] for each in every if each["name"] in OWN)
    known, required = (frozenset((schema or {}).get(part, ())) for part in ("properties", "required"))
    whole = Place(method, path, "nowhere", ("",), body, query, scoped, known, required)
    found = [
        replace(whole, where=each["in"], keys=(each["name"],), uuid=takes_uuid(document, each["schema"]))
        for each in given
        if takes_names(document, each["schema"])
    ]
    found += [replace(whole, where="body", keys=keys, uuid=uuid) for keys, uuid in list_keys(document, schema or {})]
    yield from found or [whole]


def read_body(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return follow(document, content["schema"]) if content else None


def follow(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        kind, name = schema["$ref"].split("/")[-2:]
        schema = document["components"][kind][name]
    return schema


def choices_of(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    schema = follow(document, schema)
    several = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return [follow(document, each) for each in several]


def takes_names(document: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Tell whether a value can be an id or a name: a text that is neither long nor one of a few, or several."""
    for each in choices_of(document, schema):
        kind = each.get("type")
        named = kind == "string" and not {"enum", "const"} & each.keys() and each.get("format") != "date-time"
        if named and each.get("maxLength", 0) <= LONGEST_NAME:
            return True
        if kind == "array" and takes_names(document, each.get("items", {})):
            return True
    return False


def takes_uuid(document: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Tell whether of all texts only a UUID is taken."""
    texts = [each for each in choices_of(document, schema) if each.get("type") in {"string", "array"}]
    return bool(texts) and all(
        each.get("format") == "uuid" or each.get("const") == "" or takes_uuid(document, each.get("items", {}))
        for each in texts
    )


def list_keys(
    document: Mapping[str, Any], schema: Mapping[str, Any], depth: int = 0
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """List the ways to every field of a body that takes names, and whether they must be UUIDs."""
    for chosen in choices_of(document, schema):
        for name, inner in chosen.get("properties", {}).items():
            if name in OWN or depth > 3:
                continue
            if takes_names(document, inner):
                yield (name, 0) if takes_list(document, inner) else (name,), takes_uuid(document, inner)
            yield from (((name, *keys), uuid) for keys, uuid in list_keys(document, inner, depth + 1))
        if chosen.get("type") == "array":
            yield from (((0, *keys), uuid) for keys, uuid in list_keys(document, chosen.get("items", {}), depth + 1))


def takes_list(document: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    return all(each.get("type") != "string" for each in choices_of(document, schema))


def put(body: Any, keys: tuple[str | int, ...], value: Any) -> Any:
    """Copy a body with a value in one place; what is missing on the way is made."""
    if not keys:
        return value
    first, *rest = keys
    if isinstance(first, int):
        held = list(body) if isinstance(body, list) and body else [None]
        return [put(held[0], tuple(rest), value), *held[1:]]
    held = dict(body) if isinstance(body, dict) else {}
    return held | {first: put(held.get(first), tuple(rest), value)}

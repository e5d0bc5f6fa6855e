"""Describe the operations that a Dify user wants as tools, in the subset of OpenAPI that Dify reads correctly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, TypeAlias

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from recollect.doors.dify.middleware import PREFIX
from recollect.doors.http.auth import JSON
from recollect.doors.http.bodies.memories import FilterBody
from recollect.doors.http.problems import respond

Schema: TypeAlias = dict[str, Any]
MAX_ADDRESS_LENGTH = 2_000
PLAIN = re.compile(r"[!$-;=@-\[\]-~]+")
"""Characters of a URL: ASCII without blanks, quotes, angle brackets, and what begins a query."""
NAMED = 4
"""So many fields of the objects in a list are named in its description."""
SCOPE = ("agent", "user")
FILTER = tuple(FilterBody.model_fields)
NARROWED = ("min_relevance", *FILTER)
OFFERED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "remember": (
            *(*SCOPE, "content", "kind", "importance", "keywords", "occurred_at", "speaker", "topic", "pinned"),
            *("subject", "predicate", "object", "expires_at", "metadata", "memories"),
        ),
        "append": (*SCOPE, "conversation", "question", "answer", "messages"),
        "recall": (
            *(*SCOPE, "text", "limit", "zone", "channels", *NARROWED),
            *("mode", "recency", "similarity", "importance", "decay", "touch", "judge"),
        ),
        "show_block": (*SCOPE, "text", "budget", "conversation", "repeat", "zone", "tokenizer", *NARROWED),
        "associate": (*SCOPE, "subject", "predicate", "object", "limit", "triples"),
        "history": (*SCOPE, "conversation", "max_tokens", "leaf", "tokenizer", "unanswered"),
        "context": (
            *(*SCOPE, "conversation", "text", "budget", "system", "zone", "tokenizer", *NARROWED),
            *("history_share", "memories_share", "summary_share"),
        ),
        "list_facts": (*SCOPE, "predicate", "as_of", "at", "limit"),
        "list_topics": (*SCOPE, "path", "limit"),
        "forget": (*SCOPE, "ids", "dry_run", *FILTER),
        "forget_one": ("memory_id", *SCOPE),
    }
)
"""Which operations are tools, and which of their parameters are offered: few enough to be read."""
router = APIRouter(include_in_schema=False)


@router.get("/openapi-dify.json")
async def read_dify_document(request: Request, base_url: str = "") -> Response:
    """Return the document that Dify imports as a custom tool, for the URL at which Dify reaches this service."""
    address = (base_url or str(request.base_url)).rstrip("/")
    scheme, _, rest = address.partition("://")
    if scheme not in {"http", "https"} or len(address) > MAX_ADDRESS_LENGTH or not PLAIN.fullmatch(rest):
        detail = "base_url must be the address at which Dify reaches this service, as in https://memory.example.com."
        return respond(422, "invalid_input", detail)
    return JSONResponse(write_dify_document(request.app.openapi(), address))


def write_dify_document(openapi: Mapping[str, Any], address: str) -> Schema:
    """Write the document for a service at a URL, from the one of the whole service."""
    operations = {
        operation["operationId"]: (path, method, operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    }
    paths: dict[str, Schema] = {}
    for name, offered in OFFERED.items():
        path, method, operation = operations[name]
        paths.setdefault(PREFIX + path, {})[method] = reduce_schema(openapi, operation, offered)
    return {
        "openapi": openapi["openapi"],
        "info": {field: openapi["info"][field] for field in ("title", "version", "description")},
        "servers": [{"url": address}],
        "security": [{"ApiKey": []}],
        "paths": paths,
        "components": {"securitySchemes": {"ApiKey": {"type": "http", "scheme": "bearer"}}},
    }


def reduce_schema(openapi: Mapping[str, Any], operation: Schema, offered: tuple[str, ...]) -> Schema:
    """Keep of an operation what a tool needs, with every schema in place of its reference."""
    status, answer = next((code, each) for code, each in operation["responses"].items() if code.startswith("2"))
    kept: Schema = {
        "operationId": operation["operationId"],
        "summary": operation["summary"],
        "description": operation["description"],
        "responses": {
            status: {"description": answer["description"], "content": {JSON: {"schema": {"type": "object"}}}}
        },
    }
    parameters = {each["name"]: each for each in operation.get("parameters", []) if each["in"] != "header"}
    if shown := [narrow_parameter(openapi, parameters[name]) for name in offered if name in parameters]:
        kept["parameters"] = shown
    if "requestBody" in operation:
        body = inline(openapi, operation["requestBody"]["content"][JSON]["schema"])
        kept["requestBody"] = {"required": True, "content": {JSON: {"schema": narrow_body(body, offered)}}}
    return kept


def narrow_parameter(openapi: Mapping[str, Any], parameter: Schema) -> Schema:
    """Flatten a parameter of the path or the query; the agent may be left to the key."""
    schema = flatten(inline(openapi, parameter["schema"]), ())
    description = schema.pop("description", "")
    required = parameter["required"] and parameter["name"] not in SCOPE
    place = {field: parameter[field] for field in ("name", "in")}
    return {**place, "required": required, "description": parameter.get("description") or description, "schema": schema}


def narrow_body(body: Schema, offered: tuple[str, ...]) -> Schema:
    """Flatten the fields of a body that are offered; the agent may be left to the key."""
    required = [name for name in body.get("required", []) if name not in SCOPE]
    properties = {name: flatten(body["properties"][name], offered) for name in offered}
    return {"type": "object", "required": required, "properties": properties}


def flatten(schema: Schema, offered: tuple[str, ...]) -> Schema:
    """Turn a field into one of a plain type, and say in words what Dify does not read."""
    options = [each for each in schema.get("anyOf", []) if each.get("type") != "null"]
    flat = {**schema, **options[0]} if options else dict(schema)
    nullable = len(options) < len(flat.pop("anyOf", options))
    told = [schema.get("description", "")]
    flat["description"] = " ".join(part for part in (*told, *remarks(flat, offered)) if part)
    if flat.get("default", "") is None:
        del flat["default"]
    for noise in ("title", "examples", "const"):
        flat.pop(noise, None)
    if flat.get("type") == "array":
        flat["items"] = {"type": flat.get("items", {}).get("type", "string")}
    if nullable and flat["type"] in {"integer", "number"}:
        # Dify turns a blank number into null if that type comes first, and into an error if there is none.
        bounds = {field: flat.pop(field) for field in [*flat] if field not in {"description", "default"}}
        flat["anyOf"] = [{"type": "null"}, bounds]
    return flat


def remarks(schema: Schema, offered: tuple[str, ...]) -> Iterator[str]:
    """Describe the allowed values, and how to write lists and objects."""
    items = schema.get("items", {})
    values = [str(value) for value in [*schema.get("enum", []), *items.get("enum", [])]]
    if any(value not in schema.get("description", "") for value in values):
        yield f"Any of {', '.join(values)}." if schema.get("type") == "array" else f"One of {', '.join(values)}."
    if schema.get("type") == "array" and items.get("type") == "object":
        fields = sorted(items.get("properties", {}), key=lambda name: name not in offered)
        yield f"As a JSON array of objects with {', '.join(fields[:NAMED])}."
    elif schema.get("type") == "array":
        yield 'As a JSON array, as in ["one", "two"].'
    elif schema.get("type") == "object":
        yield 'As a JSON object, as in {"name": "value"}.'


def inline(openapi: Mapping[str, Any], schema: Any) -> Any:  # noqa: ANN401 - any part of a document
    """Replace every reference by its schema; fields next to a reference have precedence."""
    if isinstance(schema, list):
        return [inline(openapi, each) for each in schema]
    if not isinstance(schema, dict):
        return deepcopy(schema)
    siblings = {name: inline(openapi, each) for name, each in schema.items() if name != "$ref"}
    if "$ref" not in schema:
        return siblings
    name = str(schema["$ref"]).rpartition("/")[2]
    return {**inline(openapi, openapi["components"]["schemas"][name]), **siblings}

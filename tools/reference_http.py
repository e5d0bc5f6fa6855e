"""Write the reference of HTTP from the OpenAPI document: operations by section, then the values they speak of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from recollect.doors.http.app import create_app
from recollect.mind.mind import OPERATIONS

TITLES = {"knowledge": "Facts and entities", "exports": "Exports and erasures", "dify": "Dify", "tenant": "Tenant"}
BOUNDS = {"maxLength": "characters", "maxItems": "of them", "maximum": "", "minimum": "", "minItems": "of them"}
RIGHTS = {
    "forget_one": "`write`",
    "write_topics": "`read`",
    "export_scopes": "`read` and `admin`",
    "import_scopes": "`write`",
    "erase_user": "`admin`, not for bound keys",
    "list_erasures": "`admin`, not for bound keys",
    "list_scopes": "`read`",
    "read_status": "`read`",
    "tune": "`read`; `admin` to apply",
    "list_all_receipts": "`read` for a scope, `admin` for all of the tenant",
    "list_jobs": "`read`",
    "retry_jobs": "`admin`",
    "read_job": "`read`",
    "retry_job": "`admin`",
    "read_ledger": "`read`",
    "read_own_key": "none: any key",
    "list_keys": "`admin`",
    "create_key": "`admin` or `delegate`",
    "revoke_key": "`admin`; with `delegate` for keys that your key made",
    "retrieve_knowledge": "`read`",
    "live": "none, no key",
    "ready": "none, no key",
    "metrics": "none, no key",
}
"""The rights of requests that are not operations of a mind."""

SCOPE = ("agent", "user")
SECTIONS = ("Changes", "ConversationPage", "Health", "Items", "JobPage", "Keys", "CostReport", "Recalls", "Topics")
"""Titles of sections that are also names of values."""
Schema = Mapping[str, Any]


def write_operations() -> Iterator[str]:
    document = create_app().openapi()
    schemas = document["components"]["schemas"]
    rights = {(each.method, each.path): each.right for each, _ in OPERATIONS.values()}
    sections: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            right = rights.get((method.upper(), path)) or RIGHTS[operation["operationId"]]
            written = write_operation(f"{method.upper()} {path}", operation, right, schemas)
            sections.setdefault(operation["tags"][0], []).extend(written)
    for tag, lines in sections.items():
        yield f"## {TITLES.get(tag, tag.capitalize())}\n"
        yield from lines
    yield "## Values\n\nWhat bodies and answers are made of. A field that is needed is marked with a star.\n"
    for name in find_used(document):
        yield from write_schema(name, schemas[name])


def write_operation(heading: str, operation: Schema, right: str, schemas: Schema) -> Iterator[str]:
    shown = right if "`" in right or right.startswith("none") else f"`{right}`"
    yield f"### {heading}\n\nOperation `{operation['operationId']}`, right {shown}. {flow(operation['description'])}\n"
    rows = [*parameters_of(operation), *body_of(operation, schemas)]
    if rows:
        yield "| field | in | type | default | meaning |\n|---|---|---|---|---|"
        yield from rows
        yield ""
    yield f"Answer {', '.join(answers_of(operation))}.\n"


def parameters_of(operation: Schema) -> Iterator[str]:
    for each in operation.get("parameters", ()):
        schema = each["schema"]
        told = each.get("description") or schema.get("description", "")
        yield write_row(each["name"], schema, told, each["in"], needed=each.get("required", False))


def body_of(operation: Schema, schemas: Schema) -> Iterator[str]:
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        for schema in alternatives(content.get("schema", {}), schemas):
            needed = schema.get("required", ())
            for name, each in sorted(schema.get("properties", {}).items(), key=lambda pair: pair[0] not in SCOPE):
                yield write_row(name, each, each.get("description", ""), "body", needed=name in needed)
            if "properties" not in schema:
                yield f"| | body | `{kind}` | | {flow(schema.get('description', ''))} |"


def alternatives(schema: Schema, schemas: Schema) -> Iterator[Schema]:
    """Resolve a body: a schema, or one of several."""
    if "$ref" in schema:
        yield schemas[schema["$ref"].rpartition("/")[2]]
    elif "anyOf" in schema or "oneOf" in schema:
        for each in schema.get("anyOf") or schema["oneOf"]:
            yield from alternatives(each, schemas)
    else:
        yield schema


def write_row(name: str, schema: Schema, told: str, place: str, *, needed: bool) -> str:
    default = "needed" if needed else show_default(schema)
    cells = [f"`{name}`", place, show_type(schema), default, flow(told)]
    return f"| {' | '.join(cells)} |"


def show_default(schema: Schema) -> str:
    default = schema.get("default")
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default, ensure_ascii=False)}`"


def show_type(schema: Schema) -> str:
    """Write a type in a few words, with its bounds."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()}{'-value' if name in SECTIONS else ''})"
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return " or ".join(show_type(each) for each in schema[choice] if each.get("type") != "null") or "null"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]) if each != "")
    if schema.get("type") == "array":
        return f"list of {show_type(schema.get('items', {}))}{show_bounds(schema)}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {show_type(schema['additionalProperties'])}"
    return f"{schema.get('format') or schema.get('type') or 'any'}{show_bounds(schema)}"


def show_bounds(schema: Schema) -> str:
    parts = [
        f"at {'least' if name.startswith('min') else 'most'} {schema[name]:,g} {unit}".strip()
        for name, unit in BOUNDS.items()
        if isinstance(schema.get(name), int | float) and not (name.startswith("min") and schema[name] in (0, 1))
    ]
    return f", {', '.join(parts)}" if parts else ""


def answers_of(operation: Schema) -> Iterator[str]:
    """Name what a request is answered with where it succeeds."""
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            kinds = [
                show_type(content["schema"]) if content.get("schema") else f"`{kind}`"
                for kind, content in answer.get("content", {}).items()
            ]
            yield f"{status}: {' or '.join(kinds)}" if kinds else status


def find_used(document: Schema) -> list[str]:
    """List the schemas to show: all but bodies, whose fields are listed with their requests."""
    bodies = {
        content["schema"]["$ref"].rpartition("/")[2]
        for methods in document["paths"].values()
        for operation in methods.values()
        for content in operation.get("requestBody", {}).get("content", {}).values()
        if "$ref" in content.get("schema", {})
    }
    return sorted(document["components"]["schemas"].keys() - bodies)


def write_schema(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}{' value' if name in SECTIONS else ''}\n"
    if told := flow(schema.get("description", "")):
        yield f"{told}\n"
    if "properties" not in schema:
        yield f"{show_type(schema)}\n"
        return
    needed = schema.get("required", ())
    yield "| field | type | meaning |\n|---|---|---|"
    for field, each in schema["properties"].items():
        star = "" if field not in needed or set(needed) == set(schema["properties"]) else "*"
        told = flow(each.get("description", ""))
        yield f"| `{field}`{star} | {show_type(each)} | {told} |".replace("  |", " |")
    yield ""


def flow(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

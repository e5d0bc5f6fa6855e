"""What an OpenAPI document must be like for Dify to make tools of it without mistakes: each rule lists what breaks it.

The rules are what Dify's importer and its caller of custom tools do (api/core/tools/utils/parser.py and
api/core/tools/custom_tool/tool.py of langgenius/dify).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

METHODS = ("get", "post", "put", "delete", "patch", "head", "options", "trace")
SCALARS = {"string", "integer", "number", "boolean", "null"}
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
JSON = "application/json"


def operations(document) -> Iterator[tuple[str, dict]]:
    for path, item in document.get("paths", {}).items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def resolve(document, schema) -> dict:
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = document["components"]["schemas"][name]
    return schema


def fields(document) -> Iterator[tuple[str, dict]]:
    """Give every field of every body, as it stands at the first level: deeper Dify does not look."""
    for place, operation in operations(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            body = resolve(document, content["schema"])
            for name, field in body.get("properties", {}).items():
                yield f"{place} {name}", field


def inputs(document) -> Iterator[tuple[str, dict, str]]:
    """Give all that a tool's user fills in, with its description."""
    for place, field in fields(document):
        yield place, field, field.get("description", "")
    for place, operation in operations(document):
        for parameter in operation.get("parameters", []):
            yield f"{place} {parameter['name']}", parameter.get("schema", {}), parameter.get("description", "")


def check_server(document) -> list[str]:
    """Without a server it is refused; a relative one yields `//v1/...`; of several the first is taken."""
    servers = document.get("servers", [])
    urls = [server["url"] for server in servers]
    found = [f"{len(servers)} servers"] if len(servers) != 1 else []
    return found + [f"server {url}" for url in urls if not re.fullmatch(r"https?://[^/?#]+(/[^?#]*[^/?#])?", url)]


def check_names(document) -> list[str]:
    """An operation without a name is called by its path; a name has to be one that a model can call."""
    names = [(place, operation.get("operationId", "")) for place, operation in operations(document)]
    doubles = {name for _, name in names if [other for _, other in names].count(name) > 1}
    return [f"{place}: {name!r}" for place, name in names if not NAME.fullmatch(name) or name in doubles]


def check_descriptions(document) -> list[str]:
    """What a tool does and what a field means is told to the model by descriptions alone."""
    found = [place for place, operation in operations(document) if not operation.get("description")]
    return found + [place for place, _, description in inputs(document) if not description]


def check_references(document) -> list[str]:
    """A field that is a reference is sent as the text that was typed."""
    return [place for place, field in fields(document) if "$ref" in field or "allOf" in field]


def check_unions(document) -> list[str]:
    """A list or an object that may be null is sent as the text that was typed; oneOf is not read at all."""
    found = []
    for place, field in fields(document):
        options = field.get("anyOf", [])
        found += [place] if any(option.get("type") not in SCALARS for option in options) else []
    return found + [place for place, field, _ in inputs(document) if "oneOf" in field]


def check_blanks(document) -> list[str]:
    """Of a union the first option that fits is taken, and a text fits all: null has to come before it."""
    kinds = [(place, [option.get("type") for option in field.get("anyOf", [])]) for place, field in fields(document)]
    return [place for place, types in kinds if "null" in types and types[0] != "null"]


def check_types(document) -> list[str]:
    """What has neither a type nor options is sent as nothing."""
    return [place for place, field in fields(document) if "type" not in field and "anyOf" not in field]


def check_enums(document) -> list[str]:
    """Of an enum only the type is read: the description has to name the values."""
    found = []
    for place, field, description in inputs(document):
        values = [*field.get("enum", []), *field.get("items", {}).get("enum", [])]
        found += [place] if any(str(value) not in description for value in values) else []
    return found


def check_levels(document) -> list[str]:
    """Parameters of a path as a whole, and references to parameters, are passed over."""
    found = [path for path, item in document.get("paths", {}).items() if "parameters" in item]
    for place, operation in operations(document):
        found += [place for parameter in operation.get("parameters", []) if "$ref" in parameter]
    return found


def check_headers(document) -> list[str]:
    """A header that may be left out is sent empty, and one that may not is asked of the model."""
    places = [(place, each) for place, operation in operations(document) for each in operation.get("parameters", [])]
    return [f"{place} {each['name']}" for place, each in places if each.get("in") in {"header", "cookie"}]


def check_defaults(document) -> list[str]:
    """A default is sent where nothing is typed: one that is null takes the place of a value."""
    found = []
    for place, field in fields(document):
        wanted = {"array": list, "object": dict, "string": str, "boolean": bool}.get(field.get("type", ""), object)
        if "default" in field and (field["default"] is None or not isinstance(field["default"], wanted)):
            found.append(place)
    return found


def check_content(document) -> list[str]:
    """Of several sorts of bodies one is taken, and only JSON has types."""
    return [
        place
        for place, operation in operations(document)
        if "requestBody" in operation and list(operation["requestBody"].get("content", {})) != [JSON]
    ]


def check_answers(document) -> list[str]:
    """An answer that is no JSON object has no `json` output, and an empty one is taken for a mistake."""
    found = []
    for place, operation in operations(document):
        good = {code: each for code, each in operation["responses"].items() if str(code).startswith("2")}
        for code, answer in good.items():
            schema = resolve(document, answer.get("content", {}).get(JSON, {}).get("schema", {}))
            if str(code) == "204" or schema.get("type") != "object":
                found.append(f"{place} {code}")
    return found


def check_security(document) -> list[str]:
    """A key travels as a bearer token."""
    schemes = document.get("components", {}).get("securitySchemes", {}).values()
    return [] if any(each.get("scheme") == "bearer" for each in schemes) else ["no bearer token"]


RULES = (
    *(check_server, check_names, check_descriptions, check_references, check_unions, check_blanks, check_types),
    *(check_enums, check_levels, check_headers, check_defaults, check_content, check_answers, check_security),
)
FOR_ALL = (check_names, check_levels, check_content, check_answers, check_security)
"""What also holds for the document of the whole service, so that any operation could become a tool."""


def check(document) -> list[str]:
    return [f"{rule.__name__}: {problem}" for rule in RULES for problem in rule(document)]

"""Call operations as Dify would that has made tools of a document: its reading of types, its conversions, its defaults.

Written after what api/core/tools/utils/parser.py and api/core/tools/custom_tool/tool.py of langgenius/dify do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

TYPED = {"integer": "number", "number": "number", "boolean": "boolean"}


@dataclass(frozen=True, slots=True)
class Tool:
    url: str
    method: str
    operation: dict[str, Any]
    parameters: dict[str, str]
    """The type that Dify's form has for each parameter: string, number or boolean."""


class MissingParameterError(Exception):
    """A parameter without which Dify sends nothing."""


def read_tools(document) -> dict[str, Tool]:
    """Make a tool of every operation."""
    server = document["servers"][0]["url"]
    tools = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            typed = {each["name"]: form_type(each.get("schema", {})) for each in operation.get("parameters", [])}
            typed |= {name: form_type(field) for name, field in body_fields(operation).items()}
            tools[operation["operationId"]] = Tool(server + path, method, operation, typed)
    return tools


def body_fields(operation) -> dict[str, Any]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        return content["schema"].get("properties", {})
    return {}


def form_type(schema) -> str:
    return TYPED.get(schema.get("type", ""), "string")


def cast(kind: str, value):
    """Bring what a node holds to the type of the form, before the tool sees it."""
    if kind == "boolean":
        return value.lower() in {"true", "yes", "y", "1"} if isinstance(value, str) else bool(value)
    if kind == "number":
        return (float(value) if "." in value else int(value)) if isinstance(value, str) and value else value
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def convert(field, value):
    """Bring a value to the type of a body's field; what cannot be brought there is sent as it is."""
    kind = field.get("type")
    try:
        if kind is None:
            return convert_any(value, field["anyOf"]) if "anyOf" in field else None
        return to_type(kind, value)
    except ValueError:
        return value


def to_type(kind, value):
    if kind == "integer":
        return int(value)
    if kind == "number":
        return float(value) if "." in str(value) else int(value)
    if kind == "boolean":
        return bool(value)
    if kind in {"array", "object"}:
        return json.loads(value) if isinstance(value, str) else value
    return str(value)


def convert_any(value, options):
    """Take the first option that fits; lists and objects are not among those that are tried."""
    for option in options:
        kind = option.get("type")
        try:
            if kind == "null" and not value:
                return None
            if kind == "boolean" and str(value).lower() in {"true", "1", "false", "0"}:
                return str(value).lower() in {"true", "1"}
            if kind in {"integer", "number", "string"}:
                return to_type(kind, value)
        except ValueError:
            continue
    return value


def build(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """Build the request for what was filled in, as keywords of an HTTP client."""
    values = {name: cast(tool.parameters[name], value) for name, value in given.items()}
    url, query, headers = tool.url, {}, {}
    for parameter in tool.operation.get("parameters", []):
        name, place = parameter["name"], parameter["in"]
        if name not in values and parameter.get("required"):
            raise MissingParameterError(name)
        value = values.get(name, parameter.get("schema", {}).get("default", ""))
        if place == "path":
            url = url.replace("{" + name + "}", str(value))
        elif place == "query" and value != "":
            query[name] = value
        elif place == "header":
            headers[name] = str(value)
    request = {"method": tool.method.upper(), "url": url, "params": query, "headers": headers}
    if "requestBody" in tool.operation:
        request["headers"]["Content-Type"] = "application/json"
        request["content"] = json.dumps(build_body(tool, values))
    return request


def build_body(tool: Tool, values: dict[str, Any]) -> dict[str, Any]:
    [content] = tool.operation["requestBody"]["content"].values()
    body = {}
    for name, field in body_fields(tool.operation).items():
        if name in values:
            body[name] = convert(field, values[name])
        elif name in content["schema"].get("required", []):
            raise MissingParameterError(name)
        elif "default" in field:
            body[name] = field["default"]
    return body


def read_answer(response) -> dict[str, Any]:
    """Give the `json` output of a tool node, or fail as the node would."""
    assert response.status_code < 400, response.text
    assert "application/json" in response.headers["content-type"]
    answer = response.json()
    assert isinstance(answer, dict)
    return answer

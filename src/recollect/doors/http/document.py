"""The document that describes the HTTP door.

An answer has every field, so its schema requires every field. What every answer may carry in addition to what its
route says is described once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from typing import Any, cast

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from recollect.doors.http.problems import Problem

PREFIX = "#/components/schemas/"
SPARSE = frozenset({"Health"})
"""Answers that leave out null fields."""
router = APIRouter(include_in_schema=False)
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Recollect: HTTP API</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
td {{ padding: .15rem 1rem .15rem 0; vertical-align: top }} code {{ font-size: 13px }}
</style></head><body><h1>Recollect: HTTP API</h1>
<p>{description}</p>
<p>Send <code>Authorization: Bearer rec_...</code>. Everything in detail:
<a href="/openapi.json">openapi.json</a>. In a browser: <a href="/console">the console</a>.</p>
{groups}
</body></html>
"""
"""The list of operations: no script, nothing from elsewhere, so that it works without a network."""
PAGE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


class HttpDoor(FastAPI):
    """The application: it serves the routes and describes them."""

    def openapi(self) -> dict[str, Any]:
        """Describe all routes, once."""
        if self.openapi_schema is None:
            document = super().openapi()
            problem = Problem.model_json_schema(ref_template=f"{PREFIX}{{model}}")
            document["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
            require_answers(document)
        return super().openapi()


def require_answers(document: Mapping[str, Any]) -> None:
    """Require every property of what only answers have; a default says what a program may leave out, not an answer."""
    schemas: Mapping[str, dict[str, Any]] = document["components"]["schemas"]
    sent, given = set[str](), set[str]()
    for path in document["paths"].values():
        for operation in path.values():
            collect_schemas([operation.get("requestBody"), operation.get("parameters")], schemas, sent)
            collect_schemas(operation["responses"], schemas, given)
    for name in given - sent - SPARSE:
        if properties := schemas[name].get("properties"):
            schemas[name]["required"] = [*properties]


def collect_schemas(part: object, schemas: Mapping[str, object], found: set[str]) -> None:
    """Collect the names of all schemas that a part of the document leads to."""
    for name in list_references(part):
        if name not in found:
            found.add(name)
            collect_schemas(schemas[name], schemas, found)


def list_references(part: object) -> Iterator[str]:
    """List the schemas that a part of the document names itself."""
    if isinstance(part, Mapping):
        fields = cast("Mapping[str, object]", part)
        if "$ref" in fields:
            yield str(fields["$ref"]).removeprefix(PREFIX)
        for each in fields.values():
            yield from list_references(each)
    elif isinstance(part, list):
        for each in cast("list[object]", part):
            yield from list_references(each)


def list_operations(document: Mapping[str, Any]) -> str:
    """Write the operations of the document as HTML, by their groups."""
    operations = [
        (each["tags"][0], method.upper(), path, each["summary"])
        for path, methods in document["paths"].items()
        for method, each in methods.items()
        if each.get("tags")
    ]
    parts: list[str] = []
    for group, rows in groupby(sorted(operations, key=lambda row: row[0]), key=lambda row: row[0]):
        lines = "".join(
            f"<tr><td><code>{method} {escape(path)}</code></td><td>{escape(summary)}</td></tr>\n"
            for _, method, path, summary in rows
        )
        parts.append(f"<h2>{escape(group)}</h2>\n<table>\n{lines}</table>\n")
    return "".join(parts)


@router.get("/docs")
async def show_operations(request: Request) -> HTMLResponse:
    """Show the list of operations to a person."""
    app: FastAPI = request.app
    text = PAGE.format(description=escape(app.description), groups=list_operations(app.openapi()))
    return HTMLResponse(text, headers=PAGE_HEADERS)


@router.get("/")
@router.get("/v1")
async def redirect_to_docs() -> RedirectResponse:
    """Redirect a request for the root to the list of operations."""
    return RedirectResponse("/docs")

"""The route for items: a batch of operations on JSON values under the caller's own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, cast

from fastapi import APIRouter
from pydantic import BaseModel, Field

from recollect.doors.http.auth import IdempotencyKey
from recollect.doors.http.bodies.fields import (
    Body,
    Integer,
    Moment,
    Number,
    ScopeBody,
    Vector,
    build,
    build_example_config,
)
from recollect.doors.http.json_body import JsonRoute
from recollect.doors.http.routing import serve
from recollect.mind.mind import Mind
from recollect.models.items import (
    DropItem,
    FindItems,
    FoundItem,
    GetItem,
    Item,
    ItemOperation,
    ItemResult,
    ListPaths,
    Path,
    PutItem,
)
from recollect.models.memories import JSON

router = APIRouter(tags=["items"], route_class=JsonRoute)
Segments = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=16)]
ItemKey = Annotated[str, Field(min_length=1, max_length=500)]
Revision = Annotated[Integer, Field(ge=0)]
PATH = "Path of the item, as a list of segments."
KEY = "Key of the item."
EXPECTED = "Required revision; 0 = must not exist. Default: any."


class NamedBody(Body):
    """The name of an item."""

    path: Segments = Field(min_length=1, description=PATH, examples=[["users", "li"]])
    key: ItemKey = Field(description=KEY, examples=["tea"])


class GetBody(NamedBody):
    """Read one item, if it is there."""

    op: Literal["get"]
    vector: bool = Field(default=False, strict=True, description="Include its vector.")


class PutBody(NamedBody):
    """Store an item under its name, replacing any item there."""

    op: Literal["put"]
    value: dict[str, JSON] = Field(description="Your own JSON, at most 1 MB.")
    text: str = Field("", max_length=32_000, description="Text to remember. Nothing is remembered if empty.")
    embedding: Vector = Field(
        default_factory=list[float], description="Your own vector, compared only with vectors of as many dimensions."
    )
    importance: Number | None = Field(
        None, ge=1, le=10, description="1 (mundane) to 10 (life-changing), of the memory; by rules if left out."
    )
    occurred_at: Moment | None = Field(None, description="When it happened. Default: now.")
    expected: Revision | None = Field(None, description=EXPECTED)
    memory: bool = Field(default=True, strict=True, description="Also store the text as a memory.")


class DropBody(NamedBody):
    """Drop one item, if it is there."""

    op: Literal["drop"]
    expected: Revision | None = Field(None, description=EXPECTED)


class FindBody(Body):
    """Find items: the newest, or the nearest to a text or to a vector."""

    op: Literal["find"]
    under: Segments = Field(default_factory=list[str], description="Path prefix. Default: all.")
    where: dict[str, JSON] = Field(
        default_factory=dict[str, JSON],
        description="Conditions on fields: a value, or $eq, $ne, $gt, $gte, $lt, $lte.",
    )
    text: str = Field("", max_length=8_000, description="Sort by similarity to this text.")
    embedding: Vector = Field(default_factory=list[float], description="Sort by similarity to this vector.")
    limit: Annotated[Integer, Field(ge=1, le=1_000)] = Field(10, description="Maximum number of items.")
    offset: Annotated[Integer, Field(ge=0, le=1_000_000)] = Field(0, description="Number of results to skip.")


class PathsBody(Body):
    """List the paths that hold items; `*` matches any one segment."""

    op: Literal["paths"]
    under: Segments = Field(default_factory=list[str], description="Path prefix. Default: all.")
    suffix: Segments = Field(default_factory=list[str], description="Path suffix. Default: all.")
    depth: Annotated[Integer, Field(ge=1, le=16)] | None = Field(
        None, description="Shorten paths to this many segments."
    )
    limit: Annotated[Integer, Field(ge=1, le=1_000)] = Field(100, description="Maximum number of paths.")
    offset: Annotated[Integer, Field(ge=0, le=1_000_000)] = Field(0, description="Number of results to skip.")


Operation: TypeAlias = Annotated[GetBody | PutBody | DropBody | FindBody | PathsBody, Field(discriminator="op")]


class ItemsBody(ScopeBody):
    """Operations on the items of one scope."""

    model_config = build_example_config(
        {
            "agent": "ada",
            "user": "li",
            "operations": [
                {"op": "put", "path": ["users", "li"], "key": "tea", "value": {"kind": "green"}},
                {"op": "find", "under": ["users"], "where": {"kind": "green"}},
            ],
        }
    )

    operations: list[Operation] = Field(min_length=1, max_length=1_000, description="One to 1,000 operations.")


class ItemAnswer(BaseModel):
    """The item after a get or put; null if there is none."""

    item: Item | None


class DropAnswer(BaseModel):
    """Of a drop, whether the item was there."""

    dropped: bool


class FindAnswer(BaseModel):
    """Of a find, the items in their order."""

    found: list[FoundItem]


class PathsAnswer(BaseModel):
    """Of a listing, the paths in their order."""

    paths: list[Path]


Result: TypeAlias = ItemAnswer | DropAnswer | FindAnswer | PathsAnswer
VALUES: Mapping[str, type[ItemOperation]] = {
    "get": GetItem, "put": PutItem, "drop": DropItem, "find": FindItems, "paths": ListPaths
}  # fmt: skip


@serve(router, "items.batch", errors=[409], gives=list[Result])
async def use_items(mind: Mind, body: ItemsBody, idempotency_key: IdempotencyKey = "") -> list[Result]:
    """Answer each operation with its result."""
    operations = [build(VALUES[operation.op], operation) for operation in body.operations]
    results = await mind.items.batch(operations, idempotency_key=idempotency_key)
    return [to_answer(*pair) for pair in zip(operations, results, strict=True)]


def to_answer(operation: ItemOperation, result: ItemResult) -> Result:
    """Wrap the result of an operation by its type."""
    if isinstance(operation, DropItem):
        return DropAnswer(dropped=bool(result))
    if isinstance(operation, FindItems):
        return FindAnswer(found=[*cast("tuple[FoundItem, ...]", result)])
    if isinstance(operation, ListPaths):
        return PathsAnswer(paths=[*cast("tuple[Path, ...]", result)])
    return ItemAnswer(item=cast("Item | None", result))

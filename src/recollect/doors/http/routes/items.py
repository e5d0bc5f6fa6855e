"""The route for items: a batch of operations on JSON values under the caller's own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, cast

from fastapi import APIRouter
from pydantic import BaseModel, Field

from recollect.doors.http.auth import IdempotencyKey
from recollect.doors.http.bodies.fields import Body, Integer, Moment, Number, OfScope, Vector, build, show
from recollect.doors.http.reading import JsonRoute
from recollect.doors.http.serve import serve
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
PATH = "Where the item lies, segment by segment."
KEY = "The item's name there."
EXPECTED = "The revision that must be there, 0 for none; any if left out."


class NamedBody(Body):
    """The name of an item."""

    path: Segments = Field(min_length=1, description=PATH, examples=[["users", "li"]])
    key: ItemKey = Field(description=KEY, examples=["tea"])


class GetBody(NamedBody):
    """Read one item, if it is there."""

    op: Literal["get"]
    vector: bool = Field(default=False, strict=True, description="Whether its own vector comes along.")


class PutBody(NamedBody):
    """Put an item under its name, in the place of what is there."""

    op: Literal["put"]
    value: dict[str, JSON] = Field(description="Your own JSON, at most 1 MB.")
    text: str = Field("", max_length=32_000, description="What is remembered by it; nothing if empty.")
    embedding: Vector = Field(
        default_factory=list[float], description="Your own vector, compared only with vectors of as many dimensions."
    )
    importance: Number | None = Field(
        None, ge=1, le=10, description="1 (mundane) to 10 (life-changing), of the memory; by rules if left out."
    )
    occurred_at: Moment | None = Field(None, description="When it happened, with an offset; now if left out.")
    expected: Revision | None = Field(None, description=EXPECTED)
    memory: bool = Field(default=True, strict=True, description="Whether the text becomes a memory, or is only kept.")


class DropBody(NamedBody):
    """Drop one item, if it is there."""

    op: Literal["drop"]
    expected: Revision | None = Field(None, description=EXPECTED)


class FindBody(Body):
    """Find items: the newest, or the nearest to a text or to a vector."""

    op: Literal["find"]
    under: Segments = Field(default_factory=list[str], description="The path that they lie under; any if empty.")
    where: dict[str, JSON] = Field(
        default_factory=dict[str, JSON],
        description="What fields must be: a value, or any of $eq, $ne, $gt, $gte, $lt, $lte with one.",
    )
    text: str = Field("", max_length=8_000, description="What the texts of the items should be near to.")
    embedding: Vector = Field(
        default_factory=list[float], description="What the items' own vectors should be near to, instead of a text."
    )
    limit: Annotated[Integer, Field(ge=1, le=1_000)] = Field(10, description="Most items to return.")
    offset: Annotated[Integer, Field(ge=0, le=1_000_000)] = Field(0, description="How many to pass over.")


class PathsBody(Body):
    """List the paths that hold items; `*` stands for any one segment."""

    op: Literal["paths"]
    under: Segments = Field(default_factory=list[str], description="How the paths begin; in any way if empty.")
    suffix: Segments = Field(default_factory=list[str], description="How the paths end; in any way if empty.")
    depth: Annotated[Integer, Field(ge=1, le=16)] | None = Field(
        None, description="To how many segments they are cut; not at all if left out."
    )
    limit: Annotated[Integer, Field(ge=1, le=1_000)] = Field(100, description="Most paths to return.")
    offset: Annotated[Integer, Field(ge=0, le=1_000_000)] = Field(0, description="How many to pass over.")


Operation: TypeAlias = Annotated[GetBody | PutBody | DropBody | FindBody | PathsBody, Field(discriminator="op")]


class ItemsBody(OfScope):
    """Operations on the items of one scope."""

    model_config = show(
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
    """Of a get the item, null if there is none; of a put the item as it is now."""

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

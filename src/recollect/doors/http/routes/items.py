"""The route for items: a batch of operations on JSON values under names of the caller's own."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, cast

from fastapi import APIRouter, Header, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from recollect.doors.http.auth import Admitted
from recollect.doors.http.bodies.memories import AGENT, USER, Body, Integer, Moment, Name, Number, UserName
from recollect.doors.http.problems import describe
from recollect.doors.http.reading import JsonRoute
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

router = APIRouter(prefix="/v1", tags=["items"], route_class=JsonRoute)
Segments = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=16)]
ItemKey = Annotated[str, Field(min_length=1, max_length=500)]
Vector = Annotated[list[Number], Field(max_length=4096)]
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

    def to_value(self) -> GetItem:
        """Turn the body into a value."""
        return GetItem(tuple(self.path), self.key, self.vector)


class PutBody(NamedBody):
    """Put an item under its name, in the place of what is there."""

    op: Literal["put"]
    value: dict[str, JSON] = Field(description="Your own JSON, at most 1 MB.")
    text: str = Field("", max_length=32_000, description="What is remembered by it; nothing if empty.")
    embedding: Vector = Field(
        default_factory=list[float], description="Your own vector, compared only with vectors of as many dimensions."
    )
    importance: Number = Field(5.0, ge=1, le=10, description="1 (mundane) to 10 (life-changing), of the memory.")
    occurred_at: Moment | None = Field(None, description="When it happened, with an offset; now if left out.")
    expected: Revision | None = Field(None, description=EXPECTED)
    memory: bool = Field(default=True, strict=True, description="Whether the text becomes a memory, or is only kept.")

    def to_value(self) -> PutItem:
        """Turn the body into a value."""
        return PutItem(
            path=tuple(self.path),
            key=self.key,
            value=self.value,
            text=self.text,
            embedding=self.embedding or None,
            importance=self.importance,
            occurred_at=self.occurred_at,
            expected=self.expected,
            memory=self.memory,
        )


class DropBody(NamedBody):
    """Drop one item, if it is there."""

    op: Literal["drop"]
    expected: Revision | None = Field(None, description=EXPECTED)

    def to_value(self) -> DropItem:
        """Turn the body into a value."""
        return DropItem(tuple(self.path), self.key, self.expected)


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

    def to_value(self) -> FindItems:
        """Turn the body into a value."""
        vector = self.embedding or None
        return FindItems(tuple(self.under), self.where, self.text, vector, self.limit, self.offset)


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

    def to_value(self) -> ListPaths:
        """Turn the body into a value."""
        return ListPaths(tuple(self.under), tuple(self.suffix), self.depth, self.limit, self.offset)


Operation: TypeAlias = Annotated[GetBody | PutBody | DropBody | FindBody | PathsBody, Field(discriminator="op")]


class ItemsBody(Body):
    """Operations on the items of one scope."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "agent": "ada",
                    "user": "li",
                    "operations": [
                        {"op": "put", "path": ["users", "li"], "key": "tea", "value": {"kind": "green"}},
                        {"op": "find", "under": ["users"], "where": {"kind": "green"}},
                    ],
                }
            ]
        }
    )

    agent: Name = Field(description=AGENT)
    user: UserName = Field("", description=USER)
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


class ItemsAnswer(BaseModel):
    """What came of each operation, in their order."""

    results: list[ItemAnswer | DropAnswer | FindAnswer | PathsAnswer]


ANSWER = TypeAdapter(ItemsAnswer)


@router.post("/items", response_model=ItemsAnswer, responses=describe(409))
async def use_items(
    body: ItemsBody,
    admit: Admitted,
    idempotency_key: Annotated[
        str, Header(max_length=255, description="Send the same key to carry the same writes out only once.")
    ] = "",
) -> Response:
    """Carry operations on items out in one transaction: all reads on what was before, then the writes in order."""
    mind = await admit(body.agent, body.user)
    operations = [operation.to_value() for operation in body.operations]
    results = await mind.items.batch(operations, idempotency_key=idempotency_key)
    answers = [to_answer(*pair) for pair in zip(operations, results, strict=True)]
    return Response(ANSWER.dump_json(ItemsAnswer(results=answers)), media_type="application/json")


def to_answer(operation: ItemOperation, result: ItemResult) -> ItemAnswer | DropAnswer | FindAnswer | PathsAnswer:
    """Name what came of an operation by what it is."""
    if isinstance(operation, DropItem):
        return DropAnswer(dropped=bool(result))
    if isinstance(operation, FindItems):
        return FindAnswer(found=[*cast("tuple[FoundItem, ...]", result)])
    if isinstance(operation, ListPaths):
        return PathsAnswer(paths=[*cast("tuple[Path, ...]", result)])
    return ItemAnswer(item=cast("Item | None", result))

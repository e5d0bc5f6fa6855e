"""The SDK's view of the items of one scope on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from recollect.client.bodies import JsonType
from recollect.client.fading import Sender
from recollect.core.items.rules import check_operations, is_write
from recollect.core.items.verbs import ItemVerbs
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

ANSWERS = JsonType(dict[str, list[dict[str, Any]]])
FOUND, PATHS = JsonType(tuple[FoundItem, ...]), JsonType(tuple[Path, ...])
# A union is no type.
ITEM: JsonType[Item | None] = JsonType(cast("Any", Item | None))
OPERATION: JsonType[ItemOperation] = JsonType(cast("Any", ItemOperation))
NAMES = {GetItem: "get", PutItem: "put", DropItem: "drop", FindItems: "find", ListPaths: "paths"}


@dataclass(frozen=True, slots=True)
class RemoteItems(ItemVerbs):
    """The items of one scope on a server."""

    client: Sender
    agent: str
    user: str

    async def batch(self, operations: Sequence[ItemOperation], *, idempotency_key: str = "") -> list[ItemResult]:
        """Carry operations out in one transaction; writes without a key of yours get one, so that retries are safe."""
        # Here as well as there: on the way, what is no JSON would be turned into some.
        check_operations(operations)
        body = {"agent": self.agent, "user": self.user, "operations": [to_body(each) for each in operations]}
        key = idempotency_key or (uuid4().hex if any(map(is_write, operations)) else "")
        headers = {"Idempotency-Key": key} if key else {}
        answer = await self.client.send("POST", "/v1/items", json=body, headers=headers)
        return [to_result(each) for each in ANSWERS.validate_json(answer)["results"]]


def to_body(operation: ItemOperation) -> dict[str, Any]:
    """Turn an operation into what the server takes: an absent embedding travels as an empty list."""
    body: dict[str, Any] = OPERATION.dump_python(operation)
    if "embedding" in body:
        body["embedding"] = body["embedding"] or []
    return {"op": NAMES[type(operation)], **body}


def to_result(answer: Mapping[str, Any]) -> ItemResult:
    """Read what came of one operation."""
    if "dropped" in answer:
        return bool(answer["dropped"])
    if "found" in answer:
        return FOUND.validate_python(answer["found"])
    if "paths" in answer:
        return PATHS.validate_python(answer["paths"])
    return ITEM.validate_python(answer["item"])

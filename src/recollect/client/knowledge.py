"""The SDK's view of what is known in one scope on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID, uuid4

from recollect.client.bodies import JsonType, to_parameters
from recollect.client.fading import Sender
from recollect.models.knowledge import (
    Entities,
    Entity,
    EntityType,
    Fact,
    FactPath,
    Facts,
    GraphFormat,
    Neighbourhood,
    NewFact,
    Timeline,
)

FACT, FACTS, STATED = JsonType(Fact), JsonType(Facts), JsonType(dict[str, list[Fact]])
ENTITY, ENTITIES, NEW_FACT = JsonType(Entity), JsonType(Entities), JsonType(NewFact)
NEIGHBOURHOOD, TIMELINE, PATHS = (
    JsonType(Neighbourhood),
    JsonType(Timeline),
    JsonType(dict[str, list[FactPath]]),
)


class Streamer(Sender, Protocol):
    """Whatever can also read a long answer piece by piece."""

    def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[str]:
        """Read the answer to a request."""
        ...


@dataclass(frozen=True, slots=True)
class RemoteKnowledge:
    """What is known in one scope on a server."""

    client: Streamer
    agent: str
    user: str

    async def state(self, facts: NewFact | Sequence[NewFact], *, idempotency_key: str = "") -> list[Fact]:
        """State one or many facts; without a key of yours one is made up, so that retries are safe."""
        stated = [facts] if isinstance(facts, NewFact) else facts
        body = self._scope() | {"facts": [to_fact_body(fact) for fact in stated]}
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        answer = await self.client.send("POST", "/v1/facts", json=body, headers=headers)
        return STATED.validate_json(answer)["facts"]

    async def end(self, fact_id: UUID, at: datetime) -> Fact:
        """End a fact at a moment, by a further version of it."""
        body = self._scope() | {"at": at.isoformat()}
        return FACT.validate_json(await self.client.send("POST", f"/v1/facts/{fact_id}/end", json=body))

    async def facts(
        self,
        entity: UUID | None = None,
        predicate: str = "",
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> Facts:
        """Fetch one page of facts, as believed at `as_of` and true `at` a moment: now, where nothing is said."""
        bounds = to_parameters(entity=entity, predicate=predicate, as_of=as_of, at=at, cursor=cursor, limit=limit)
        return FACTS.validate_json(await self.client.send("GET", "/v1/facts", params=self._scope() | bounds))

    async def fact_versions(self, fact_id: UUID) -> list[Fact]:
        """Fetch every version of a fact, oldest first."""
        answer = await self.client.send("GET", f"/v1/facts/{fact_id}/versions", params=self._scope())
        return STATED.validate_json(answer)["versions"]

    async def entities(
        self,
        search: str = "",
        *,
        type: EntityType | None = None,  # noqa: A002 - its name
        cursor: UUID | None = None,
        limit: int = 50,
    ) -> Entities:
        """Fetch one page of entities; those whose names contain something, and of one type, if asked."""
        bounds = to_parameters(search=search, type=type, cursor=cursor, limit=limit)
        return ENTITIES.validate_json(await self.client.send("GET", "/v1/entities", params=self._scope() | bounds))

    async def entity(self, entity_id: UUID) -> Entity:
        """Fetch one entity with all that it is called, and the newest that was said of it."""
        answer = await self.client.send("GET", f"/v1/entities/{entity_id}", params=self._scope())
        return ENTITY.validate_json(answer)

    async def neighbours(
        self,
        entity_id: UUID,
        hops: int = 1,
        beam: int = 100,
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> Neighbourhood:
        """Give back which entities facts lead to from one, in up to 3 hops along at most `beam` facts each."""
        bounds = self._scope() | to_parameters(hops=hops, beam=beam, as_of=as_of, at=at)
        answer = await self.client.send("GET", f"/v1/entities/{entity_id}/neighbours", params=bounds)
        return NEIGHBOURHOOD.validate_json(answer)

    async def paths(
        self,
        start: UUID,
        end: UUID,
        hops: int = 4,
        limit: int = 10,
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> list[FactPath]:
        """Give back how two entities are joined by up to 6 facts, the shortest path first."""
        bounds = to_parameters(start=start, end=end, hops=hops, limit=limit, as_of=as_of, at=at)
        return PATHS.validate_json(await self.client.send("GET", "/v1/paths", params=self._scope() | bounds))["paths"]

    async def timeline(
        self, entity_id: UUID, *, as_of: datetime | None = None, cursor: str = "", limit: int = 50
    ) -> Timeline:
        """Fetch one page of all versions of the facts about an entity, in the order in which they came true."""
        bounds = self._scope() | to_parameters(as_of=as_of, cursor=cursor, limit=limit)
        return TIMELINE.validate_json(
            await self.client.send("GET", f"/v1/entities/{entity_id}/timeline", params=bounds)
        )

    def export(
        self,
        format: GraphFormat = GraphFormat.GRAPHML,  # noqa: A002 - its name
        *,
        as_of: datetime | None = None,
        at: datetime | None = None,
    ) -> AsyncIterator[str]:
        """Give the scope's facts and the entities they join as text, piece by piece, as long as it takes."""
        return self.client.stream("/v1/graph", self._scope() | to_parameters(format=format, as_of=as_of, at=at))

    def _scope(self) -> dict[str, str]:
        return {"agent": self.agent, "user": self.user}


def to_fact_body(fact: NewFact) -> dict[str, Any]:
    """Turn a fact into what the server takes: an end that is an id travels under a name of its own."""
    body: dict[str, Any] = NEW_FACT.dump_python(fact)
    for end in ("subject", "object"):
        if isinstance(getattr(fact, end), UUID):
            body[f"{end}_id"] = body.pop(end)
    return body

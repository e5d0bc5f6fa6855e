"""The SDK's view of the topics of one scope on a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recollect.client.bodies import JsonType, to_parameters
from recollect.client.fading import Sender
from recollect.models.topics import Filing, RelatedTopic, Topic, TopicLink, TopicTree

TREE, TOPIC, FILINGS = JsonType(TopicTree), JsonType(Topic), JsonType(list[Filing])
LINKS, RELATED = JsonType(dict[str, list[TopicLink]]), JsonType(dict[str, list[RelatedTopic]])
UNLINKED = JsonType(dict[str, list[UUID]])


@dataclass(frozen=True, slots=True)
class RemoteTopics:
    """The topics of one scope on a server; topics are named by their paths, `a->b->c`."""

    client: Sender
    agent: str
    user: str

    async def tree(self, path: str = "", limit: int = 1_000) -> TopicTree:
        """List a topic with all below it, or the whole tree, each topic with its number of memories."""
        asked = self._scope() | to_parameters(path=path, limit=limit)
        return TREE.validate_json(await self.client.send("GET", "/v1/topics", params=asked))

    async def links(self, path: str = "", *, memory_id: UUID | None = None, limit: int = 50) -> list[TopicLink]:
        """List what is filed under a topic, or what a memory is filed under, the newest first."""
        asked = self._scope() | to_parameters(path=path, memory_id=memory_id, limit=limit)
        return LINKS.validate_json(await self.client.send("GET", "/v1/topics/links", params=asked))["links"]

    async def related(self, path: str, limit: int = 50) -> list[RelatedTopic]:
        """List the topics that what is filed under one leads to, the strongest first."""
        asked = self._scope() | to_parameters(path=path, limit=limit)
        return RELATED.validate_json(await self.client.send("GET", "/v1/topics/related", params=asked))["related"]

    async def link(self, path: str, memories: UUID | Filing | Sequence[UUID | Filing]) -> Topic:
        """File memories under a topic, which comes to be if it is new; what is filed there already is filed anew."""
        given = [memories] if isinstance(memories, UUID | Filing) else memories
        filings = [each if isinstance(each, Filing) else Filing(each) for each in given]
        bodies = [body | body.pop("reach") for body in FILINGS.dump_python(filings)]
        return await self._change("links", path=path, memories=bodies)

    async def unlink(self, path: str, ids: Sequence[UUID]) -> list[UUID]:
        """Take memories from a topic and tell which; a topic that nothing needs any more goes."""
        body = self._scope() | {"path": path, "ids": [str(memory_id) for memory_id in ids]}
        return UNLINKED.validate_json(await self.client.send("POST", "/v1/topics/unlink", json=body))["unlinked"]

    async def rename(self, path: str, name: str) -> Topic:
        """Give a topic another name, and so another path to it and to all below it."""
        return await self._change("rename", path=path, name=name)

    async def move(self, path: str, under: str = "") -> Topic:
        """Bring a topic with all below it under another one, which comes to be if it is new; to the roots if none."""
        return await self._change("move", path=path, under=under)

    async def merge(self, path: str, into: str) -> Topic:
        """Let one topic absorb another with all below it: what is filed under both is filed as its newer link says."""
        return await self._change("merge", path=path, into=into)

    async def _change(self, what: str, **body: Any) -> Topic:  # noqa: ANN401 - what JSON can hold
        return TOPIC.validate_json(await self.client.send("POST", f"/v1/topics/{what}", json=self._scope() | body))

    def _scope(self) -> dict[str, str]:
        return {"agent": self.agent, "user": self.user}

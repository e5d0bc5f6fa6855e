"""The resources: topics, entities and memories of one scope, each under its own URI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

from mcp_types import Resource, ResourceTemplate
from pydantic import TypeAdapter

from recollect.doors.mcp.arguments import AnyMind
from recollect.doors.mcp.results import format_hit
from recollect.errors import InvalidInputError, NotFoundError
from recollect.models.knowledge import Entity, EntityPage, Fact
from recollect.models.memories import Memory
from recollect.models.recall import Cue

JSON, TEXT = "application/json", "text/plain"
SCHEME = "memory"
PAGE = 200
UNKNOWN_RESOURCE = "Unknown resource. List resources and templates to see what is available."
ANYTHING, ENTITIES, MEMORY = TypeAdapter(Any), TypeAdapter(EntityPage), TypeAdapter(Memory)
KNOWN = TypeAdapter(dict[str, Entity | list[Fact]])

RESOURCES = [
    Resource(uri="memory://topics", name="topics", description="The topic tree, one line per topic.", mime_type=TEXT),
    Resource(uri="memory://entities", name="entities", description="Known entities.", mime_type=JSON),
]
TEMPLATES = [
    ResourceTemplate(
        uri_template="memory://topics/{path}{?agent,user}",
        name="topic",
        description="A topic by path, e.g. travel->Japan: its subtopics and memories.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template="memory://entities/{name}{?agent,user}",
        name="entity",
        description="An entity by name or ID, with its facts.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template="memory://memories/{id}{?agent,user}",
        name="memory",
        description="A memory by ID.",
        mime_type=JSON,
    ),
]


@dataclass(frozen=True, slots=True)
class Address:
    """The parsed URI of a resource."""

    room: str
    name: str
    agent: str
    user: str


def read_address(uri: str) -> Address:
    """Parse a URI."""
    try:
        parts = urlsplit(uri)
        asked = parse_qs(parts.query, max_num_fields=4)
    except ValueError:
        raise NotFoundError(UNKNOWN_RESOURCE) from None
    if parts.scheme != SCHEME:
        raise NotFoundError(UNKNOWN_RESOURCE)
    agent, user = (asked.get(name, [""])[-1] for name in ("agent", "user"))
    return Address(parts.netloc, unquote(parts.path.removeprefix("/")), agent, user)


async def read_resource(mind: AnyMind, address: Address) -> tuple[str, str]:
    """Read the resource of a URI; return its type and its text."""
    room, name = address.room, address.name
    if room == "topics":
        return await (read_topic(mind, name) if name else read_topics(mind))
    if room == "entities":
        return JSON, await (read_entity(mind, name) if name else read_entities(mind))
    if room == "memories" and name:
        return JSON, MEMORY.dump_json(await mind.get(read_id(name))).decode()
    raise NotFoundError(UNKNOWN_RESOURCE)


async def read_topics(mind: AnyMind) -> tuple[str, str]:
    """Read the whole tree as text."""
    tree = await mind.topics.tree()
    return TEXT, tree.text or "There are no topics yet.\n"


async def read_topic(mind: AnyMind, path: str) -> tuple[str, str]:
    """Read a topic with those below it, and the memories filed under it, the strongest first."""
    tree = await mind.topics.tree(path)
    cue = Cue(path, topics=(path,), channels=("topic",), touch=False, keep=False, limit=50)
    found = await mind.recall(cue)
    answer = {"topics": tree.topics, "memories": [format_hit(hit) for hit in found.hits]}
    return JSON, ANYTHING.dump_json(answer).decode()


async def read_entities(mind: AnyMind) -> str:
    """Read the first entities, and where the next ones begin."""
    return ENTITIES.dump_json(await mind.knowledge.entities(limit=PAGE)).decode()


async def read_entity(mind: AnyMind, name: str) -> str:
    """Read an entity by its ID, its name or an alias, and the facts about it."""
    entity = await find_entity(mind, name)
    facts = await mind.knowledge.facts(entity.id, limit=PAGE)
    return KNOWN.dump_json({"entity": entity, "facts": list(facts.facts)}).decode()


async def find_entity(mind: AnyMind, name: str) -> Entity:
    """Find the entity with this ID or exactly this name, or else one whose name contains it."""
    try:
        asked = mind.knowledge.entities(ids=[UUID(name)])
    except ValueError:
        asked = mind.knowledge.entities(name, limit=PAGE)
    found = (await asked).entities
    if not found:
        raise NotFoundError("Unknown entity. Read memory://entities for a list.")
    same = (each for each in found if name.casefold() in map(str.casefold, (each.name, *each.aliases)))
    return next(same, found[0])


def read_id(text: str) -> UUID:
    """Read a memory's id."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInputError("invalid memory ID; use an ID returned by recall") from None

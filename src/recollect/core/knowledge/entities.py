"""Decide which entity a name means: by name and type if possible, else by a question to the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import Field, RootModel

from recollect.core.text.answers import AnswerParser, AnswerSchema, counted
from recollect.core.text.lenient_json import read_fragments
from recollect.core.text.tags import escape_angle_brackets
from recollect.core.text.terms import script_of
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Entity, EntityType, Mention
from recollect.models.memories import JSON
from recollect.models.recall import Script

MIN_SIMILARITY, MIN_SIMILARITY_CJK = 0.6, 0.3
"""A Chinese name has few trigrams: an extended name shares a third of them."""
NAMED = frozenset({EntityType.PERSON, EntityType.PLACE, EntityType.ORGANIZATION, EntityType.PRODUCT})
"""Types with proper names; for other types a similar word is a different word."""
MAX_NAMES_PER_PROMPT = 20
MAX_SHOWN_LENGTH = 200


class MatchMethod(StrEnum):
    """How an entity was found, the most reliable way first."""

    EXACT = "exact"
    ALIAS = "alias"
    SIMILAR = "similar"


@dataclass(frozen=True, slots=True)
class EntityCandidate:
    """An entity that a name may mean: the number of the name, and how it was found."""

    number: int
    entity: Entity
    way: MatchMethod
    alike: float = 1.0


@dataclass(frozen=True, slots=True)
class AmbiguousMention:
    """A mention that may mean one of several known entities, or none of them."""

    mention: Mention
    candidates: tuple[Entity, ...]


class NameMatch(AnswerSchema):
    """A new name and the known one with the same meaning; 0 if there is none."""

    name: int = Field(ge=1)
    known: int = Field(ge=0)


class NameMatches(AnswerSchema):
    """The new names that mean known entities."""

    matches: list[NameMatch] = counted(0, MAX_NAMES_PER_PROMPT)


class AnyNameMatches(RootModel[JSON]):
    """Requests matches in a schema, but accepts any JSON."""

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - passed on
        """Return the schema of `NameMatches`."""
        return NameMatches.model_json_schema(*args, **kwargs)


def entity_text(entity: Entity) -> str:
    """Return the text of an entity for its vector: its names and its newest description."""
    names = ", ".join((entity.name, *entity.aliases))
    return f"{names}: {entity.description}" if entity.description else names


def least_alike(normalised: str) -> float:
    """Return the minimum similarity of names for which the model is asked."""
    return MIN_SIMILARITY_CJK if script_of(normalised) is Script.CJK else MIN_SIMILARITY


def choose_end(kind: EntityType | None, candidates: Sequence[EntityCandidate]) -> Entity | None:
    """Find the entity of a name in a request; None for a new one, an error if several match."""
    exact = [found.entity for found in candidates if found.way is MatchMethod.EXACT]
    of_type = [entity for entity in exact if kind is not None and entity.type is kind]
    if of_type:
        return of_type[0]
    called = [found.entity for found in candidates if found.way is MatchMethod.ALIAS]
    for group in (exact, called):
        fitting = [entity for entity in group if kind is None or are_compatible(entity.type, kind)]
        if len(fitting) > 1:
            raise InvalidInputError(
                "several entities have this name: give the type or the entity ID (GET /v1/entities)"
            )
        if fitting:
            return fitting[0]
    return None


def match_entity(
    mention: Mention, own: Sequence[EntityCandidate], others: Sequence[EntityCandidate]
) -> Entity | AmbiguousMention | None:
    """Find the entity of a mention: `own` match its name, `others` its aliases."""
    exact = [found.entity for found in own if found.way is MatchMethod.EXACT]
    for entity in exact:
        if entity.type is mention.type:
            return entity
    soft = [entity for entity in exact if not is_doubtful(entity.type, mention.type)]
    if len(soft) == 1:
        return soft[0]
    also = [found.entity for found in own if found.way is MatchMethod.ALIAS]
    also += [found.entity for found in others if found.way is not MatchMethod.SIMILAR]
    called = list({each.id: each for each in also if are_compatible(each.type, mention.type)}.values())
    if not exact and len(called) == 1:
        return called[0]
    near = [found.entity for found in own if found.way is MatchMethod.SIMILAR and is_comparable(found.entity, mention)]
    possible = {entity.id: entity for entity in (*exact, *called, *near)}
    return AmbiguousMention(mention, tuple(possible.values())) if possible else None


def are_compatible(one: EntityType, other: EntityType) -> bool:
    """Return whether two types can describe one entity: equal, or one unknown."""
    return one is other or EntityType.OTHER in {one, other}


def is_doubtful(one: EntityType, other: EntityType) -> bool:
    """Return whether equal names with these types may mean two things.

    A company and a fruit may, a hobby and a skill do not.
    """
    return not are_compatible(one, other) and bool(NAMED & {one, other})


def is_comparable(entity: Entity, mention: Mention) -> bool:
    """Return whether similar names may mean the same entity."""
    return are_compatible(entity.type, mention.type) and bool(NAMED & {entity.type, mention.type})


def write_doubts(doubts: Sequence[AmbiguousMention]) -> tuple[str, str, list[Entity]]:
    """Format the new and the known names as numbered lines; also return the known ones in order."""
    known = list({entity.id: entity for doubt in doubts for entity in doubt.candidates}.values())
    new_lines = [_describe(number, each.mention) for number, each in enumerate(doubts, 1)]
    return "\n".join(new_lines), "\n".join(_describe(number, each) for number, each in enumerate(known, 1)), known


def read_matches(said: object, doubts: Sequence[AmbiguousMention], known: Sequence[Entity]) -> Mapping[int, Entity]:
    """Return the entity of each doubtful mention, by position; only its candidates count."""
    parser = AnswerParser()
    value = read_fragments(said) if isinstance(said, str) else said
    listed = value.get("matches") if isinstance(value, Mapping) else value
    found: dict[int, Entity] = {}
    for item in parser.items(listed, "matches"):
        if not isinstance(item, Mapping):
            continue
        number = parser.number(item.get("name"), 1, len(doubts), "names")
        chosen = parser.number(item.get("known"), 1, len(known), "known")
        if number is not None and chosen is not None and _is_among(known[chosen - 1], doubts[number - 1].candidates):
            found.setdefault(number - 1, known[chosen - 1])
    return found


def _is_among(entity: Entity, candidates: Collection[Entity]) -> bool:
    return any(entity.id == candidate.id for candidate in candidates)


def _describe(number: int, named: Mention | Entity) -> str:
    also = f"; also called {', '.join(named.aliases)}" if named.aliases else ""
    description = f": {named.description}" if named.description else ""
    line = f"{named.name} ({named.type}{also}){description}"
    return f"{number}. " + " ".join(escape_angle_brackets(line).split())[:MAX_SHOWN_LENGTH]

"""Decide which entity a name means: by name and type where that is enough, else with a question to the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import Field, RootModel

from recollect.core.text.answers import AnswerParser, AnswerSchema, counted
from recollect.core.text.broken_json import read_fragments
from recollect.core.text.tags import defuse_signs
from recollect.core.text.terms import script_of
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Entity, EntityType, Mention
from recollect.models.memories import JSON
from recollect.models.recall import Script

LEAST_ALIKE, LEAST_ALIKE_CJK = 0.6, 0.3
"""A Chinese name has few trigrams: if one continues another, they share a third of them."""
NAMED = frozenset({EntityType.PERSON, EntityType.PLACE, EntityType.ORGANIZATION, EntityType.PRODUCT})
"""Types that have proper names; of other things a similar word is another word."""
MOST_ASKED = 20
LONGEST_SHOWN = 200


class Way(StrEnum):
    """How an entity was found, the most certain way first."""

    EXACT = "exact"
    ALIAS = "alias"
    SIMILAR = "similar"


@dataclass(frozen=True, slots=True)
class EntityCandidate:
    """An entity that a name may mean: for which of the names it was found, and how."""

    number: int
    entity: Entity
    way: Way
    alike: float = 1.0


@dataclass(frozen=True, slots=True)
class Doubt:
    """A mention that may be one of several entities that are known, or none of them."""

    mention: Mention
    candidates: tuple[Entity, ...]


class NameMatch(AnswerSchema):
    """A new name and the known one that means the same; 0 where none does."""

    name: int = Field(ge=1)
    known: int = Field(ge=0)


class NameMatches(AnswerSchema):
    """Which of the new names mean what is known already."""

    matches: list[NameMatch] = counted(0, MOST_ASKED)


class AnyNameMatches(RootModel[JSON]):
    """Ask for matches, and accept any JSON."""

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - handed on
        """Return the schema of matches."""
        return NameMatches.model_json_schema(*args, **kwargs)


def word_entity(entity: Entity) -> str:
    """Word an entity as its vector is made of it: its names, and its newest description."""
    names = ", ".join((entity.name, *entity.aliases))
    return f"{names}: {entity.description}" if entity.description else names


def least_alike(normalised: str) -> float:
    """Say how similar names must be to ask the model whether they mean the same."""
    return LEAST_ALIKE_CJK if script_of(normalised) is Script.CJK else LEAST_ALIKE


def choose_end(kind: EntityType | None, candidates: Sequence[EntityCandidate]) -> Entity | None:
    """Find the entity that a caller means by a name; None for a new one, an error where it could be several."""
    exact = [found.entity for found in candidates if found.way is Way.EXACT]
    of_type = [entity for entity in exact if kind is not None and entity.type is kind]
    if of_type:
        return of_type[0]
    called = [found.entity for found in candidates if found.way is Way.ALIAS]
    for group in (exact, called):
        fitting = [entity for entity in group if kind is None or are_compatible(entity.type, kind)]
        if len(fitting) > 1:
            raise InvalidInputError(
                "a name is that of several entities: state its type, or name the entity by its id (GET /v1/entities)"
            )
        if fitting:
            return fitting[0]
    return None


def choose(
    mention: Mention, own: Sequence[EntityCandidate], others: Sequence[EntityCandidate]
) -> Entity | Doubt | None:
    """Find the entity that a mention means: `own` were found for its name, `others` for its aliases."""
    exact = [found.entity for found in own if found.way is Way.EXACT]
    for entity in exact:
        if entity.type is mention.type:
            return entity
    soft = [entity for entity in exact if not is_doubtful(entity.type, mention.type)]
    if len(soft) == 1:
        return soft[0]
    also = [found.entity for found in own if found.way is Way.ALIAS]
    also += [found.entity for found in others if found.way is not Way.SIMILAR]
    called = list({each.id: each for each in also if are_compatible(each.type, mention.type)}.values())
    if not exact and len(called) == 1:
        return called[0]
    near = [found.entity for found in own if found.way is Way.SIMILAR and is_comparable(found.entity, mention)]
    possible = {entity.id: entity for entity in (*exact, *called, *near)}
    return Doubt(mention, tuple(possible.values())) if possible else None


def are_compatible(one: EntityType, other: EntityType) -> bool:
    """Tell whether two types can be of one entity: equal, or one of them unknown."""
    return one is other or EntityType.OTHER in {one, other}


def is_doubtful(one: EntityType, other: EntityType) -> bool:
    """Tell whether the same name may mean two things: a company and a fruit, but not a hobby and a skill."""
    return not are_compatible(one, other) and bool(NAMED & {one, other})


def is_comparable(entity: Entity, mention: Mention) -> bool:
    """Tell whether similar names may mean the same."""
    return are_compatible(entity.type, mention.type) and bool(NAMED & {entity.type, mention.type})


def write_doubts(doubts: Sequence[Doubt]) -> tuple[str, str, list[Entity]]:
    """Write the new and the known names as numbered lines; return the known ones in the order of their numbers."""
    known = list({entity.id: entity for doubt in doubts for entity in doubt.candidates}.values())
    new_lines = [_describe(number, each.mention) for number, each in enumerate(doubts, 1)]
    return "\n".join(new_lines), "\n".join(_describe(number, each) for number, each in enumerate(known, 1)), known


def read_matches(said: object, doubts: Sequence[Doubt], known: Sequence[Entity]) -> Mapping[int, Entity]:
    """Read which doubt is which entity, by position; only what was a candidate for it counts."""
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
    return f"{number}. " + " ".join(defuse_signs(line).split())[:LONGEST_SHOWN]

"""The schema of extractions from closed segments, and a parser that keeps every usable part of an answer.

IDs never come from a model: ends of facts are names, and `replaces` are numbers of the list in the prompt. So no answer
can affect another scope, and commands in an answer are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from pydantic import BaseModel, Field, RootModel

from recollect.core.knowledge.facts import fill, overlap
from recollect.core.text.answers import AnswerParser, AnswerSchema, counted
from recollect.core.text.checks import MAX_NAME_LENGTH
from recollect.core.text.keywords import file_under
from recollect.core.text.lenient_json import read_fragments
from recollect.core.text.names import normalise_predicate, normalize_name
from recollect.core.text.terms import script_of
from recollect.models.knowledge import EntityType, Mention, ParsedExtraction, Statement
from recollect.models.memories import JSON
from recollect.models.recall import Script

MAX_SUMMARY_LENGTH, MAX_LABEL_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_STATEMENT_LENGTH = 2_000, 60, 500, 500
MAX_PREDICATE_LENGTH, MAX_KEYWORD_LENGTH, MAX_END_LENGTH = 100, 64, 100
MAX_PATHS, MAX_LEVELS, MAX_MENTIONS, MAX_ALIASES = 4, 6, 32, 8
MAX_STATEMENTS, MAX_REPLACED, MAX_KEYWORDS, MAX_RATED = 32, 16, 16, 32
MIN_IMPORTANCE, MAX_IMPORTANCE = 1, 10
LAST_LINE = 1_000_000
"""Maximum number of lines of a transcript."""
BRACKETED = re.compile(r"\[[^\]]*\]|\{[^}]*\}")
ARROW = re.compile(r"->|→")
TYPES: Mapping[str, EntityType] = {
    **{kind.value: kind for kind in EntityType},
    **dict.fromkeys(("people", "user", "human", "人", "人物"), EntityType.PERSON),
    **dict.fromkeys(("location", "city", "country", "地点", "地方"), EntityType.PLACE),
    **dict.fromkeys(("organisation", "company", "institution", "组织", "公司"), EntityType.ORGANIZATION),
    **dict.fromkeys(("object", "item", "food", "animal", "物品"), EntityType.THING),
    **dict.fromkeys(("hobby", "sport", "活动"), EntityType.ACTIVITY),
}
"""Our types, and the words that models write for them."""


class ExtractedEntity(AnswerSchema):
    """A person, place or thing that the facts are about, by its full name."""

    name: str
    type: EntityType
    aliases: list[str] = counted(0, MAX_ALIASES)
    description: str


class ExtractedFact(AnswerSchema):
    """A fact between two of the entities. Dates are ISO 8601, or null if unknown.

    `replaces` contains the numbers of the known facts that are no longer true because of it.
    """

    subject: str
    predicate: str
    object: str
    text: str
    valid_at: str | None
    invalid_at: str | None
    replaces: list[int] = counted(0, MAX_REPLACED)


class RatedMessage(AnswerSchema):
    """A message that matters, by the number of its line."""

    number: int
    importance: int = Field(ge=MIN_IMPORTANCE, le=MAX_IMPORTANCE)


class Extraction(AnswerSchema):
    """The topic of a conversation segment, and the knowledge from it."""

    summary: str
    label: str
    paths: list[str] = counted(0, MAX_PATHS)
    entities: list[ExtractedEntity] = counted(0, MAX_MENTIONS)
    facts: list[ExtractedFact] = counted(0, MAX_STATEMENTS)
    importance: int = Field(ge=MIN_IMPORTANCE, le=MAX_IMPORTANCE)
    keywords: list[str] = counted(0, MAX_KEYWORDS)
    important: list[RatedMessage] = counted(0, MAX_RATED)


class AnyExtraction(RootModel[JSON]):
    """Requests an extraction in a schema, but accepts any JSON: a wrong part does not affect the others."""

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - passed on
        """Return the schema of `Extraction`."""
        return Extraction.model_json_schema(*args, **kwargs)


def parse_extraction(raw: object, shown: int = 0, zone: tzinfo = UTC) -> ParsedExtraction:
    """Keep every usable part of an answer, parsed or as text; count the others. Never raises.

    `shown` is the number of facts in the prompt, `zone` the time zone of dates without an offset.
    """
    parser = AnswerParser(zone)
    said = _open(raw)
    if said is None:
        return ParsedExtraction(dropped={"answers": 1})
    mentions = _Mentions(parser)
    for item in parser.items(said.get("entities"), "entities"):
        mentions.parse(item)
    statements = _Statements(parser, mentions, shown)
    for item in parser.items(said.get("facts"), "facts"):
        statements.parse(item)
    importance = said.get("importance")
    return ParsedExtraction(
        summary=parser.text(said.get("summary"), MAX_SUMMARY_LENGTH, "summaries"),
        label=parser.text(said.get("label"), MAX_LABEL_LENGTH, "labels"),
        paths=_read_paths(said.get("paths"), parser),
        mentions=tuple(mentions.found),
        statements=tuple(statements.found),
        importance=parser.number(importance, MIN_IMPORTANCE, MAX_IMPORTANCE, "importances"),
        keywords=_read_keywords(said.get("keywords"), parser),
        rated=_read_rated(said["important"], parser) if "important" in said else None,
        dropped=dict(parser.dropped),
    )


def _open(raw: object) -> Mapping[Any, Any] | None:
    """Return the object of an answer, which may be nested or text."""
    if isinstance(raw, RootModel):
        raw = raw.root
    elif isinstance(raw, BaseModel):
        raw = raw.model_dump()
    if isinstance(raw, bytes):
        raw = raw.decode(errors="replace")
    if isinstance(raw, str):
        raw = read_fragments(raw)
    if isinstance(raw, list | tuple):
        raw = next((item for item in raw if isinstance(item, Mapping)), None)
    if not isinstance(raw, Mapping):
        return None
    if not Extraction.model_fields.keys() & raw.keys():
        return next((value for value in raw.values() if isinstance(value, Mapping)), raw)
    return raw


def _read_paths(value: object, parser: AnswerParser) -> tuple[tuple[str, ...], ...]:
    """Parse topic paths, as texts with arrows or as lists; remove decorations of a shown tree."""
    paths: dict[tuple[str, ...], tuple[str, ...]] = {}
    for item in parser.items(value, "paths"):
        parts = ARROW.split(item[: 4 * MAX_NAME_LENGTH]) if isinstance(item, str) else item
        levels = [BRACKETED.sub("", part) for part in parser.items(parts, "paths") if isinstance(part, str)]
        named = [parser.name(level, MAX_LABEL_LENGTH, "paths") for level in levels if level.strip()]
        path = tuple(filter(None, named))[:MAX_LEVELS]
        if path:
            paths.setdefault(tuple(map(normalize_name, path)), path)
    parser.drop("paths", max(len(paths) - MAX_PATHS, 0))
    return tuple(paths.values())[:MAX_PATHS]


def _read_keywords(value: object, parser: AnswerParser) -> tuple[str, ...]:
    named = [parser.name(item, MAX_KEYWORD_LENGTH, "keywords") for item in parser.items(value, "keywords")]
    keywords = file_under(tuple(named))
    parser.drop("keywords", max(len(keywords) - MAX_KEYWORDS, 0))
    return keywords[:MAX_KEYWORDS]


def _read_rated(value: object, parser: AnswerParser) -> dict[int, int]:
    """Parse the importance of messages by line number; the first rating of a line counts."""
    rated: dict[int, int] = {}
    for item in parser.items(value, "important"):
        given = item if isinstance(item, Mapping) else {}
        number = parser.number(given.get("number"), 1, LAST_LINE, "important")
        importance = parser.number(given.get("importance"), MIN_IMPORTANCE, MAX_IMPORTANCE, "important")
        if number is not None and importance is not None and len(rated) < MAX_RATED:
            rated.setdefault(number, importance)
    return rated


class _Mentions:
    """The entities of one answer, unique by name and type; a known type replaces an unknown one."""

    def __init__(self, parser: AnswerParser) -> None:
        self._parser = parser
        self._found: dict[tuple[str, EntityType], Mention] = {}
        self._called: dict[str, tuple[str, EntityType]] = {}
        self._also_called: dict[str, tuple[str, EntityType]] = {}

    @property
    def found(self) -> list[Mention]:
        return list(self._found.values())

    def parse(self, item: object) -> None:
        """Parse one entity; a bare name has an unknown type."""
        said = item if isinstance(item, Mapping) else {"name": item}
        name = self._parser.name(said.get("name"), MAX_NAME_LENGTH, "entities")
        if name:
            kind = self._read_type(said.get("type"))
            description = self._parser.text(said.get("description"), MAX_DESCRIPTION_LENGTH, "descriptions")
            self._add(Mention(name, kind, self._read_aliases(said.get("aliases"), name), description))

    def find_mention(self, name: str) -> Mention | None:
        """Find an entity by its name, else by an alias; call it after all entities are parsed."""
        if not self._called:
            self._index()
        key = normalize_name(name)
        found = self._called.get(key) or self._also_called.get(key)
        return None if found is None else self._found[found]

    def has_room_for(self, names: list[str]) -> bool:
        """Return whether unlisted ends of a fact can become entities: short names, within the maximum."""
        return len(self._found) + len(names) <= MAX_MENTIONS and all(len(name) <= MAX_END_LENGTH for name in names)

    def implicit_entity(self, name: str) -> Mention:
        """Add the end of a fact as an entity that was not listed."""
        key = (normalize_name(name), EntityType.OTHER)
        self._called[key[0]] = key
        return self._found.setdefault(key, Mention(name))

    def _add(self, mention: Mention) -> None:
        key = normalize_name(mention.name)
        same = (key, mention.type)
        if mention.type is EntityType.OTHER:
            same = next((known for known in self._found if known[0] == key), same)
        elif (key, EntityType.OTHER) in self._found and same not in self._found:
            # The type is replaced in place: earlier data without a type was about this entity.
            self._found = {
                same if known == (key, EntityType.OTHER) else known: each for known, each in self._found.items()
            }
            self._found[same] = replace(self._found[same], type=mention.type)
        known = self._found.get(same)
        if known is not None:
            self._found[same] = _merge(known, mention)
        elif len(self._found) < MAX_MENTIONS:
            self._found[same] = mention
        else:
            self._parser.drop("entities")

    def _index(self) -> None:
        for key, mention in self._found.items():
            self._called.setdefault(key[0], key)
            for alias in mention.aliases:
                self._also_called.setdefault(normalize_name(alias), key)

    def _read_type(self, value: object) -> EntityType:
        word = value.strip().casefold() if isinstance(value, str) and len(value) <= MAX_LABEL_LENGTH else ""
        if word not in TYPES:
            self._parser.drop("types")
        return TYPES.get(word, EntityType.OTHER)

    def _read_aliases(self, value: object, name: str) -> tuple[str, ...]:
        named = [self._parser.name(item, MAX_NAME_LENGTH, "aliases") for item in self._parser.items(value, "aliases")]
        return _join_aliases(name, named)


class _Statements:
    """The facts of one answer; repeated facts are merged, with the dates of both."""

    def __init__(self, parser: AnswerParser, mentions: _Mentions, shown: int) -> None:
        self._parser = parser
        self._mentions = mentions
        self._shown = shown
        self._found: dict[tuple[str, str, str], list[Statement]] = {}
        self._count = 0

    @property
    def found(self) -> list[Statement]:
        return [stated for statements in self._found.values() for stated in statements]

    def parse(self, item: object) -> None:
        """Parse one fact; it needs two different ends and a predicate."""
        if not isinstance(item, Mapping) or self._count >= MAX_STATEMENTS:
            self._parser.drop("facts")
            return
        subject, object_ = (self._parser.name(item.get(end), MAX_NAME_LENGTH, "facts") for end in ("subject", "object"))
        predicate = self._parser.name(item.get("predicate"), MAX_PREDICATE_LENGTH, "facts")
        ends = self._join(subject, object_) if subject and predicate and object_ else None
        if ends is not None:
            span = self._parser.span(item.get("valid_at"), item.get("invalid_at"))
            text = self._parser.text(item.get("text"), MAX_STATEMENT_LENGTH, "texts") or _join_parts(
                ends[0], predicate, ends[1]
            )
            replaces = self._read_replaced(item.get("replaces"))
            self._add(Statement(ends[0], predicate, ends[1], text, span, replaces))

    def _join(self, subject: str, object_: str) -> tuple[str, str] | None:
        """Find the two entities of a fact."""
        known = [self._mentions.find_mention(subject), self._mentions.find_mention(object_)]
        unknown = [name for name, mention in zip((subject, object_), known, strict=True) if mention is None]
        if normalize_name(subject) == normalize_name(object_) or (known[0] is not None and known[0] == known[1]):
            self._parser.drop("facts about nothing else")
        elif not self._mentions.has_room_for(unknown):
            self._parser.drop("facts without ends")
        else:
            one, other = (
                known[0] or self._mentions.implicit_entity(subject),
                known[1] or self._mentions.implicit_entity(object_),
            )
            return one.name, other.name
        return None

    def _add(self, stated: Statement) -> None:
        alike = self._found.setdefault(_identify(stated), [])
        for index, known in enumerate(alike):
            if overlap(known.span, stated.span):
                self._parser.drop("repetitions")
                alike[index] = _combine(known, stated)
                return
        alike.append(stated)
        self._count += 1

    def _read_replaced(self, value: object) -> tuple[int, ...]:
        listed = (value,) if isinstance(value, int | float) else value
        read = (
            self._parser.number(item, 1, self._shown, "replaced") for item in self._parser.items(listed, "replaced")
        )
        return tuple(dict.fromkeys(number for number in read if number is not None))[:MAX_REPLACED]


def _merge(known: Mention, mention: Mention) -> Mention:
    """Merge two mentions of one entity: the first description is kept."""
    aliases = _join_aliases(known.name, [*known.aliases, *mention.aliases])
    return replace(known, aliases=aliases, description=known.description or mention.description)


def _join_aliases(name: str, aliases: list[str]) -> tuple[str, ...]:
    """Drop aliases that repeat the name or each other."""
    distinct = {normalize_name(name): name}
    for alias in filter(None, aliases):
        distinct.setdefault(normalize_name(alias), alias)
    return tuple(distinct.values())[1 : MAX_ALIASES + 1]


def _combine(known: Statement, again: Statement) -> Statement:
    replaces = tuple(dict.fromkeys([*known.replaces, *again.replaces]))[:MAX_REPLACED]
    return replace(known, span=fill(known.span, again.span), replaces=replaces)


def _identify(stated: Statement) -> tuple[str, str, str]:
    return normalize_name(stated.subject), normalise_predicate(stated.predicate), normalize_name(stated.object)


def _join_parts(subject: str, predicate: str, object_: str) -> str:
    joint = "" if script_of(predicate) is Script.CJK else " "
    return joint.join((subject, predicate, object_))

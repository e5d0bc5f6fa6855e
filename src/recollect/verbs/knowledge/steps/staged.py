"""The statements of a run over history so far, stored until the whole run replaces the old facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from recollect.core.knowledge.entities import EntityCandidate, MatchMethod
from recollect.core.knowledge.rerun import RerunFact, RerunFacts
from recollect.core.text.names import normalize_name
from recollect.models.knowledge import Entity, EntityType, Fact, Mention, ValidTime
from recollect.verbs.knowledge.write_facts import FactWrite, FactWriteRow


class StagedStatements:
    """The statements and entities of a run's segments, in the order in which they were read."""

    def __init__(self, run_id: UUID, segment_ids: Sequence[UUID], replaced: Mapping[UUID, ValidTime | None]) -> None:
        self.run_id = run_id
        self.segment_ids = segment_ids
        """The segments to read again: names from their earlier extraction are not used."""
        self.stated = RerunFacts()
        self.fact_write: FactWrite | None = None
        """Set when the run replaces the old facts."""
        self.waiting: list[FactWriteRow] = []
        """Statements that are not written yet: writing them together takes much less time."""
        self.lineages: dict[UUID, UUID] = {}
        """The written facts of the run's statements, by their IDs."""
        self.made: dict[UUID, UUID] = {}
        """The written entities of the run's entities, by their IDs."""
        self._replaced = replaced
        self._introduced: dict[tuple[str, EntityType], UUID] = {}
        self._met: dict[UUID, Entity] = {}
        self._called: dict[str, dict[UUID, MatchMethod]] = {}

    def choose_shown_facts(self, called: Sequence[str], known: Sequence[Fact]) -> list[Fact]:
        """Choose facts for a prompt: those of the run, and known facts that will stay."""
        return [*self.stated.about(called), *(kept for fact in known if (kept := self._keep(fact)) is not None)]

    def add_segment(
        self, told: Sequence[RerunFact], mentions: Sequence[Mention], resolved: Mapping[str, Entity | None]
    ) -> None:
        """Add the statements and mentions of a segment."""
        self.stated.add_statements(told)
        for mention in mentions:
            entity = resolved.get(normalize_name(mention.name)) or self._introduce(mention)
            self._met.setdefault(entity.id, entity)
            self._call(entity.name, entity, MatchMethod.EXACT)
            for each in (mention.name, *mention.aliases):
                self._call(each, entity, MatchMethod.ALIAS)

    def record_write_position(self, written: Sequence[Fact]) -> None:
        """Store the facts that the waiting statements became."""
        self.lineages |= {each.id: fact.id for each, fact in zip(self.waiting, written, strict=True)}
        self.waiting.clear()

    def make(self, made: Mapping[tuple[str, EntityType], UUID]) -> None:
        """Store the entities that a segment's new entities became."""
        for key, entity_id in made.items():
            if key in self._introduced:
                self.made[self._introduced[key]] = entity_id

    def match_entities(self, names: Sequence[str]) -> list[EntityCandidate]:
        """Find the entities of the run for all names at once."""
        found = []
        for number, name in enumerate(names):
            ways = self._called.get(normalize_name(name), {})
            found += [EntityCandidate(number, self._met[entity_id], way) for entity_id, way in ways.items()]
        return found

    def find_run_entities(self, ids: Sequence[UUID]) -> dict[UUID, Entity]:
        """Find entities that the run has mentioned."""
        return {each: self._met[each] for each in ids if each in self._met}

    def _introduce(self, mention: Mention) -> Entity:
        key = normalize_name(mention.name), mention.type
        return Entity(self._introduced.setdefault(key, uuid4()), mention.name, mention.type)

    def _keep(self, fact: Fact) -> Fact | None:
        if fact.id not in self._replaced:
            return fact
        span = self._replaced[fact.id]
        return None if span is None else replace(fact, span=span)

    def _call(self, name: str, entity: Entity, way: MatchMethod) -> None:
        self._called.setdefault(normalize_name(name), {}).setdefault(entity.id, way)

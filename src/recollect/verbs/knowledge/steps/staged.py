"""What a run over history has stated so far, held until all of it takes over at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from recollect.core.knowledge.entities import EntityCandidate, Way
from recollect.core.knowledge.rerun import StatedFact, StatedSoFar
from recollect.core.text.names import normalise_name
from recollect.models.knowledge import Entity, EntityType, Fact, Mention, Span
from recollect.verbs.knowledge.write_facts import FactWrite, Taken


class Staged:
    """The statements and entities of a run's segments, in the order in which they were read."""

    def __init__(self, run_id: UUID, segment_ids: Sequence[UUID], replaced: Mapping[UUID, Span | None]) -> None:
        self.run_id = run_id
        self.segment_ids = segment_ids
        """What is read again: names that it gave so far are not used."""
        self.stated = StatedSoFar()
        self.fact_write: FactWrite | None = None
        """Set when the run takes over."""
        self.waiting: list[Taken] = []
        """What segments have stated and is not written yet: together it takes much less time."""
        self.lineages: dict[UUID, UUID] = {}
        """Which facts the run's statements have become, by their ids."""
        self.made: dict[UUID, UUID] = {}
        """Which entities those of the run have become, since they were written."""
        self._replaced = replaced
        self._introduced: dict[tuple[str, EntityType], UUID] = {}
        self._met: dict[UUID, Entity] = {}
        self._called: dict[str, dict[UUID, Way]] = {}

    def show(self, called: Sequence[str], known: Sequence[Fact]) -> list[Fact]:
        """Choose what a prompt shows: what the run stated itself, and known facts that will stay."""
        return [*self.stated.about(called), *(kept for fact in known if (kept := self._keep(fact)) is not None)]

    def add(
        self, told: Sequence[StatedFact], mentions: Sequence[Mention], resolved: Mapping[str, Entity | None]
    ) -> None:
        """Note what a segment states and which entities it mentions."""
        self.stated.add(told)
        for mention in mentions:
            entity = resolved.get(normalise_name(mention.name)) or self._introduce(mention)
            self._met.setdefault(entity.id, entity)
            self._call(entity.name, entity, Way.EXACT)
            for each in (mention.name, *mention.aliases):
                self._call(each, entity, Way.ALIAS)

    def note_written(self, written: Sequence[Fact]) -> None:
        """Note which facts the waiting statements have become."""
        self.lineages |= {each.id: fact.id for each, fact in zip(self.waiting, written, strict=True)}
        self.waiting.clear()

    def make(self, made: Mapping[tuple[str, EntityType], UUID]) -> None:
        """Note which entities those that a segment introduced have become."""
        for key, entity_id in made.items():
            if key in self._introduced:
                self.made[self._introduced[key]] = entity_id

    def meet(self, names: Sequence[str]) -> list[EntityCandidate]:
        """Find for all names at once which entities of the run have them."""
        found = []
        for number, name in enumerate(names):
            ways = self._called.get(normalise_name(name), {})
            found += [EntityCandidate(number, self._met[entity_id], way) for entity_id, way in ways.items()]
        return found

    def find_met(self, ids: Sequence[UUID]) -> dict[UUID, Entity]:
        """Find entities that the run has met."""
        return {each: self._met[each] for each in ids if each in self._met}

    def _introduce(self, mention: Mention) -> Entity:
        key = normalise_name(mention.name), mention.type
        return Entity(self._introduced.setdefault(key, uuid4()), mention.name, mention.type)

    def _keep(self, fact: Fact) -> Fact | None:
        if fact.id not in self._replaced:
            return fact
        span = self._replaced[fact.id]
        return None if span is None else replace(fact, span=span)

    def _call(self, name: str, entity: Entity, way: Way) -> None:
        self._called.setdefault(normalise_name(name), {}).setdefault(entity.id, way)

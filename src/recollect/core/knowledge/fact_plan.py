"""Plan the changes that statements make to known facts; each statement sees the changes of earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.core.knowledge.facts import Amendment, add_version, identify, overlap, recognise, restate
from recollect.models.knowledge import Fact


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """A stated fact with resolved ends; its ID is used only if the fact is new."""

    fact: Fact
    contradicted: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to write."""

    fact: Fact
    before: Fact | None
    """The version that it replaces; None if the fact is new."""
    causes: tuple[int, ...]
    """The positions of the statements that caused it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The versions to write, new facts first, and the fact of each statement."""

    changes: tuple[NewVersion, ...]
    outcomes: tuple[UUID, ...]


def plan(stated: Sequence[ParsedFact], known: Iterable[Fact], now: datetime, faded: Collection[UUID] = ()) -> Plan:
    """Match, complete, place and close facts, one statement at a time; a faded fact is revived.

    A fact gets one new version, even if it changes several times.
    """
    before = {fact.id: fact for fact in known}
    current = dict(before)
    changes: dict[UUID, NewVersion] = {}
    outcomes: list[UUID] = []
    for position, each in enumerate(stated):
        same = recognise(each.fact, current.values())
        others = [current[lineage] for lineage in each.contradicted if lineage in current]
        if same is None:
            amendment: Amendment | None = add_version(each.fact, others, now)
        else:
            amendment = restate(same, each.fact.span, [fact for fact in others if fact.id != same.id], now)
        lineage = each.fact.id if same is None else same.id
        added = list(amendment.added) if amendment else []
        if lineage in faded and lineage not in changes and all(fact.id != lineage for fact in added):
            added.append(replace(current[lineage], created_at=now))
        for fact in added:
            changes[fact.id] = _join(fact, before, changes.get(fact.id), position)
            current[fact.id] = changes[fact.id].fact
        outcomes.append(lineage)
    ordered = sorted(changes.values(), key=lambda change: change.before is not None)
    return Plan(tuple(ordered), tuple(outcomes))


def find_clashes(added: Iterable[Fact], hidden: Iterable[Fact]) -> list[Fact]:
    """List hidden facts that equal a new fact and overlap it in time."""
    fresh = [(identify(fact.subject, fact.predicate, fact.object), fact.span) for fact in added]
    return [
        fact
        for fact in hidden
        if any(
            identify(fact.subject, fact.predicate, fact.object) == key and overlap(fact.span, span)
            for key, span in fresh
        )
    ]


def _join(fact: Fact, before: Mapping[UUID, Fact], earlier: NewVersion | None, position: int) -> NewVersion:
    known = before.get(fact.id)
    version = replace(fact, version=1 if known is None else known.version + 1)
    causes = (*(earlier.causes if earlier else ()), position)
    return NewVersion(version, known, causes)

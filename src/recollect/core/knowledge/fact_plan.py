"""Plan what several statements change among the facts that are known, each one seeing what those before it changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.core.knowledge.facts import Amendment, amend, identify, overlap, recognise, restate
from recollect.models.knowledge import Fact


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact that somebody states, its ends found; its id is of use only if it turns out to be new."""

    fact: Fact
    contradicted: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to be written."""

    fact: Fact
    before: Fact | None
    """The version that it takes the place of; None if the fact is new."""
    causes: tuple[int, ...]
    """Which statements led to it, by position."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, new facts first, and which fact each statement turned out to be."""

    changes: tuple[NewVersion, ...]
    outcomes: tuple[UUID, ...]


def plan(stated: Sequence[Stated], known: Iterable[Fact], now: datetime, faded: Collection[UUID] = ()) -> Plan:
    """Recognise, complete, place and close, one statement after the other; what had faded comes back by being stated.

    However often a fact changes on the way, it gets one version.
    """
    before = {fact.id: fact for fact in known}
    current = dict(before)
    changes: dict[UUID, NewVersion] = {}
    outcomes: list[UUID] = []
    for position, each in enumerate(stated):
        same = recognise(each.fact, current.values())
        others = [current[lineage] for lineage in each.contradicted if lineage in current]
        if same is None:
            amendment: Amendment | None = amend(each.fact, others, now)
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
    """List what nobody can see and says the same as a fact that is about to be believed, for a common time."""
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

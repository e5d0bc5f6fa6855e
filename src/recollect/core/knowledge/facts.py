"""Place facts in two times: the time when they are true, and the time when they were believed.

A correction never overwrites. The believed version is superseded now, and a version with the changed end replaces it,
so past beliefs can still be queried.

Contradicting facts get the same spans in any order of arrival: each ends at its stated end or at the start of the next
one, whichever comes first. This is true if every contradiction is noticed when the later fact arrives, and if the
starts are known. The order matters in these cases: if a contradiction was noticed for one fact only, because a fact is
placed only among the facts that it was compared with; if a fact is stated again with other dates, because known dates
stay and only unknown ones are filled in; and for the beliefs in between.

Facts with the same start do not end each other. Facts without a start neither end others nor are ended. If a fact ends,
no older fact is reopened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.core.text.names import normalise_predicate, normalize_name
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Fact, FactEnd, ValidTime


@dataclass(frozen=True, slots=True)
class EndedVersion:
    """A believed version that ends when the new fact begins."""

    fact: Fact
    invalid_at: datetime


@dataclass(frozen=True, slots=True)
class Placement:
    """The span of a new fact, and the ends of the facts that it contradicts."""

    span: ValidTime
    closings: tuple[EndedVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class Amendment:
    """The changes of one transaction: versions to supersede, and new versions."""

    superseded: tuple[Fact, ...]
    added: tuple[Fact, ...]


def check_span(span: ValidTime) -> None:
    """Refuse a span that does not end after its start: it would never be true."""
    if _is_backwards(span):
        raise InvalidInputError("invalid_at must be after valid_at")


def place(new: ValidTime, contradicted: Iterable[Fact]) -> Placement:
    """Return the end of a new fact, and the contradicted facts that end when it begins."""
    check_span(new)
    start = new.valid_at
    if start is None:
        return Placement(new)
    others = {fact.id: fact for fact in contradicted if fact.superseded_at is None}.values()
    starts = [fact.span.valid_at for fact in others if fact.span.valid_at is not None]
    ends = [moment for moment in starts if moment > start]
    if new.invalid_at is not None:
        ends.append(new.invalid_at)
    closings = (EndedVersion(fact, start) for fact in others if _lasts_into(fact.span, start))
    return Placement(ValidTime(start, min(ends, default=None)), tuple(closings))


def add_version(new: Fact, contradicted: Iterable[Fact], now: datetime) -> Amendment:
    """Add the first version of a new fact, and new versions of the facts that it ends."""
    placed = place(new.span, contradicted)
    # After a clock was set back, a version must not end before it began.
    moment = max([now, *(closing.fact.created_at for closing in placed.closings)])
    first = replace(new, span=placed.span, version=1, created_at=moment, superseded_at=None)
    closed = (
        _supersede(closing.fact, replace(closing.fact.span, invalid_at=closing.invalid_at), moment)
        for closing in placed.closings
    )
    pairs = list(closed)
    return Amendment(tuple(old for old, _ in pairs), (first, *(fresh for _, fresh in pairs)))


def recognise(stated: Fact, known: Iterable[Fact]) -> Fact | None:
    """Find the believed fact that is the same: equal ends and predicate, and overlapping spans."""
    key = identify(stated.subject, stated.predicate, stated.object)
    return next(
        (
            fact
            for fact in known
            if fact.superseded_at is None
            and identify(fact.subject, fact.predicate, fact.object) == key
            and overlap(fact.span, stated.span)
        ),
        None,
    )


def complete(known: Fact, seen: ValidTime, now: datetime) -> Amendment | None:
    """Fill in unknown dates of a fact that is stated again; None if nothing changes."""
    span = fill(known.span, seen)
    if span == known.span:
        return None
    old, fresh = _supersede(known, span, max(now, known.created_at))
    return Amendment((old,), (fresh,))


def restate(known: Fact, seen: ValidTime, contradicted: Iterable[Fact], now: datetime) -> Amendment | None:
    """Add contradictions to a known fact; None if nothing changes."""
    placed = place(seen, contradicted)
    span = fill(known.span, ValidTime(placed.span.valid_at, seen.invalid_at))
    cut = placed.span.invalid_at
    if cut is not None and cut != seen.invalid_at and (span.invalid_at is None or cut < span.invalid_at):
        shorter = replace(span, invalid_at=cut)
        span = span if _is_backwards(shorter) else shorter
    pairs = [(closing.fact, replace(closing.fact.span, invalid_at=closing.invalid_at)) for closing in placed.closings]
    if span != known.span:
        pairs.append((known, span))
    if not pairs:
        return None
    moment = max([now, *(fact.created_at for fact, _ in pairs)])
    done = [_supersede(fact, changed, moment) for fact, changed in pairs]
    return Amendment(tuple(old for old, _ in done), tuple(fresh for _, fresh in done))


def fill(known: ValidTime, seen: ValidTime) -> ValidTime:
    """Return the known dates, with unknown ones filled in from a second statement if they fit."""
    span = ValidTime(known.valid_at or seen.valid_at, known.invalid_at or seen.invalid_at)
    return known if _is_backwards(span) else span


def assume_start(span: ValidTime, said_at: datetime) -> ValidTime:
    """Use the time of the statement as an unknown start; a fact that is over keeps no start."""
    if span.valid_at is not None or (span.invalid_at is not None and span.invalid_at <= said_at):
        return span
    return replace(span, valid_at=said_at)


def identify(subject: FactEnd, predicate: str, object: FactEnd) -> tuple[FactEnd, str, FactEnd]:  # noqa: A002 - its name
    """Normalize a fact's three parts, so that two statements of the same fact are equal."""
    return (_normalise_end(subject), normalise_predicate(predicate), _normalise_end(object))


def overlap(one: ValidTime, other: ValidTime) -> bool:
    """Return whether two spans overlap; an unknown bound is open, and touching spans do not overlap."""
    return _begins_before(one, other.invalid_at) and _begins_before(other, one.invalid_at)


def believed_at(versions: Iterable[Fact], as_of: datetime | None = None) -> list[Fact]:
    """Select the versions that were believed at a time, or are believed now."""
    if as_of is None:
        return [fact for fact in versions if fact.superseded_at is None]
    return [
        fact
        for fact in versions
        if fact.created_at <= as_of and (fact.superseded_at is None or as_of < fact.superseded_at)
    ]


def valid_at(versions: Iterable[Fact], at: datetime) -> list[Fact]:
    """Select the facts that are true at a time; an unknown start is before every time."""
    return [
        fact
        for fact in versions
        if (fact.span.valid_at is None or fact.span.valid_at <= at)
        and (fact.span.invalid_at is None or at < fact.span.invalid_at)
    ]


def _is_backwards(span: ValidTime) -> bool:
    return span.valid_at is not None and span.invalid_at is not None and span.invalid_at <= span.valid_at


def _lasts_into(span: ValidTime, start: datetime) -> bool:
    """Return whether a span begins before a time and includes it; False without a start."""
    return span.valid_at is not None and span.valid_at < start and (span.invalid_at is None or start < span.invalid_at)


def _begins_before(span: ValidTime, end: datetime | None) -> bool:
    return span.valid_at is None or end is None or span.valid_at < end


def _supersede(fact: Fact, span: ValidTime, now: datetime) -> tuple[Fact, Fact]:
    fresh = replace(fact, span=span, version=fact.version + 1, created_at=now, superseded_at=None)
    return replace(fact, superseded_at=now), fresh


def _normalise_end(end: FactEnd) -> FactEnd:
    return normalize_name(end) if isinstance(end, str) else end

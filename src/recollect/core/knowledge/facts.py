"""Place facts in two times: when they are true in the world, and from when until when we believed it.

A correction never overwrites. The version that was believed is superseded now, and a version with the changed end
takes its place, so what was believed at any moment can be asked for ever after.

Facts that contradict each other come to lie the same whatever the order in which they arrive: each ends at its own
stated end or where the next one begins, whichever comes first. This holds as far as every pair that contradicts is
noticed when the later of the two arrives, and as starts are known. The order does matter

- where a contradiction was noticed from one side only: a fact is placed against those it was compared with;
- where the same fact is stated again with other dates: the dates stated first stand, only unknown ones are filled in;
- for what was believed in between, of course.

Facts with the same start do not end each other, facts without a start are neither ended nor end others, and a gap
that a fact leaves behind by its end is not filled by reopening an older one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.core.text.names import normalise_name, normalise_predicate
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Fact, FactEnd, Span


@dataclass(frozen=True, slots=True)
class EndedVersion:
    """A believed version that stops being true where the new fact begins."""

    fact: Fact
    invalid_at: datetime


@dataclass(frozen=True, slots=True)
class Placement:
    """What becomes of a new fact, and of those it contradicts."""

    span: Span
    closings: tuple[EndedVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class Amendment:
    """What to write in one transaction: versions to supersede, and new versions."""

    superseded: tuple[Fact, ...]
    added: tuple[Fact, ...]


def check_span(span: Span) -> None:
    """Refuse a span that ends before or when it begins: it would never be true."""
    if _is_backwards(span):
        raise InvalidInputError("invalid_at must lie after valid_at")


def place(new: Span, contradicted: Iterable[Fact]) -> Placement:
    """Decide where a new fact ends, and which of the facts that it contradicts end where it begins."""
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
    return Placement(Span(start, min(ends, default=None)), tuple(closings))


def amend(new: Fact, contradicted: Iterable[Fact], now: datetime) -> Amendment:
    """Add a new fact: its first version, and further versions of those that end where it begins."""
    placed = place(new.span, contradicted)
    # A clock that went back must not let a version end before it began.
    moment = max([now, *(closing.fact.created_at for closing in placed.closings)])
    first = replace(new, span=placed.span, version=1, created_at=moment, superseded_at=None)
    closed = (
        _supersede(closing.fact, replace(closing.fact.span, invalid_at=closing.invalid_at), moment)
        for closing in placed.closings
    )
    pairs = list(closed)
    return Amendment(tuple(old for old, _ in pairs), (first, *(fresh for _, fresh in pairs)))


def recognise(stated: Fact, known: Iterable[Fact]) -> Fact | None:
    """Find the believed fact that is the same: equal ends and predicate, and true at some common moment."""
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


def complete(known: Fact, seen: Span, now: datetime) -> Amendment | None:
    """Fill in what was unknown of a fact that is stated again; None where it only adds evidence."""
    span = fill(known.span, seen)
    if span == known.span:
        return None
    old, fresh = _supersede(known, span, max(now, known.created_at))
    return Amendment((old,), (fresh,))


def restate(known: Fact, seen: Span, contradicted: Iterable[Fact], now: datetime) -> Amendment | None:
    """Add to a known fact that others are not true; None if nothing changes."""
    placed = place(seen, contradicted)
    span = fill(known.span, Span(placed.span.valid_at, seen.invalid_at))
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


def fill(known: Span, seen: Span) -> Span:
    """Take from a second statement the dates that the first leaves open, if they fit together."""
    span = Span(known.valid_at or seen.valid_at, known.invalid_at or seen.invalid_at)
    return known if _is_backwards(span) else span


def assume_start(span: Span, said_at: datetime) -> Span:
    """Let a fact without a date be true since it was said; one that is over has no start."""
    if span.valid_at is not None or (span.invalid_at is not None and span.invalid_at <= said_at):
        return span
    return replace(span, valid_at=said_at)


def identify(subject: FactEnd, predicate: str, object: FactEnd) -> tuple[FactEnd, str, FactEnd]:  # noqa: A002 - its name
    """Normalise a fact's three parts, so that two statements of the same fact are equal."""
    return (_normalise_end(subject), normalise_predicate(predicate), _normalise_end(object))


def overlap(one: Span, other: Span) -> bool:
    """Tell whether two spans overlap; an unknown bound excludes nothing, and touching is not overlapping."""
    return _begins_before(one, other.invalid_at) and _begins_before(other, one.invalid_at)


def believed(versions: Iterable[Fact], as_of: datetime | None = None) -> list[Fact]:
    """Select what was believed at a moment, or is believed now."""
    if as_of is None:
        return [fact for fact in versions if fact.superseded_at is None]
    return [
        fact
        for fact in versions
        if fact.created_at <= as_of and (fact.superseded_at is None or as_of < fact.superseded_at)
    ]


def true_at(versions: Iterable[Fact], at: datetime) -> list[Fact]:
    """Select what is true at a moment; an unknown start lies before every moment."""
    return [
        fact
        for fact in versions
        if (fact.span.valid_at is None or fact.span.valid_at <= at)
        and (fact.span.invalid_at is None or at < fact.span.invalid_at)
    ]


def _is_backwards(span: Span) -> bool:
    return span.valid_at is not None and span.invalid_at is not None and span.invalid_at <= span.valid_at


def _lasts_into(span: Span, start: datetime) -> bool:
    """Tell whether something began before a moment and is still true then; False without a start."""
    return span.valid_at is not None and span.valid_at < start and (span.invalid_at is None or start < span.invalid_at)


def _begins_before(span: Span, end: datetime | None) -> bool:
    return span.valid_at is None or end is None or span.valid_at < end


def _supersede(fact: Fact, span: Span, now: datetime) -> tuple[Fact, Fact]:
    fresh = replace(fact, span=span, version=fact.version + 1, created_at=now, superseded_at=None)
    return replace(fact, superseded_at=now), fresh


def _normalise_end(end: FactEnd) -> FactEnd:
    return normalise_name(end) if isinstance(end, str) else end

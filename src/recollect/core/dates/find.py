"""Find the times that a text mentions, in English and Chinese, as periods in a time zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TypeVar

from recollect.core.dates.calendar import Span, open_at
from recollect.core.dates.chinese import CHINESE
from recollect.core.dates.english import ENGLISH
from recollect.core.dates.parts import (
    Change,
    DateExpression,
    DateMatch,
    Grammar,
    Rule,
    copy_missing_parts,
    merge,
    modify,
    resolve,
    resolve_after,
)
from recollect.core.text.variants import fold_variants
from recollect.models.recall import Period

T = TypeVar("T")
REACH = 48
"""Maximum number of characters before a date that can belong to it."""
ROUNDS = 3
"""Maximum number of successive changes of a date: "the first week of early March" has two."""
PLAIN = str.maketrans(
    {chr(code): chr(code - 0xFEE0).lower() for code in range(0xFF01, 0xFF5F)}
    | {chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)}
    | dict(zip("’‘`\u3000\u00a0\t\n\u2014\u2013\u2212～", "'''    ---~", strict=True))
)
"""Replaces single characters, so that positions in the text stay the same."""
HAN = re.compile("[\u4e00-\u9fff]")
LATIN = re.compile("[a-z]{3}")


def find_periods(text: str, now: datetime, zone: tzinfo) -> list[Period]:
    """Find the periods that a text mentions, in its order.

    A date without a year is the latest one that has begun.
    """
    plain = text.lower() if text.isascii() else fold_variants(text).translate(PLAIN)
    here = _try(partial(now.astimezone, zone))
    if here is None:
        return []
    # The wall clock is treated as if it were in UTC, where every day has 24 hours.
    wall = here.replace(tzinfo=UTC)
    dates = list[DateExpression]()
    if HAN.search(plain):
        dates = _read(plain, CHINESE, wall)
        plain = _blank(plain, dates)
    if not dates or LATIN.search(plain):
        dates += _read(plain, ENGLISH, wall)
    found = dict[Span, Period]()
    for date in sorted(dates, key=lambda date: date.first):
        span = _try(partial(_to_moments, date, now, wall, zone))
        if span:
            found.setdefault(span, Period(*span, text[date.first : date.last].strip()))
    return list(found.values())


def _read(plain: str, grammar: Grammar, now: datetime) -> list[DateExpression]:
    """Find the dates of one language: first pieces, then whole dates, then changes by nearby words."""
    if not grammar.hint.search(plain):
        return []
    whole = [date for date in _join(plain, _spot(plain, grammar, now), grammar) if not date.bare]
    dates = _uncovered([_extend(plain, date, grammar, now) for date in whole])
    ended = [_open(plain, date, grammar, now) for date in _link(plain, dates, grammar, now)]
    return [date for date in ended if not date.loose] or ended


def _spot(plain: str, grammar: Grammar, now: datetime) -> list[DateExpression]:
    """Find all pieces; if two overlap, the first counts, or the longest with the same start."""
    found = [date for rule in grammar.rules for date in _apply(plain, rule, now)]
    found.sort(key=lambda date: (date.first, -date.last))
    kept = list[DateExpression]()
    for date in found:
        if not kept or date.first >= kept[-1].last:
            kept.append(date)
    return kept


def _apply(plain: str, rule: Rule, now: datetime) -> list[DateExpression]:
    pattern, make = rule
    found = list[DateExpression]()
    for match in pattern.finditer(plain):
        made = _try(partial(make, DateMatch(match, now)))
        if isinstance(made, list):
            found += made
        elif made:
            first = match.start("at") if "at" in pattern.groupindex else -1
            found.append(replace(made, first=first if first >= 0 else match.start(), last=match.end()))
    return found


def _join(plain: str, dates: list[DateExpression], grammar: Grammar) -> list[DateExpression]:
    """Join the pieces of one date."""
    joined = list[DateExpression]()
    for piece in dates:
        joined.append(piece)
        while len(joined) > 1 and grammar.joins.fullmatch(plain, joined[-2].last, joined[-1].first):
            whole = merge(joined[-2], joined[-1])
            if whole is None:
                break
            joined[-2:] = [whole]
    return joined


def _extend(plain: str, date: DateExpression, grammar: Grammar, now: datetime) -> DateExpression:
    """Apply the words before and after a date until nothing changes."""
    for _ in range(ROUNDS):
        changed = _extend_after(plain, date, grammar, now)
        changed = _extend_before(plain, changed, grammar, now)
        if changed is date:
            break
        date = changed
    return date


def _extend_after(plain: str, date: DateExpression, grammar: Grammar, now: datetime) -> DateExpression:
    for pattern, make in grammar.after:
        match = pattern.match(plain, date.last)
        if match:
            return _changed(replace(date, last=match.end()), make(match), now) or date
    return date


def _extend_before(plain: str, date: DateExpression, grammar: Grammar, now: datetime) -> DateExpression:
    for pattern, make in grammar.before:
        match = pattern.search(plain, max(0, date.first - REACH), date.first)
        if match:
            return _changed(replace(date, first=match.start()), make(match), now) or date
    return date


def _changed(date: DateExpression, change: Change, now: datetime) -> DateExpression | None:
    changed = _try(partial(modify, date, change, now))
    return changed if changed and _try(partial(resolve, changed, now)) else None


def _uncovered(dates: list[DateExpression]) -> list[DateExpression]:
    """Drop dates inside another: in "the last week of May", "last week" is no date."""
    kept = list[DateExpression]()
    for date in dates:
        while kept and date.first <= kept[-1].first and kept[-1].last <= date.last:
            kept.pop()
        if not kept or kept[-1].last < date.last:
            kept.append(date)
    return kept


def _link(plain: str, dates: list[DateExpression], grammar: Grammar, now: datetime) -> list[DateExpression]:
    """Join two dates to a range, and complete dates in a list from each other."""
    linked = list[DateExpression]()
    for date in dates:
        if not linked:
            linked.append(date)
            continue
        left = linked.pop()
        together = grammar.ranges.fullmatch(plain, left.last, date.first)
        whole = _try(partial(_range, plain, left, date, grammar, now)) if together else None
        if whole:
            linked.append(whole)
        elif grammar.lists.fullmatch(plain, left.last, date.first):
            linked += [copy_missing_parts(date, left), copy_missing_parts(left, date)]
        else:
            linked += [left, date]
    return linked


def _range(
    plain: str, left: DateExpression, right: DateExpression, grammar: Grammar, now: datetime
) -> DateExpression | None:
    """Join the beginning and the end of a range; None if the words between them only list two dates."""
    if grammar.lists.fullmatch(plain, left.last, right.first) and not _is_pair(plain, left, right, grammar):
        return None
    borrowed = copy_missing_parts(right, left)
    start = resolve(borrowed, now)
    end = resolve_after(right, start[0], now)
    if end[1] <= start[0] and borrowed.year and not left.year:
        start = resolve(replace(borrowed, year=borrowed.year - 1), now)
    if end[1] <= start[0]:
        return None
    opening = grammar.opening.search(plain, max(0, left.first - REACH), left.first)
    return DateExpression(opening.start() if opening else left.first, right.last, span=(start[0], end[1]))


def _is_pair(plain: str, left: DateExpression, right: DateExpression, grammar: Grammar) -> bool:
    before, after = grammar.pairing
    return bool(before.search(plain, max(0, left.first - REACH), left.first) or after.match(plain, right.last))


def _open(plain: str, date: DateExpression, grammar: Grammar, now: datetime) -> DateExpression:
    """Make a date the beginning or the end of an open period, if words require it."""
    for pattern, side in grammar.ends_after:
        match = pattern.match(plain, date.last)
        if match:
            return _opened(replace(date, last=match.end()), side, now) or date
    for pattern, side in grammar.ends_before:
        match = pattern.search(plain, max(0, date.first - REACH), date.first)
        if match:
            return _opened(replace(date, first=match.start()), side, now) or date
    return date


def _opened(date: DateExpression, side: str, now: datetime) -> DateExpression | None:
    span = _try(lambda: open_at(resolve(date, now), side, now))
    return DateExpression(date.first, date.last, span=span, exact=date.exact) if span else None


def _to_moments(date: DateExpression, now: datetime, wall: datetime, zone: tzinfo) -> Span | None:
    """Return the times at which a date begins and ends."""
    start, end = resolve(date, wall)
    if date.exact:
        moments = now.astimezone(UTC) + (start - wall), now.astimezone(UTC) + (end - wall)
    else:
        moments = start.replace(tzinfo=zone).astimezone(UTC), end.replace(tzinfo=zone).astimezone(UTC)
    return moments if moments[0] < moments[1] else None


def _blank(plain: str, dates: list[DateExpression]) -> str:
    """Blank out the dates that were found, so that another language does not match them again."""
    pieces, end = list[str](), 0
    for date in dates:
        pieces += [plain[end : date.first], "\0" * (date.last - max(date.first, end))]
        end = max(end, date.last)
    return "".join(pieces) + plain[end:]


def _try(work: Callable[[], T]) -> T | None:
    """Return None for impossible dates, such as June 31 or a day after the maximum year."""
    try:
        return work()
    except (ValueError, OverflowError):
        return None

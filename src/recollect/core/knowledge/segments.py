"""Cut a conversation into segments at changes of topic, independent of how the turns arrive.

At every possible start of a segment, the turns before it are compared with those after it. The topic changes at places
where they are less similar than at nearby places (depth scores, as in TextTiling). A place is judged when enough turns
have followed it, or when a pause or the maximum length has ended the segment. So the state of an open segment consists
of its turns only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.text.phrases import distinctive_terms
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Segment, SegmentEnd, Turn
from recollect.models.memories import Embedding

MIN_NORM, MAX_NORM = 1e-6, 1e18
Unit = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DepthRule:
    """How places are compared: the turns on each side, and the places before and after."""

    window: int
    reach: int
    depth: float
    """A topic ends if the similarity is lower than at the best places before and after, by at least this in total."""

    @property
    def lookahead(self) -> int:
        """Return how many turns must follow the turn that may begin a segment."""
        return self.window + self.reach - 1


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """The rules that end a segment."""

    vectors: DepthRule = field(default=DepthRule(2, 3, 0.5))
    """For turns that all have a vector: the cosine of the sums of their vectors."""
    terms: DepthRule = field(default=DepthRule(3, 3, 0.3))
    """For other turns: their common terms."""
    min_turns: int = 2
    """Minimum number of turns of segments before and after a change of topic, but at least the compared turns."""
    max_turns: int = 80
    max_characters: int = 24_000
    idle_minutes: float = 60.0
    """A longer pause ends the segment; 0 = never."""

    def __post_init__(self) -> None:
        if not 2 <= self.min_turns <= self.max_turns:
            raise InvalidInputError("segments need at least 2 turns, and max_turns must not be below min_turns")


DEFAULT = SegmentRules()


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A turn with content: its position, and the data for comparisons."""

    position: int
    turn: Turn
    unit: Unit | None


Compare: TypeAlias = Callable[[Sequence[SpokenTurn], Sequence[SpokenTurn]], float]
Likeness: TypeAlias = dict[tuple[Compare, int], float]
"""The similarity of both sides of places, by the method of comparison."""


def to_turn(
    identity: UUID, occurred_at: datetime, text: str, embedding: Embedding | None = None, *, opens: bool = True
) -> Turn:
    """Return the data of a turn that segmentation needs."""
    return Turn(identity, occurred_at, distinctive_terms(text), len(text), embedding, opens)


def segment(
    turns: Iterable[Turn], rules: SegmentRules = DEFAULT, ended: SegmentEnd | None = None
) -> tuple[list[Segment], tuple[Turn, ...]]:
    """Cut turns into segments: return the closed ones, and the remaining turns.

    If `ended` gives the reason why no turns follow, none remain.
    """
    left, closed = tuple(turns), list[Segment]()
    while found := _find_end(left, rules, ended):
        size, ending, likeness = found
        closed.append(Segment(left[:size], ending, likeness))
        left = left[size:]
    return closed, left


def _find_end(
    turns: Sequence[Turn], rules: SegmentRules, ended: SegmentEnd | None
) -> tuple[int, SegmentEnd, float | None] | None:
    """Return where and why the first segment of some turns ends; None if it is still open."""
    spoken, known = list[SpokenTurn](), Likeness()
    for last, turn in enumerate(turns):
        if last and (ending := _interrupt(turns[:last], turn, rules)):
            return _find_last(spoken, rules, known) or (last, ending, None)
        unit = to_unit(turn.embedding)
        if not turn.terms and unit is None:
            continue
        spoken.append(SpokenTurn(last, turn, unit))
        for measure in (rules.vectors, rules.terms):
            gap = len(spoken) - 1 - measure.lookahead
            if (likeness := _judge(spoken, gap, rules, measure, known)) is not None:
                return spoken[gap].position, SegmentEnd.TOPIC, likeness
    if ended is None or not turns:
        return None
    return _find_last(spoken, rules, known) or (len(turns), ended, None)


def _find_last(
    spoken: Sequence[SpokenTurn], rules: SegmentRules, known: Likeness
) -> tuple[int, SegmentEnd, float] | None:
    """Find a change of topic before an end of the conversation, with the available turns."""
    for gap in range(len(spoken)):
        for measure in (rules.vectors, rules.terms):
            if (likeness := _judge(spoken, gap, rules, measure, known)) is not None:
                return spoken[gap].position, SegmentEnd.TOPIC, likeness
    return None


def _interrupt(running: Sequence[Turn], turn: Turn, rules: SegmentRules) -> SegmentEnd | None:
    """Return why a segment ends before a turn, independent of its topic: pause or length."""
    silence = turn.occurred_at - running[-1].occurred_at
    if rules.idle_minutes > 0 and silence > timedelta(minutes=rules.idle_minutes):
        return SegmentEnd.IDLE
    characters = sum(said.characters for said in running) + turn.characters
    if len(running) >= rules.max_turns or characters > rules.max_characters:
        return SegmentEnd.LENGTH
    return None


def _judge(
    spoken: Sequence[SpokenTurn], gap: int, rules: SegmentRules, measure: DepthRule, known: Likeness
) -> float | None:
    """Return the similarity at a place if the topic changes there; None if it does not."""
    least = max(rules.min_turns, measure.window)
    if not least <= gap <= len(spoken) - least or not spoken[gap].turn.opens:
        return None
    if _choose_measure(spoken, gap, rules) is not measure:
        return None
    compare = _compare_vectors if measure is rules.vectors else _compare_terms
    around = range(max(1, gap - measure.reach), min(len(spoken), gap + measure.reach + 1))
    likeness = {place: _rate(spoken, place, measure.window, compare, known) for place in around}
    here = likeness[gap]
    if any(each < here and spoken[place].turn.opens for place, each in likeness.items() if place > gap):
        return None
    rises = (max(each for place, each in likeness.items() if side(place)) - here for side in (gap.__ge__, gap.__le__))
    return here if sum(rises) >= measure.depth else None


def _choose_measure(spoken: Sequence[SpokenTurn], gap: int, rules: SegmentRules) -> DepthRule:
    """Choose the rule for a place: vectors if all compared turns have one of the same size."""
    far = rules.vectors.window + rules.vectors.reach
    shapes = {each.unit.shape if each.unit is not None else None for each in spoken[max(0, gap - far) : gap + far]}
    return rules.vectors if len(shapes) == 1 and None not in shapes else rules.terms


def _rate(spoken: Sequence[SpokenTurn], place: int, window: int, compare: Compare, known: Likeness) -> float:
    """Return the similarity of both sides of a place; cached when the following turns fill the window."""
    found = known.get((compare, place))
    if found is None:
        found = compare(*_sides(spoken, place, window))
        if place + window <= len(spoken):
            known[compare, place] = found
    return found


def _sides(spoken: Sequence[SpokenTurn], gap: int, window: int) -> tuple[Sequence[SpokenTurn], Sequence[SpokenTurn]]:
    return spoken[max(0, gap - window) : gap], spoken[gap : gap + window]


def _compare_vectors(before: Sequence[SpokenTurn], after: Sequence[SpokenTurn]) -> float:
    """Compare turns by the cosine of the sums of their vectors."""
    one, other = (
        to_unit(np.sum([each.unit for each in side if each.unit is not None], axis=0)) for side in (before, after)
    )
    return 0.0 if one is None or other is None else float(np.dot(one, other))


def _compare_terms(before: Sequence[SpokenTurn], after: Sequence[SpokenTurn]) -> float:
    """Compare turns by common terms: the cosine of their counts on a logarithmic scale."""
    one, other = (_weigh(chain.from_iterable(each.turn.terms for each in side)) for side in (before, after))
    product = math.fsum(weight * one[term] for term, weight in other.items() if term in one)
    return product / (_length(one) * _length(other)) if product else 0.0


def to_unit(embedding: Embedding | Unit | None) -> Unit | None:
    """Scale a vector to unit length; None if it has no direction."""
    if embedding is None:
        return None
    vector = np.asarray(embedding, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.sqrt(np.dot(vector, vector)))
    return vector / norm if MIN_NORM < norm < MAX_NORM else None


def _weigh(terms: Iterable[str]) -> dict[str, float]:
    return {term: 1 + math.log(count) for term, count in Counter(terms).items()}


def _length(weights: dict[str, float]) -> float:
    return math.sqrt(math.fsum(weight * weight for weight in weights.values()))

"""Cut a conversation into segments where its topic changes, the same however the turns arrive.

At every place where a segment may begin, the turns before it are compared with those after it. The topic changes where
they are less alike than at the places around it (depth scores, as in TextTiling). A place is judged once enough turns
have followed it, or silence or too great a length has ended the talk; so what is running is nothing but its turns.
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
from recollect.models.knowledge import Ending, Segment, Turn
from recollect.models.memories import Embedding

SMALLEST_NORM, LARGEST_NORM = 1e-6, 1e18
Unit = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DepthRule:
    """How places are compared: so many turns on each side, with so many places before and after."""

    window: int
    reach: int
    depth: float
    """A topic ends where likeness is lower than at the best places before and after by so much in total."""

    @property
    def ahead(self) -> int:
        """Return how many turns must follow the one that may begin a segment."""
        return self.window + self.reach - 1


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """When a segment ends."""

    vectors: DepthRule = field(default=DepthRule(2, 3, 0.5))
    """For turns that all have a vector: by the cosine of the sums of their vectors."""
    terms: DepthRule = field(default=DepthRule(3, 3, 0.3))
    """For others: by the terms they share."""
    min_turns: int = 2
    """A segment that another topic ends, or begins, has at least so many turns, and as many as are compared."""
    max_turns: int = 80
    max_characters: int = 24_000
    idle_minutes: float = 60.0
    """A longer silence ends the segment; 0 means never."""

    def __post_init__(self) -> None:
        if not 2 <= self.min_turns <= self.max_turns:
            raise InvalidInputError("a segment must have at least 2 turns, and may have at least as many")


USUAL = SegmentRules()


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A turn that says something: its position, and what it is compared by."""

    position: int
    turn: Turn
    unit: Unit | None


Compare: TypeAlias = Callable[[Sequence[SpokenTurn], Sequence[SpokenTurn]], float]
Likeness: TypeAlias = dict[tuple[Compare, int], float]
"""How alike both sides of places are, by the way they were compared."""


def to_turn(
    identity: UUID, occurred_at: datetime, text: str, embedding: Embedding | None = None, *, opens: bool = True
) -> Turn:
    """Return what segmentation needs of a turn."""
    return Turn(identity, occurred_at, distinctive_terms(text), len(text), embedding, opens)


def segment(
    turns: Iterable[Turn], rules: SegmentRules = USUAL, ended: Ending | None = None
) -> tuple[list[Segment], tuple[Turn, ...]]:
    """Cut turns into segments: return those that have closed, and the turns that are left.

    None are left where `ended` says why nothing follows.
    """
    left, closed = tuple(turns), list[Segment]()
    while found := _find_end(left, rules, ended):
        size, ending, likeness = found
        closed.append(Segment(left[:size], ending, likeness))
        left = left[size:]
    return closed, left


def _find_end(
    turns: Sequence[Turn], rules: SegmentRules, ended: Ending | None
) -> tuple[int, Ending, float | None] | None:
    """Find where the first segment of some turns ends, and why; None while nothing has ended it."""
    spoken, known = list[SpokenTurn](), Likeness()
    for last, turn in enumerate(turns):
        if last and (ending := _interrupt(turns[:last], turn, rules)):
            return _find_last(spoken, rules, known) or (last, ending, None)
        unit = to_unit(turn.embedding)
        if not turn.terms and unit is None:
            continue
        spoken.append(SpokenTurn(last, turn, unit))
        for measure in (rules.vectors, rules.terms):
            gap = len(spoken) - 1 - measure.ahead
            if (likeness := _judge(spoken, gap, rules, measure, known)) is not None:
                return spoken[gap].position, Ending.TOPIC, likeness
    if ended is None or not turns:
        return None
    return _find_last(spoken, rules, known) or (len(turns), ended, None)


def _find_last(spoken: Sequence[SpokenTurn], rules: SegmentRules, known: Likeness) -> tuple[int, Ending, float] | None:
    """Find a place where the topic changes before the talk ends, by the turns that there are."""
    for gap in range(len(spoken)):
        for measure in (rules.vectors, rules.terms):
            if (likeness := _judge(spoken, gap, rules, measure, known)) is not None:
                return spoken[gap].position, Ending.TOPIC, likeness
    return None


def _interrupt(running: Sequence[Turn], turn: Turn, rules: SegmentRules) -> Ending | None:
    """Say what ends a segment before a turn, independent of the turn's topic."""
    silence = turn.occurred_at - running[-1].occurred_at
    if rules.idle_minutes > 0 and silence > timedelta(minutes=rules.idle_minutes):
        return Ending.IDLE
    characters = sum(said.characters for said in running) + turn.characters
    if len(running) >= rules.max_turns or characters > rules.max_characters:
        return Ending.LENGTH
    return None


def _judge(
    spoken: Sequence[SpokenTurn], gap: int, rules: SegmentRules, measure: DepthRule, known: Likeness
) -> float | None:
    """Say how alike the turns before and after a place are if the topic changes there; None if it does not."""
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
    """Choose how a place is judged: by vectors if all turns that are compared have one of the same model."""
    far = rules.vectors.window + rules.vectors.reach
    shapes = {each.unit.shape if each.unit is not None else None for each in spoken[max(0, gap - far) : gap + far]}
    return rules.vectors if len(shapes) == 1 and None not in shapes else rules.terms


def _rate(spoken: Sequence[SpokenTurn], place: int, window: int, compare: Compare, known: Likeness) -> float:
    """Say how alike both sides of a place are; once what follows fills the window, it is known for good."""
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
    """Compare turns by the terms they share: the cosine of their counts, on a logarithmic scale."""
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
    return vector / norm if SMALLEST_NORM < norm < LARGEST_NORM else None


def _weigh(terms: Iterable[str]) -> dict[str, float]:
    return {term: 1 + math.log(count) for term, count in Counter(terms).items()}


def _length(weights: dict[str, float]) -> float:
    return math.sqrt(math.fsum(weight * weight for weight in weights.values()))

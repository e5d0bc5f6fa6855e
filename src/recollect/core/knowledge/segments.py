"""Cut a conversation into segments where its topic changes, turn by turn, the same however the turns arrive.

A turn is compared with the running segment. One that is far from it only raises doubt: it stays, and the next one
decides. If that is far, too, the segment is closed before the doubtful turn; if it is near, the doubt is gone. A very
far turn closes at once. So does silence, and too great a length, and then a doubtful turn stays where it is. What is
running is nothing but its turns and the doubt: read again from their first, they come to the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.text.phrases import distinctive_terms
from recollect.errors import InvalidInputError
from recollect.models.knowledge import Ending, Segment, Turn
from recollect.models.memories import Embedding

SMALLEST_NORM, LARGEST_NORM = 1e-6, 1e18


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """When a segment ends. Cosines depend on the model: what is near for one is far for another."""

    threshold: float = 0.7
    """A turn is far if the cosine of its vector and the segment's is below this."""
    margin: float = 0.3
    """A turn that is far by more than this closes the segment at once."""
    term_threshold: float = 0.08
    """The same for turns without a vector, which are compared by their terms; these never close at once."""
    min_turns: int = 2
    """A topic must have so many turns before another one can end it."""
    max_turns: int = 40
    max_characters: int = 16_000
    idle_minutes: float = 60.0
    """A longer silence ends the segment; 0 means never."""

    def __post_init__(self) -> None:
        if not 2 <= self.min_turns <= self.max_turns:
            raise InvalidInputError("a segment must have at least 2 turns, and may have at least as many")


@dataclass(frozen=True, slots=True)
class Running:
    """The segment that is still open: its turns, and from which of them on it may belong to another."""

    turns: tuple[Turn, ...] = ()
    doubt: int | None = None


USUAL = SegmentRules()
NOTHING = Running()


def to_turn(identity: UUID, occurred_at: datetime, text: str, embedding: Embedding | None = None) -> Turn:
    """Return what segmentation needs of a turn."""
    return Turn(identity, occurred_at, distinctive_terms(text), len(text), embedding)


def follow(running: Running, turn: Turn, rules: SegmentRules = USUAL) -> tuple[Running, Segment | None]:
    """Add one more turn to the running segment, or begin the next one; at most one segment closes."""
    if not running.turns:
        return Running((turn,)), None
    if ending := _interrupt(running, turn, rules):
        return Running((turn,)), Segment(running.turns, ending)
    near, similarity = _compare(_certain(running), turn, rules)
    if near:
        # A turn without words leaves the doubt as it is; one that cannot be compared counts as near.
        doubt = running.doubt if similarity is None and not _speaks(turn) else None
        return Running((*running.turns, turn), doubt), None
    return _part(running, turn, similarity or 0.0, rules)


def segment(turns: Iterable[Turn], rules: SegmentRules = USUAL) -> tuple[list[Segment], Running]:
    """Add many turns: return the segments that closed, and the one that is still open."""
    running, closed = NOTHING, list[Segment]()
    for turn in turns:
        running, ended = follow(running, turn, rules)
        if ended is not None:
            closed.append(ended)
    return closed, running


def lapse(running: Running, now: datetime, rules: SegmentRules = USUAL) -> Segment | None:
    """Close the running segment if nothing was said for too long; the next message would close it anyway."""
    if running.turns and _is_idle(running.turns[-1].occurred_at, now, rules):
        return Segment(running.turns, Ending.IDLE)
    return None


def finish(running: Running) -> Segment | None:
    """Close the running segment because somebody asks for it."""
    return Segment(running.turns, Ending.ASKED) if running.turns else None


def _interrupt(running: Running, turn: Turn, rules: SegmentRules) -> Ending | None:
    """Say what ends a segment before a turn, independent of the turn's topic."""
    if _is_idle(running.turns[-1].occurred_at, turn.occurred_at, rules):
        return Ending.IDLE
    characters = sum(said.characters for said in running.turns) + turn.characters
    if len(running.turns) >= rules.max_turns or characters > rules.max_characters:
        return Ending.LENGTH
    return None


def _is_idle(since: datetime, until: datetime, rules: SegmentRules) -> bool:
    return rules.idle_minutes > 0 and until - since > timedelta(minutes=rules.idle_minutes)


def _certain(running: Running) -> tuple[Turn, ...]:
    """Return the turns that certainly belong to the segment."""
    return running.turns[: running.doubt]


def _part(running: Running, turn: Turn, similarity: float, rules: SegmentRules) -> tuple[Running, Segment | None]:
    """Decide on a far turn: doubt it, or close the segment before it or before the doubtful one."""
    certain = _certain(running)
    # Turns that say nothing make no topic. So behind the doubt lies one at most that does, and what is left of
    # the running segment is too short to be closed by the same turn.
    enough = sum(1 for said in certain if _speaks(said)) >= rules.min_turns
    joined = (*running.turns, turn)
    if running.doubt is None and not (enough and _is_very_far(certain, turn, similarity, rules)):
        return Running(joined, len(running.turns)), None
    if not enough:
        return Running(joined), None
    _, rest = segment(joined[len(certain) :], rules)
    return rest, Segment(certain, Ending.TOPIC, similarity)


def _is_very_far(certain: tuple[Turn, ...], turn: Turn, similarity: float, rules: SegmentRules) -> bool:
    return similarity < rules.threshold - rules.margin and _cosine(certain, turn) is not None


def _speaks(turn: Turn) -> bool:
    return bool(turn.terms) or _unit(turn.embedding) is not None


def _compare(certain: tuple[Turn, ...], turn: Turn, rules: SegmentRules) -> tuple[bool, float | None]:
    """Tell whether a turn is near a segment, and how near; None where nothing can be compared."""
    cosine = _cosine(certain, turn)
    if cosine is not None:
        return cosine >= rules.threshold, cosine
    shared = _shared(certain, turn)
    return (True, None) if shared is None else (shared >= rules.term_threshold, shared)


def _cosine(certain: tuple[Turn, ...], turn: Turn) -> float | None:
    """Compare a turn's vector with the mean of the segment's; None where either has none of the same model."""
    unit = _unit(turn.embedding)
    if unit is None:
        return None
    units = [each for said in certain if (each := _unit(said.embedding)) is not None and each.shape == unit.shape]
    mean = _unit(np.sum(units, axis=0)) if units else None
    return None if mean is None else float(np.dot(mean, unit))


def _unit(embedding: Embedding | NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Scale a vector to unit length; None if it has no direction."""
    if embedding is None:
        return None
    vector = np.asarray(embedding, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.sqrt(np.dot(vector, vector)))
    return vector / norm if SMALLEST_NORM < norm < LARGEST_NORM else None


def _shared(certain: tuple[Turn, ...], turn: Turn) -> float | None:
    """Compare by terms: the cosine of their counts, on a logarithmic scale."""
    one, other = _weigh(chain.from_iterable(said.terms for said in certain)), _weigh(turn.terms)
    if not one or not other:
        return None
    product = math.fsum(weight * one[term] for term, weight in other.items() if term in one)
    return product / (_length(one) * _length(other))


def _weigh(terms: Iterable[str]) -> dict[str, float]:
    return {term: 1 + math.log(count) for term, count in Counter(terms).items()}


def _length(weights: dict[str, float]) -> float:
    return math.sqrt(math.fsum(weight * weight for weight in weights.values()))

"""Encode the input of a ranking without loss, and rank it again."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from recollect.core.dates.periods import find_zone
from recollect.core.recall.columns import ARRAYS, ID, Candidates, EvidencePairs, FeatureTable, RankingInput, to_uuids
from recollect.core.recall.fusion import fuse
from recollect.errors import InvalidInputError
from recollect.models.kept import KeptHit
from recollect.models.memories import JSON
from recollect.models.recall import (
    Cue,
    Explanation,
    Facets,
    Factors,
    Fate,
    Period,
    Placing,
    Ranked,
    Recollection,
    Status,
    Tally,
)

VERSION = b"4"
"""Stands before what is written; what a later version writes otherwise begins with another."""
QUICK = 1
"""A higher level takes twice the time for a tenth less space."""
SEPARATOR = b"\n"
FLOAT = np.dtype(np.float64)
CUE, HITS = TypeAdapter(Cue), TypeAdapter(tuple[KeptHit, ...])
TALLIES = TypeAdapter(dict[str, Tally])


@dataclass(frozen=True, slots=True)
class Clock:
    """A local time with its zone."""

    shows: datetime
    fold: int
    zone: str


@dataclass(frozen=True, slots=True)
class KeptHeading:
    """What a ranking is made from beside its arrays, and how long these are: they follow one another, in this order."""

    facets: Facets
    clocks: tuple[tuple[Clock | None, Clock | None], ...]
    """The zones of the periods: Python subtracts two moments of the same zone by wall clock, not by UTC."""
    weights: Mapping[str, float]
    limit: int
    rarities: tuple[float, ...]
    channels: Mapping[str, tuple[int, bool]]
    """How many candidates each channel proposed, and whether their factors are written, too."""
    features: int | None
    """How many candidates something is known of."""
    speakers: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    model: str = ""
    evidence: int = 0
    """How many pairs of a learned memory and its evidence there are."""


KEPT_HEADING = TypeAdapter(KeptHeading)


@dataclass(frozen=True, slots=True)
class Kept:
    """A recall as it is stored: what was asked, what was found, and the hits."""

    recall_id: UUID
    asked_at: datetime
    cue: Cue
    """Without its embedding, which is `vector`."""
    vector: NDArray[np.float32] | None
    space_id: int | None
    """The embedding space that the vector belongs to."""
    inputs: RankingInput
    hits: tuple[KeptHit, ...]
    limit: int
    """How many hits were asked for."""
    status: Status
    message: str
    methods: Mapping[str, str]
    tallies: Mapping[str, Tally]
    milliseconds: float


def encode(inputs: RankingInput) -> bytes:
    """Write what a ranking is made from, each number exactly; what has no finite score is left out."""
    finite, table = leave_finite(inputs).candidates, inputs.features
    heading = KeptHeading(
        facets=inputs.facets,
        clocks=tuple((to_clock(each.start), to_clock(each.end)) for each in inputs.facets.periods),
        weights=inputs.weights,
        limit=inputs.limit,
        rarities=inputs.rarities,
        channels={channel: (len(some), some.factors is not None) for channel, some in finite.items()},
        features=None if table is None else len(table),
        speakers=() if table is None else table.speaker_names,
        sessions=() if table is None else table.session_names,
        model=inputs.model,
        evidence=len(inputs.evidence),
    )
    arrays: list[NDArray[Any]] = []
    for some in finite.values():
        arrays += [some.ids, some.scores, *(() if some.factors is None else (some.factors,))]
    if table is not None:
        arrays += [getattr(table, name) for name in ARRAYS]
    arrays += [inputs.evidence.learned, inputs.evidence.sources]
    written = b"".join(np.ascontiguousarray(each).tobytes() for each in arrays)
    return VERSION + zlib.compress(KEPT_HEADING.dump_json(heading) + SEPARATOR + written, QUICK)


def leave_finite(inputs: RankingInput) -> RankingInput:
    """Leave out candidates without a finite score."""
    finite = {channel: some.take(np.isfinite(some.scores)) for channel, some in inputs.candidates.items()}
    return replace(inputs, candidates=finite)


def decode(written: bytes) -> RankingInput:
    """Decode a ranking's input."""
    if written[:1] != VERSION:
        raise InvalidInputError("This recall was kept by another version of Recollect, which alone can read it.")
    first, _, rest = zlib.decompress(written[1:]).partition(SEPARATOR)
    heading, arrays = KEPT_HEADING.validate_json(first), Arrays(rest)
    candidates = {
        channel: Candidates(
            arrays.read(ID, count),
            arrays.read(FLOAT, count),
            arrays.read(FLOAT, count, len(fields(Factors))) if factored else None,
        )
        for channel, (count, factored) in heading.channels.items()
    }
    table = None
    if heading.features is not None:
        width = len(heading.rarities)
        read = {
            name: arrays.read(kind, heading.features, *((width,) if name == "terms" else ()))
            for name, kind in ARRAYS.items()
        }
        table = FeatureTable(**read, speaker_names=heading.speakers, session_names=heading.sessions)
    evidence = EvidencePairs(arrays.read(ID, heading.evidence), arrays.read(ID, heading.evidence))
    periods = tuple(
        Period(from_clock(start, period.start), from_clock(end, period.end), period.phrase)
        for (start, end), period in zip(heading.clocks, heading.facets.periods, strict=True)
    )
    facets = replace(heading.facets, periods=periods)
    return RankingInput(
        candidates, table, facets, heading.weights, heading.limit, heading.rarities, heading.model, evidence
    )


class Arrays:
    """Bytes that hold one array behind the other."""

    def __init__(self, written: bytes) -> None:
        self._written = written
        self._place = 0

    def read(self, kind: np.dtype[Any], *shape: int) -> NDArray[Any]:
        """Read the next array."""
        count = math.prod(shape)
        found = np.frombuffer(self._written, kind, count, self._place) if count else np.empty(0, kind)
        self._place += count * kind.itemsize
        return found.reshape(shape)


def zone_of(moment: datetime) -> str:
    """Name the zone of a moment; empty where it has an offset alone."""
    key: object = getattr(moment.tzinfo, "key", None)
    return key if isinstance(key, str) else ""


def to_clock(moment: datetime) -> Clock | None:
    """Encode a local time and its zone; None where an offset is enough."""
    key = zone_of(moment)
    return Clock(moment.replace(tzinfo=None), moment.fold, key) if key else None


def from_clock(clock: Clock | None, moment: datetime) -> datetime:
    """Decode a local time; the moment itself where there is none."""
    return clock.shows.replace(tzinfo=find_zone(clock.zone), fold=clock.fold) if clock else moment


def list_memories(inputs: RankingInput, hits: Sequence[KeptHit]) -> list[UUID]:
    """List every memory that a kept recall speaks of, each once."""
    listed = {each for some in inputs.candidates.values() for each in to_uuids(some.ids)}
    listed |= {*to_uuids(inputs.features.ids)} if inputs.features is not None else set()
    for hit in hits:
        listed |= {hit.id, *hit.duplicates}
    return sorted(listed)


def to_hits(recollection: Recollection) -> tuple[KeptHit, ...]:
    """Return what is stored of hits."""
    return tuple(
        KeptHit(hit.memory.id, hit.score, hit.channels, hit.duplicates, hit.preferences) for hit in recollection.hits
    )


def from_cue(cue: Cue) -> dict[str, JSON]:
    """Encode the fields of a cue that are not defaults, without its embedding."""
    written: dict[str, JSON] = CUE.dump_python(replace(cue, embedding=None), mode="json", exclude_defaults=True)
    return written


def to_cue(written: JSON) -> Cue:
    """Read a cue."""
    return CUE.validate_python(written)


def rank_again(kept: Kept, weights: Mapping[str, float] | None = None, *, whole: bool = False) -> tuple[Placing, ...]:
    """Rank what was found then, by other weights where they are named; the hits, or the whole of the candidates.

    What was found to be a duplicate of another still is, and what was dropped stays so.
    """
    inputs = replace(kept.inputs, weights={**kept.inputs.weights, **(weights or {})})
    ranking = fuse(inputs)
    dropped = find_dropped(kept, fuse(kept.inputs) if weights else ranking)
    partners = pair(kept.hits)
    then = {hit.id: (rank, hit.duplicates) for rank, hit in enumerate(kept.hits, 1)}
    hits: dict[UUID, Placing] = {}
    others: list[Placing] = []
    passed = 0
    for each in [*ranking, *below(inputs, ranking)] if whole else ranking:
        group = partners.get(each.id, frozenset())
        # What was dropped had taken its place before; yet no hit of then gives way to it.
        full = len(hits) + (0 if each.id in then else passed) >= kept.limit
        fate = decide(each.id, group, hits, dropped, full=full)
        passed += fate is Fate.DROPPED
        its_features = inputs.features.describe(each.id) if inputs.features is not None else None
        placing = Placing(each.id, fate, 0, each.score, each.channels, each.preferences, each.relevance, its_features)
        if fate is Fate.HIT:
            before, duplicates = then.get(each.id, (None, tuple(sorted(group - {each.id}))))
            hits[each.id] = replace(placing, rank=len(hits) + 1, before=before, duplicates=duplicates)
        else:
            others.append(placing)
    return (*hits.values(), *others) if whole else tuple(hits.values())


def to_explanation(kept: Kept, placings: tuple[Placing, ...], recall_id: UUID | None) -> Explanation:
    """Say how a recall came about, from what is stored of it, or would be."""
    return Explanation(
        recall_id=recall_id,
        asked_at=kept.asked_at,
        cue=from_cue(kept.cue),
        facets=kept.inputs.facets,
        weights=kept.inputs.weights,
        limit=kept.limit,
        status=kept.status,
        message=kept.message,
        methods=kept.methods,
        tallies=kept.tallies,
        milliseconds=kept.milliseconds,
        proposals={channel: tuple(some) for channel, some in kept.inputs.candidates.items()},
        placings=placings,
        same=is_same(kept, placings),
    )


def below(inputs: RankingInput, ranking: Sequence[Ranked]) -> list[Ranked]:
    """Rank what is not in the ranking of then."""
    known = {each.id for each in ranking}
    every = sum(map(len, inputs.candidates.values())) + len(inputs.evidence)
    return [each for each in fuse(replace(inputs, limit=every)) if each.id not in known]


def decide(
    memory_id: UUID, group: frozenset[UUID], hits: Mapping[UUID, Placing], dropped: frozenset[UUID], *, full: bool
) -> Fate:
    """Say what becomes of the next one in a ranking."""
    if memory_id in dropped:
        return Fate.DROPPED
    if not group.isdisjoint(hits.keys()):
        return Fate.DUPLICATE
    return Fate.BELOW if full else Fate.HIT


def pair(hits: Sequence[KeptHit]) -> dict[UUID, frozenset[UUID]]:
    """Map each memory to those that say nearly the same, itself included."""
    groups = [frozenset({hit.id, *hit.duplicates}) for hit in hits if hit.duplicates]
    return {memory_id: group for group in groups for memory_id in group}


def find_dropped(kept: Kept, best: Sequence[Ranked]) -> frozenset[UUID]:
    """Find what was among the best then and is no hit: it took a place, and was dropped afterwards."""
    hits = {hit.id for hit in kept.hits}
    duplicates = {memory_id for hit in kept.hits for memory_id in hit.duplicates}
    ranking = [each.id for each in best]
    winners = [place for place, each in enumerate(ranking, 1) if each not in duplicates]
    last = max((place for place in winners if ranking[place - 1] in hits), default=0)
    end = max(last, winners[kept.limit - 1] if len(winners) >= kept.limit else len(ranking))
    return frozenset(ranking[:end]) - hits - duplicates


def is_same(kept: Kept, placings: Sequence[Placing]) -> bool:
    """Tell whether a ranking has exactly the hits and scores of the recall."""
    return [*map(sum_up, kept.hits)] == [sum_up(each) for each in placings if each.fate is Fate.HIT]


def sum_up(hit: KeptHit | Placing) -> tuple[UUID, float, dict[str, float], dict[str, float]]:
    """Return what makes two hits the same: the memory, the score, and its parts."""
    shares = {name: part.share for name, part in hit.channels.items()}
    return hit.id, hit.score, shares, dict(hit.preferences)

"""Encode the input of a ranking without loss, and rank it again."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from recollect.models.memories import JSON
from recollect.models.recall import (
    CandidateOutcome,
    ChannelStats,
    Cue,
    Explanation,
    Factors,
    FusedCandidate,
    Period,
    QueryAnalysis,
    RankedCandidate,
    RecallResult,
    SavedHit,
    Status,
)

VERSION = b"4"
"""The first byte of encoded input; later versions of the encoding have another byte."""
QUICK = 1
"""A higher level takes twice the time for 10% less space."""
SEPARATOR = b"\n"
FLOAT = np.dtype(np.float64)
CUE, HITS = TypeAdapter(Cue), TypeAdapter(tuple[SavedHit, ...])
CHANNEL_STATS = TypeAdapter(dict[str, ChannelStats])


@dataclass(frozen=True, slots=True)
class Clock:
    """A local time with its zone."""

    shows: datetime
    fold: int
    zone: str


@dataclass(frozen=True, slots=True)
class SavedRecallHeader:
    """The input of a ranking except its arrays, and the lengths of the arrays, which follow in this order."""

    facets: QueryAnalysis
    clocks: tuple[tuple[Clock | None, Clock | None], ...]
    """The zones of the periods: Python subtracts two times in the same zone by wall clock, not by UTC."""
    weights: Mapping[str, float]
    limit: int
    rarities: tuple[float, ...]
    channels: Mapping[str, tuple[int, bool]]
    """The number of each channel's candidates, and whether their factors are included."""
    features: int | None
    """The number of candidates with features."""
    speakers: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    model: str = ""
    evidence: int = 0
    """The number of pairs of a learned memory and its evidence."""


KEPT_HEADING = TypeAdapter(SavedRecallHeader)


@dataclass(frozen=True, slots=True)
class SavedRecallData:
    """A recall as stored: the cue, the candidates, and the hits."""

    recall_id: UUID
    asked_at: datetime
    cue: Cue
    """Without its embedding, which is in `vector`."""
    vector: NDArray[np.float32] | None
    space_id: int | None
    """The embedding space that the vector belongs to."""
    inputs: RankingInput
    hits: tuple[SavedHit, ...]
    limit: int
    """The requested number of hits."""
    status: Status
    message: str
    methods: Mapping[str, str]
    tallies: Mapping[str, ChannelStats]
    milliseconds: float


@contextmanager
def readable() -> Iterator[None]:
    """Raise InvalidInputError if a saved recall is not valid: an import checks only its size."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, zlib.error):
        raise InvalidInputError("This recall was imported in a shape that cannot be read.") from None


def encode(inputs: RankingInput) -> bytes:
    """Encode the input of a ranking with exact numbers; candidates without a finite score are left out."""
    finite, table = drop_non_finite(inputs).candidates, inputs.features
    heading = SavedRecallHeader(
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


def drop_non_finite(inputs: RankingInput) -> RankingInput:
    """Leave out candidates without a finite score."""
    finite = {channel: some.select(np.isfinite(some.scores)) for channel, some in inputs.candidates.items()}
    return replace(inputs, candidates=finite)


def decode(written: bytes) -> RankingInput:
    """Decode a ranking's input."""
    if written[:1] != VERSION:
        raise InvalidInputError("This recall was saved by another version of Recollect and cannot be read.")
    first, _, rest = zlib.decompress(written[1:]).partition(SEPARATOR)
    heading, arrays = KEPT_HEADING.validate_json(first), Arrays(rest)
    candidates = {
        channel: Candidates(
            arrays.read_array(ID, count),
            arrays.read_array(FLOAT, count),
            arrays.read_array(FLOAT, count, len(fields(Factors))) if factored else None,
        )
        for channel, (count, factored) in heading.channels.items()
    }
    table = None
    if heading.features is not None:
        width = len(heading.rarities)
        read = {
            name: arrays.read_array(kind, heading.features, *((width,) if name == "terms" else ()))
            for name, kind in ARRAYS.items()
        }
        table = FeatureTable(**read, speaker_names=heading.speakers, session_names=heading.sessions)
    evidence = EvidencePairs(arrays.read_array(ID, heading.evidence), arrays.read_array(ID, heading.evidence))
    periods = tuple(
        Period(from_clock(start, period.start), from_clock(end, period.end), period.phrase)
        for (start, end), period in zip(heading.clocks, heading.facets.periods, strict=True)
    )
    facets = replace(heading.facets, periods=periods)
    return RankingInput(
        candidates, table, facets, heading.weights, heading.limit, heading.rarities, heading.model, evidence
    )


class Arrays:
    """Bytes that contain arrays one after another."""

    def __init__(self, written: bytes) -> None:
        self._written = written
        self._place = 0

    def read_array(self, kind: np.dtype[Any], *shape: int) -> NDArray[Any]:
        """Read the next array."""
        count = math.prod(shape)
        found = np.frombuffer(self._written, kind, count, self._place) if count else np.empty(0, kind)
        self._place += count * kind.itemsize
        return found.reshape(shape)


def zone_of(moment: datetime) -> str:
    """Return the zone name of a time; empty if it has only an offset."""
    key: object = getattr(moment.tzinfo, "key", None)
    return key if isinstance(key, str) else ""


def to_clock(moment: datetime) -> Clock | None:
    """Encode a local time and its zone; None if an offset is enough."""
    key = zone_of(moment)
    return Clock(moment.replace(tzinfo=None), moment.fold, key) if key else None


def from_clock(clock: Clock | None, moment: datetime) -> datetime:
    """Decode a local time; without a clock, return the time unchanged."""
    return clock.shows.replace(tzinfo=find_zone(clock.zone), fold=clock.fold) if clock else moment


def list_memories(inputs: RankingInput, hits: Sequence[SavedHit]) -> list[UUID]:
    """List every memory of a saved recall, without duplicates."""
    listed = {each for some in inputs.candidates.values() for each in to_uuids(some.ids)}
    listed |= {*to_uuids(inputs.features.ids)} if inputs.features is not None else set()
    for hit in hits:
        listed |= {hit.id, *hit.duplicates}
    return sorted(listed)


def to_hits(recollection: RecallResult) -> tuple[SavedHit, ...]:
    """Return the stored form of hits."""
    return tuple(
        SavedHit(hit.memory.id, hit.score, hit.channels, hit.duplicates, hit.preferences) for hit in recollection.hits
    )


def from_cue(cue: Cue) -> dict[str, JSON]:
    """Encode the fields of a cue that are not defaults, without its embedding."""
    written: dict[str, JSON] = CUE.dump_python(replace(cue, embedding=None), mode="json", exclude_defaults=True)
    return written


def to_cue(written: JSON) -> Cue:
    """Decode a cue."""
    return CUE.validate_python(written)


def rank_again(
    kept: SavedRecallData, weights: Mapping[str, float] | None = None, *, whole: bool = False
) -> tuple[RankedCandidate, ...]:
    """Rank the candidates of a saved recall again, optionally with other weights.

    Returns the hits, or all candidates if `whole`. Duplicates stay duplicates, and dropped candidates stay dropped.
    """
    inputs = replace(kept.inputs, weights={**kept.inputs.weights, **(weights or {})})
    ranking = fuse(inputs)
    dropped = find_dropped(kept, fuse(kept.inputs) if weights else ranking)
    partners = pair(kept.hits)
    then = {hit.id: (rank, hit.duplicates) for rank, hit in enumerate(kept.hits, 1)}
    hits: dict[UUID, RankedCandidate] = {}
    others: list[RankedCandidate] = []
    passed = 0
    for each in [*ranking, *below(inputs, ranking)] if whole else ranking:
        group = partners.get(each.id, frozenset())
        # A dropped candidate used a place of the limit, but no saved hit loses its place because of it.
        full = len(hits) + (0 if each.id in then else passed) >= kept.limit
        fate = decide(each.id, group, hits, dropped, full=full)
        passed += fate is CandidateOutcome.DROPPED
        its_features = inputs.features.get_features(each.id) if inputs.features is not None else None
        placing = RankedCandidate(
            each.id, fate, 0, each.score, each.channels, each.preferences, each.relevance, its_features
        )
        if fate is CandidateOutcome.HIT:
            before, duplicates = then.get(each.id, (None, tuple(sorted(group - {each.id}))))
            hits[each.id] = replace(placing, rank=len(hits) + 1, before=before, duplicates=duplicates)
        else:
            others.append(placing)
    return (*hits.values(), *others) if whole else tuple(hits.values())


def to_explanation(kept: SavedRecallData, placings: tuple[RankedCandidate, ...], recall_id: UUID | None) -> Explanation:
    """Return the explanation of a recall from its stored form."""
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


def below(inputs: RankingInput, ranking: Sequence[FusedCandidate]) -> list[FusedCandidate]:
    """Rank the candidates that are not in the original ranking."""
    known = {each.id for each in ranking}
    every = sum(map(len, inputs.candidates.values())) + len(inputs.evidence)
    return [each for each in fuse(replace(inputs, limit=every)) if each.id not in known]


def decide(
    memory_id: UUID,
    group: frozenset[UUID],
    hits: Mapping[UUID, RankedCandidate],
    dropped: frozenset[UUID],
    *,
    full: bool,
) -> CandidateOutcome:
    """Return the outcome of the next candidate in a ranking."""
    if memory_id in dropped:
        return CandidateOutcome.DROPPED
    if not group.isdisjoint(hits.keys()):
        return CandidateOutcome.DUPLICATE
    return CandidateOutcome.BELOW if full else CandidateOutcome.HIT


def pair(hits: Sequence[SavedHit]) -> dict[UUID, frozenset[UUID]]:
    """Map each memory to its group of near duplicates, including itself."""
    groups = [frozenset({hit.id, *hit.duplicates}) for hit in hits if hit.duplicates]
    return {memory_id: group for group in groups for memory_id in group}


def find_dropped(kept: SavedRecallData, best: Sequence[FusedCandidate]) -> frozenset[UUID]:
    """Find the best candidates that are not hits: they took a place, and were dropped afterwards."""
    hits = {hit.id for hit in kept.hits}
    duplicates = {memory_id for hit in kept.hits for memory_id in hit.duplicates}
    ranking = [each.id for each in best]
    winners = [place for place, each in enumerate(ranking, 1) if each not in duplicates]
    last = max((place for place in winners if ranking[place - 1] in hits), default=0)
    end = max(last, winners[kept.limit - 1] if len(winners) >= kept.limit else len(ranking))
    return frozenset(ranking[:end]) - hits - duplicates


def is_same(kept: SavedRecallData, placings: Sequence[RankedCandidate]) -> bool:
    """Return whether a ranking has exactly the hits and scores of the recall."""
    return [*map(hit_identity, kept.hits)] == [
        hit_identity(each) for each in placings if each.fate is CandidateOutcome.HIT
    ]


def hit_identity(hit: SavedHit | RankedCandidate) -> tuple[UUID, float, dict[str, float], dict[str, float]]:
    """Return the identity of a hit: the memory, the score, and its parts."""
    shares = {name: part.share for name, part in hit.channels.items()}
    return hit.id, hit.score, shares, dict(hit.preferences)

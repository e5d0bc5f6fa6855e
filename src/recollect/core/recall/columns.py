"""The input of a ranking in columns: one array for each feature of the candidates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.dates.periods import from_microseconds, to_microseconds
from recollect.models.memories import Kind
from recollect.models.recall import Candidate, Factors, Features, QueryAnalysis

Ids = NDArray[np.bytes_]
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Name = TypeVar("Name", bound=Hashable)
ID = np.dtype("S16")
"""A memory's ID as 16 bytes, which sort like IDs."""
KINDS = tuple(Kind)
NO_IDS: Ids = np.empty(0, ID)


def to_ids(ids: Iterable[UUID]) -> Ids:
    """Convert IDs to a column."""
    return np.frombuffer(b"".join(each.bytes for each in ids), ID)


def to_uuid(each: bytes) -> UUID:
    """Convert one value of a column to an ID; numpy removes zeros at its end."""
    return UUID(bytes=each.ljust(16, b"\0"))


def to_uuids(ids: Ids) -> list[UUID]:
    """Convert a column to IDs."""
    return [to_uuid(each) for each in ids.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The candidates of one channel, best first: memories and scores in the channel's own unit."""

    ids: Ids = field(default_factory=lambda: NO_IDS)
    scores: Scores = field(default_factory=lambda: np.empty(0))
    factors: Scores | None = None
    """A row for each candidate: recency, similarity, importance and rank, if the score consists of them."""

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.ids)

    def select(self, places: Numbers | NDArray[np.intp] | Flags) -> Candidates:
        """Return some candidates, in the order of the places."""
        return Candidates(self.ids[places], self.scores[places], None if self.factors is None else self.factors[places])

    def factors_of(self, place: int) -> Factors | None:
        """Return the factors of one score, if known."""
        if self.factors is None or np.isnan(self.factors[place, 0]):
            return None
        recency, similarity, importance, rank = self.factors[place].tolist()
        return Factors(recency, similarity, importance, int(rank))

    def __iter__(self) -> Iterator[Candidate]:
        """Iterate over the candidates."""
        for place, (each, score) in enumerate(zip(to_uuids(self.ids), self.scores.tolist(), strict=True)):
            yield Candidate(each, score, self.factors_of(place))


def to_candidates(proposed: Sequence[Candidate]) -> Candidates:
    """Convert candidates to columns."""
    factors = None
    if any(each.factors for each in proposed):
        nothing = (np.nan, np.nan, np.nan, 0)
        factors = np.array(
            [
                (each.factors.recency, each.factors.similarity, each.factors.importance, each.factors.rank)
                if each.factors
                else nothing
                for each in proposed
            ]
        )
    return Candidates(
        to_ids(each.id for each in proposed), np.array([each.score for each in proposed], dtype=np.float64), factors
    )


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """The features of the candidates, in ascending order of their IDs."""

    ids: Ids
    occurred_at: Numbers
    """In microseconds since 1970."""
    accessed_at: Numbers
    """Equal to `occurred_at` if the last access is unknown, or if there was none."""
    kinds: Numbers
    """As indices in `KINDS`."""
    speakers: Numbers
    """As indices in `speaker_names`."""
    speaker_names: tuple[str, ...]
    """Normalized names; empty for memories without a speaker."""
    sessions: Numbers
    """As indices in `session_names`."""
    session_names: tuple[str, ...]
    places: Scores
    cosines: Scores
    """NaN if a memory or the cue has no vector."""
    terms: Flags
    """A column for each term of the cue: whether a memory contains it."""
    lengths: Numbers
    importances: Scores
    assistant: Flags
    asks: Flags
    tells_time: Flags
    tells_number: Flags
    is_instruction: Flags
    named: Flags

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.ids)

    def find_indices(self, ids: Ids) -> NDArray[np.intp]:
        """Return the indices of IDs that all are in the table."""
        return np.searchsorted(self.ids, ids)

    def knows(self, ids: Ids) -> Flags:
        """Return which IDs are in the table."""
        if not len(self.ids):
            return np.zeros(len(ids), dtype=np.bool_)
        known: Flags = self.ids[np.minimum(self.find_indices(ids), len(self.ids) - 1)] == ids
        return known

    def select(self, places: NDArray[np.intp]) -> FeatureTable:
        """Return some candidates, in the order of the places."""
        chosen = {name: getattr(self, name)[places] for name in ARRAYS}
        return FeatureTable(**chosen, speaker_names=self.speaker_names, session_names=self.session_names)

    def find_access(self, place: int) -> datetime | None:
        """Return when a candidate was last accessed, or None if unknown."""
        accessed = int(self.accessed_at[place])
        return from_microseconds(accessed) if accessed != self.occurred_at[place] else None

    def get_features(self, memory_id: UUID) -> Features | None:
        """Return the features of one candidate."""
        ids = to_ids([memory_id])
        if not self.knows(ids)[0]:
            return None
        place = int(self.find_indices(ids)[0])
        cosine = float(self.cosines[place])
        return Features(
            occurred_at=from_microseconds(int(self.occurred_at[place])),
            accessed_at=self.find_access(place),
            kind=KINDS[self.kinds[place]],
            speaker=self.speaker_names[self.speakers[place]],
            session=self.session_names[self.sessions[place]],
            place=float(self.places[place]),
            cosine=None if np.isnan(cosine) else cosine,
            terms=tuple(np.flatnonzero(self.terms[place]).tolist()),
            length=int(self.lengths[place]),
            importance=float(self.importances[place]),
            **{name: bool(getattr(self, name)[place]) for name in FLAGS},
        )


FLAGS = ("assistant", "asks", "tells_time", "tells_number", "is_instruction", "named")
ARRAYS: Mapping[str, np.dtype[np.generic]] = {
    "ids": ID,
    **dict.fromkeys(("occurred_at", "accessed_at", "kinds", "speakers", "sessions", "lengths"), np.dtype(np.int64)),
    **dict.fromkeys(("places", "cosines", "importances"), np.dtype(np.float64)),
    **dict.fromkeys(("terms", *FLAGS), np.dtype(np.bool_)),
}
"""The columns of a table that are arrays."""


def number(names: Iterable[Name]) -> tuple[Numbers, tuple[Name, ...]]:
    """Return a column of numbers for names, and the distinct names in this order."""
    numbers: dict[Name, int] = {}
    column = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    return column, tuple(numbers)


def to_table(features: Mapping[UUID, Features], width: int) -> FeatureTable:
    """Convert the features of candidates to columns; `width` is the number of terms in the cue."""
    ordered = sorted(features)
    known = [features[each] for each in ordered]
    terms = np.zeros((len(known), width), dtype=np.bool_)
    for place, each in enumerate(known):
        terms[place, list(each.terms)] = True
    speakers, speaker_names = number(each.speaker for each in known)
    sessions, session_names = number(each.session for each in known)
    return FeatureTable(
        ids=to_ids(ordered),
        occurred_at=np.array([to_microseconds(each.occurred_at) for each in known], dtype=np.int64),
        accessed_at=np.array([to_microseconds(each.accessed_at or each.occurred_at) for each in known], dtype=np.int64),
        kinds=np.array([KINDS.index(each.kind) for each in known], dtype=np.int64),
        speakers=speakers,
        speaker_names=speaker_names,
        sessions=sessions,
        session_names=session_names,
        places=np.array([each.place for each in known], dtype=np.float64),
        cosines=np.array([np.nan if each.cosine is None else each.cosine for each in known], dtype=np.float64),
        terms=terms,
        lengths=np.array([each.length for each in known], dtype=np.int64),
        importances=np.array([each.importance for each in known], dtype=np.float64),
        **{name: np.array([getattr(each, name) for each in known], dtype=np.bool_) for name in FLAGS},
    )


@dataclass(frozen=True, slots=True, eq=False)
class EvidencePairs:
    """Pairs of candidates: a learned memory, and one memory of its evidence."""

    learned: Ids = field(default_factory=lambda: NO_IDS)
    sources: Ids = field(default_factory=lambda: NO_IDS)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.learned)

    def select(self, chosen: Flags) -> EvidencePairs:
        """Return some pairs."""
        return EvidencePairs(self.learned[chosen], self.sources[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class RankingInput:
    """The whole input of a ranking: equal input always gives the same ranking."""

    candidates: Mapping[str, Candidates]
    """The candidates of each channel, best first."""
    features: FeatureTable | None
    """The features of the candidates; None if a single channel ranks alone."""
    facets: QueryAnalysis
    weights: Mapping[str, float]
    limit: int
    rarities: tuple[float, ...] = ()
    """How rare each term of the cue is."""
    model: str = ""
    """The embedding model whose vectors were compared with the cue; empty if none was."""
    evidence: EvidencePairs = field(default_factory=EvidencePairs)
    """The evidence of some candidates; these memories are candidates, too."""

"""How likely a memory helps with the cue: a number that means the same in every answer, scope and day.

`bench/relevance.py` prints these tables, learned from questions that a scope answers and from questions about other
people, and says what they are worth on questions they were not learned from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.core.recall.columns import Scores
from recollect.models.recall import Script

FLOOR = 0.003
"""What is less likely to help is not worth its tokens in a prompt."""
ENOUGH = 0.027
"""Where nothing is so likely to help, nothing is relevant."""
WHOLE = 0.9
"""What has this part of the cue's words has enough of them, however short the cue."""
TELLING = frozenset({"keyword", "graph", "topic", "date"})
"""Channels that find by what the cue names: no question set tells what each is worth, so their hits have enough."""
LEAST_TELLING: Mapping[str, float] = MappingProxyType({"graph": 0.375})
"""What a hit must score in such a channel: as a fact two hops from a name. From anywhere else, facts score less."""
MEASURES = ("base", "coverage", "best_coverage", "text", "words", "speaker", "place", "vector")
"""What is measured of a hit: the part of the cue that it has, and that the best one has; its score in `text` beside the
best one's, and by itself; whether the cue names who spoke; its place in the ranking; its cosine with the cue."""
WITHOUT_VECTOR: Mapping[Script, tuple[float, ...]] = MappingProxyType(
    {
        Script.WORDS: (-4.51, 1.04, -1.89, 0.63, 1.39, 0.81, -0.6, 0.0),
        Script.CJK: (-3.55, -0.37, 0.62, 0.06, 0.84, 0.6, -0.85, 0.0),
    }
)
ENGLISH = (-4.5, 0.72, -1.73, 0.5, 0.46, 0.48, -0.79, 5.66)
WITH_VECTOR: Mapping[str, Mapping[Script, tuple[float, ...]]] = MappingProxyType(
    {
        "all-MiniLM-L6-v2@1": {Script.WORDS: ENGLISH},
        "all-MiniLM-L6-v2@1+cc-cedict@1": {
            Script.WORDS: ENGLISH,
            Script.CJK: (-3.55, 2.48, 0.21, -1.07, 0.44, 0.86, -0.9, 3.21),
        },
    }
)
"""By embedding model: a cosine of one says something else than that of another."""


class Rateable(Protocol):
    """Something with a relevance, as hits have; None where it is not known."""

    @property
    def relevance(self) -> float | None:
        """Return it."""
        ...


Rated = TypeVar("Rated", bound=Rateable)


def has_table(model: str, script: Script) -> bool:
    """Tell whether it is known what the vectors of a model say of relevance."""
    return script in WITH_VECTOR.get(model, {})


def estimate(measures: Scores, script: Script, model: str = "") -> Scores:
    """Estimate the relevance of hits, a row of measures for each; by words alone if no model's vectors tell of it."""
    table = WITH_VECTOR[model][script] if has_table(model, script) else WITHOUT_VECTOR[script]
    likely: Scores = 1.0 / (1.0 + np.exp(-(measures @ np.array(table))))
    return likely


def arrange(
    coverage: Scores, text: Scores, text_scaled: Scores, speaker: Scores, vector: Scores, places: NDArray[np.intp]
) -> Scores:
    """Lay out what is measured of the hits at some places of the candidates, best first."""
    shown = coverage[places]
    columns = (
        np.ones(len(places)),
        shown,
        np.full(len(places), coverage.max(initial=0.0)),
        np.nan_to_num(text_scaled[places]),
        np.log1p(np.maximum(np.nan_to_num(text[places]), 0.0)),
        speaker[places],
        np.log1p(np.arange(len(places))),
        np.nan_to_num(vector[places]),
    )
    return np.column_stack(columns)


def choose_relevant(hits: Sequence[Rated]) -> tuple[Rated, ...]:
    """Choose what is worth its tokens in a prompt; nothing where nothing has enough, all where it is not known."""
    if any(hit.relevance is None for hit in hits):
        return tuple(hits)
    return () if is_irrelevant(hits) else drop_below(hits, FLOOR)


def is_irrelevant(hits: Sequence[Rateable]) -> bool:
    """Tell whether all of some hits are known to be hardly likely to help."""
    return bool(hits) and all(hit.relevance is not None and hit.relevance < ENOUGH for hit in hits)


def drop_below(hits: Sequence[Rated], least: float) -> tuple[Rated, ...]:
    """Drop what is less relevant than asked for, or not known to be."""
    return tuple(hit for hit in hits if hit.relevance is not None and hit.relevance >= least)


def tell_irrelevant(hits: Sequence[Rateable]) -> str:
    """Say that nothing is relevant enough, and how near it comes."""
    known = [hit.relevance for hit in hits if hit.relevance is not None]
    if not known:
        return "how likely the hits help was not found out in time"
    return f"nothing is likely to help with the cue: the best that was found has relevance {max(known):.3f}"

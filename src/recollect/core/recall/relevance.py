"""Relevance: the probability that a memory helps with the cue, comparable across answers, scopes and days.

`bench/relevance.py` prints these tables. They are learned from questions that a scope answers, and from questions about
other people. It also measures them on questions that were not used for learning.
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
"""Hits below this relevance are not worth their tokens in a prompt."""
MIN_RELEVANCE = 0.027
"""If no hit reaches this relevance, no hit is relevant."""
WHOLE = 0.9
"""A hit with this share of the cue's words has enough of them, even if the cue is short."""
TELLING = frozenset({"keyword", "graph", "topic", "date"})
"""Channels that match names in the cue. No question set measures them, so their hits always have enough."""
MIN_CHANNEL_SCORE: Mapping[str, float] = MappingProxyType({"graph": 0.375})
"""Minimum score of a hit in such a channel: a fact two hops from a name. Other facts have lower scores."""
MEASURES = ("base", "coverage", "best_coverage", "text", "words", "speaker", "place", "vector")
"""The measures of a hit: its share of the cue, and that of the best hit; its score in `text` relative to the best one,
and absolute; whether the cue names the speaker; its place in the ranking; its cosine with the cue."""
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
"""By embedding model: the meaning of a cosine depends on the model."""


class HasRelevance(Protocol):
    """An object with a relevance, such as a hit; None if unknown."""

    @property
    def relevance(self) -> float | None:
        """Return the relevance."""
        ...


Rated = TypeVar("Rated", bound=HasRelevance)


def has_table(model: str, script: Script) -> bool:
    """Return whether there is a relevance table for the vectors of a model."""
    return script in WITH_VECTOR.get(model, {})


def estimate(measures: Scores, script: Script, model: str = "") -> Scores:
    """Return the relevance of hits, one row of measures each; without vectors if the model has no table."""
    table = WITH_VECTOR[model][script] if has_table(model, script) else WITHOUT_VECTOR[script]
    likely: Scores = 1.0 / (1.0 + np.exp(-(measures @ np.array(table))))
    return likely


def relevance_inputs(
    coverage: Scores, text: Scores, text_scaled: Scores, speaker: Scores, vector: Scores, places: NDArray[np.intp]
) -> Scores:
    """Return the measures of the hits at some indices of the candidates, best first."""
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
    """Choose the hits that are worth their tokens: none if no hit is relevant, all if it is unknown."""
    if any(hit.relevance is None for hit in hits):
        return tuple(hits)
    return () if is_irrelevant(hits) else drop_below(hits, FLOOR)


def is_irrelevant(hits: Sequence[HasRelevance]) -> bool:
    """Return whether all hits are known to be irrelevant."""
    return bool(hits) and all(hit.relevance is not None and hit.relevance < MIN_RELEVANCE for hit in hits)


def drop_below(hits: Sequence[Rated], least: float) -> tuple[Rated, ...]:
    """Drop hits below a minimum relevance, or of unknown relevance."""
    return tuple(hit for hit in hits if hit.relevance is not None and hit.relevance >= least)


def explain_low_relevance(hits: Sequence[HasRelevance]) -> str:
    """Return that nothing is relevant enough, with the highest relevance."""
    known = [hit.relevance for hit in hits if hit.relevance is not None]
    if not known:
        return "how likely the hits help was not found out in time"
    return f"nothing is likely to help with the cue: the best that was found has relevance {max(known):.3f}"

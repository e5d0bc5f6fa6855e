"""Default weights of channels and preferences, learned on questions with known answers.

`bench/learn.py` prints these tables; `bench/quality.py` measures them on other questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from recollect.models.recall import Script

DEFAULT_CHANNELS = ("text", "vector", "keyword", "graph", "topic", "date")
"""The channels of a cue that names none."""
EVERY_CHANNEL = ("vector", "text", "stream", "keyword", "graph", "topic", "date", "recent")
_BOTH = {
    "text": (0.2, 2.1),
    "vector": (4.1, 2.5),
    "date": (2.9, 3.5),
    "near_date": (3.7, 1.0),
    "coverage": (3.5, 4.2),
    "surroundings": (1.8, 1.4),
    "session": (1.2, 0.0),
    "session_best": (0.0, 1.7),
    "session_meaning": (0.9, 0.0),
    "speaker": (2.8, 1.9),
    "answer": (1.3, 0.0),
    "tells_time": (1.5, 0.5),
    "tells_number": (1.2, 0.0),
    "question": (-0.3, 0.0),
    "assistant": (-1.3, 0.0),
    "instruction": (0.5, 0.0),
    "long": (-2.3, -3.4),
    "diversity": (0.4, 0.0),
}
LEARNED: Mapping[Script, Mapping[str, float]] = MappingProxyType(
    {
        Script.WORDS: MappingProxyType({name: words for name, (words, _) in _BOTH.items()}),
        Script.CJK: MappingProxyType({name: chinese for name, (_, chinese) in _BOTH.items()}),
    }
)
"""For Chinese, the weight of `vector` was chosen later: the other weights were learned without vectors."""
CHOSEN: Mapping[str, float] = MappingProxyType(
    {
        "stream": 4.0,
        "keyword": 0.5,
        "graph": 1.0,
        "topic": 1.5,
        "evidence": 4.0,
        "recent": 0.5,
        "latest": 3.0,
        "importance": 0.35,
        "accessed": 0.0,
        "opensearch": 0.05,
        "neo4j": 0.05,
    }
)
"""Weights that were not learned with the others. The weight of `evidence` was chosen on the training half of LoCoMo,
with the others fixed (`bench/learned.py`). No question set measures the rest. These weights are for keywords, links and
facts, for age in questions about the latest, and for importance: the most important memory gains as much over the least
important one as a tenth of the cue's words. The last access counts only if an agent's profile sets a weight. Mirrors
propose only IDs: their weight decides ties."""
NAMES = frozenset({*CHOSEN, *LEARNED[Script.WORDS]})


def default_weights(script: Script) -> dict[str, float]:
    """Return the weights for a cue of this script."""
    return {**CHOSEN, **LEARNED[script]}

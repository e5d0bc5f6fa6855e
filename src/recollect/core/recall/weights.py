"""Default weights of channels and preferences: learned on questions whose answers are known.

`bench/learn.py` prints these tables; what they are worth on questions they were not learned from, `bench/quality.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from recollect.models.recall import Script

USUAL_CHANNELS = ("text", "vector", "keyword", "graph", "topic", "date")
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
"""For Chinese the weight of `vector` was chosen with the others given: they were learned by words alone."""
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
"""Weights that were not learned with the others. That of `evidence` was chosen on the training half of LoCoMo, with the
others given (`bench/learned.py`). No question set tells the rest: of filed, linked and stated memories, of age where it
counts, and of importance: the most important memory leads the least important one by as much as a tenth of the cue's
words does. When a memory was last accessed counts for nothing unless an agent's profile says so. A mirror proposes ids
alone: its weight decides between equals."""
NAMES = frozenset({*CHOSEN, *LEARNED[Script.WORDS]})


def usual_weights(script: Script) -> dict[str, float]:
    """Return the weights for a cue of this script."""
    return {**CHOSEN, **LEARNED[script]}

"""Translate a persona's scratch into what an agent goes by, and write the living values over it on the way back."""

from __future__ import annotations

from recollect.doors.imports.generative_agents.folder import Scratch
from recollect.doors.imports.generative_agents.nodes import to_number
from recollect.models.agents import Overview, Profile
from recollect.models.memories import JSON
from recollect.models.recall import Weighing

USUAL = {"recency_w": 1, "relevance_w": 1, "importance_w": 1, "recency_decay": 0.99, "importance_trigger_max": 150}
"""What the original has where nobody says anything else."""


def to_profile(scratch: Scratch) -> Profile:
    """Give the weights, the decay and the threshold that the persona goes by."""
    weighing = Weighing(
        recency=scratch.recency_w,
        relevance=scratch.relevance_w,
        importance=scratch.importance_w,
        decay=scratch.recency_decay,
    )
    return Profile(weighing, reflection_threshold=scratch.importance_trigger_max)


def to_scratch(kept: JSON, overview: Overview) -> Scratch:
    """Write weights and counters as they are now over the scratch that was kept."""
    weighing, threshold = overview.profile.weighing, overview.profile.reflection_threshold
    said = {
        "recency_w": weighing.recency,
        "relevance_w": weighing.relevance,
        "importance_w": weighing.importance,
        "recency_decay": weighing.decay,
        "importance_trigger_max": threshold,
    }
    live = USUAL | {name: to_number(value) for name, value in said.items() if value is not None}
    live["importance_trigger_curr"] = to_number(live["importance_trigger_max"] - overview.unreflected_importance)
    live["importance_ele_n"] = overview.unreflected_events
    return Scratch.model_validate((kept if isinstance(kept, dict) else {}) | live)

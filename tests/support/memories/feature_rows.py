"""What the features of memories should be, worked out anew from the memories, their messages and their terms."""

from __future__ import annotations

from recollect.core.recall.features import detect_traits
from recollect.core.text.names import normalize_name

STATES = {
    None: "current", "archived": "in_archived", "faded": "faded", "past": "past",
    "deleted": "deleted", "to_rederive": "withheld",
}  # fmt: skip
EXPECTED = """
select memories.scope_id, memories.id, memories.kind, memories.occurred_at, memories.expires_at, memories.importance,
       memories.origin, messages.conversation_id, messages.role, messages.number,
       coalesce(cardinality(memory_terms.terms), cardinality(withheld_memories.terms), 0),
       memories.speaker, memories.content, memories.withheld
from memories
left join messages using (scope_id, id)
left join memory_terms using (scope_id, id)
left join withheld_memories using (scope_id, id)
order by 1, 2
"""
STORED = """
select scope_id, id, kind, occurred_at, expires_at, importance, origin, conversation_id, role, number, length,
       speaker, tells, state
from memory_features order by 1, 2
"""


def read_features(owner):
    """Read the features that are stored, and those that follow; pins are stored nowhere else."""
    expected = [
        (*same, normalize_name(speaker), int(detect_traits(content)), STATES[withheld])
        for *same, speaker, content, withheld in owner.execute(EXPECTED).fetchall()
    ]
    return owner.execute(STORED).fetchall(), expected


def count_states(owner):
    """Count memories by the state that their features tell."""
    return dict(owner.execute("select state, count(*) from memory_features group by state").fetchall())

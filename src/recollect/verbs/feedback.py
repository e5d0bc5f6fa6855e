"""Feedback: keep what a caller said of the hits of a recall, so that weights can be learned from it."""

from __future__ import annotations

from uuid import uuid4

from recollect.core.agents.feedback import check_feedback
from recollect.models.agents import Feedback
from recollect.models.service import Scope
from recollect.store.agents import feedback as marks
from recollect.verbs.parts import Parts


async def feedback(parts: Parts, scope: Scope, given: Feedback) -> int:
    """Store all marks of one recall, under a fresh id if it has none, and return how many there are."""
    check_feedback(given)
    return await marks.store(parts.database, scope, given.recall_id or uuid4(), given)

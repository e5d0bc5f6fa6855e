"""Recalls of cues that differ in more than their query, in one call."""

from __future__ import annotations

from recollect.mind.access import right_for
from recollect.models.recall import Cue
from recollect.verbs.recall.no_hits import recall_for


async def recall_each(mind, cues, *, isolated=False):
    """Recall by texts and cues, in turn or from one snapshot."""
    asked = [Cue(cue) if isinstance(cue, str) else cue for cue in cues]
    access = mind.access
    access.require(right_for(asked))
    place = await access.locate()
    return await recall_for(access.parts, access.caller, access.scope, asked, place, isolated=isolated)

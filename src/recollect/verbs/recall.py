"""Recall: read the cue, ask every channel at once, fuse what they propose, fetch the winners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.channels.channel import Proposal
from recollect.core.checks import check_cue, unit_vector
from recollect.core.cues import Reading, read
from recollect.core.fusion import default_weights, fuse
from recollect.core.terms import script_of
from recollect.errors import InvalidInputError
from recollect.llm.embedder import serves
from recollect.models import Cue, Hit, Recollection, Scope, Script
from recollect.store import memories
from recollect.store.scopes import Place
from recollect.store.spaces import tenant_of
from recollect.verbs.parts import Parts

FEWEST_CANDIDATES = 100
EVERY_SCRIPT = frozenset(Script)


async def recall(parts: Parts, scope: Scope, cue: Cue, place: Place) -> Recollection:
    """Give back what a cue reminds of, best first, with each channel's part in every hit."""
    check_cue(cue)
    vector, without_vector = await find_vector(parts, cue, place)
    if place.scope_id is None:
        return Recollection((), {})
    reading = read(cue, vector, without_vector)
    proposals = await ask_channels(parts, place, reading, max(FEWEST_CANDIDATES, cue.limit))
    candidates = {name: proposal.candidates for name, proposal in proposals.items()}
    # A vector is here only if whoever made it reads the cue's script: see find_vector.
    ranked = fuse(candidates, default_weights(reading.script, EVERY_SCRIPT), cue.limit)
    found = await memories.fetch(parts.database, scope, [hit.id for hit in ranked]) if ranked else {}
    hits = [Hit(found[hit.id], hit.score, hit.channels) for hit in ranked if hit.id in found]
    return Recollection(tuple(hits), {name: proposal.method for name, proposal in proposals.items()})


async def find_vector(parts: Parts, cue: Cue, place: Place) -> tuple[NDArray[np.float32] | None, str]:
    """Take the caller's vector, or the embedder's if it fits, reads the cue and answers in time; else say why not."""
    if cue.embedding is not None:
        if place.space is None:
            raise InvalidInputError("embedding is not accepted: no embedding space is active")
        return unit_vector(cue.embedding, place.space.dimensions), ""
    if place.scope_id is None or parts.embedder is None:
        return None, "no embedder is configured"
    if not serves(parts.embedder, place.space):
        return None, "the configured model is not the active space's"
    if script_of(cue.text) not in parts.embedder.scripts:
        return None, "the embedder does not read this script"
    rows = await parts.embed_in_time([cue.text])
    return (None, "the embedder did not answer in time") if rows is None else (rows[0], "")


async def ask_channels(parts: Parts, place: Place, reading: Reading, limit: int) -> dict[str, Proposal]:
    """Send all questions in one round trip, then read the answers."""
    async with parts.database.reading(tenant_of(place.scope_id or 0)) as connection:
        asked = {channel.name: await channel.ask(connection, place, reading, limit) for channel in parts.channels}
    return {name: await read_answer() for name, read_answer in asked.items()}

"""Recall: read the cues, ask every channel at once, fuse what they propose, fetch the winners and note their access."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.channels.channel import Channel, Proposal
from recollect.core.checks import check_cue, unit_vector
from recollect.core.cues import Reading, read
from recollect.core.fusion import USUAL_CHANNELS, default_weights, fuse, join
from recollect.core.terms import script_of
from recollect.errors import InvalidInputError, UnavailableError
from recollect.llm.embedder import serves
from recollect.models import Cue, Embedding, Hit, Memory, Ranked, Recollection, Scope, Script, Status, Times
from recollect.store import memories
from recollect.store.scopes import Place
from recollect.store.spaces import tenant_of
from recollect.verbs.parts import Parts

FEWEST_CANDIDATES = 100
USUAL_LIMIT = 10
MOST_CUES = 64
RECORDING_SHARE = 0.25
"""So much of the deadline may be spent on noting accesses; an answer without them is better than none."""
EVERY_SCRIPT = frozenset(Script)
PAST = "past"
"""Asked beside the usual channels where a cue names a time; the others know of no versions."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One cue, taken apart, with the channels that it is put to."""

    cue: Cue
    reading: Reading
    channels: Sequence[Channel]
    limit: int

    @property
    def depth(self) -> int:
        """Say how many candidates each channel is asked for: to fuse them takes more than are shown."""
        return self.limit if len(self.channels) == 1 else max(FEWEST_CANDIDATES, self.limit)


async def recall(parts: Parts, scope: Scope, cue: Cue, place: Place) -> Recollection:
    """Give back what a cue reminds of, best first, with each channel's part in every hit."""
    return (await recall_each(parts, scope, [cue], place))[0]


async def recall_each(
    parts: Parts, scope: Scope, cues: Sequence[Cue], place: Place, *, isolated: bool = False
) -> list[Recollection]:
    """Recall by several cues: each after the access of the one before is on record, or all on one snapshot."""
    if not 1 <= len(cues) <= MOST_CUES:
        raise InvalidInputError(f"cues must hold 1 to {MOST_CUES} items")
    for cue in cues:
        check_cue(cue)
    chosen = [choose_channels(parts, cue) for cue in cues]
    vectors = await find_vectors(parts, cues, place)
    if place.scope_id is None:
        return [Recollection((), {}, Status.NO_CANDIDATES) for _ in cues]
    asked = [
        Asked(cue, read(cue, *vector), channels, cue.limit or place.profile.limit or USUAL_LIMIT)
        for cue, vector, channels in zip(cues, vectors, chosen, strict=True)
    ]
    steps = [asked] if isolated else [[each] for each in asked]
    return [recollection for step in steps for recollection in await answer(parts, scope, place, step)]


def choose_channels(parts: Parts, cue: Cue) -> list[Channel]:
    """Find the channels that a cue names, or the usual ones."""
    known = {channel.name: channel for channel in parts.channels}
    if unknown := sorted(set(cue.channels) - known.keys()):
        raise InvalidInputError(f"there is no channel {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    named = [*(cue.channels or USUAL_CHANNELS)]
    if cue.times.past and not set(named).isdisjoint(USUAL_CHANNELS):
        named.append(PAST)
    return [known[name] for name in dict.fromkeys(named) if name in known]


async def find_vectors(parts: Parts, cues: Sequence[Cue], place: Place) -> list[tuple[NDArray[np.float32] | None, str]]:
    """Take the callers' vectors, or the embedder's for the cues it reads if it answers in time; else say why not."""
    missing = [cue for cue in cues if cue.embedding is None and not explain_absence(parts, cue, place)]
    rows = await parts.embed_in_time([cue.text for cue in missing]) if missing else None
    made = iter(rows if rows is not None else ())
    found: list[tuple[NDArray[np.float32] | None, str]] = []
    for cue in cues:
        if cue.embedding is not None:
            found.append((take_vector(cue.embedding, place), ""))
        elif reason := explain_absence(parts, cue, place):
            found.append((None, reason))
        else:
            vector = next(made, None)
            found.append((vector, "" if vector is not None else "the embedder did not answer in time"))
    return found


def take_vector(embedding: Embedding, place: Place) -> NDArray[np.float32]:
    """Check a caller's vector against the active space."""
    if place.space is None:
        raise InvalidInputError("embedding is not accepted: no embedding space is active")
    return unit_vector(embedding, place.space.dimensions)


def explain_absence(parts: Parts, cue: Cue, place: Place) -> str:
    """Say why no embedder can give a cue its vector; nothing if one can."""
    if place.scope_id is None or parts.embedder is None:
        return "no embedder is configured"
    if not serves(parts.embedder, place.space):
        return "the configured model is not the active space's"
    if script_of(cue.text) not in parts.embedder.scripts:
        return "the embedder does not read this script"
    return ""


async def answer(parts: Parts, scope: Scope, place: Place, step: Sequence[Asked]) -> list[Recollection]:
    """Answer cues that see the same memories: one round trip to rank, one to fetch and to note the access."""
    started = time.perf_counter()
    proposals = await ask_channels(parts, place, step)
    rankings = [rank(asked, proposed) for asked, proposed in zip(step, proposals, strict=True)]
    found, accessed = await fetch(parts, scope, place, step, rankings)
    milliseconds = (time.perf_counter() - started) * 1000
    untouched: frozenset[UUID] = frozenset()
    return [
        conclude(
            ranking, proposed, found.get(asked.cue.times, {}), accessed if asked.cue.touch else untouched, milliseconds
        )
        for asked, ranking, proposed in zip(step, rankings, proposals, strict=True)
    ]


async def ask_channels(parts: Parts, place: Place, step: Sequence[Asked]) -> list[dict[str, Proposal]]:
    """Send all questions in one round trip, then read the answers."""
    async with parts.database.reading(tenant_of(place.scope_id or 0), one_snapshot=len(step) > 1) as connection:
        sent = [
            {each.name: await each.ask(connection, place, asked.reading, asked.depth) for each in asked.channels}
            for asked in step
        ]
    return [{name: await read_answer() for name, read_answer in answers.items()} for answers in sent]


def rank(asked: Asked, proposals: Mapping[str, Proposal]) -> list[Ranked]:
    """Fuse what the channels propose."""
    own = {name: proposal.candidates for name, proposal in proposals.items()}
    lent = {unit: some for proposal in proposals.values() for unit, some in proposal.lent.items()}
    candidates = join(own, lent, asked.depth)
    # A vector is here only if whoever made it reads the cue's script: see explain_absence.
    return fuse(candidates, default_weights(asked.reading.script, EVERY_SCRIPT), asked.limit)


async def fetch(
    parts: Parts, scope: Scope, place: Place, step: Sequence[Asked], rankings: Iterable[Sequence[Ranked]]
) -> tuple[dict[Times, dict[UUID, Memory]], frozenset[UUID]]:
    """Fetch the winners and note their access; where nothing can be written, an answer is still an answer."""
    ids: dict[Times, list[UUID]] = {}
    touched: dict[datetime | None, list[UUID]] = {}
    for asked, ranking in zip(step, rankings, strict=True):
        found = [hit.id for hit in ranking]
        if found:
            ids.setdefault(asked.cue.times, []).extend(found)
        if asked.cue.touch and found:
            touched.setdefault(asked.cue.now, []).extend(found)
    if touched:
        with suppress(UnavailableError, TimeoutError):
            async with asyncio.timeout(RECORDING_SHARE * parts.database.deadline_seconds):
                return await memories.fetch_accessed(parts.database, scope, place.scope_id or 0, ids, touched)
    return await memories.fetch_each(parts.database, scope, ids) if ids else {}, frozenset()


def conclude(
    ranking: Sequence[Ranked],
    proposals: Mapping[str, Proposal],
    found: Mapping[UUID, Memory],
    accessed: frozenset[UUID],
    milliseconds: float,
) -> Recollection:
    """Put one answer together; a recall is in error only if no channel could look at all."""
    hits = tuple(Hit(found[hit.id], hit.score, hit.channels) for hit in ranking if hit.id in found)
    reasons = [f"{name}: {proposal.method}" for name, proposal in proposals.items() if not proposal.answered]
    silent = len(reasons) == len(proposals)
    return Recollection(
        hits=hits,
        methods={name: proposal.method for name, proposal in proposals.items()},
        status=Status.ERROR if silent else Status.OK if hits else Status.NO_CANDIDATES,
        message="; ".join(reasons) if silent else "",
        accessed=tuple(hit.memory.id for hit in hits if hit.memory.id in accessed),
        tallies={name: proposal.tally for name, proposal in proposals.items() if proposal.tally},
        milliseconds=round(milliseconds, 3),
    )

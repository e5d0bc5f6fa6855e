"""Recall: read the cues, ask every channel at once, fuse their candidates, fetch the winners and note their access."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.channels.channel import Channel, Proposal
from recollect.core.agents.profiles import fill_in
from recollect.core.agents.scoring import STREAM_KINDS
from recollect.core.memories.vectors import unit_vector
from recollect.core.recall.checks import check_channels, check_cue
from recollect.core.recall.cues import Reading, find_asked, find_question, read
from recollect.core.recall.features import MOST_READ
from recollect.core.recall.relevance import choose_relevant, has_table, is_irrelevant, tell_irrelevant
from recollect.core.recall.weights import USUAL_CHANNELS
from recollect.core.text.similar import collapse
from recollect.core.text.variants import choose_version
from recollect.errors import InvalidInputError
from recollect.llm.embedder import explain_unserved, serves
from recollect.models.memories import Embedding, Memory
from recollect.models.recall import Asks, Cue, Filter, Hit, Ranked, Recollection, Status
from recollect.models.service import Scope
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts, spare_loop
from recollect.verbs.recall.access import correct_access, fetch_and_note, note_judged
from recollect.verbs.recall.channels import AskedCue, ask_channels
from recollect.verbs.recall.judge import look_over
from recollect.verbs.recall.keep import explain_now, keep
from recollect.verbs.recall.rank import PAST, USUAL_LIMIT, Ranking, rank
from recollect.verbs.recall.read_cue import consult_each

MOST_CUES = 64
MOST_CHARACTERS = 32_000
"""The longest that all cues together may be: each of them is a recall of its own."""
HEAVY_CHARACTERS = 1_000
"""Longer cues are read in a thread, so that the event loop stays free."""
LENT = frozenset({"text", "vector"})
"""If a cue names a time or a state, the channel `past` is asked beside these two: they know only the present."""
TOPIC = "topic"
"""Asked for in any case where a cue names topics: what is filed there comes first."""
RECENT = "recent"
"""Asked in addition to the usual channels if a cue asks for what is newest; alone if it has no text."""
JUDGE, READ, RELEVANCE = "judge", "read", "relevance"
UNTAUGHT = "by words alone: what a vector of {} says of relevance was never learned"
TEXT, STREAM_ALONE = "text", ("stream",)
UNREAD = "the embedder does not read this script"
Winner: TypeAlias = tuple[Ranked, tuple[UUID, ...]]
"""A hit, and the memories that it stands for."""


async def recall(parts: Parts, scope: Scope, cue: Cue, place: Place) -> Recollection:
    """Return what a cue reminds of, best first, with each channel's part in every hit."""
    return (await recall_each(parts, scope, [cue], place))[0]


async def recall_relevant(parts: Parts, scope: Scope, cue: Cue, place: Place) -> Recollection:
    """Recall for a prompt: leave out what is hardly likely to help, unless the cue names its own least relevance."""
    return leave_relevant(await recall(parts, scope, cue, place), cue, place)


def leave_relevant(made: Recollection, cue: Cue, place: Place) -> Recollection:
    """Leave what is worth its tokens in a prompt."""
    if fill_in(cue, place.profile).min_relevance is not None or not made.hits:
        return made
    hits = choose_relevant(made.hits)
    if hits:
        return replace(made, hits=hits)
    return replace(made, hits=(), status=Status.NOTHING_RELEVANT, message=tell_irrelevant(made.hits))


async def recall_each(
    parts: Parts, scope: Scope, cues: Sequence[Cue], place: Place, *, isolated: bool = False
) -> list[Recollection]:
    """Recall by several cues: each after the access of the one before is noted, or all on one snapshot."""
    asked = await read_each(parts, cues, place)
    if place.scope_id is None:
        return [Recollection((), {}, Status.NO_CANDIDATES) for _ in cues]
    steps = [asked] if isolated else [[each] for each in asked]
    return [recollection for step in steps for recollection in await answer(parts, scope, place, step)]


async def rank_one(parts: Parts, cue: Cue, place: Place) -> Ranking | None:
    """Rank what a cue reminds of and go no further; None in a scope without memories."""
    asked = await read_each(parts, [cue], place)
    if place.scope_id is None:
        return None
    [proposed] = await ask_channels(parts, place, asked)
    return await rank(parts, place, asked[0], proposed)


async def read_each(parts: Parts, cues: Sequence[Cue], place: Place) -> list[AskedCue]:
    """Check cues, and read all that is asked by them; the chat model is consulted where they ask for it."""
    if not 1 <= len(cues) <= MOST_CUES:
        raise InvalidInputError(f"cues must hold 1 to {MOST_CUES} items")
    # One of several scopes that are read may fold texts otherwise than the others.
    choose_version(place.text_version)
    characters = sum(len(cue.text) for cue in cues)
    if characters > MOST_CHARACTERS:
        raise InvalidInputError(f"cues must hold at most {MOST_CHARACTERS} characters together")
    for cue in cues:
        check_cue(cue, parts.channel_names)
    cues = [fill_in(cue, place.profile) for cue in cues]
    vectors = await find_vectors(parts, cues, place)
    cues = [add_words(cue, reason) for cue, (_, reason) in zip(cues, vectors, strict=True)]
    chosen = [choose_channels(parts, cue) for cue in cues]
    if place.scope_id is None:
        return []
    profile = place.profile

    def read_cues() -> list[AskedCue]:
        return [
            AskedCue(cue, read_cue(cue, profile.names, *vector), channels, cue.limit or profile.limit or USUAL_LIMIT)
            for cue, vector, channels in zip(cues, vectors, chosen, strict=True)
        ]

    asked = await spare_loop(characters > HEAVY_CHARACTERS, read_cues)
    return await consult_each(parts, place, asked)


def read_cue(cue: Cue, own: Sequence[str], vector: NDArray[np.float32] | None, without_vector: str) -> Reading:
    """Parse a cue, for its moment and for those whose memory it is."""
    return read(cue, vector, without_vector, now=cue.now or datetime.now(UTC), own=own)


def add_words(cue: Cue, without_vector: str) -> Cue:
    """Search by words, too, among the kinds of the stream, if it is asked alone and the cue cannot be embedded."""
    if without_vector != UNREAD or tuple(cue.channels) != STREAM_ALONE:
        return cue
    return replace(cue, channels=(*cue.channels, TEXT), kinds=cue.kinds or STREAM_KINDS)


def choose_channels(parts: Parts, cue: Cue) -> list[Channel]:
    """Find the channels that a cue names, or the usual ones."""
    known = {channel.name: channel for channel in parts.channels}
    check_channels(cue.channels, known.keys())
    named = [*(cue.channels or ((RECENT,) if cue.blank else USUAL_CHANNELS))]
    if not cue.channels and Asks.LATEST in find_asked(find_question(cue.text)):
        named.append(RECENT)
    if cue.topics and not cue.topics_only:
        named.append(TOPIC)
    elif cue.topics and not cue.channels:
        # All that is admitted is filed there: where each of it is filed says little.
        named = [name for name in named if name != TOPIC]
    if cue.left and not LENT.isdisjoint(named):
        named.append(PAST)
    return [known[name] for name in dict.fromkeys(named) if name in known]


async def find_vectors(parts: Parts, cues: Sequence[Cue], place: Place) -> list[tuple[NDArray[np.float32] | None, str]]:
    """Take the callers' vectors, or the embedder's if it answers in time; else say why not."""
    missing = [cue for cue in cues if cue.embedding is None and not explain_absence(parts, cue, place)]
    rows = await parts.embed_in_time([cue.text for cue in missing], cues=True) if missing else None
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
    """Say why no embedder can embed a cue; empty if one can."""
    if cue.blank:
        return "the cue has no text"
    if place.scope_id is None or parts.embedder is None:
        return "no embedder is configured"
    if not serves(parts.embedder, place.space):
        return explain_unserved(parts.embedder, place.space) or "no embedding space is active"
    if not parts.embedder.reads(cue.text):
        return UNREAD
    return ""


async def answer(parts: Parts, scope: Scope, place: Place, step: Sequence[AskedCue]) -> list[Recollection]:
    """Answer cues on the same snapshot: one round trip to ask, one for features, one to fetch and to note."""
    started = time.perf_counter()
    proposals = await ask_channels(parts, place, step)
    rankings = [await rank(parts, place, asked, proposed) for asked, proposed in zip(step, proposals, strict=True)]
    # Which of the best begin nearly the same is not known before they are read. Few do, and the note is corrected then.
    expected = list_touched(step, [[(each, ()) for each in ranking.best[: ranking.limit]] for ranking in rankings])
    found, noted = await fetch_and_note(parts, scope, place, list_best(step, rankings), expected)
    chosen = [
        choose_winners(ranking, found.get(asked.cue.filter, {})) for asked, ranking in zip(step, rankings, strict=True)
    ]
    accessed = await correct_access(parts, place, noted, expected, list_touched(step, chosen))
    milliseconds = (time.perf_counter() - started) * 1000
    answers: list[Recollection] = []
    for asked, ranking, proposed, winners in zip(step, rankings, proposals, chosen, strict=True):
        touched = accessed if asked.cue.touch else frozenset[UUID]()
        made = conclude(ranking, winners, proposed, found.get(asked.cue.filter, {}), touched, milliseconds)
        if asked.consulted:
            made = replace(made, methods={**made.methods, READ: asked.consulted})
        if asked.cue.judge:
            made = await let_judge(parts, scope, place, asked.cue, made)
        made = await keep(parts, place, asked.cue, asked.reading.vector, ranking.inputs, made)
        if asked.cue.explain:
            made = await explain_now(place, asked.cue, asked.reading.vector, ranking.inputs, made)
        answers.append(made)
    return answers


def choose_winners(ranking: Ranking, found: Mapping[UUID, Memory]) -> list[Winner]:
    """Choose the hits of what is still there: of what begins nearly the same, the best stands for all."""
    present = [each for each in ranking.best if each.id in found]
    if ranking.alone:
        return [(each, ()) for each in present]
    beginnings = {each.id: found[each.id].content[:MOST_READ] for each in present}
    return collapse(present, beginnings, ranking.limit)


async def let_judge(parts: Parts, scope: Scope, place: Place, cue: Cue, made: Recollection) -> Recollection:
    """Let the chat model drop what is of no use; only what stays counts as accessed."""
    judged = await look_over(parts, place.scope_id or 0, cue, made.hits)
    accessed: frozenset[UUID] = frozenset()
    ids = [hit.memory.id for hit in judged.hits]
    if cue.touch and ids:
        accessed = await note_judged(parts, scope, place, cue, ids)
    methods = {**made.methods, JUDGE: judged.method}
    kept = tuple(memory_id for memory_id in ids if memory_id in accessed)
    return replace(made, hits=judged.hits, methods=methods, accessed=kept)


def list_best(step: Sequence[AskedCue], rankings: Sequence[Ranking]) -> dict[Filter, list[UUID]]:
    """List what is to be fetched, by what each cue is restricted to."""
    ids: dict[Filter, list[UUID]] = {}
    for asked, ranking in zip(step, rankings, strict=True):
        if ranking.best:
            ids.setdefault(asked.cue.filter, []).extend(each.id for each in ranking.best)
    return ids


def list_touched(step: Sequence[AskedCue], chosen: Sequence[Sequence[Winner]]) -> dict[datetime | None, list[UUID]]:
    """List what counts as accessed, by the moment of the recall."""
    touched: dict[datetime | None, list[UUID]] = {}
    for asked, winners in zip(step, chosen, strict=True):
        if asked.cue.touch and not asked.cue.judge and winners:
            touched.setdefault(asked.cue.now, []).extend(hit.id for hit, _ in winners)
    return touched


def conclude(
    ranking: Ranking,
    winners: Sequence[Winner],
    proposals: Mapping[str, Proposal],
    found: Mapping[UUID, Memory],
    accessed: frozenset[UUID],
    milliseconds: float,
) -> Recollection:
    """Build one answer; its status is error only if no channel could answer."""
    hits = tuple(
        Hit(found[hit.id], hit.score, hit.channels, duplicates, hit.preferences, hit.relevance)
        for hit, duplicates in winners
    )
    reasons = [f"{name}: {proposal.method}" for name, proposal in proposals.items() if not proposal.answered]
    silent = len(reasons) == len(proposals)
    nothing = Status.NOTHING_RELEVANT if ranking.irrelevant else Status.NO_CANDIDATES
    doubt = tell_irrelevant(hits) if is_irrelevant(hits) else ""
    methods = {name: proposal.method for name, proposal in proposals.items()}
    inputs = ranking.inputs
    if inputs.model and not has_table(inputs.model, inputs.facets.script):
        methods[RELEVANCE] = UNTAUGHT.format(inputs.model)
    return Recollection(
        hits=hits,
        methods=methods,
        status=Status.ERROR if silent else Status.OK if hits else nothing,
        message="; ".join(reasons) if silent else ranking.irrelevant or doubt,
        accessed=tuple(hit.memory.id for hit in hits if hit.memory.id in accessed),
        tallies={name: proposal.tally for name, proposal in proposals.items() if proposal.tally},
        milliseconds=round(milliseconds, 3),
        facets=ranking.inputs.facets,
    )

"""Recall: parse the queries, ask all channels, fuse their candidates, fetch the hits and record accesses."""

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
from recollect.core.recall.cues import ParsedCue, find_asked, find_question, parse_cue
from recollect.core.recall.features import MAX_CHARACTERS_READ
from recollect.core.recall.relevance import choose_relevant, explain_low_relevance, has_table, is_irrelevant
from recollect.core.recall.weights import DEFAULT_CHANNELS
from recollect.core.text.similarity import collapse
from recollect.errors import InvalidInputError
from recollect.llm.embedder import explain_not_served, serves
from recollect.models.filters import Filter
from recollect.models.memories import Embedding, Memory
from recollect.models.recall import Cue, FusedCandidate, Hit, QuestionType, RecallResult, Status
from recollect.models.service import Scope
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies, run_in_thread_if_heavy
from recollect.verbs.recall.access import correct_access, fetch_and_record_access, note_judged
from recollect.verbs.recall.channels import PlannedCue, ask_channels
from recollect.verbs.recall.judge import judge_hits
from recollect.verbs.recall.rank import DEFAULT_LIMIT, PAST, Ranking, rank
from recollect.verbs.recall.read_cue import consult_each
from recollect.verbs.recall.save import explain_now, keep

MAX_CUES = 64
MAX_CHARACTERS = 32_000
"""Maximum length of all queries together: each is a separate recall."""
HEAVY_CHARACTERS = 1_000
"""Longer queries are parsed in a thread, so that the event loop stays free."""
EVIDENCE_CHANNELS = frozenset({"text", "vector"})
"""Channels that only know the present: with a time or a state, `past` is asked in addition to them."""
TOPIC = "topic"
"""Always asked if a query names topics: memories filed there come first."""
RECENT = "recent"
"""Asked in addition to the usual channels if a query asks for the newest; alone if it has no text."""
JUDGE, READ, RELEVANCE = "judge", "read", "relevance"
NOT_CALIBRATED = "words only: relevance is not calibrated for model {}"
TEXT, STREAM_ALONE = "text", ("stream",)
SCRIPT_NOT_SUPPORTED = "the embedding model does not support this script"
Winner: TypeAlias = tuple[FusedCandidate, tuple[UUID, ...]]
"""A hit, and the memories that it replaces."""


async def recall(parts: Dependencies, scope: Scope, cue: Cue, place: ScopeHandle) -> RecallResult:
    """Return the memories that match a query, best first, with each channel's part in every hit."""
    return (await recall_each(parts, scope, [cue], place))[0]


async def recall_relevant(parts: Dependencies, scope: Scope, cue: Cue, place: ScopeHandle) -> RecallResult:
    """Recall for a prompt: drop hits that are hardly likely to help, unless the query sets a minimum relevance."""
    return keep_relevant(await recall(parts, scope, cue, place), cue, place)


def keep_relevant(made: RecallResult, cue: Cue, place: ScopeHandle) -> RecallResult:
    """Keep the hits that are worth their tokens in a prompt."""
    if fill_in(cue, place.profile).min_relevance is not None or not made.hits:
        return made
    hits = choose_relevant(made.hits)
    if hits:
        return replace(made, hits=hits)
    return replace(made, hits=(), status=Status.NOTHING_RELEVANT, message=explain_low_relevance(made.hits))


async def recall_each(
    parts: Dependencies, scope: Scope, cues: Sequence[Cue], place: ScopeHandle, *, isolated: bool = False
) -> list[RecallResult]:
    """Recall for several queries: in order with accesses recorded in between, or all on one snapshot."""
    asked = await read_each(parts, cues, place)
    if place.scope_id is None:
        return [RecallResult((), {}, Status.NO_CANDIDATES) for _ in cues]
    steps = [asked] if isolated else [[each] for each in asked]
    return [recollection for step in steps for recollection in await answer(parts, scope, place, step)]


async def rank_one(parts: Dependencies, cue: Cue, place: ScopeHandle) -> Ranking | None:
    """Rank the matches of a query without fetching them; None in a scope without memories."""
    asked = await read_each(parts, [cue], place)
    if place.scope_id is None:
        return None
    [proposed] = await ask_channels(parts, place, asked)
    return await rank(parts, place, asked[0], proposed)


async def read_each(parts: Dependencies, cues: Sequence[Cue], place: ScopeHandle) -> list[PlannedCue]:
    """Check and parse queries; the chat model is asked if they request it."""
    if not 1 <= len(cues) <= MAX_CUES:
        raise InvalidInputError(f"cues must hold 1 to {MAX_CUES} items")
    characters = sum(len(cue.text) for cue in cues)
    if characters > MAX_CHARACTERS:
        raise InvalidInputError(f"cues must hold at most {MAX_CHARACTERS} characters together")
    for cue in cues:
        check_cue(cue, parts.channel_names)
    cues = [fill_in(cue, place.profile) for cue in cues]
    vectors = await find_vectors(parts, cues, place)
    cues = [add_words(cue, reason) for cue, (_, reason) in zip(cues, vectors, strict=True)]
    chosen = [choose_channels(parts, cue) for cue in cues]
    if place.scope_id is None:
        return []
    profile = place.profile

    def read_cues() -> list[PlannedCue]:
        return [
            PlannedCue(
                cue, read_cue(cue, profile.names, *vector), channels, cue.limit or profile.limit or DEFAULT_LIMIT
            )
            for cue, vector, channels in zip(cues, vectors, chosen, strict=True)
        ]

    asked = await run_in_thread_if_heavy(characters > HEAVY_CHARACTERS, read_cues)
    return await consult_each(parts, place, asked)


def read_cue(cue: Cue, own: Sequence[str], vector: NDArray[np.float32] | None, without_vector: str) -> ParsedCue:
    """Parse a query for its time and the names of its scope."""
    return parse_cue(cue, vector, without_vector, now=cue.now or datetime.now(UTC), own=own)


def add_words(cue: Cue, without_vector: str) -> Cue:
    """Search by words, too, among the kinds of the stream, if only the stream is asked and there is no vector."""
    if without_vector != SCRIPT_NOT_SUPPORTED or tuple(cue.channels) != STREAM_ALONE:
        return cue
    return replace(cue, channels=(*cue.channels, TEXT), kinds=cue.kinds or STREAM_KINDS)


def choose_channels(parts: Dependencies, cue: Cue) -> list[Channel]:
    """Find the channels that a query names, or the default ones."""
    known = {channel.name: channel for channel in parts.channels}
    check_channels(cue.channels, known.keys())
    named = [*(cue.channels or ((RECENT,) if cue.blank else DEFAULT_CHANNELS))]
    if not cue.channels and QuestionType.LATEST in find_asked(find_question(cue.text)):
        named.append(RECENT)
    if cue.topics and not cue.topics_only:
        named.append(TOPIC)
    elif cue.topics and not cue.channels:
        # All allowed memories are filed there: the topic does not distinguish them.
        named = [name for name in named if name != TOPIC]
    if cue.left and not EVIDENCE_CHANNELS.isdisjoint(named):
        named.append(PAST)
    return [known[name] for name in dict.fromkeys(named) if name in known]


async def find_vectors(
    parts: Dependencies, cues: Sequence[Cue], place: ScopeHandle
) -> list[tuple[NDArray[np.float32] | None, str]]:
    """Return the callers' vectors, or the embedder's if it answers in time; else the reason."""
    missing = [cue for cue in cues if cue.embedding is None and not explain_absence(parts, cue, place)]
    rows = await parts.embed_in_time([cue.text for cue in missing], cues=True) if missing else None
    made = iter(rows if rows is not None else ())
    found: list[tuple[NDArray[np.float32] | None, str]] = []
    for cue in cues:
        if cue.embedding is not None:
            found.append((check_vector(cue.embedding, place), ""))
        elif reason := explain_absence(parts, cue, place):
            found.append((None, reason))
        else:
            vector = next(made, None)
            found.append((vector, "" if vector is not None else "the embedder did not answer in time"))
    return found


def check_vector(embedding: Embedding, place: ScopeHandle) -> NDArray[np.float32]:
    """Check a caller's vector against the active space."""
    if place.space is None:
        raise InvalidInputError("embedding is not supported: no embedding space is active")
    return unit_vector(embedding, place.space.dimensions)


def explain_absence(parts: Dependencies, cue: Cue, place: ScopeHandle) -> str:
    """Return why no embedder can embed a query; empty if one can."""
    if cue.blank:
        return "the cue has no text"
    if place.scope_id is None or parts.embedder is None:
        return "no embedder is configured"
    if not serves(parts.embedder, place.space):
        return explain_not_served(parts.embedder, place.space) or "no embedding space is active"
    if not parts.embedder.reads(cue.text):
        return SCRIPT_NOT_SUPPORTED
    return ""


async def answer(
    parts: Dependencies, scope: Scope, place: ScopeHandle, step: Sequence[PlannedCue]
) -> list[RecallResult]:
    """Answer queries on the same snapshot: one round trip to ask, one for features, one to fetch and record."""
    started = time.perf_counter()
    proposals = await ask_channels(parts, place, step)
    rankings = [await rank(parts, place, asked, proposed) for asked, proposed in zip(step, proposals, strict=True)]
    # Duplicates among the best are unknown before they are read. There are few, and the record is corrected then.
    expected = list_touched(step, [[(each, ()) for each in ranking.best[: ranking.limit]] for ranking in rankings])
    found, noted = await fetch_and_record_access(parts, scope, place, list_best(step, rankings), expected)
    chosen = [
        choose_winners(ranking, found.get(asked.cue.filter, {})) for asked, ranking in zip(step, rankings, strict=True)
    ]
    accessed = await correct_access(parts, place, noted, expected, list_touched(step, chosen))
    milliseconds = (time.perf_counter() - started) * 1000
    answers: list[RecallResult] = []
    for asked, ranking, proposed, winners in zip(step, rankings, proposals, chosen, strict=True):
        touched = accessed if asked.cue.touch else frozenset[UUID]()
        made = build_result(ranking, winners, proposed, found.get(asked.cue.filter, {}), touched, milliseconds)
        if asked.consulted:
            made = replace(made, methods={**made.methods, READ: asked.consulted})
        if asked.cue.judge:
            made = await apply_judge(parts, scope, place, asked.cue, made)
        made = await keep(parts, place, asked.cue, asked.reading.vector, ranking.inputs, made)
        if asked.cue.explain:
            made = await explain_now(place, asked.cue, asked.reading.vector, ranking.inputs, made)
        answers.append(made)
    return answers


def choose_winners(ranking: Ranking, found: Mapping[UUID, Memory]) -> list[Winner]:
    """Choose hits among existing memories: of those with nearly the same beginning, the best replaces all."""
    present = [each for each in ranking.best if each.id in found]
    if ranking.alone:
        return [(each, ()) for each in present]
    beginnings = {each.id: found[each.id].content[:MAX_CHARACTERS_READ] for each in present}
    return collapse(present, beginnings, ranking.limit)


async def apply_judge(
    parts: Dependencies, scope: Scope, place: ScopeHandle, cue: Cue, made: RecallResult
) -> RecallResult:
    """Have the chat model drop useless hits; only the others count as accessed."""
    judged = await judge_hits(parts, place.scope_id or 0, cue, made.hits)
    accessed: frozenset[UUID] = frozenset()
    ids = [hit.memory.id for hit in judged.hits]
    if cue.touch and ids:
        accessed = await note_judged(parts, scope, place, cue, ids)
    methods = {**made.methods, JUDGE: judged.method}
    kept = tuple(memory_id for memory_id in ids if memory_id in accessed)
    return replace(made, hits=judged.hits, methods=methods, accessed=kept)


def list_best(step: Sequence[PlannedCue], rankings: Sequence[Ranking]) -> dict[Filter, list[UUID]]:
    """List the memories to fetch, by the filter of each query."""
    ids: dict[Filter, list[UUID]] = {}
    for asked, ranking in zip(step, rankings, strict=True):
        if ranking.best:
            ids.setdefault(asked.cue.filter, []).extend(each.id for each in ranking.best)
    return ids


def list_touched(step: Sequence[PlannedCue], chosen: Sequence[Sequence[Winner]]) -> dict[datetime | None, list[UUID]]:
    """List the accessed memories, by the time of the recall."""
    touched: dict[datetime | None, list[UUID]] = {}
    for asked, winners in zip(step, chosen, strict=True):
        if asked.cue.touch and not asked.cue.judge and winners:
            touched.setdefault(asked.cue.now, []).extend(hit.id for hit, _ in winners)
    return touched


def build_result(
    ranking: Ranking,
    winners: Sequence[Winner],
    proposals: Mapping[str, Proposal],
    found: Mapping[UUID, Memory],
    accessed: frozenset[UUID],
    milliseconds: float,
) -> RecallResult:
    """Build one answer; its status is error only if no channel could answer."""
    hits = tuple(
        Hit(found[hit.id], hit.score, hit.channels, duplicates, hit.preferences, hit.relevance)
        for hit, duplicates in winners
    )
    reasons = [f"{name}: {proposal.method}" for name, proposal in proposals.items() if not proposal.answered]
    silent = len(reasons) == len(proposals)
    nothing = Status.NOTHING_RELEVANT if ranking.irrelevant else Status.NO_CANDIDATES
    doubt = explain_low_relevance(hits) if is_irrelevant(hits) else ""
    methods = {name: proposal.method for name, proposal in proposals.items()}
    inputs = ranking.inputs
    if inputs.model and not has_table(inputs.model, inputs.facets.script):
        methods[RELEVANCE] = NOT_CALIBRATED.format(inputs.model)
    return RecallResult(
        hits=hits,
        methods=methods,
        status=Status.ERROR if silent else Status.OK if hits else nothing,
        message="; ".join(reasons) if silent else ranking.irrelevant or doubt,
        accessed=tuple(hit.memory.id for hit in hits if hit.memory.id in accessed),
        tallies={name: proposal.tally for name, proposal in proposals.items() if proposal.tally},
        milliseconds=round(milliseconds, 3),
        facets=ranking.inputs.facets,
    )

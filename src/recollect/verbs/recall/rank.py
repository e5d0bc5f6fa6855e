"""Collect the candidates of all channels, with their features, and rank them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect.channels.channel import Proposal
from recollect.core.knowledge.graph import spot_names
from recollect.core.recall.columns import NO_IDS, Candidates, EvidencePairs, FeatureTable, Flags, Ids, RankingInput
from recollect.core.recall.cues import find_actor
from recollect.core.recall.evidence_scores import EVIDENCE
from recollect.core.recall.fusion import fuse, join
from recollect.core.recall.preferences import ACCESSED
from recollect.core.recall.relevance import drop_below, explain_low_relevance
from recollect.core.recall.weights import default_weights
from recollect.core.text.terms import analyse_cue
from recollect.errors import UnavailableError
from recollect.models.recall import FusedCandidate
from recollect.store.recall.features import FeatureRequest, load_features
from recollect.store.service.scopes import ScopeHandle
from recollect.verbs.dependencies import Dependencies, run_in_thread_if_heavy
from recollect.verbs.recall.channels import PlannedCue

DEFAULT_LIMIT = 10
SPARE = 10
"""Number of additional candidates to rank, to replace duplicates."""
MAX_RANKED_CANDIDATES = 500
"""Maximum number of candidates to read features for; two channels propose 400."""
HEAVY_LIMIT = 50
"""If more hits are requested, they are ranked in a thread, so that the event loop stays free."""
PAST, VECTOR, TEXT = "past", "vector", "text"
"""Names of channels: candidates of `past` replace others, and `vector` returns cosines."""
PLUGGED_IN = 1.0
"""The weight of plugin channels."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked candidates, and the best of them: the requested number and some spare ones."""

    inputs: RankingInput
    best: Sequence[FusedCandidate]
    limit: int
    """Number of requested hits."""
    alone: bool = False
    """Whether only one channel ranked: then no hit replaces another."""
    irrelevant: str = ""
    """Why no candidate is relevant enough; empty if some are, or without a minimum."""


async def rank(
    parts: Dependencies, place: ScopeHandle, asked: PlannedCue, proposals: Mapping[str, Proposal]
) -> Ranking:
    """Rank the candidates; a single channel, and a list of the newest, keep their own order."""
    own = {name: proposal.candidates for name, proposal in proposals.items()}
    lent = {unit: some for proposal in proposals.values() for unit, some in proposal.lent.items()}
    candidates = join(own, lent, asked.depth)
    weights = {**dict.fromkeys(candidates, PLUGGED_IN), **default_weights(asked.reading.script), **asked.cue.weights}
    unscored = [proposal.candidates.ids for proposal in proposals.values() if proposal.unscored]
    if asked.cue.blank or (len(own.keys() - {PAST}) == 1 and not unscored):
        return rank_plainly(asked, candidates, {**weights, **dict.fromkeys(own, 1.0)})
    found = await fetch_features(parts, place, asked, candidates, lending=weights[EVIDENCE] > 0)
    if found is None:
        # A simpler answer is better than a late one.
        return rank_plainly(asked, candidates, weights)
    rarities = next((proposal.rarities for proposal in proposals.values() if proposal.rarities), ())
    if unscored:
        added, rarities = score_by_record(asked, candidates, found[0], np.concatenate(unscored), rarities)
        candidates |= added

    def choose_hits() -> Ranking:
        inputs = replace(build_ranking_input(asked, candidates, found[0], weights, rarities), evidence=found[1])
        if VECTOR in candidates and place.space is not None:
            inputs = replace(inputs, model=place.space.model)
        return choose_best(Ranking(inputs, fuse(inputs), asked.limit), asked.cue.min_relevance)

    return await run_in_thread_if_heavy(asked.limit > HEAVY_LIMIT, choose_hits)


def score_by_record(
    asked: PlannedCue,
    candidates: Mapping[str, Candidates],
    found: FeatureTable,
    ids: Ids,
    rarities: tuple[float, ...],
) -> tuple[dict[str, Candidates], tuple[float, ...]]:
    """Score IDs like the channels `vector` and `text` if those were not asked; all terms are equally rare then."""
    known = np.unique(ids[found.knows(ids)])
    rows = found.find_indices(known)
    scores = {VECTOR: np.nan_to_num(found.cosines[rows])}
    if asked.reading.terms and not rarities:
        rarities = (1.0,) * len(asked.reading.terms)
        scores[TEXT] = found.terms[rows].sum(axis=1).astype(np.float64)
    told = {name: Candidates(known[each != 0], each[each != 0]) for name, each in scores.items()}
    return {name: some for name, some in told.items() if name not in candidates and len(some)}, rarities


def rank_plainly(asked: PlannedCue, candidates: Mapping[str, Candidates], weights: Mapping[str, float]) -> Ranking:
    """Rank by the channels' own scores, without features."""
    inputs = RankingInput(candidates, None, asked.reading.facets, weights, asked.limit)
    return choose_best(Ranking(inputs, fuse(inputs), asked.limit, alone=True), asked.cue.min_relevance)


def choose_best(ranking: Ranking, min_relevance: float | None) -> Ranking:
    """Drop candidates below the minimum relevance, and explain it if none is left."""
    if not min_relevance:
        return ranking
    best = drop_below(ranking.best, min_relevance)
    told = explain_low_relevance(ranking.best) if ranking.best and not best else ""
    return replace(ranking, best=best, irrelevant=told)


async def fetch_features(
    parts: Dependencies, place: ScopeHandle, asked: PlannedCue, candidates: Mapping[str, Candidates], *, lending: bool
) -> tuple[FeatureTable, EvidencePairs] | None:
    """Read the features of candidates, at most the first of each channel in turn; None if late.

    If candidates lend scores to their evidence, its features are read, too. Past versions do not lend.
    """
    ids = choose_first([some.ids for some in candidates.values()], MAX_RANKED_CANDIDATES)
    near = candidates.get(VECTOR, Candidates())
    distant = ids[~np.isin(ids, near.ids)]
    try:
        evidence = lending and place.has_evidence and not asked.reading.filter.left
        look = FeatureRequest(ids, distant, accesses=bool(asked.cue.weights.get(ACCESSED)), evidence=evidence)
        found, pairs = await load_features(parts.database, place, look, asked.reading, parts.options.channel_seconds)
    except UnavailableError:
        return None
    known = found.knows(near.ids)
    found.cosines[found.find_indices(near.ids[known])] = near.scores[known]
    return found, pairs


def choose_first(columns: Sequence[Ids], most: int) -> Ids:
    """Choose IDs, each once: the first of each column, then the second of each, and so on."""
    everything = np.concatenate([NO_IDS, *columns])
    turns = np.concatenate([np.arange(0), *(np.arange(len(column)) for column in columns)])
    in_turn = everything[np.argsort(turns, kind="stable")]
    _, first = np.unique(in_turn, return_index=True)
    return in_turn[np.sort(first)[:most]]


def build_ranking_input(
    asked: PlannedCue,
    candidates: Mapping[str, Candidates],
    found: FeatureTable,
    weights: Mapping[str, float],
    rarities: tuple[float, ...],
) -> RankingInput:
    """Build the input of the ranking, without candidates that were forgotten."""
    spoken = {*found.speaker_names} - {""}
    spotted = (each.name for each in spot_names(asked.reading.text)) if spoken else ()
    named = [name for name in dict.fromkeys(spotted) if name in spoken]
    marked = find_named(found, named, asked.reading.terms) if named else found.named
    return RankingInput(
        candidates={channel: some.select(found.knows(some.ids)) for channel, some in candidates.items()},
        features=replace(found, named=marked, terms=found.terms[:, : len(rarities)]),
        facets=replace(asked.reading.facets, names=tuple(sorted(named)), actor=find_actor(asked.reading.text, named)),
        weights=weights,
        limit=asked.limit + SPARE,
        rarities=rarities,
    )


def find_named(found: FeatureTable, named: Collection[str], terms: Sequence[str]) -> Flags:
    """Find messages by speakers in the query, and memories without a speaker that mention them."""
    said_by = np.array([name in named for name in found.speaker_names], dtype=np.bool_)[found.speakers]
    places = {term: place for place, term in enumerate(terms)}
    by_nobody = np.array([not name for name in found.speaker_names], dtype=np.bool_)[found.speakers]
    spoken_of = np.zeros(len(found), dtype=np.bool_)
    for name in named:
        if own := sorted({places[term] for term in analyse_cue(name) if term in places}):
            spoken_of |= found.terms[:, own].all(axis=1)
    return said_by | (by_nobody & spoken_of)

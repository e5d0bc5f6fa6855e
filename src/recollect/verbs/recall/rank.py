"""Collect the candidates of all channels, with their features, and rank them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect.channels.channel import Proposal
from recollect.core.knowledge.graph import spot_names
from recollect.core.recall.columns import NO_IDS, Candidates, EvidencePairs, FeatureTable, Flags, Ids, RankingInput
from recollect.core.recall.cues import find_actor
from recollect.core.recall.fusion import fuse, join
from recollect.core.recall.lending import EVIDENCE
from recollect.core.recall.preferences import ACCESSED
from recollect.core.recall.relevance import drop_below, tell_irrelevant
from recollect.core.recall.weights import usual_weights
from recollect.core.text.terms import analyse_cue
from recollect.errors import UnavailableError
from recollect.models.recall import Ranked
from recollect.store.recall.features import Look, load_features
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts, spare_loop
from recollect.verbs.recall.channels import AskedCue

USUAL_LIMIT = 10
SPARE = 10
"""So many more than are asked for are ranked, to replace duplicates."""
MOST_SURVEYED = 500
"""Features are read for at most so many candidates: two channels propose 400."""
HEAVY_LIMIT = 50
"""Where more hits are asked for, they are ranked in a thread, so that the event loop stays free."""
PAST, VECTOR, TEXT = "past", "vector", "text"
"""What the first finds stands among the candidates of others; the second knows how near what it proposes is."""
PLUGGED_IN = 1.0
"""The weight of a channel that is not one of ours."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was ranked, and the best of it: as many as are asked for, and some to spare."""

    inputs: RankingInput
    best: Sequence[Ranked]
    limit: int
    """How many hits are asked for."""
    alone: bool = False
    """Whether one channel ranked by itself: then nothing stands for anything else."""
    irrelevant: str = ""
    """Why nothing of what was found is relevant enough; empty where something is, or no relevance is asked for."""


async def rank(parts: Parts, place: Place, asked: AskedCue, proposals: Mapping[str, Proposal]) -> Ranking:
    """Rank the candidates; a channel that is asked alone ranks by itself, and so does a list of the newest."""
    own = {name: proposal.candidates for name, proposal in proposals.items()}
    lent = {unit: some for proposal in proposals.values() for unit, some in proposal.lent.items()}
    candidates = join(own, lent, asked.depth)
    weights = {**dict.fromkeys(candidates, PLUGGED_IN), **usual_weights(asked.reading.script), **asked.cue.weights}
    unscored = [proposal.candidates.ids for proposal in proposals.values() if proposal.unscored]
    if asked.cue.blank or (len(own.keys() - {PAST}) == 1 and not unscored):
        return rank_plainly(asked, candidates, {**weights, **dict.fromkeys(own, 1.0)})
    found = await look_over(parts, place, asked, candidates, lending=weights[EVIDENCE] > 0)
    if found is None:
        # A simpler answer is better than a late one.
        return rank_plainly(asked, candidates, weights)
    rarities = next((proposal.rarities for proposal in proposals.values() if proposal.rarities), ())
    if unscored:
        added, rarities = score_by_record(asked, candidates, found[0], np.concatenate(unscored), rarities)
        candidates |= added

    def choose() -> Ranking:
        inputs = replace(line_up(asked, candidates, found[0], weights, rarities), evidence=found[1])
        if VECTOR in candidates and place.space is not None:
            inputs = replace(inputs, model=place.space.model)
        return choose_best(Ranking(inputs, fuse(inputs), asked.limit), asked.cue.min_relevance)

    return await spare_loop(asked.limit > HEAVY_LIMIT, choose)


def score_by_record(
    asked: AskedCue,
    candidates: Mapping[str, Candidates],
    found: FeatureTable,
    ids: Ids,
    rarities: tuple[float, ...],
) -> tuple[dict[str, Candidates], tuple[float, ...]]:
    """Score ids as the channels `vector` and `text` would, if those were not asked; all terms are equally rare then."""
    known = np.unique(ids[found.knows(ids)])
    rows = found.find(known)
    scores = {VECTOR: np.nan_to_num(found.cosines[rows])}
    if asked.reading.terms and not rarities:
        rarities = (1.0,) * len(asked.reading.terms)
        scores[TEXT] = found.terms[rows].sum(axis=1).astype(np.float64)
    told = {name: Candidates(known[each != 0], each[each != 0]) for name, each in scores.items()}
    return {name: some for name, some in told.items() if name not in candidates and len(some)}, rarities


def rank_plainly(asked: AskedCue, candidates: Mapping[str, Candidates], weights: Mapping[str, float]) -> Ranking:
    """Rank by the channels' own scores, with nothing known of the candidates."""
    inputs = RankingInput(candidates, None, asked.reading.facets, weights, asked.limit)
    return choose_best(Ranking(inputs, fuse(inputs), asked.limit, alone=True), asked.cue.min_relevance)


def choose_best(ranking: Ranking, min_relevance: float | None) -> Ranking:
    """Drop what is less relevant than asked for, and say so where nothing is left."""
    if not min_relevance:
        return ranking
    best = drop_below(ranking.best, min_relevance)
    told = tell_irrelevant(ranking.best) if ranking.best and not best else ""
    return replace(ranking, best=best, irrelevant=told)


async def look_over(
    parts: Parts, place: Place, asked: AskedCue, candidates: Mapping[str, Candidates], *, lending: bool
) -> tuple[FeatureTable, EvidencePairs] | None:
    """Read what the candidates are like: of very many, the first of each channel in turn; None if late.

    Where they lend to what they rest on, it is read what that is, and what that is like. Past versions do not.
    """
    ids = choose_first([some.ids for some in candidates.values()], MOST_SURVEYED)
    near = candidates.get(VECTOR, Candidates())
    distant = ids[~np.isin(ids, near.ids)]
    try:
        evidence = lending and place.has_evidence and not asked.reading.filter.left
        look = Look(ids, distant, accesses=bool(asked.cue.weights.get(ACCESSED)), evidence=evidence)
        found, pairs = await load_features(parts.database, place, look, asked.reading, parts.channel_seconds)
    except UnavailableError:
        return None
    known = found.knows(near.ids)
    found.cosines[found.find(near.ids[known])] = near.scores[known]
    return found, pairs


def choose_first(columns: Sequence[Ids], most: int) -> Ids:
    """Choose ids, each once: the first of each column, then the second of each, and so on."""
    everything = np.concatenate([NO_IDS, *columns])
    turns = np.concatenate([np.arange(0), *(np.arange(len(column)) for column in columns)])
    in_turn = everything[np.argsort(turns, kind="stable")]
    _, first = np.unique(in_turn, return_index=True)
    return in_turn[np.sort(first)[:most]]


def line_up(
    asked: AskedCue,
    candidates: Mapping[str, Candidates],
    found: FeatureTable,
    weights: Mapping[str, float],
    rarities: tuple[float, ...],
) -> RankingInput:
    """Put together what is ranked; what was forgotten since it was proposed is not."""
    spoken = {*found.speaker_names} - {""}
    spotted = (each.name for each in spot_names(asked.reading.text)) if spoken else ()
    named = [name for name in dict.fromkeys(spotted) if name in spoken]
    marked = find_named(found, named, asked.reading.terms) if named else found.named
    return RankingInput(
        candidates={channel: some.take(found.knows(some.ids)) for channel, some in candidates.items()},
        features=replace(found, named=marked, terms=found.terms[:, : len(rarities)]),
        facets=replace(asked.reading.facets, names=tuple(sorted(named)), actor=find_actor(asked.reading.text, named)),
        weights=weights,
        limit=asked.limit + SPARE,
        rarities=rarities,
    )


def find_named(found: FeatureTable, named: Collection[str], terms: Sequence[str]) -> Flags:
    """Find what was said by those whom the cue names; what nobody said, if it speaks of them."""
    said_by = np.array([name in named for name in found.speaker_names], dtype=np.bool_)[found.speakers]
    places = {term: place for place, term in enumerate(terms)}
    by_nobody = np.array([not name for name in found.speaker_names], dtype=np.bool_)[found.speakers]
    spoken_of = np.zeros(len(found), dtype=np.bool_)
    for name in named:
        if own := sorted({places[term] for term in analyse_cue(name) if term in places}):
            spoken_of |= found.terms[:, own].all(axis=1)
    return said_by | (by_nobody & spoken_of)

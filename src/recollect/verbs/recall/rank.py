"""Collect the candidates of all channels, with their features, and rank them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from uuid import UUID

from recollect.channels.channel import Proposal
from recollect.core.knowledge.graph import spot_names
from recollect.core.recall.fusion import fuse, join
from recollect.core.recall.weights import usual_weights
from recollect.core.text.similar import collapse
from recollect.core.text.terms import analyse_cue
from recollect.errors import UnavailableError
from recollect.models.recall import Candidate, Features, Ranked, RankingInput
from recollect.store.recall.features import CandidateFeatures, load_features
from recollect.store.service.scopes import Place
from recollect.verbs.parts import Parts, spare_loop
from recollect.verbs.recall.channels import AskedCue

USUAL_LIMIT = 10
SPARE = 10
"""So many more than are asked for are ranked, to replace duplicates."""
MOST_SURVEYED = 500
"""Features are read for at most so many candidates: two channels propose 400."""
HEAVY_LIMIT = 50
"""If more hits are asked for, they are ranked in a thread, so that the event loop stays free."""
PAST = "past"
"""Its candidates are added to those of others."""
PLUGGED_IN = 1.0
"""The weight of a channel that is not one of ours."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The input and result of a ranking: the winners, each with its duplicates."""

    inputs: RankingInput
    winners: Sequence[tuple[Ranked, tuple[UUID, ...]]]

    @property
    def ids(self) -> list[UUID]:
        """List the winners."""
        return [hit.id for hit, _ in self.winners]


async def rank(parts: Parts, place: Place, asked: AskedCue, proposals: Mapping[str, Proposal]) -> Ranking:
    """Rank the candidates; a channel that is asked alone ranks by itself."""
    own = {name: proposal.candidates for name, proposal in proposals.items()}
    lent = {unit: some for proposal in proposals.values() for unit, some in proposal.lent.items()}
    candidates = join(own, lent, asked.depth)
    weights = {**dict.fromkeys(candidates, PLUGGED_IN), **usual_weights(asked.reading.script), **asked.cue.weights}
    if len(own.keys() - {PAST}) == 1:
        return rank_plainly(asked, candidates, {**weights, **dict.fromkeys(own, 1.0)})
    found = await look_over(parts, place, asked, candidates)
    if found is None:
        # A simpler answer is better than a late one.
        return rank_plainly(asked, candidates, weights)
    rarities = next((proposal.rarities for proposal in proposals.values() if proposal.rarities), ())

    def choose() -> Ranking:
        inputs = line_up(asked, candidates, found, weights, rarities)
        return Ranking(inputs, collapse(fuse(inputs), found.beginnings, asked.limit))

    return await spare_loop(asked.limit > HEAVY_LIMIT, choose)


def rank_plainly(
    asked: AskedCue, candidates: Mapping[str, Sequence[Candidate]], weights: Mapping[str, float]
) -> Ranking:
    """Rank by the channels' own scores, without features."""
    proposed = {name: tuple(some) for name, some in candidates.items()}
    inputs = RankingInput(proposed, {}, asked.reading.facets, weights, asked.limit)
    return Ranking(inputs, [(hit, ()) for hit in fuse(inputs)])


async def look_over(
    parts: Parts, place: Place, asked: AskedCue, candidates: Mapping[str, Sequence[Candidate]]
) -> CandidateFeatures | None:
    """Read the features of candidates: of very many, the first of each channel in turn; None if late."""
    turns = zip_longest(*candidates.values())
    ids = {each.id: None for turn in turns for each in turn if each is not None}
    if not ids:
        return CandidateFeatures({}, {})
    chosen = list(islice(ids, MOST_SURVEYED))
    try:
        return await load_features(parts.database, place, chosen, asked.reading, parts.channel_seconds)
    except UnavailableError:
        return None


def line_up(
    asked: AskedCue,
    candidates: Mapping[str, Sequence[Candidate]],
    found: CandidateFeatures,
    weights: Mapping[str, float],
    rarities: tuple[float, ...],
) -> RankingInput:
    """Build the input of the ranking, without what was forgotten since it was proposed."""
    spoken = {its_features.speaker for its_features in found.features.values()} - {""}
    named = {each.name for each in spot_names(asked.reading.text)} & spoken if spoken else set[str]()
    all_features = mark_named(found.features, named, asked.reading.terms) if named else found.features
    present = {
        channel: tuple(each for each in some if each.id in found.features) for channel, some in candidates.items()
    }
    return RankingInput(
        candidates=present,
        features=all_features,
        facets=replace(asked.reading.facets, names=tuple(sorted(named))),
        weights=weights,
        limit=asked.limit + SPARE,
        rarities=rarities,
    )


def mark_named(
    all_features: Mapping[UUID, Features], named: Collection[str], terms: Sequence[str]
) -> dict[UUID, Features]:
    """Mark what was said by those whom the cue names; without a speaker, what mentions them."""
    places = {term: place for place, term in enumerate(terms)}
    spoken_of = [{places[term] for term in analyse_cue(name) if term in places} for name in named]
    return {
        memory_id: replace(its_features, named=True)
        if its_features.speaker in named
        or (not its_features.speaker and any(some and some <= set(its_features.terms) for some in spoken_of))
        else its_features
        for memory_id, its_features in all_features.items()
    }

"""What is learned lends its score to its evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from math import sqrt
from uuid import UUID

import numpy as np
import pytest

from recollect.core.recall.columns import EvidencePairs, RankingInput, to_candidates, to_ids, to_table
from recollect.core.recall.evidence_scores import EVIDENCE_SOURCES, score_evidence
from recollect.core.recall.fusion import fuse
from recollect.models.memories import Kind
from recollect.models.recall import Candidate, Features, QueryAnalysis

IDS = [UUID(int=7 << 76 | number) for number in range(40)]
NOW = datetime(2026, 5, 3, tzinfo=UTC)


def pair(*pairs):
    return EvidencePairs(*(to_ids(IDS[number] for number in side) for side in zip(*pairs, strict=True)))


def lend_among(scores, *pairs):
    # The order of the ids must not matter: fusion has the newest first.
    count = len(scores)
    return score_evidence(to_ids(IDS[:count])[::-1], np.array(scores, dtype=float)[::-1], pair(*pairs))[::-1].tolist()


def test_the_best_lends_all_and_nothing_is_lent_to_others():
    assert lend_among([4.0, 1.0, 0.0], (0, 1)) == [0.0, 1.0, 0.0]


def test_what_is_lent_is_shared_by_all_that_something_rests_on():
    assert lend_among([4.0, 0.0, 0.0], (0, 1), (0, 2)) == pytest.approx([0.0, 1 / sqrt(2), 1 / sqrt(2)])


def test_the_best_of_several_loans_counts():
    assert lend_among([4.0, 2.0, 0.0, 0.0], (0, 2), (1, 2), (1, 3)) == pytest.approx([0.0, 0.0, 1.0, 0.5 / sqrt(2)])


def test_what_does_not_stand_among_the_first_lends_nothing():
    scores = [float(len(IDS) - number) for number in range(len(IDS))]
    last, beyond = EVIDENCE_SOURCES - 1, EVIDENCE_SOURCES
    lent = lend_among(scores, (last, 30), (beyond, 31), (0, 32))
    assert (lent[30], lent[31], lent[32]) == (pytest.approx(1 / EVIDENCE_SOURCES), 0.0, 1.0)


def test_among_equals_and_below_nothing_is_lent():
    assert lend_among([0.0, 0.0], (0, 1)) == [0.0, 0.0]
    assert lend_among([-1.0, -1.0], (0, 1)) == [0.0, 0.0]


def ask(weights, *pairs):
    found = to_candidates([Candidate(IDS[0], 2.0), Candidate(IDS[1], 1.0)])
    known = to_table({each: Features(NOW, Kind.EVENT) for each in IDS[:4]}, 0)
    return RankingInput({"text": found, "graph": found}, known, QueryAnalysis(), weights, 10, evidence=pair(*pairs))


def test_what_no_channel_proposed_is_found_by_what_rests_on_it_and_says_so():
    ranked = {each.id: each for each in fuse(ask({"text": 1.0, "graph": 1.0, "evidence": 1.0}, (0, 2)))}
    assert ranked.keys() == {IDS[0], IDS[1], IDS[2]}
    assert ranked[IDS[2]].preferences == {"evidence": pytest.approx(1 / 3)}
    assert ranked[IDS[2]].score == pytest.approx(1 / 3)
    assert "evidence" not in ranked[IDS[0]].preferences


@pytest.mark.parametrize("weights", [{"text": 1.0}, {"text": 1.0, "evidence": 0.0}])
def test_without_a_weight_evidence_is_no_candidate(weights):
    with_evidence = ask(weights, (0, 2))
    assert fuse(with_evidence) == fuse(replace(with_evidence, evidence=EvidencePairs()))


def test_what_is_learned_and_no_candidate_any_more_lends_nothing():
    only_graph = replace(ask({"text": 0.0, "graph": 1.0, "evidence": 1.0}, (3, 1)))
    assert all("evidence" not in each.preferences for each in fuse(only_graph))
    assert fuse(replace(only_graph, candidates={})) == []

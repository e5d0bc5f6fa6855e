"""The pure rules of the memory stream give what the original code gave, on minds that it saved."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise
from uuid import UUID

import numpy as np
import pytest

from recollect.core.agents.reflection import add_importance
from recollect.core.agents.scoring import ScoringInput, resolve_weighing, score
from recollect.core.text.keywords import file_under, keywords_of, normalise_keyword
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Candidate, ChannelStats, Mode, StreamWeights
from recollect.models.service import Caller, Scope
from recollect.store.service.scopes import LockedScope
from recollect.verbs.memories.rows import Write, assign, prepare_all
from support.imports.generative_agents import MINDS, SavedMind, read_golden, read_mind

STREAMED = ("ga_july1_step_3_12/maria_lopez", "ga_zh_25_1/ayesha_khan", "ga_zh_25_1/francisco_lopez")
NEAR = {"rel": 0, "abs": 1e-9}
"""Both sides compute in doubles."""


@dataclass(frozen=True, slots=True)
class Case:
    """One saved mind with what the original code recalled from it."""

    golden: dict
    mind: SavedMind

    @property
    def now(self) -> datetime:
        return moment(self.golden["curr_time"])

    def stream(self) -> list[dict]:
        """List the nodes that the original code looks at: no chats, and nothing whose text says that it is idle."""
        return [
            node
            for node in self.mind.nodes
            if node["type"] != "chat" and self.golden["idle_marker"] not in node["embedding_key"]
        ]

    def cosines(self, key: str) -> list[float]:
        vectors = np.stack([self.mind.vectors[node["embedding_key"]] for node in self.stream()]).astype(np.float64)
        cue = self.mind.vectors[key].astype(np.float64)
        cosines = vectors @ cue / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(cue))
        return [float(cosine) for cosine in cosines]

    def consider(self, key: str) -> list[ScoringInput]:
        return [
            ScoringInput(
                id=UUID(int=node["node_count"]),
                kind=Kind(node["type"]),
                last_accessed_at=moment(node["created"]),
                importance=float(node["poignancy"]),
                similarity=cosine,
            )
            for node, cosine in zip(self.stream(), self.cosines(key), strict=True)
        ]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def number(identifier: str) -> int:
    return int(identifier.removeprefix("node_"))


@pytest.fixture(params=STREAMED)
def case(request, shared) -> Case:
    datasets = read_golden(shared, "golden_new_retrieve")["datasets"]
    (golden,) = (golden for golden in datasets if golden["dataset"] == request.param)
    return Case(golden, read_mind(shared, request.param))


def agree(scored: list[Candidate], expected: list[dict]) -> None:
    """See that ids, scores and all three factors are the expected ones."""
    first = scored[: len(expected)]
    assert [candidate.id.int for candidate in first] == [number(hit["id"]) for hit in expected]
    assert [candidate.score for candidate in first] == pytest.approx([hit["score"] for hit in expected], **NEAR)
    for factor, original in (("recency", "recency"), ("similarity", "relevance"), ("importance", "importance")):
        computed = [getattr(candidate.factors, factor) for candidate in first]
        assert computed == pytest.approx([hit[original] for hit in expected], **NEAR)


def agree_on_inputs(considered: list[ScoringInput], debug: dict) -> None:
    """See that what is looked at is what the original code looked at."""
    similarities = [memory.similarity for memory in considered]
    importances = [memory.importance for memory in considered]
    assert len(considered) == debug["candidates"]
    assert (min(similarities), max(similarities)) == pytest.approx((debug["cosine_min"], debug["cosine_max"]), **NEAR)
    assert (min(importances), max(importances)) == (debug["poignancy_min"], debug["poignancy_max"])


def agree_overall(scored: list[Candidate], tally: ChannelStats, limit: int, debug: dict) -> None:
    """See that the whole list is the expected one, as far as the ends and the gaps between scores tell."""
    assert tally.candidates == len(scored) == debug["candidates"]
    assert tally.lowest == pytest.approx(debug["min_score"], **NEAR)
    assert tally.highest == pytest.approx(debug["max_score"], **NEAR)
    scores = [candidate.score for candidate in scored]
    gaps = [higher - lower for higher, lower in pairwise(scores[: limit + 1])]
    assert gaps[-1] == pytest.approx(debug["gap_31"], **NEAR)
    assert min(gaps) == pytest.approx(debug["min_gap_in_top"], **NEAR)


def test_all_inputs_are_the_ones_the_results_were_made_from(case):
    for name, expected in case.golden["inputs_sha256"].items():
        assert hashlib.sha256((case.mind.folder / name).read_bytes()).hexdigest() == expected, name


def test_every_dataset_is_looked_at(shared):
    names = [golden["dataset"] for golden in read_golden(shared, "golden_new_retrieve")["datasets"]]
    assert sorted(names) == sorted(STREAMED)


@pytest.mark.parametrize("mode", Mode)
def test_single_cues_recall_what_the_original_recalls(case, mode):
    assert len(case.golden["independent"]) == 6
    for run in case.golden["independent"]:
        considered = case.consider(run["focal_embedding_key"])
        agree_on_inputs(considered, run[mode]["debug"])
        scored, tally = score(considered, resolve_weighing(StreamWeights(mode=mode), StreamWeights()))
        agree(scored, run[mode]["expected"])
        agree_overall(scored, tally, case.golden["params"]["n_count"], run[mode]["debug"])
        similarities = {memory.id: memory.similarity for memory in considered}
        cosines = [similarities[UUID(int=number(hit["id"]))] for hit in run[mode]["expected"]]
        assert cosines == pytest.approx([hit["cosine"] for hit in run[mode]["expected"]], **NEAR)


@pytest.mark.parametrize("mode", [Mode.ORIGINAL, Mode.NEWEST])
def test_cues_in_a_row_see_what_those_before_them_accessed(case, mode):
    resolved = resolve_weighing(StreamWeights(mode=mode), StreamWeights())
    sequence = case.golden["sequence"][mode]
    accessed: set[UUID] = set()
    assert len(sequence["steps"]) == 3
    for step in sequence["steps"]:
        considered = [
            replace(memory, last_accessed_at=case.now) if memory.id in accessed else memory
            for memory in case.consider(step["focal_embedding_key"])
        ]
        agree_on_inputs(considered, step["debug"])
        scored, tally = score(considered, resolved)
        hits = scored[: len(step["ids"])]
        assert [hit.id.int for hit in hits] == [number(identifier) for identifier in step["ids"]]
        assert [hit.score for hit in hits] == pytest.approx(step["scores"], **NEAR)
        agree_overall(scored, tally, len(hits), step["debug"])
        accessed |= {hit.id for hit in hits}
    assert {identifier.int for identifier in accessed} == {number(touched) for touched in sequence["touched_ids"]}


def test_other_weights_recall_what_the_original_recalls(case):
    custom = case.golden["custom_weights"]
    weighing = StreamWeights(
        Mode.ORIGINAL,
        recency=custom["recency_w"],
        similarity=custom["relevance_w"],
        importance=custom["importance_w"],
        decay=custom["recency_decay"],
    )
    considered = case.consider(custom["focal_embedding_key"])
    agree_on_inputs(considered, custom["debug"])
    scored, tally = score(considered, resolve_weighing(weighing, StreamWeights()))
    assert len(custom["expected"]) == custom["n_count"] == 5
    agree(scored, custom["expected"])
    agree_overall(scored, tally, custom["n_count"], custom["debug"])


def test_every_reflection_comes_when_the_original_had_it(shared):
    datasets = read_golden(shared, "golden_reflection_trigger")["datasets"]
    assert sorted(golden["dataset"] for golden in datasets) == sorted(MINDS)
    for golden in datasets:
        mind = read_mind(shared, golden["dataset"])
        threshold = golden["importance_trigger_max"]
        importance, events, fired = 0.0, 0, []
        perceived = (node for node in mind.nodes if node["type"] == "event")
        for at, step in groupby(perceived, key=lambda node: node["created"]):
            importances = [float(node["poignancy"]) for node in step]
            after = add_importance(importance, events, importances, threshold)
            if after.due:
                fired.append((at, importance + sum(importances), events + len(importances)))
            importance, events = after.importance, after.memories
        assert fired == [(fire["at"], fire["sum_was"], fire["events_counted"]) for fire in golden["fires"]]
        saved = mind.scratch["importance_trigger_curr"], mind.scratch["importance_ele_n"]
        assert (threshold - importance, events) == saved == tuple(golden["final"].values())


def to_new_memory(node: dict, count: int) -> NewMemory:
    """Say what a node says in our words; a text in place of evidence names nothing."""
    made_from = node["filling"] if node["type"] == "thought" and isinstance(node["filling"], list) else []
    named = [number(identifier) for identifier in made_from]
    assert all(1 <= source <= count for source in named)
    return NewMemory(
        content=node["description"],
        kind=Kind(node["type"]),
        triple=Triple(node["subject"], node["predicate"], node["object"]),
        keywords=tuple(node["keywords"]),
        evidence=tuple(source - 1 for source in named),
    )


def assign_all(mind: SavedMind):
    """Take a saved mind through all that a write decides before the database sees it."""
    new = [to_new_memory(node, len(mind.nodes)) for node in mind.nodes]
    opening = LockedScope(1, 0, 0, datetime(2023, 2, 13, tzinfo=UTC), 0.0, 0)
    caller = Caller(1, frozenset(), "test", 50)
    return assign(Write(caller, Scope(1, "a"), prepare_all(new), None, "", b""), opening, {})


@pytest.mark.parametrize("name", MINDS)
def test_depths_and_keyword_strengths_are_the_saved_ones(shared, name):
    mind = read_mind(shared, name)
    rows = assign_all(mind)
    assert [row.depth for row in rows] == [node["depth"] for node in mind.nodes]
    counted = [row for row in rows if row.counted]
    strengths = Counter((row.memory.kind, keyword) for row in counted for keyword in row.keywords)
    saved = Counter[tuple[Kind, str]]()
    for kind in (Kind.EVENT, Kind.THOUGHT):
        for keyword, strength in mind.strengths[f"kw_strength_{kind}"].items():
            saved[kind, normalise_keyword(keyword)] += strength
    # The Chinese minds also count the empty text, wherever a triple lacks a part: it is no keyword.
    assert strengths == {filed: strength for filed, strength in saved.items() if filed[1]}


@pytest.mark.parametrize("name", MINDS)
def test_keywords_of_a_triple_are_the_saved_ones(shared, name):
    for node in read_mind(shared, name).nodes:
        saved = set(file_under(tuple(node["keywords"])))
        if saved != {"plan"}:
            triple = Triple(node["subject"], node["predicate"], node["object"])
            assert set(keywords_of(triple, Kind(node["type"]))) == saved

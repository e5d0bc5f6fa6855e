"""The workflow "Memory Retrieval", run by Dify's own engine against a real server, does what its design says."""

from __future__ import annotations

from uuid import uuid4

import pytest
from engine import FILE
from graphon.dsl import LoadStatus, inspect
from reference import Asked, retrieve

from conftest import along

FOCAL = "asking questions about the party"
NAMES = ["retrieved_nodes", "accessed_ids", "status", "message", "debug"]
CLOSE = 2e-5


@pytest.fixture(scope="session")
def focal(server):
    return server.find_vector(FOCAL)


def test_the_file_loads_and_names_its_inputs():
    plan = inspect(FILE.read_text(encoding="utf-8"))
    assert (plan.load_status, plan.load_reason) == (LoadStatus.LOADABLE, None)
    variables = {each.name: each.value for each in plan.document.runtime_variables.environment_variables}
    assert variables == {"RECOLLECT_URL": "http://host.docker.internal:7077", "RECOLLECT_KEY": ""}
    start = plan.document.graph_config["nodes"][0]["data"]["variables"]
    usual = {each["variable"]: each.get("default") for each in start}
    weights = dict.fromkeys(("recency_w", "relevance_w", "importance_w"), 1.0)
    assert usual == {
        **dict.fromkeys(("persona_name", "focal_text", "user")),
        **weights,
        "top_k": 30,
        "recency_decay": 0.99,
        "recency_mode": "original",
    }
    assert [each["variable"] for each in start if each["required"]] == ["persona_name", "focal_text"]


CASES = {
    "as it comes": {},
    "one": {"top_k": 1},
    "five": {"top_k": 5},
    "thirty": {"top_k": 30},
    "more than Dify lets through": {"top_k": 100},
    "recency alone": {"recency_w": 1, "relevance_w": 0, "importance_w": 0},
    "relevance alone": {"recency_w": 0, "relevance_w": 1.0, "importance_w": 0},
    "importance alone": {"recency_w": 0, "relevance_w": 0, "importance_w": 1.0},
    "more recency": {"recency_w": 10},
    "more relevance": {"relevance_w": 2.5},
    "more importance": {"importance_w": 4, "top_k": 12},
    "nothing counts": {"recency_w": 0, "relevance_w": 0, "importance_w": 0},
    "fast decay": {"recency_decay": 0.5, "recency_w": 5},
    "slow decay": {"recency_decay": 0.999, "recency_w": 5},
    "no decay": {"recency_decay": 1, "recency_w": 5},
    "numbers as text": {"top_k": "7", "relevance_w": "0.25", "recency_decay": "0.9"},
}


@pytest.mark.parametrize("numbers", CASES.values(), ids=CASES)
def test_hits_and_scores_are_those_of_the_design(numbers, persona, focal, ask):
    asked = Asked(**{name: type(getattr(Asked(), name))(value) for name, value in numbers.items()})
    expected, scores = retrieve(persona.rows(), focal, asked)
    expected = expected[:30]
    ran = ask(persona_name=persona.name, focal_text=FOCAL, **numbers)
    assert list(ran.outputs) == NAMES
    nodes = ran.outputs["retrieved_nodes"]
    assert [node["id"] for node in nodes] == [row for row, _ in expected]
    assert [node["score"] for node in nodes] == pytest.approx([score for _, score in expected], abs=CLOSE)
    debug = ran.outputs["debug"]
    assert (debug["total_candidates"], debug["retrieved_count"]) == (40, len(expected))
    assert debug["max_score"] == pytest.approx(max(scores), abs=CLOSE)
    assert debug["min_score"] == pytest.approx(min(scores), abs=CLOSE)
    assert (ran.outputs["status"], ran.outputs["message"]) == ("ok", "")
    assert ran.nodes == ["start", "build", "check", "search", "shape", "status", "end_ok"]
    assert not ran.partial


def test_every_weight_and_the_decay_change_the_order(persona, focal):
    orders = {
        name: tuple(row for row, _ in retrieve(persona.rows(), focal, Asked(**numbers))[0])
        for name, numbers in CASES.items()
        if "alone" in name or name in {"as it comes", "more recency", "more relevance", "fast decay"}
    }
    assert len(set(orders.values())) == len(orders)


def test_the_newest_can_be_favoured_instead(persona, focal, ask):
    only = {"recency_w": 1, "relevance_w": 0, "importance_w": 0}
    oldest_first, _ = retrieve(persona.rows(), focal, Asked(top_k=40, recency_w=1, relevance_w=0, importance_w=0))
    ran = ask(persona_name=persona.name, focal_text=FOCAL, recency_mode="newest", **only)
    assert [node["id"] for node in ran.outputs["retrieved_nodes"]] == [row for row, _ in oldest_first[::-1][:30]]


def test_what_is_idle_or_a_chat_never_comes_to_mind(persona, ask):
    ran = ask(persona_name=persona.name, focal_text=FOCAL, importance_w=1000)
    found = ran.outputs["retrieved_nodes"]
    assert {node["type"] for node in found} == {"event", "thought"}
    assert not [node for node in found if "idle" in node["description"]]


def test_fewer_memories_than_asked_for(server, ask):
    suffix = uuid4().hex
    memories = [{"content": f"Maria reads page {page}", "embedding": along({page: 1.0})} for page in range(7)]
    server.post("/v1/memories", {"agent": f"Maria Lopez {suffix}", "memories": memories})
    ran = ask(persona_name=f"Maria Lopez {suffix}", focal_text="what does Maria read?", top_k=30)
    assert len(ran.outputs["retrieved_nodes"]) == len(ran.outputs["accessed_ids"]) == 7


def test_what_was_retrieved_was_accessed(persona, focal, ask):
    before = {row.id: row.last_accessed for row in persona.rows()}
    first = ask(persona_name=persona.name, focal_text=FOCAL, top_k=1).outputs
    after = {row.id: row.last_accessed for row in persona.rows()}
    assert first["accessed_ids"] == [node["id"] for node in first["retrieved_nodes"]]
    assert [row for row in before if after[row] != before[row]] == first["accessed_ids"]
    assert all(after[row] > before[row] for row in first["accessed_ids"])
    assert [node["last_accessed"] for node in first["retrieved_nodes"]] == [before[first["accessed_ids"][0]]]
    expected, _ = retrieve(persona.rows(), focal, Asked(recency_w=20))
    second = ask(persona_name=persona.name, focal_text=FOCAL, recency_w=20).outputs["retrieved_nodes"]
    assert [node["id"] for node in second] == [row for row, _ in expected]


def test_a_node_has_the_columns_of_the_design(server, ask):
    agent = uuid4().hex
    memories = [
        {
            "content": '克劳斯说："派对\n几点开始？" 🎉',
            "importance": 7,
            "subject": "Klaus Mueller",
            "predicate": "asks about",
            "object": "party",
            "occurred_at": "2026-02-13T10:00:00+00:00",
            "embedding": along({0: 1.0}),
        },
        {"content": "Klaus likes parties", "kind": "thought", "evidence": [0], "embedding": along({1: 1.0})},
    ]
    event, thought = server.post("/v1/memories", {"agent": agent, "memories": memories})["memories"]
    ran = ask(persona_name=agent, focal_text="a party", importance_w=9)
    first, second = ran.outputs["retrieved_nodes"]
    factors = {name: first.pop(name) for name in ("score", "recency", "relevance", "importance")}
    assert first == {
        "id": event["id"],
        "node_id": event["id"],
        "type": "event",
        "created_at": "2026-02-13T10:00:00Z",
        "last_accessed": "2026-02-13T10:00:00Z",
        "description": '克劳斯说："派对\n几点开始？" 🎉',
        "poignancy": 7.0,
        "subject": "Klaus Mueller",
        "predicate": "asks about",
        "object": "party",
        "keywords": ["klaus mueller", "party"],
        "filling": [],
        "depth": 0,
    }
    made_of = factors["recency"] * 0.5 + factors["relevance"] * 3 + factors["importance"] * 9 * 2
    assert factors["score"] == pytest.approx(made_of, abs=1e-6)
    assert (second["id"], second["type"], second["depth"]) == (thought["id"], "thought", 1)
    assert second["filling"] == [event["id"]]

"""Dify's External Knowledge API: asked as Dify's own client asks, answered and refused as it understands."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from conftest import http_client, new_key
from recollect.doors.dify.conditions import FieldTest, MetadataCondition
from recollect.doors.dify.knowledge import score_hits
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import ChannelScore, Cue, Hit
from recollect.models.service import KeyBinding, Right

DAY = datetime(2026, 1, 31, 12, tzinfo=UTC)


def ask(query, knowledge_id="ada/li", top_k=5, score_threshold=0.0, **more):
    setting = {"top_k": top_k, "score_threshold": score_threshold}
    return {"retrieval_setting": setting, "query": query, "knowledge_id": knowledge_id, **more}


async def retrieve(http, *args, **more):
    answer = await http.post("/dify/retrieval", json=ask(*args, **more))
    assert answer.status_code == 200, answer.text
    return answer.json()["records"]


@pytest.fixture
async def filled(mind):
    memories = [
        NewMemory("Li is allergic to peanuts", importance=8, keywords=("peanuts",), metadata={"source": "form"}),
        NewMemory("Li lives in Shenzhen", Kind.THOUGHT, importance=3, occurred_at=DAY),
        NewMemory("the weather was fine", occurred_at=DAY),
    ]
    await mind.remember(memories)
    await mind.conversation("c-1").append([NewMessage(Role.USER, "I would like some tea", name="Li")])


# What is found.


async def test_records_are_what_recall_finds_in_its_order(http, mind, filled):
    records = await retrieve(http, "allergic to peanuts")
    found = await mind.recall(Cue("allergic to peanuts", limit=5, touch=False))
    assert [record["content"] for record in records] == [hit.memory.content for hit in found.hits]
    assert records[0]["content"] == "Li is allergic to peanuts"
    scores = [record["score"] for record in records]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    metadata = records[0]["metadata"]
    assert metadata["id"] == str(found.hits[0].memory.id)
    assert (metadata["kind"], metadata["conversation"], metadata["source"]) == ("event", "", "form")
    assert datetime.fromisoformat(metadata["occurred_at"]) == found.hits[0].memory.occurred_at
    assert metadata["keywords"] == ["peanuts"]


async def test_a_record_says_where_and_when(http, filled):
    [record] = await retrieve(http, "some tea", top_k=1)
    today = datetime.now(UTC)
    assert record["title"] == f"message in c-1, {today:%Y-%m-%d}"
    assert (record["metadata"]["role"], record["metadata"]["conversation"]) == ("user", "c-1")


async def test_no_more_than_asked_for_and_as_usual_where_dify_says_nothing(http, mind, filled):
    assert len(await retrieve(http, "Li", top_k=2)) == 2
    await mind.remember([NewMemory(f"Li did {number}") for number in range(20)])
    # A knowledge base that was made over Dify's API has no retrieval model: its values arrive as null.
    assert len(await retrieve(http, "Li", top_k=None, score_threshold=None)) == 10
    assert len(await retrieve(http, "Li", top_k=1_000)) == 24


async def test_a_threshold_leaves_out_what_is_not_near(http, filled):
    near = await retrieve(http, "Li is allergic to peanuts")
    assert near[0]["score"] > 0.9
    far = await retrieve(http, "quarterly revenue of the subsidiary")
    assert max((record["score"] for record in far), default=0) < near[0]["score"] / 2
    kept = await retrieve(http, "Li is allergic to peanuts", score_threshold=0.9)
    assert [record["content"] for record in kept] == ["Li is allergic to peanuts"]
    assert await retrieve(http, "quarterly revenue of the subsidiary", score_threshold=0.9) == []


async def test_nothing_remembered_yet_is_no_error(http):
    assert await retrieve(http, "anything", knowledge_id="nobody/yet") == []


async def test_an_agent_alone_is_a_knowledge_base_too(http, recollect):
    await (await recollect.mind("ada")).remember("alone")
    for name in ("ada", "ada/"):
        assert [record["content"] for record in await retrieve(http, "alone", knowledge_id=name)] == ["alone"]
    assert await retrieve(http, "alone", knowledge_id="ada/li") == []


async def test_records_count_as_accessed_unless_they_were_only_looked_through(http, mind, filled):
    before = {hit.memory.id: hit.memory.last_accessed_at for hit in (await mind.recall(Cue("tea", touch=False))).hits}
    condition = {"conditions": [{"name": "kind", "comparison_operator": "is", "value": "message"}]}
    await retrieve(http, "tea", metadata_condition=condition)
    after = {hit.memory.id: hit.memory.last_accessed_at for hit in (await mind.recall(Cue("tea", touch=False))).hits}
    assert after == before
    await retrieve(http, "tea", top_k=1)
    hits = (await mind.recall(Cue("tea", touch=False))).hits
    assert hits[0].memory.last_accessed_at > before[hits[0].memory.id]


async def test_a_long_query_is_cut_and_an_unknown_field_passed_over(http, filled):
    assert await retrieve(http, "peanuts " + "x " * 20_000, more_of_dify={"a": 1})


# Metadata.


async def test_conditions_choose_records(http, filled):
    async def contents(*conditions, **more):
        condition = {"conditions": list(conditions), **more}
        return {record["content"] for record in await retrieve(http, "Li", metadata_condition=condition)}

    thought = {"name": "kind", "comparison_operator": "is", "value": "thought"}
    form = {"name": ["source"], "comparison_operator": "not empty"}
    assert await contents(thought) == {"Li lives in Shenzhen"}
    assert await contents(thought, form) == set()
    assert await contents(thought, form, logical_operator="or") == {"Li lives in Shenzhen", "Li is allergic to peanuts"}
    since = {"name": "occurred_at", "comparison_operator": "before", "value": "2026-02-01"}
    assert await contents(since) == {"Li lives in Shenzhen", "the weather was fine"}
    assert len(await retrieve(http, "Li", metadata_condition={"conditions": None, "logical_operator": None})) == 4


METADATA = {
    "kind": "event",
    "importance": 8.0,
    "keywords": ["Peanuts", "tea"],
    "occurred_at": DAY.isoformat(),
    "own": "",
}


@pytest.mark.parametrize(
    ("name", "operator", "value", "holds"),
    [
        ("kind", "contains", "VEN", True),
        ("kind", "contains", "x", False),
        ("keywords", "contains", "peanut", True),
        ("keywords", "not contains", "peanut", False),
        ("keywords", "not contains", "milk", True),
        ("kind", "start with", "ev", True),
        ("kind", "end with", "nt", True),
        ("kind", "end with", "ev", False),
        ("kind", "is", "event", True),
        ("kind", "is not", "event", False),
        ("kind", "in", ["thought", "event"], True),
        ("kind", "in", "thought, event", True),
        ("kind", "not in", ["thought"], True),
        ("own", "empty", None, True),
        ("missing", "empty", None, True),
        ("kind", "empty", None, False),
        ("kind", "not empty", None, True),
        ("importance", "=", 8, True),
        ("importance", "=", "8", True),
        ("importance", "≠", 8, False),
        ("importance", ">", 7.5, True),
        ("importance", "<", 8, False),
        ("importance", "≥", "8", True),
        ("importance", "≤", 8, True),
        ("kind", ">", 1, False),
        ("occurred_at", "after", "2026-01-30T00:00:00+00:00", True),
        ("occurred_at", "before", DAY.timestamp(), False),
        ("occurred_at", "≤", DAY.timestamp(), True),
        ("occurred_at", "is", "2026-01-31T20:00:00+08:00", True),
        # As in Dify: what is not there meets nothing but emptiness, and a condition without a value bars nothing.
        ("missing", "is not", "x", False),
        ("missing", "not contains", "x", False),
        ("kind", "is", None, True),
    ],
)
def test_every_operator(name, operator, value, holds):
    assert FieldTest(name=name, comparison_operator=operator, value=value).holds(METADATA) is holds


def test_conditions_are_joined_by_and_unless_told():
    yes, no = ({"name": "kind", "comparison_operator": "is", "value": value} for value in ("event", "chat"))
    assert not MetadataCondition.model_validate({"conditions": [yes, no]}).holds(METADATA)
    assert MetadataCondition.model_validate({"conditions": [yes, no], "logical_operator": "or"}).holds(METADATA)
    assert MetadataCondition.model_validate({"conditions": []}).holds(METADATA)


# Scores.


def hit(score, cosine=None):
    channels = {} if cosine is None else {"vector": ChannelScore(cosine, 0.0)}
    return Hit(memory=None, score=score, channels=channels)


@pytest.mark.parametrize(
    ("hits", "scores"),
    [
        ([], []),
        ([hit(0.8, 0.5), hit(0.4, 0.6)], [0.6, 0.3]),
        ([hit(0.8), hit(0.4)], [1.0, 0.5]),
        ([hit(0.8, -0.2), hit(0.4, -0.1)], [0.0, 0.0]),
        ([hit(0.8, 1.0000001), hit(-0.1, 0.1)], [1.0, 0.0]),
        ([hit(0.0, 0.5)], [0.0]),
    ],
)
def test_scores_keep_the_order_and_say_how_near_the_best_is(hits, scores):
    assert score_hits(hits) == pytest.approx(scores)


# Who may ask.


async def test_dify_tries_a_new_endpoint_with_an_empty_request(recollect, http):
    """Only 403, 404 and 502 make Dify refuse to save an endpoint: any other status counts as connected."""
    answer = await http.post("/dify/retrieval")
    assert answer.status_code == 422
    assert answer.json()["error_code"] == 422
    async with http_client(recollect, "rec_wrong") as stranger:
        answer = await stranger.post("/dify/retrieval")
        assert (answer.status_code, answer.json()["error_code"]) == (403, 1002)


async def test_without_a_key_it_is_refused_before_the_body_is_read(recollect):
    async with http_client(recollect, "") as nobody:
        for headers in ({}, {"Authorization": "Basic abc"}, {"Authorization": "Bearer "}):
            answer = await nobody.post("/dify/retrieval", content=b"x" * 100_000, headers=headers)
            assert (answer.status_code, answer.json()["error_code"]) == (403, 1001)
            assert set(answer.json()) == {"error_code", "error_msg"}


async def test_a_wrong_key_a_lesser_one_and_a_foreign_one(recollect, filled):
    async with http_client(recollect, "rec_wrong") as stranger:
        answer = await stranger.post("/dify/retrieval", json=ask("tea"))
        assert (answer.status_code, answer.json()["error_code"]) == (403, 1002)
    _, secret = await new_key(recollect, rights=(Right.WRITE,))
    async with http_client(recollect, secret) as writer:
        answer = await writer.post("/dify/retrieval", json=ask("tea"))
        assert (answer.status_code, answer.json()["error_code"]) == (403, 1002)
    _, secret = await new_key(recollect, "another")
    async with http_client(recollect, secret) as foreign:
        assert await retrieve(foreign, "tea") == []


async def test_a_bound_key_opens_its_own_knowledge_only(recollect, filled):
    caller = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(caller, "dify", [Right.READ], 50, KeyBinding("ada", "li"))
    async with http_client(recollect, secret) as http:
        assert await retrieve(http, "tea")
        answer = await http.post("/dify/retrieval", json=ask("tea", knowledge_id="ada/wu"))
        assert (answer.status_code, answer.json()["error_code"]) == (403, 1002)


@pytest.mark.parametrize("name", ["", "/", "a/b/c", "ada  li", "e\u0301", "ada/li\n", "/li"])
async def test_a_name_that_no_scope_can_have_is_no_knowledge(http, name):
    answer = await http.post("/dify/retrieval", json=ask("tea", knowledge_id=name))
    assert (answer.status_code, answer.json()["error_code"]) == (404, 2001)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": "x"},
        ask("x", top_k=0),
        ask("x", score_threshold=2),
        ask("secret words", metadata_condition={"conditions": [{"name": "a", "comparison_operator": "like"}]}),
    ],
)
async def test_what_is_wrong_is_named_and_not_quoted(http, body):
    answer = await http.post("/dify/retrieval", json=body)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 422)
    assert "body." in answer.json()["error_msg"]
    assert "secret" not in answer.text

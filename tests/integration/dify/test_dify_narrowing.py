"""What Dify's conditions ask for goes into the filter of the recall, and nothing that meets them is lost by it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from conftest import http_client, new_key
from recollect.core.recall.checks import check_filter
from recollect.doors.dify.conditions import MetadataCondition
from recollect.doors.dify.knowledge import describe_memory
from recollect.doors.dify.narrowing import OURS, narrow
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory, Role
from support.measuring.sizes import Sizes

CONDITIONS = Sizes("conditions", ci=400, long=5_000)
DAY = datetime(2026, 1, 31, 12, tzinfo=UTC)
OWN = (
    {"project": "alpha", "size": 1, "done": True}, {"project": "Alpha", "size": "3"}, {"project": ["alpha", "beta"]},
    {"project": "alphabet", "size": 3.5}, {}, {"project": "", "due": DAY.isoformat()}, {"size": [3], "due": None},
)  # fmt: skip
OPERATORS = (
    "contains", "not contains", "start with", "is", "is not", "in", "not in", "empty", "not empty", "=", "≠", ">", "<",
    "≥", "≤", "before", "after",
)  # fmt: skip
VALUES = (
    "alpha",
    "Alpha",
    "event",
    "message",
    "user",
    "Ann",
    "c-1",
    "3",
    3,
    8,
    "true",
    DAY.isoformat(),
    DAY.timestamp(),
)


async def fill(mind):
    await mind.remember(
        [
            NewMemory(
                f"note {number}",
                (Kind.EVENT, Kind.THOUGHT, Kind.CHAT)[number % 3],
                ("Ann", "ann", "Bob", "")[number % 4],
                1 + number % 10,
                occurred_at=DAY + timedelta(hours=number - 12),
                metadata=OWN[number % len(OWN)],
            )
            for number in range(28)
        ]
    )
    said = [NewMessage(role, "a note", name="Ann", occurred_at=DAY) for role in (Role.USER, Role.ASSISTANT)]
    await mind.conversation("c-1").append(said)
    return {each.id: each for each in (await mind.list(limit=100)).memories}


def draw(chance):
    """Draw one to three conditions."""
    names = [*sorted(OURS), "project", "size", "due", "done", 'a "quoted" name']
    tests = [
        {
            "name": chance.sample(names, 1 + (chance.random() < 0.1)),
            "comparison_operator": chance.choice(OPERATORS),
            "value": chance.choice((*VALUES, None)),
        }
        for _ in range(chance.randint(1, 3))
    ]
    joined = chance.choice(("and", "and", "or"))
    return MetadataCondition.model_validate({"conditions": tests, "logical_operator": joined})


@pytest.mark.promise("A filter made of Dify's conditions admits all that meets them", CONDITIONS)
async def test_the_filter_admits_all_that_meets_the_conditions(mind):
    known, chance, named = await fill(mind), random.Random(22), set()
    assert {*describe_memory(next(iter(known.values())))} >= OURS
    for _ in range(CONDITIONS.now):
        condition = draw(chance)
        only = narrow(condition)
        check_filter(only)
        admitted = {each.id for each in (await mind.list(limit=100, filter=only)).memories}
        met = {key for key, memory in known.items() if condition.holds(describe_memory(memory))}
        assert met <= admitted, condition
        named |= {*only.named}
    assert named == {
        "kinds", "roles", "conversations", "speakers", "since", "until", "min_importance", "min_trust", "where",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "operator", "value", "only"),
    [
        ("kind", "is not", "event", Filter(kinds=tuple(each for each in Kind if each is not Kind.EVENT))),
        ("kind", "contains", "OUGH", Filter(kinds=(Kind.THOUGHT,))),
        ("role", "is", "user", Filter(roles=(Role.USER,))),
        ("role", "empty", None, Filter()),
        ("conversation", "is", "c-1", Filter(conversations=("c-1",))),
        ("importance", "≥", "8", Filter(min_importance=8)),
        ("trust", ">", 1_000, Filter(min_trust=100)),
        ("project", "is", "alpha", Filter(where=('"project" contains "alpha"',))),
        ("project", "is", "3", Filter(where=('"project" exists',))),
        ("project", "empty", None, Filter()),
        ("a\nb", "is", "alpha", Filter()),
    ],
)
def test_what_a_condition_becomes(name, operator, value, only):
    test = {"name": name, "comparison_operator": operator, "value": value}
    assert narrow(MetadataCondition.model_validate({"conditions": [test]})) == only


async def test_what_ranks_behind_the_best_two_hundred_is_found(recollect, mind):
    await mind.load([NewMemory(f"Li likes tea, for the {number}th time") for number in range(250)])
    await mind.remember(NewMemory("a walk by the sea", Kind.THOUGHT, metadata={"project": "alpha"}, importance=2))
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        for name, value in (("project", "alpha"), ("kind", "thought")):
            condition = {"conditions": [{"name": name, "comparison_operator": "is", "value": value}]}
            body = {"knowledge_id": "ada/li", "query": "Li likes tea", "metadata_condition": condition}
            answer = await http.post("/dify/retrieval", json=body | {"retrieval_setting": {"top_k": 5}})
            assert [each["content"] for each in answer.json()["records"]] == ["a walk by the sea"], name

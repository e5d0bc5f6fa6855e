"""Threads and budgets give what the golden cases say: strictly, and as Dify does."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.core.conversations.budget import fit, fit_upstream, prune_upstream
from recollect.core.conversations.messages import to_prompt
from recollect.core.conversations.threads import NIL, ThreadNode, bound_fetch, order_nodes, walk, walk_upstream
from recollect.models.conversations import Message, MessageStatus
from recollect.models.memories import Role
from support.imports.generative_agents import read_golden


@pytest.fixture
def golden(shared) -> dict:
    return read_golden(shared, "golden_thread_cases")


def nodes_of(case) -> list[ThreadNode]:
    return [ThreadNode(each["id"], each["parent_message_id"]) for each in case["messages_newest_first"]]


def path_of(case, *, placeholder: bool) -> list[Message]:
    """Give the turns as a path, newest first; an answer that is still to come is a pending message, or none at all."""
    path: list[Message] = []
    for turn in case["turns_oldest_first"]:
        began = UUID(int=len(path) + 1)
        coming = turn["answer"] == "" and turn["answer_tokens"] == 0
        answer = (Role.ASSISTANT, turn["answer"], MessageStatus.PENDING if coming else MessageStatus.DONE)
        asked = (Role.USER, turn["query"], MessageStatus.DONE)
        for role, content, status in (asked,) if coming and not placeholder else (asked, answer):
            parent = path[-1].id if path else None
            path.append(message(role, content, status, UUID(int=len(path) + 1), parent, began))
    return path[::-1]


def message(role, content, status, identifier, parent, turn) -> Message:
    return Message(
        id=identifier,
        role=role,
        content=content,
        name="",
        parts=(),
        attachments=(),
        parent=parent,
        turn=turn,
        number=identifier.int,
        status=status,
        tokens=len(content),
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        external_id="",
    )


def test_the_nil_parent_is_the_one_of_the_cases(golden):
    assert golden["nil"] == NIL


def test_every_thread_is_walked_strictly(golden):
    cases = golden["thread_cases"]
    wrong = [case["name"] for case in cases if walk(nodes_of(case), case["leaf"]) != case["strict"]]
    assert (len(cases), wrong) == (25, [])


def test_every_thread_is_walked_as_dify_does(golden):
    cases = golden["thread_cases"]
    wrong = [case["name"] for case in cases if walk_upstream(nodes_of(case)) != case["upstream"]]
    assert (len(cases), wrong) == (25, [])
    assert sum(case["strict"] != case["upstream"] for case in cases) >= 9


def test_every_thread_stays_the_same_once_it_is_ordered(golden):
    for case in golden["thread_cases"]:
        ordered = [ThreadNode(node.id, parent) for node, parent in order_nodes(nodes_of(case)[::-1])]
        assert walk(ordered[::-1], case["leaf"]) == case["strict"], case["name"]
        assert {node.id for node in ordered} == {node.id for node in nodes_of(case)}


@pytest.mark.parametrize("placeholder", [True, False])
def test_every_budget_is_kept_in_whole_turns(golden, placeholder):
    cases = golden["token_buffer_cases"]
    assert len(cases) == 8
    for case in cases:
        fitted = fit(path_of(case, placeholder=placeholder), case["max_token_limit"], unanswered=False)
        assert [to_prompt(each, images=False) for each in fitted.messages] == case["pair_safe"], case["name"]
        assert fitted.tokens == sum(len(each["content"]) for each in case["pair_safe"])


@pytest.mark.parametrize("placeholder", [True, False])
def test_every_budget_is_kept_as_dify_does(golden, placeholder):
    for case in golden["token_buffer_cases"]:
        fitted = fit_upstream(path_of(case, placeholder=placeholder), case["max_token_limit"])
        assert [to_prompt(each, images=False) for each in fitted.messages] == case["upstream"], case["name"]
        assert fitted.tokens == sum(len(each["content"]) for each in case["upstream"])


def test_pruning_alone_gives_the_upstream_column_too(golden):
    for case in golden["token_buffer_cases"]:
        turns = [turn for turn in case["turns_oldest_first"] if turn["answer"] or turn["answer_tokens"]]
        prompts = [
            {"role": role, "content": turn[field]}
            for turn in turns
            for role, field in (("user", "query"), ("assistant", "answer"))
        ]
        pruned = prune_upstream(prompts, lambda prompt: len(prompt["content"]), case["max_token_limit"])
        assert pruned == case["upstream"], case["name"]


def test_every_message_limit_is_bounded(golden):
    cases = golden["message_limit_cases"]
    assert [bound_fetch(case["given"]) for case in cases] == [case["effective"] for case in cases]
    assert len(cases) == 6

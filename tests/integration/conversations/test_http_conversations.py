"""Conversations over HTTP: what every route answers to the good, the bad and the hostile."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest

from conftest import http_client, new_key
from recollect.doors.http.middleware import MAX_BODY_BYTES
from recollect.models.conversations import LEGACY
from recollect.models.service import Right

SCOPE = {"agent": "ada", "user": "li"}
CONVERSATION = SCOPE | {"conversation": "c-1"}
CANARY = "canary-58a1"
JSON = {"Content-Type": "application/json"}
PLACE = "/v1/conversations/c-1"
CHANGES = [
    ("PATCH", PLACE, {"json": SCOPE | {"state": "archived"}}),
    ("PATCH", PLACE, {"json": SCOPE | {"state": "active"}}),
    ("DELETE", PLACE, {"params": SCOPE}),
    ("POST", f"{PLACE}/purge", {"json": SCOPE}),
]


def check_problem(answer, status, code):
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    problem = answer.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["detail"]
    return problem


def turn(question, answer, **fields):
    return [{"role": "user", "content": question} | fields, {"role": "assistant", "content": answer}]


async def append(http, *messages, **fields):
    answer = await http.post("/v1/messages", json=CONVERSATION | {"messages": list(messages)} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()["messages"]


async def contents(http, **fields):
    answer = await http.post("/v1/history", json=CONVERSATION | fields)
    assert answer.status_code == 200, answer.text
    return [message["content"] for message in answer.json()["messages"]]


# What each operation does when all is well.


async def test_a_turn_is_appended_and_read_back(http):
    question, answer = await append(http, *turn("Where does Li live?", "In Hangzhou."))
    assert set(question) == {"id", "number", "parent", "tokens", "known", "forgotten"}
    assert (question["number"], question["parent"]) == (1, None)
    assert (answer["number"], answer["parent"]) == (2, question["id"])
    history = (
        await http.post("/v1/history", json=CONVERSATION | {"user_prefix": "Li", "assistant_prefix": "Ada"})
    ).json()
    assert history["prompt"] == turn("Where does Li live?", "In Hangzhou.")
    assert history["text"] == "Li: Where does Li live?\nAda: In Hangzhou."
    assert history["tokens"] == question["tokens"] + answer["tokens"]
    assert (history["exact"], history["complete"], history["cut"]) == (True, True, False)


async def test_a_tool_appends_a_turn_without_building_a_list(http):
    for fields in ({"question": "one", "answer": "two"}, {"question": "three"}, {"answer": "four"}):
        assert (await http.post("/v1/messages", json=CONVERSATION | fields)).status_code == 201
    assert await contents(http) == ["one", "two", "three", "four"]
    both = CONVERSATION | {"question": "x", "messages": turn("y", "z")}
    problem = check_problem(await http.post("/v1/messages", json=both), 422, "invalid_input")
    assert problem["detail"] == "Send either messages, or question and answer."


async def test_everything_that_can_be_said_of_a_message_arrives(http, recollect):
    call = {"type": "tool_call", "text": '{"city": "Leuven"}', "name": "weather", "call_id": "c1"}
    result = {"type": "tool_result", "text": "12 degrees", "call_id": "c1"}
    photo = {"type": "image", "url": "https://example.org/a.png", "side": "user", "name": "a.png"}
    question = {
        "role": "user",
        "content": "How warm is it here?",
        "name": "Li",
        "attachments": [photo],
        "importance": 7.5,
        "occurred_at": "2026-01-31T12:00:00+08:00",
        "external_id": "q-1",
        "metadata": {"a": [1]},
        "embedding": [1.0] + [0.0] * 63,
    }
    answers = [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]}]
    said = await append(http, question, *answers, {"role": "assistant", "content": "12 degrees.", "status": "done"})
    memory = (await http.get(f"/v1/memories/{said[0]['id']}", params=SCOPE)).json()
    assert (memory["kind"], memory["role"], memory["conversation"]) == ("message", "user", "c-1")
    assert (memory["speaker"], memory["importance"], memory["metadata"]) == ("Li", 7.5, {"a": [1]})
    history = (await http.post("/v1/history", json=CONVERSATION | {"images": True})).json()
    shown = history["messages"][0]
    assert (shown["external_id"], shown["occurred_at"]) == ("q-1", "2026-01-31T04:00:00Z")
    assert shown["attachments"] == [photo | {"upload_id": ""}]
    assert [message["role"] for message in history["prompt"]] == ["user", "assistant", "tool", "assistant"]
    assert history["prompt"][0]["content"][0] == {"type": "image_url", "image_url": {"url": photo["url"]}}
    assert history["prompt"][1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": call["text"]}
    assert len({message["turn"] for message in history["messages"]}) == 1


async def test_branches_are_named_by_id_position_or_not_at_all(http):
    first = await append(http, *turn("one", "two"))
    old = await append(http, *turn("three", "four", parent=""))
    other = {"role": "assistant", "content": "fourth", "parent": 0}
    new = await append(http, *turn("third", "fourth, first try", parent=first[1]["id"]), other)
    assert new[2]["parent"] == new[0]["id"]
    assert await contents(http) == ["one", "two", "third", "fourth"]
    assert await contents(http, leaf=old[1]["id"]) == ["one", "two", "three", "four"]
    assert await contents(http, leaf="") == await contents(http)
    threads = (await http.get(PLACE, params=SCOPE)).json()["threads"]
    assert [leaf["id"] for leaf in threads] == [new[2]["id"], new[1]["id"], old[1]["id"]]
    assert len((await http.get(PLACE, params=SCOPE | {"threads": 1})).json()["threads"]) == 1
    listed = (await http.get("/v1/conversations", params=SCOPE)).json()["conversations"]
    assert [each["threads"] for each in listed] == [[]]
    await append(http, *turn("a new beginning", "indeed", root=True))
    assert await contents(http) == ["a new beginning", "indeed"]


@pytest.mark.parametrize("fields", [{"legacy": True}, {"parent": str(LEGACY)}])
async def test_messages_from_before_branches_form_a_chain(http, fields):
    first = await append(http, *turn("one", "two", **fields))
    await append(http, *turn("aside", "said aside", parent=first[1]["id"]))
    await append(http, *turn("three", "four", **fields))
    assert await contents(http) == ["one", "two", "three", "four"]


async def test_a_history_keeps_to_its_budget(http):
    for number in range(4):
        said = await append(http, *turn(f"question {number}", f"answer {number}"))
    one_turn = said[0]["tokens"] + said[1]["tokens"]
    assert await contents(http, max_tokens=2 * one_turn) == ["question 2", "answer 2", "question 3", "answer 3"]
    assert await contents(http, max_tokens=1) == ["question 3", "answer 3"]
    cut = (await http.post("/v1/history", json=CONVERSATION | {"max_tokens": one_turn - 1, "oversized": "cut"})).json()
    assert (cut["cut"], cut["tokens"] <= one_turn - 1) == (True, True)
    await append(http, {"role": "user", "content": "still open"})
    assert "still open" not in await contents(http)
    assert (await contents(http, unanswered=True))[-1] == "still open"
    asked = {"upstream": True, "message_limit": 2, "tokenizer": "cl100k_base"}
    upstream = (await http.post("/v1/history", json=CONVERSATION | asked)).json()
    assert upstream["tokenizer"] == "cl100k_base"
    assert [message["content"] for message in upstream["messages"]] == ["question 3", "answer 3"]


async def test_conversations_are_listed_page_by_page_and_described(http):
    for number in range(3):
        body = SCOPE | {"conversation": f"c-{number}", "question": "hello"}
        assert (await http.post("/v1/messages", json=body)).status_code == 201
    page = (await http.get("/v1/conversations", params=SCOPE | {"limit": 2})).json()
    assert [each["id"] for each in page["conversations"]] == ["c-2", "c-1"]
    rest = (await http.get(f"/v1/conversations?agent=ada&user=li&cursor={page['next_cursor']}")).json()
    assert ([each["id"] for each in rest["conversations"]], rest["next_cursor"]) == (["c-0"], "")
    named = await http.patch(PLACE, json=SCOPE | {"name": "Greetings", "metadata": {"a": 1}})
    assert (named.status_code, named.json()["name"]) == (200, "Greetings")
    await http.patch(PLACE, json=SCOPE | {"name": "Hellos"})
    found = (await http.get(PLACE, params=SCOPE)).json()
    assert (found["name"], found["metadata"], found["state"]) == ("Hellos", {"a": 1}, "active")
    assert found["message_count"] == 1
    await http.patch(PLACE, json=SCOPE | {"metadata": {}})
    found = (await http.get(PLACE, params=SCOPE)).json()
    assert (found["name"], found["metadata"]) == ("Hellos", {})


async def test_a_context_is_a_prompt_within_its_budget(http):
    body = SCOPE | {"memories": [{"content": "Li is allergic to peanuts"}, {"content": "Li plays the violin"}]}
    await http.post("/v1/memories", json=body)
    first = await http.post("/v1/context", json=CONVERSATION | {"text": "Hello."})
    assert first.json()["messages"][-1] == {"role": "user", "content": "Hello."}
    said = await append(http, *turn("Hello.", "Good evening, Li."))
    asked = {"text": "Which food with peanuts is there?", "budget": 200, "system": "You are a cook.", "limit": 1}
    context = (await http.post("/v1/context", json=CONVERSATION | asked)).json()
    assert [message["role"] for message in context["messages"]] == ["system", "system", "user", "assistant", "user"]
    assert context["messages"][0]["content"] == asked["system"]
    assert context["messages"][-1]["content"] == asked["text"]
    assert [hit["memory"]["content"] for hit in context["hits"]] == ["Li is allergic to peanuts"]
    assert "Li is allergic to peanuts" in context["block"]
    assert [message["id"] for message in context["history"]["messages"]] == [message["id"] for message in said]
    spending = context["spending"]
    assert 0 < spending["total"] <= spending["budget"] == 200
    assert (context["summary"], set(context["methods"])) == (
        None,
        {"text", "vector", "keyword", "graph", "topic", "date"},
    )
    shares = {"history_share": 0, "memories_share": 1.0, "summary_share": 0.0}
    alone = (await http.post("/v1/context", json=CONVERSATION | asked | shares)).json()
    assert (alone["history"]["messages"], len(alone["hits"])) == ([], 1)
    leafs = {"leaf": said[1]["id"], "tokenizer": "gpt-4", "images": True, "oversized": "cut"}
    assert (await http.post("/v1/context", json=CONVERSATION | asked | leafs)).json()["history"][
        "tokenizer"
    ] == "cl100k_base"
    long = "word " * 4_000
    assert (await http.post("/v1/context", json=CONVERSATION | {"text": long, "budget": 9_000})).status_code == 200


async def test_a_conversation_from_the_archive_to_its_end(http):
    await append(http, *turn(f"the word is {CANARY}", "noted"))
    cue = SCOPE | {"text": CANARY, "channels": ["text"]}
    archived = await http.patch(PLACE, json=SCOPE | {"state": "archived"})
    assert (archived.status_code, archived.json()["state"]) == (200, "archived")
    assert (await http.post("/v1/recall", json=cue)).json()["hits"] == []
    assert len(await contents(http)) == 2
    assert (await http.patch(PLACE, json=SCOPE | {"state": "active"})).json()["state"] == "active"
    assert len((await http.post("/v1/recall", json=cue)).json()["hits"]) == 1
    assert (await http.delete(PLACE, params=SCOPE)).json()["state"] == "deleted"
    check_problem(await http.post("/v1/history", json=CONVERSATION), 404, "not_found")
    check_problem(await http.post("/v1/messages", json=CONVERSATION | {"question": "x"}), 409, "conflict")
    check_problem(await http.patch(PLACE, json=SCOPE | {"state": "archived"}), 409, "conflict")
    assert (await http.get("/v1/conversations", params=SCOPE)).json()["conversations"] == []
    deleted = (await http.get("/v1/conversations", params=SCOPE | {"state": "deleted"})).json()["conversations"]
    assert [each["id"] for each in deleted] == ["c-1"]
    purged = await http.post(f"{PLACE}/purge", json=SCOPE)
    receipt = purged.json()
    assert (purged.status_code, receipt["conversation"]) == (200, "c-1")
    assert receipt["finished_at"]
    assert receipt["removed"]["messages"] == 2
    assert CANARY not in purged.text
    listed = (await http.get("/v1/receipts", params=CONVERSATION)).json()["receipts"]
    assert listed == [receipt | SCOPE]
    for method, path, content in CHANGES:
        check_problem(await http.request(method, path, **content), 404, "not_found")
    check_problem(await http.get(PLACE, params=SCOPE), 404, "not_found")


async def test_a_profile_says_when_conversations_move_on(http):
    body = {"agent": "ada", "archive_after_days": 30, "delete_after_days": 0, "purge_after_days": 7.5}
    changed = (await http.put("/v1/profile", json=body)).json()
    assert {"agent": "ada"} | {name: changed[name] for name in body if name != "agent"} == body
    assert (await http.get("/v1/profile", params={"agent": "ada"})).json() == changed
    for value in (-1, 36_501, True, "30"):
        answer = await http.put("/v1/profile", json={"agent": "ada", "archive_after_days": value})
        check_problem(answer, 422, "invalid_input")


async def test_a_replay_answers_as_before_and_another_body_conflicts(http):
    key, body = {"Idempotency-Key": "k-1"}, CONVERSATION | {"question": "once", "answer": "only"}
    first = await http.post("/v1/messages", json=body, headers=key)
    again = await http.post("/v1/messages", json=body, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    check_problem(
        await http.post("/v1/messages", json=CONVERSATION | {"question": "twice"}, headers=key), 409, "conflict"
    )
    for _ in range(2):
        answer = await http.post("/v1/messages", json=CONVERSATION | {"question": "x"}, headers={"Idempotency-Key": ""})
        assert answer.status_code == 201
    assert (await http.get(PLACE, params=SCOPE)).json()["message_count"] == 4


# Who is let in.


async def test_rights_are_what_they_say(recollect, http):
    await append(http, *turn("one", "two"))
    requests = {
        Right.READ: [
            ("POST", "/v1/history", {"json": CONVERSATION}),
            ("GET", "/v1/conversations", {"params": SCOPE}),
            ("GET", PLACE, {"params": SCOPE}),
            ("GET", "/v1/receipts", {"params": CONVERSATION}),
            ("POST", "/v1/context", {"json": CONVERSATION | {"text": "x"}}),
        ],
        Right.WRITE: [
            ("POST", "/v1/messages", {"json": CONVERSATION | {"question": "x"}}),
            ("POST", "/v1/context", {"json": CONVERSATION | {"text": "x", "now": "2026-01-31T12:00:00Z"}}),
            ("PATCH", PLACE, {"json": SCOPE | {"name": "x"}}),
            *CHANGES,
        ],
    }
    for right in (Right.READ, Right.WRITE):
        _, secret = await new_key(recollect, rights=(right,))
        async with http_client(recollect, secret) as limited:
            for needed, calls in requests.items():
                for method, path, content in calls:
                    answer = await limited.request(method, path, **content)
                    if needed is right:
                        assert answer.status_code in {200, 201}, answer.text
                    else:
                        check_problem(answer, 403, "forbidden")


async def test_a_foreign_conversation_looks_exactly_like_an_unknown_one(recollect, http):
    said = await append(http, *turn(CANARY, "noted"))
    _, secret = await new_key(recollect, "somebody else")
    async with http_client(recollect, secret) as stranger:
        assert (await stranger.get("/v1/conversations", params=SCOPE)).json()["conversations"] == []
        for method, path, content in [
            ("POST", "/v1/history", {"json": CONVERSATION}),
            ("POST", "/v1/history", {"json": CONVERSATION | {"leaf": said[0]["id"]}}),
            ("GET", PLACE, {"params": SCOPE}),
            ("POST", "/v1/context", {"json": CONVERSATION | {"text": CANARY, "leaf": said[0]["id"]}}),
            ("PATCH", PLACE, {"json": SCOPE | {"name": "mine"}}),
            *CHANGES,
        ]:
            foreign = await stranger.request(method, path, **content)
            unknown = json.loads(json.dumps(content).replace("c-1", "c-2"))
            other = await stranger.request(method, path.replace("c-1", "c-2"), **unknown)
            assert check_problem(foreign, 404, "not_found") == check_problem(other, 404, "not_found")
        prompt = (await stranger.post("/v1/context", json=CONVERSATION | {"text": "which word?"})).json()
        assert (prompt["hits"], prompt["history"]["messages"], len(prompt["messages"])) == ([], [], 1)
        assert (await stranger.get("/v1/receipts", params=CONVERSATION)).json()["receipts"] == []
        answers = [
            await stranger.post("/v1/messages", json=CONVERSATION | {"messages": turn("x", "y", parent=parent)})
            for parent in (said[0]["id"], str(uuid4()))
        ]
        problems = [check_problem(answer, 422, "invalid_input") for answer in answers]
        assert problems[0] == problems[1]
    assert await contents(http) == [CANARY, "noted"]


# What is refused.


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", f"{PLACE}?agent=ada", 404, "not_found"),
        ("GET", f"{PLACE}?agent=ada&threads=-1", 422, "invalid_input"),
        ("GET", "/v1/receipts?agent=ada&conversation=a%20b", 422, "invalid_input"),
        ("GET", "/v1/receipts?conversation=c-1", 422, "invalid_input"),
        ("GET", "/v1/conversations/a%20b?agent=ada", 422, "invalid_input"),
        ("GET", "/v1/conversations/%00?agent=ada", 422, "invalid_input"),
        ("GET", f"/v1/conversations/{'x' * 129}?agent=ada", 422, "invalid_input"),
        ("GET", "/v1/conversations", 422, "invalid_input"),
        ("GET", "/v1/conversations?agent=ada&state=lost", 422, "invalid_input"),
        ("GET", "/v1/conversations?agent=ada&limit=0", 422, "invalid_input"),
        ("GET", "/v1/conversations?agent=ada&limit=201", 422, "invalid_input"),
        ("GET", "/v1/conversations?agent=ada&cursor=x", 422, "invalid_input"),
        ("GET", "/v1/conversations?agent=ada&cursor=%00", 422, "invalid_input"),
        ("GET", "/v1/conversations?agent=ada&cursor=2026-01-31T12:00:00Z_%00", 422, "invalid_input"),
        ("GET", "/v1/conversations?agent=ada&cursor=0001-01-01T00:00:00%2B14:00_x", 422, "invalid_input"),
        ("PUT", PLACE, 405, "method_not_allowed"),
        ("PUT", "/v1/messages", 405, "method_not_allowed"),
        ("GET", f"{PLACE}/nothing", 404, "not_found"),
    ],
)
async def test_requests_that_name_nothing(http, method, path, status, code):
    check_problem(await http.request(method, path), status, code)


HOSTILE_FIELDS = [
    ("role", "narrator"),
    ("role", None),
    ("content", "a\x00b"),
    ("content", "\ud800"),
    ("content", "x" * 200_001),
    ("content", 5),
    ("content", ""),
    ("content", " \n"),
    ("name", "a\nb"),
    ("name", "x" * 201),
    ("parts", [{"type": "song"}]),
    ("parts", [{"type": "text", "text": "\x00"}]),
    ("parts", [{"type": "text", "text": "x" * 200_001}]),
    ("parts", [{"type": "image", "url": "\x00"}]),
    ("parts", [{"type": "image", "url": "x" * 8_001}]),
    ("parts", [{"type": "file", "name": "a\nb"}]),
    ("parts", [{"type": "tool_call", "call_id": "\ud800"}]),
    ("parts", [{"type": "text"}] * 65),
    ("parts", "text"),
    ("attachments", [{"type": "image", "side": "tool"}]),
    ("attachments", [{"url": "https://example.org"}]),
    ("attachments", [{"type": "image", "upload_id": "\x00"}]),
    ("attachments", [{"type": "image"}] * 65),
    ("parent", "not-a-uuid"),
    ("parent", "0199a1b2-0000-7000-8000-000000000001"),
    ("parent", 1),
    ("parent", -1),
    ("parent", 1_000),
    ("parent", True),
    ("parent", 0.0),
    ("parent", None),
    ("root", "yes"),
    ("legacy", 1),
    ("status", "late"),
    ("importance", 11),
    ("importance", "7"),
    ("occurred_at", "2026-01-31T12:00:00"),
    ("occurred_at", 1_700_000_000),
    ("external_id", "a\tb"),
    ("embedding", [1.0] * 63),
    ("embedding", [0.0] * 64),
    ("metadata", {"a": "\x00"}),
    ("metadata", {"a": "x" * 16_384}),
    ("unknown", 1),
]


@pytest.mark.parametrize(("field", "value"), HOSTILE_FIELDS)
async def test_a_message_that_cannot_be_appended_is_refused_by_name(http, owner, field, value):
    body = CONVERSATION | {
        "messages": [{"role": "user", "content": "fine"}, {"role": "user", "content": "fine"} | {field: value}]
    }
    content = json.dumps(body, allow_nan=True).encode()
    problem = check_problem(await http.post("/v1/messages", content=content, headers=JSON), 422, "invalid_input")
    told = problem["detail"] + json.dumps(problem["errors"])
    assert field in told
    assert CANARY not in told
    assert owner.execute("select count(*) from memories").fetchone() == (0,)
    assert owner.execute("select count(*) from conversations").fetchone() == (0,)


async def test_contradictions_are_refused(http):
    first = await append(http, *turn("one", "two"))
    for fields in (
        {"legacy": True, "parent": first[0]["id"]},
        {"root": True, "parent": first[0]["id"]},
        {"root": True, "legacy": True},
    ):
        body = CONVERSATION | {"messages": turn("x", "y", **fields)}
        check_problem(await http.post("/v1/messages", json=body), 422, "invalid_input")
    await append(http, {"role": "user", "content": "x", "external_id": "e"})
    twice = CONVERSATION | {"messages": [{"role": "user", "content": "y", "external_id": "e"}]}
    problem = check_problem(await http.post("/v1/messages", json=twice), 409, "conflict")
    assert "e (content)" in problem["detail"]


async def test_messages_are_bounded_and_the_longest_fits(http):
    said = await append(http, {"role": "user", "content": "word " * 40_000}, {"role": "assistant", "content": "short"})
    assert said[0]["tokens"] > 40_000
    assert len((await contents(http))[0]) == 200_000
    full = CONVERSATION | {"messages": [{"role": "user", "content": "x"}] * 1_000}
    assert len((await http.post("/v1/messages", json=full)).json()["messages"]) == 1_000
    full["messages"].append(full["messages"][0])
    check_problem(await http.post("/v1/messages", json=full), 422, "invalid_input")
    long = CONVERSATION | {"messages": [{"role": "user", "content": "x" * 200_000}] * 6}
    problem = check_problem(await http.post("/v1/messages", json=long), 422, "invalid_input")
    assert problem["detail"] == "messages must hold at most 250000 characters together"
    body = json.dumps(CONVERSATION | {"question": "x" * MAX_BODY_BYTES}).encode()
    problem = check_problem(await http.post("/v1/messages", content=body, headers=JSON), 413, "too_large")
    assert str(MAX_BODY_BYTES) in problem["detail"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("conversation", "a b"),
        ("conversation", ""),
        ("max_tokens", -1),
        ("max_tokens", 10_000_001),
        ("max_tokens", True),
        ("leaf", "x"),
        ("leaf", None),
        ("tokenizer", "\ud800"),
        ("oversized", "drop"),
        ("unanswered", "true"),
        ("images", 1),
        ("image_tokens", -1),
        ("user_prefix", "\ud800"),
        ("user_prefix", "x" * 201),
        ("upstream", "no"),
        ("message_limit", 0),
        ("message_limit", 10**400),
        ("unknown", 1),
    ],
)
async def test_a_history_that_cannot_be_read_is_refused(http, field, value):
    await append(http, *turn("one", "two"))
    content = json.dumps(CONVERSATION | {field: value}).encode()
    check_problem(await http.post("/v1/history", content=content, headers=JSON), 422, "invalid_input")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", ""),
        ("text", "\x00"),
        ("text", "\ud800"),
        ("text", "x" * 200_001),
        ("budget", 0),
        ("budget", 10_000_001),
        ("budget", "4000"),
        ("budget", 5),
        ("history_share", 1.5),
        ("history_share", 0.9),
        ("memories_share", True),
        ("summary_share", float("nan")),
        ("system", "\x00"),
        ("system", "\ud800"),
        ("system", "x" * 200_001),
        ("max_tokens", 100),
        ("limit", 201),
        ("channels", ["smell"]),
        ("embedding", [1.0]),
        ("leaf", "x"),
        ("touch", "no"),
        ("unknown", 1),
    ],
)
async def test_a_context_that_cannot_be_made_is_refused(http, field, value):
    await append(http, *turn("one", "two"))
    content = json.dumps(CONVERSATION | {"text": "three words here"} | {field: value}, allow_nan=True).encode()
    problem = check_problem(await http.post("/v1/context", content=content, headers=JSON), 422, "invalid_input")
    assert "three words" not in json.dumps(problem)


async def test_a_leaf_of_another_conversation_is_none(http):
    await append(http, *turn("one", "two"))
    other = await append(http, *turn("three", "four"), conversation="c-2")
    for leaf in (other[1]["id"], str(uuid4()), str(UUID(int=0))):
        check_problem(await http.post("/v1/history", json=CONVERSATION | {"leaf": leaf}), 404, "not_found")
        check_problem(await http.post("/v1/context", json=CONVERSATION | {"leaf": leaf, "text": "x"}), 404, "not_found")


@pytest.mark.parametrize(
    "body",
    [
        *({"name": "a\nb"}, {"name": "x" * 201}, {"metadata": []}, {"metadata": {"a": "\x00"}}),
        *({"state": "deleted"}, {"state": "purging"}, {"state": "lost"}, {"close_segment": "yes"}),
    ],
)
async def test_a_description_that_cannot_be_kept_is_refused(http, body):
    await append(http, *turn("one", "two"))
    check_problem(await http.patch(PLACE, json=SCOPE | body), 422, "invalid_input")
    check_problem(await http.patch("/v1/conversations/c-2", json=SCOPE | {"name": "x"}), 404, "not_found")

"""The HTTP door: what it answers to the good, the bad and the hostile, and what it says about itself."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from uuid import uuid4

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from conftest import http_client, new_key
from recollect.core.service.secrets import write_secret
from recollect.doors.http.app import create_app
from recollect.doors.http.middleware import MAX_BODY_BYTES
from recollect.models.service import Right
from recollect.settings import Settings
from support.programs.waiting import hurry

SCOPE = {"agent": "ada", "user": "li"}
GIVEN = SCOPE | {"name": "x"}
CANARY = "canary-58a1"
NOBODY = "0199a1b2-0000-7000-8000-000000000001"
JSON = {"Content-Type": "application/json"}
OPEN_PATHS = {"/health/live", "/health/ready", "/metrics"}


def memories(*contents, **fields):
    return SCOPE | {"memories": [{"content": content} | fields for content in contents]}


def check_problem(answer, status, code):
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    problem = answer.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"urn:recollect:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    assert answer.headers["x-request-id"]
    return problem


@pytest.fixture(scope="module")
def document():
    return create_app(Settings(embedder="fake")).openapi()


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def named(operation):
    """Give the parameters that stand in an operation's path."""
    return [each | each["schema"] for each in operation.get("parameters", ()) if each["in"] == "path"]


# What each operation does when all is well.


async def test_a_memory_from_first_word_to_last(http):
    answer = await http.post("/v1/memories", json=memories("Ann bought apples", "Bob sold pears", importance=7))
    first, second = answer.json()["memories"]
    assert (answer.status_code, first["progress"]) == (201, "embedded")
    recalled = (await http.post("/v1/recall", json=SCOPE | {"text": "who bought apples?", "limit": 1})).json()
    assert recalled["hits"][0]["memory"]["id"] == first["id"]
    assert set(recalled["hits"][0]["channels"]) == {"text", "vector"}
    assert (recalled["methods"]["text"], recalled["methods"]["vector"]) == ("exact", "exact")
    page = (await http.get("/v1/memories", params=SCOPE | {"limit": 1})).json()
    assert [memory["id"] for memory in page["memories"]] == [first["id"]]
    rest = (await http.get("/v1/memories", params=SCOPE | {"cursor": page["next_cursor"]})).json()
    assert ([memory["id"] for memory in rest["memories"]], rest["next_cursor"]) == ([second["id"]], None)
    got = (await http.get(f"/v1/memories/{first['id']}", params=SCOPE)).json()
    assert (got["content"], got["importance"], got["trust"]) == ("Ann bought apples", 7, 50)
    gone = await http.delete(f"/v1/memories/{first['id']}", params=SCOPE)
    assert (gone.status_code, gone.json()) == (200, {"forgotten": [first["id"]]})
    check_problem(await http.get(f"/v1/memories/{first['id']}", params=SCOPE), 404, "not_found")


async def test_keys_from_making_to_revoking(recollect, http):
    made = (await http.post("/v1/keys", json={"name": "bot", "rights": ["read"], "trust": 10})).json()
    listed = (await http.get("/v1/keys")).json()["keys"]
    assert made["key"]["id"] in {key["id"] for key in listed}
    assert made["secret"] not in json.dumps(listed)
    async with http_client(recollect, made["secret"]) as bot:
        assert (await bot.post("/v1/recall", json=SCOPE | {"text": "x"})).status_code == 200
        check_problem(await bot.post("/v1/memories", json=memories("x")), 403, "forbidden")
        check_problem(await bot.get("/v1/keys"), 403, "forbidden")
        revoked = await http.delete(f"/v1/keys/{made['key']['id']}")
        assert revoked.json()["revoked_at"]
        check_problem(await bot.post("/v1/recall", json=SCOPE | {"text": "x"}), 401, "unauthenticated")
    check_problem(await http.delete(f"/v1/keys/{uuid4()}"), 404, "not_found")


async def test_a_key_can_not_make_one_that_is_trusted_more(recollect):
    _, secret = await new_key(recollect, trust=20)
    async with http_client(recollect, secret) as http:
        body = {"name": "bot", "rights": ["read"], "trust": 21}
        check_problem(await http.post("/v1/keys", json=body), 422, "invalid_input")


async def test_health_and_metrics_need_no_key(recollect):
    async with http_client(recollect, "") as http:
        for path in ("/health/live", "/health/ready"):
            assert (await http.get(path)).json() == {"status": "ok"}
        before = await count_requests(http)
        await http.post("/v1/recall", json=SCOPE | {"text": "x"})
        await http.get("/nowhere")
        after = await count_requests(http)
    assert after[("POST", "unknown", "401")] == before.get(("POST", "unknown", "401"), 0) + 1
    assert after[("GET", "unknown", "404")] == before.get(("GET", "unknown", "404"), 0) + 1


async def count_requests(http):
    families = {family.name: family for family in text_string_to_metric_families((await http.get("/metrics")).text)}
    assert {"recollect_http_request_seconds", "recollect_pool", "recollect_jobs"} <= set(families)
    samples = families["recollect_http_requests"].samples
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for sample in samples
        if sample.name.endswith("_total")
    }


async def test_a_request_has_an_id(http):
    echoed = await http.get("/health/live", headers={"X-Request-Id": "trace-1.2_3"})
    assert echoed.headers["x-request-id"] == "trace-1.2_3"
    for odd in ("two words", "x" * 65, "<script>", "é"):
        made = (await http.get("/health/live", headers={"X-Request-Id": odd.encode()})).headers["x-request-id"]
        assert re.fullmatch(r"[0-9a-f]{32}", made)


async def test_a_replay_answers_as_before_and_another_body_conflicts(http):
    key = {"Idempotency-Key": "k-1"}
    first = await http.post("/v1/memories", json=memories("once"), headers=key)
    again = await http.post("/v1/memories", json=memories("once"), headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    check_problem(await http.post("/v1/memories", json=memories("twice"), headers=key), 409, "conflict")
    for _ in range(2):
        assert (await http.post("/v1/memories", json=memories("x"), headers={"Idempotency-Key": ""})).status_code == 201


# Who is let in.


def example_of(document, operation):
    """The first example of an operation's body, if it has one."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return resolve(document, content["schema"])["examples"][0] if content else None


@pytest.mark.promise("Every route but those for health and metrics needs a key")
async def test_every_route_needs_a_key(recollect, document):
    asked = 0
    for method, path, operation in operations(document):
        # What follows Dify's own protocol refuses as that says: see the tests of the knowledge base.
        if path in OPEN_PATHS or path == "/dify/retrieval":
            continue
        asked += 1
        examples = {each["name"]: each.get("example", each.get("examples", [uuid4()])[0]) for each in named(operation)}
        place = path.format(**examples)
        for secret, scheme in (("", "Bearer"), (write_secret(1, bytes(32)), "Bearer"), ("x", "Basic")):
            async with http_client(recollect, "") as http:
                headers = {"Authorization": f"{scheme} {secret}"} if secret else {}
                body = example_of(document, operation)
                asked_in_query = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
                parameters = {name: value for name, value in GIVEN.items() if name in asked_in_query}
                answer = await http.request(method, place, params=parameters, json=body, headers=headers)
            check_problem(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"
    assert asked >= 8


@pytest.mark.parametrize("shown", [b"Bearer \xff\xfe", b"Bearer " + b"x" * 100_000, b"Bearer a b", b"Bearer", b"\xff"])
async def test_a_key_of_any_bytes_is_just_unknown(recollect, shown):
    async with http_client(recollect, "") as http:
        answer = await http.get("/v1/memories", params=SCOPE, headers={"Authorization": shown})
    check_problem(answer, 401, "unauthenticated")


@pytest.mark.parametrize("key", [b"\xff", b"x" * 256, b"a\tb", "é".encode()])
async def test_an_idempotency_key_is_printable_and_short(http, key):
    answer = await http.post("/v1/memories", json=memories("x"), headers={"Idempotency-Key": key})
    check_problem(answer, 422, "invalid_input")


@pytest.mark.promise("A revoked key is refused at once")
async def test_a_revoked_key_is_refused_at_once(recollect):
    key, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        assert (await http.get("/v1/memories", params=SCOPE)).status_code == 200
        await recollect.revoke_key(await recollect.operator.act_for("default"), key.id)
        check_problem(await http.get("/v1/memories", params=SCOPE), 401, "unauthenticated")


@pytest.mark.parametrize("right", [Right.READ, Right.WRITE, Right.ADMIN])
async def test_rights_are_what_they_say(recollect, right):
    _, secret = await new_key(recollect, rights=(right,))
    async with http_client(recollect, secret) as http:
        answers = {
            Right.READ: await http.post("/v1/recall", json=SCOPE | {"text": "x"}),
            Right.WRITE: await http.post("/v1/memories", json=memories("x")),
            Right.ADMIN: await http.get("/v1/keys"),
        }
    assert answers.pop(right).status_code in {200, 201}
    for refused in answers.values():
        check_problem(refused, 403, "forbidden")


# What is refused.


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/memories/", 404, "not_found"),
        ("PUT", "/v1/memories", 405, "method_not_allowed"),
        ("GET", "/v1/recall", 405, "method_not_allowed"),
        ("GET", "/v1/memories/not-a-uuid?agent=ada", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=ada&cursor=not-a-uuid", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=ada&cursor=%00", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=ada&limit=0", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=ada&limit=201", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=ada&limit=99999999999999999999", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=ada%00", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=%ff%fe", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=e%CC%81", 422, "invalid_input"),
        ("GET", "/v1/memories?agent=ada%0A", 422, "invalid_input"),
        ("GET", "/v1/memories", 422, "invalid_input"),
        ("DELETE", f"/v1/memories/{NOBODY}?agent=ada", 404, "not_found"),
    ],
)
async def test_requests_that_name_nothing(http, method, path, status, code):
    answer = await http.request(method, path)
    check_problem(answer, status, code)
    assert status != 405 or answer.headers["allow"]


HOSTILE_FIELDS = [
    ("content", "a\x00b"),
    ("content", "\ud800"),
    ("content", ""),
    ("content", " \n "),
    ("content", "x" * 2_000_000),
    ("content", None),
    ("content", 5),
    ("content", ["x"]),
    ("kind", "episode"),
    ("speaker", "a\nb"),
    ("speaker", "\udfff"),
    ("speaker", "x" * 201),
    ("importance", float("nan")),
    ("importance", float("inf")),
    ("importance", 0),
    ("importance", 10**400),
    ("keywords", ["x"] * 65),
    ("keywords", ["\x00"]),
    ("keywords", "word"),
    ("occurred_at", "2026-01-31T12:00:00"),
    ("occurred_at", "0001-01-01T00:00:00Z"),
    ("occurred_at", "0001-01-01T00:00:00+14:00"),
    ("occurred_at", "9999-12-31T23:59:59-12:00"),
    ("occurred_at", "2026-02-30T00:00:00Z"),
    ("occurred_at", 10**400),
    ("occurred_at", 1_700_000_000),
    ("occurred_at", "1700000000"),
    ("importance", True),
    ("importance", "7"),
    ("evidence", ["not-a-uuid"]),
    ("evidence", [NOBODY] * 257),
    ("embedding", [1.0] * 63),
    ("embedding", [0.0] * 64),
    ("embedding", [float("nan")] * 64),
    ("embedding", [10**400] * 64),
    ("embedding", [1e308] * 64),
    ("embedding", ["x"] * 64),
    ("metadata", {"a": "\x00"}),
    ("metadata", {"\ud800": 1}),
    ("metadata", {"a": float("nan")}),
    ("metadata", {"a": "x" * 16_384}),
    ("metadata", []),
    ("unknown", 1),
]


def hostile_json(value):
    """Write what a hostile client would: NaN, Infinity and lone surrogates included."""
    return json.dumps(value, allow_nan=True).encode()


@pytest.mark.parametrize(("field", "value"), HOSTILE_FIELDS)
async def test_a_memory_that_cannot_be_stored_is_refused_by_name(http, owner, field, value):
    body = SCOPE | {"memories": [{"content": "fine"}, {"content": "fine"} | {field: value}]}
    problem = check_problem(
        await http.post("/v1/memories", content=hostile_json(body), headers=JSON), 422, "invalid_input"
    )
    assert field in problem["detail"] + json.dumps(problem["errors"])
    assert owner.execute("select count(*) from memories").fetchone() == (0,)


@pytest.mark.parametrize("query", [{"state": "gone"}, {"speakers": ["x"] * 65}, {"min_trust": 101}])
async def test_a_filter_in_a_query_is_checked_as_in_a_body(http, query):
    check_problem(await http.get("/v1/memories", params=SCOPE | query), 422, "invalid_input")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", "\x00"),
        ("text", "x" * 8_001),
        ("state", "gone"),
        ("limit", 0),
        ("limit", 201),
        ("limit", True),
        ("limit", "5"),
        ("limit", 10**400),
        ("limit", float("nan")),
        ("kinds", ["episode"]),
        ("min_trust", 101),
        ("as_of", "2026-01-31T12:00:00"),
        ("as_of", "9999-12-31T23:59:59Z"),
        ("embedding", [1.0] * 3),
        ("embedding", [float("inf")] * 64),
        *(("agent", name) for name in ("a/b", " a", "e\u0301", "a\u200bb")),
        ("agent", "a\n"),
        ("agent", ""),
        ("user", "x" * 129),
        ("unknown", 1),
    ],
)
async def test_a_cue_that_cannot_be_asked_is_refused(http, field, value):
    body = SCOPE | {"text": "x"} | {field: value}
    check_problem(await http.post("/v1/recall", content=hostile_json(body), headers=JSON), 422, "invalid_input")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff\xfe{}",
        b'{"agent": "ada", "memories": [{"content": "\xc3\x28"}]}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"agent": "ada", "memories": [{"content": "x", "metadata": {"n": ' + b"9" * 200_000 + b"}}]}",
        b'{"agent": "ada", "memories": [{"content": "x", "metadata": ' + b'{"a":' * 900 + b"1" + b"}" * 902 + b"]}",
        b'{"agent": "ada", "memories": [{"content": "x", "metadata": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}]}",
    ],
)
async def test_bodies_that_are_no_request(http, content):
    for path in ("/v1/memories", "/v1/recall"):
        answer = await http.post(path, content=content, headers=JSON)
        assert answer.status_code in {400, 422}, answer.text
        check_problem(answer, answer.status_code, "unreadable" if answer.status_code == 400 else "invalid_input")
        assert len(answer.content) < 10_000


async def test_a_batch_is_bounded(http, owner):
    full = SCOPE | {"memories": [{"content": "x"}] * 1_000}
    assert len((await http.post("/v1/memories", json=full)).json()["memories"]) == 1_000
    for count in (0, 1_001):
        body = SCOPE | {"memories": [{"content": "x"}] * count}
        check_problem(await http.post("/v1/memories", json=body), 422, "invalid_input")
    assert owner.execute("select count(*) from memories").fetchone() == (1_000,)


@pytest.mark.promise("A body beyond the limit is not read to its end")
async def test_a_body_beyond_the_limit_is_not_read_to_its_end(http):
    async def chunks():
        for _ in range(MAX_BODY_BYTES // 2**20 + 100):
            taken.append(1)
            yield b" " * 2**20

    taken = []
    check_problem(await http.post("/v1/memories", content=b" " * (MAX_BODY_BYTES + 1), headers=JSON), 413, "too_large")
    check_problem(await http.post("/v1/memories", content=chunks(), headers=JSON), 413, "too_large")
    assert len(taken) <= MAX_BODY_BYTES // 2**20 + 2


@pytest.mark.promise("What can be stored comes back as it went, to the last character")
async def test_numbers_and_texts_at_the_edge_come_back_as_they_went(http):
    metadata = {"big": 10**400, "small": 1e-300, "half": 1e15 + 0.5, "deep": [[[[[1]]]]], "text": "\u202e\ufeff😀"}
    body = memories("\u202eİß\U0010ffff", metadata=metadata, occurred_at="9998-12-29T23:59:59.999999-12:00")
    answer = await http.post("/v1/memories", json=body)
    assert answer.status_code == 201, answer.text
    stored = (await http.get(f"/v1/memories/{answer.json()['memories'][0]['id']}", params=SCOPE)).json()
    assert (stored["content"], stored["metadata"]) == ("\u202eİß\U0010ffff", metadata)


@pytest.mark.promise("Refusals never echo a value that was sent")
async def test_refusals_never_echo_a_value_that_was_sent(http):
    bodies = [
        memories(CANARY * 4_000),
        memories("x", kind=CANARY),
        memories("x", occurred_at=CANARY),
        memories("x", evidence=[CANARY]),
        memories("x", importance=CANARY),
        memories(f"{CANARY}\x00"),
        memories("x", metadata={"a": f"{CANARY}\x00"}),
        SCOPE | {"agent": f"{CANARY}/!", "memories": [{"content": "x"}]},
    ]
    for body in bodies:
        answer = await http.post("/v1/memories", json=body)
        check_problem(answer, 422, "invalid_input")
        assert CANARY not in answer.text
    for path in (f"/v1/memories/{CANARY}", f"/v1/memories?cursor={CANARY}", f"/{CANARY}"):
        assert CANARY not in (await http.get(path, params=SCOPE)).text
    broken = await http.post("/v1/memories", content=f'{{"agent": "{CANARY}'.encode(), headers=JSON)
    assert CANARY not in broken.text


# What happens under way.


@pytest.mark.promise("Pages show everything once while others write")
async def test_pages_show_everything_once_while_others_write(recollect, http):
    mind = await recollect.mind(**SCOPE)
    before = [receipt.id for number in range(5) for receipt in await mind.remember(f"before {number}")]
    stopped = False

    async def keep_writing():
        written = []
        while not stopped:
            written += [receipt.id for receipt in await mind.remember("meanwhile")]
        return written

    writers = [asyncio.create_task(keep_writing()) for _ in range(3)]
    seen, cursor = [], None
    while len(seen) < 60:
        page = (
            await http.get("/v1/memories", params=SCOPE | {"limit": 3} | ({"cursor": cursor} if cursor else {}))
        ).json()
        seen += [memory["id"] for memory in page["memories"]]
        cursor = page["next_cursor"] or (seen[-1] if seen else None)
    stopped = True
    written = [identity for writer in await asyncio.gather(*writers) for identity in writer]
    while page["memories"]:
        page = (await http.get("/v1/memories", params=SCOPE | {"cursor": seen[-1], "limit": 200})).json()
        seen += [memory["id"] for memory in page["memories"]]
    assert seen == sorted(seen)
    assert seen == sorted(str(identity) for identity in [*before, *written])


@pytest.mark.promise("A write that is blocked is answered, and reads go on")
async def test_a_blocked_write_answers_in_time_and_reads_go_on(recollect, addresses, owner):
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http, http_client(hurry(recollect, 0.5), secret) as hurried:
        await http.post("/v1/memories", json=memories("first"))
        with psycopg.connect(addresses.owner) as blocker:
            blocker.execute("select * from scopes for update")
            # The lock is not given back before there is an answer.
            answer = await hurried.post("/v1/memories", json=memories("second"))
            check_problem(answer, 503, "unavailable")
            assert answer.headers["retry-after"] == "1"
            assert (await http.post("/v1/recall", json=SCOPE | {"text": "first"})).json()["hits"]
        assert (await http.post("/v1/memories", json=memories("third"))).status_code == 201
    assert owner.execute("select count(*) from memories where content = 'second'").fetchone() == (0,)


async def test_an_error_of_our_own_is_a_problem_without_details(recollect, http, owner, caplog):
    caplog.set_level(logging.INFO)
    owner.execute("alter table memories add constraint broken check (content not like 'canary%')")
    answer = await http.post("/v1/memories", json=memories(CANARY))
    check_problem(answer, 500, "internal")
    assert CANARY not in answer.text + caplog.text
    assert '"error": "CheckViolation"' in caplog.text


@pytest.mark.promise("Logs tell what happened, never what was said")
async def test_logs_tell_what_happened_but_never_what_was_said(recollect, caplog):
    caplog.set_level(logging.DEBUG)
    _, secret = await new_key(recollect)
    number = 0.123456789
    body = memories(CANARY, speaker=CANARY, keywords=[CANARY], embedding=[number] * 64, metadata={"a": CANARY})
    async with http_client(recollect, secret) as http:
        requests = [
            http.post("/v1/memories", json=body, headers={"Idempotency-Key": CANARY}),
            http.post("/v1/memories", json=memories(CANARY), headers={"Idempotency-Key": CANARY}),
            http.post("/v1/memories", json=memories(CANARY, evidence=[str(uuid4())])),
            http.post("/v1/memories", json=memories(f"{CANARY}\x00")),
            http.post("/v1/recall", json=SCOPE | {"text": CANARY, "embedding": [number] * 64}),
            http.post("/v1/recall", json=SCOPE | {"text": CANARY, "embedding": [number]}),
        ]
        statuses = [(await request).status_code for request in requests]
    assert statuses == [201, 409, 422, 422, 200, 422]
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("recollect")]
    assert len([line for line in ours if json.loads(line)["event"] == "request"]) == len(statuses)
    assert [word for word in (CANARY, secret, str(number)) if word in caplog.text] == []


# What the document says.


def resolve(document, schema):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def walk(document, schema, seen=()):
    """Yield every property name that a schema can lead to."""
    if "$ref" in schema:
        if schema["$ref"] in seen:
            return
        seen = (*seen, schema["$ref"])
    schema = resolve(document, schema)
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from walk(document, part, seen)
    for part in [*schema.get("anyOf", []), schema.get("items", {}), schema.get("additionalProperties", {})]:
        if isinstance(part, dict) and part:
            yield from walk(document, part, seen)


def answer_schemas(operation):
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items():
            yield status, kind, content.get("schema", {})


def test_every_operation_is_named_described_and_shown(document):
    for method, path, operation in operations(document):
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", operation["operationId"])
        assert operation["description"]
        body = operation.get("requestBody", {"content": {}})["content"]
        if "application/json" in body:
            assert resolve(document, body["application/json"]["schema"])["examples"], path
        for parameter in operation.get("parameters", []):
            assert parameter["description"], (method, path, parameter["name"])
        required = [each for each in operation.get("parameters", []) if each["required"]]
        assert all("examples" in each["schema"] or "examples" in each for each in required), (method, path)


@pytest.mark.promise("No answer gives an embedding away")
def test_no_answer_contains_an_embedding_but_that_of_an_item_which_is_the_callers_own(document):
    names = {
        name
        for _, path, operation in operations(document)
        if path != "/v1/items"
        for _, _, schema in answer_schemas(operation)
        for name in walk(document, schema)
    }
    assert {"content", "hits", "secret", "forgotten", "errors"} <= names
    assert [name for name in names - {"embedding_text"} if re.search("embedding|vector", name)] == []


def dify_problems(document):
    """List what Dify's importer of custom tools would get wrong in a document."""
    for method, path, operation in operations(document):
        name = f"{method} {path}"
        if "parameters" in document["paths"][path]:
            yield f"{name}: parameters of a path are ignored"
        contents = operation.get("requestBody", {}).get("content", {"application/json": {}})
        if list(contents) != ["application/json"]:
            yield f"{name}: only the first content type is used"
        body = resolve(document, contents.get("application/json", {}).get("schema", {}))
        for field, schema in body.get("properties", {}).items():
            yield from (f"{name}: {field} {problem}" for problem in dify_property_problems(schema))
        for status, kind, schema in answer_schemas(operation):
            if status == "204" or (kind == "application/json" and resolve(document, schema).get("type") != "object"):
                yield f"{name}: {status} is not a JSON object"


def dify_property_problems(schema):
    if "$ref" in schema or "oneOf" in schema:
        yield "is taken for a string and passed on unconverted"
    for part in schema.get("anyOf", []):
        if "$ref" in part or part.get("type") in {"array", "object"}:
            yield "is taken for a string and passed on unconverted"


def test_dify_can_import_every_operation(document):
    found = list(dify_problems(document))
    # Dify itself asks the first, with a body of its own shape; the second takes a file.
    assert [each for each in found if not each.startswith(("POST /dify/retrieval", "POST /v1/import"))] == []


def test_the_dify_linter_sees_what_it_is_for():
    wrong = {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}]}
    assert list(dify_property_problems(wrong))
    assert list(dify_property_problems({"$ref": "#/x"}))
    assert not list(dify_property_problems({"anyOf": [{"type": "number"}, {"type": "null"}]}))


async def test_a_statement_that_takes_too_long_is_to_be_tried_again(recollect, http, addresses):
    await http.post("/v1/memories", json=memories("Ann bought apples"))
    _, secret = await new_key(recollect)
    async with http_client(hurry(recollect, 0.5), secret) as hurried:
        with psycopg.connect(addresses.owner) as holding:
            holding.execute("lock table memories in access exclusive mode")
            answer = await hurried.get("/v1/memories", params=SCOPE)
    check_problem(answer, 503, "unavailable")

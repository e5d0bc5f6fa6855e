"""A key that is bound to an agent, or to one of its users, reaches nothing else, by whichever route it tries."""

from __future__ import annotations

import hashlib
import re
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as refusals
from typer.testing import CliRunner

from conftest import http_client
from recollect.doors.cli.main import app as command_line
from recollect.doors.http.app import create_app
from recollect.errors import ForbiddenError, InvalidInputError, UnauthenticatedError
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.models.service import KeyBinding, Right
from recollect.store.database.pool import Database

METHODS = {"get", "post", "put", "patch", "delete"}
# What is said to anybody, without a key, and nothing of what is remembered.
OPEN = {"/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs", "/", "/v1"}
OPEN |= {"/openapi-dify.json"}
# The pages of the console, and its session, which tells a key about itself: see test_console.py.
OPEN |= {"/console", "/console/{path:path}", "/console/session"}
# The MCP door names the scope in its tools' arguments: its own tests attack it.
ELSEWHERE = {"/mcp", "/mcp/"}
OWN = {"/v1/key", "/v1/scopes", "/v1/status"}
"""What these answer a bound key is about itself or of its own scopes, and names no other."""
# What concerns a tenant, or all users of an agent, and so not one scope.
WIDER = re.compile(r"^/v1/(jobs|keys|erasures)\b|^/v1/(profile|tune)$")
FORMATS = {"uuid": str(UUID(int=7)), "date-time": "2026-01-31T12:00:00+00:00"}
SAMPLE = {"string": "x", "integer": 1, "number": 1.0, "boolean": True, "object": {}, "array": [], "null": None}


# What never ends: see test_following.py.
ENDLESS = {"/v1/changes"}
# Keys that other keys make have tests of their own.
RIGHTS = (Right.READ, Right.WRITE, Right.ADMIN)


async def new_bound_key(recollect, agent="ada", user="li", tenant="default", rights=RIGHTS):
    maker = await recollect.operator.act_for(tenant)
    return (await recollect.create_key(maker, "bound", rights, 50, KeyBinding(agent, user)))[1]


# Every route, those to come included.


class Requests:
    """A request that fits, for every operation of the document that describes the application."""

    def __init__(self, document):
        self.document = document

    def __iter__(self):
        for path, item in self.document["paths"].items():
            for method in METHODS & item.keys():
                if path not in OPEN:
                    yield method.upper(), path, item[method]

    def build(self, path, operation, **names):
        """Fill in the path, the query and the body: the scope's names as given, the rest as the document says."""
        query, taken = {}, set()
        for parameter in operation.get("parameters", []):
            sample = names.get(parameter["name"], self.sample(parameter["schema"], parameter.get("example")))
            taken |= {parameter["name"]} & {"agent", "user"}
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", str(sample))
            elif parameter["in"] == "query" and (parameter.get("required") or parameter["name"] in names):
                query[parameter["name"]] = sample
        body = None
        if "application/zip" in operation.get("requestBody", {}).get("content", {}):
            return path, {"params": query, "content": b"no zip"}, taken
        if "requestBody" in operation:
            schema = self.resolve(operation["requestBody"]["content"]["application/json"]["schema"])
            body = self.sample(schema)
            taken |= {"agent", "user"} & schema["properties"].keys()
            body |= {name: value for name, value in names.items() if name in schema["properties"]}
            if "knowledge_id" in schema["properties"]:
                taken |= {"agent", "user"}
                body["knowledge_id"] = f"{names.get('agent', 'ada')}/{names.get('user', '')}".rstrip("/")
        return path, {"params": query, "json": body}, taken

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
        return schema

    def sample(self, schema, example=None):
        schema = self.resolve(schema)
        given = [
            example,
            *schema.get("examples", []),
            *schema.get("enum", []),
            schema.get("const"),
            schema.get("default"),
        ]
        for value in given:
            if value is not None:
                return value
        for choice in schema.get("anyOf", schema.get("oneOf", [])):
            return self.sample(choice)
        return FORMATS.get(schema.get("format")) or self.make(schema)

    def make(self, schema):
        if schema["type"] == "object":
            return {name: self.sample(schema["properties"][name]) for name in schema.get("required", [])}
        if schema["type"] == "array":
            return [self.sample(schema["items"])] * schema.get("minItems", 0)
        return schema.get("minimum", SAMPLE[schema["type"]])


@pytest.fixture
async def scopes(recollect):
    """Four scopes that hold something: the bound key's own, and three beside it."""
    for agent, user in (("ada", "li"), ("ada", "zoe"), ("ada", ""), ("bob", "li")):
        mind = await recollect.mind(agent, user)
        await mind.remember(f"a secret of {agent} and {user}")
        await mind.conversation("talk").append(NewMessage(Role.USER, "hello"))


def count_rows(owner):
    """Count what each scope holds, in the tables that a write would touch first."""
    tables = ("memories", "messages", "conversations", "facts", "entities", "topics", "runs", "recalls")
    there = [
        name for name in tables if owner.execute("select to_regclass(%s) is not null", [name]).fetchone() == (True,)
    ]
    rows = [
        (name, *row) for name in there for row in owner.execute(f"select scope_id, count(*) from {name} group by 1")
    ]
    return sorted(rows) + owner.execute("select id, agent, profile from agents, generate_series(1, 1) id").fetchall()


def walk(routes):
    """Give the path of every route, those of included routers too."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from walk(route.original_router.routes)
        else:
            yield route.path


@pytest.fixture(scope="module")
def app():
    """Made once: to write its document takes the framework seconds."""
    return create_app()


def test_every_route_is_in_the_document_or_open_to_all(app):
    described, found = set(app.openapi()["paths"]), set(walk(app.routes))
    assert described <= found
    unknown = found - described - OPEN - ELSEWHERE
    assert unknown == set(), "a route that no test of bound keys knows: describe it, or attack it elsewhere"


@pytest.mark.promise("No route answers for a scope that the key is not bound to")
@pytest.mark.parametrize("foreign", [{"agent": "bob", "user": "li"}, {"agent": "ada", "user": "zoe"}], ids=str)
async def test_no_route_answers_for_a_scope_that_the_key_is_not_bound_to(recollect, owner, scopes, app, foreign):
    before, leaks, tried = count_rows(owner), [], 0
    async with http_client(recollect, await new_bound_key(recollect)) as bound:
        requests = Requests(app.openapi())
        for method, path, operation in requests:
            url, content, _ = requests.build(path, operation, **foreign)
            answer = await bound.request(method, url, **content)
            tried += 1
            own = path in OWN and answer.status_code == 200 and not re.search("bob|zoe", answer.text)
            if answer.status_code != 403 and not own:
                leaks.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
    assert leaks == []
    assert tried > 50
    assert count_rows(owner) == before


async def test_every_route_answers_for_the_scope_that_the_key_is_bound_to(recollect, scopes, app):
    """The same requests with the key's own names are let in: what was refused above was refused for the names."""
    refused = []
    async with http_client(recollect, await new_bound_key(recollect)) as bound:
        requests = Requests(app.openapi())
        for method, path, operation in requests:
            if path in ENDLESS:
                continue
            url, content, _ = requests.build(path, operation, agent="ada", user="li")
            answer = await bound.request(method, url, **content)
            unfit = answer.status_code == 422 and answer.json()["errors"]  # what no body takes has tried nothing
            if (answer.status_code == 403) != bool(WIDER.match(path)) or answer.status_code == 401 or unfit:
                refused.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
    assert refused == []


async def test_names_that_are_left_out_are_the_keys_own(recollect, scopes, app):
    """Whoever leaves the user out gets the key's, and never the agent's own scope."""
    others = []
    async with http_client(recollect, await new_bound_key(recollect)) as bound:
        requests = Requests(app.openapi())
        for method, path, operation in requests:
            url, content, taken = requests.build(path, operation, agent="ada")
            if "user" in taken and method in {"GET", "POST"} and not WIDER.match(path) and path not in ENDLESS:
                answer = await bound.request(method, url, **content)
                if "secret of ada and " in answer.text.replace("secret of ada and li", ""):
                    others.append(f"{method} {path}")
        memories = (await bound.get("/v1/memories", params={"agent": "ada"})).json()["memories"]
    assert others == []
    assert memories[0]["content"] == "a secret of ada and li"


@pytest.mark.promise("A refusal says nothing of whether the scope exists")
async def test_a_refusal_says_nothing_of_whether_the_scope_exists(recollect, scopes):
    async with http_client(recollect, await new_bound_key(recollect)) as bound:
        answers = [
            (await bound.get("/v1/memories", params={"agent": agent, "user": user})).text
            for agent, user in (("bob", "li"), ("nobody", "li"), ("ada", "zoe"), ("ada", "nobody"))
        ]
    assert len(set(answers)) == 1
    assert "bob" not in answers[0]


async def test_ids_of_other_scopes_are_unknown(recollect, scopes):
    [foreign] = (await (await recollect.mind("ada", "zoe")).list(limit=1)).memories
    async with http_client(recollect, await new_bound_key(recollect)) as bound:
        got = await bound.get(f"/v1/memories/{foreign.id}", params={"agent": "ada", "user": "li"})
        made_up = await bound.get(f"/v1/memories/{UUID(int=9)}", params={"agent": "ada", "user": "li"})
        forgotten = await bound.post("/v1/forget", json={"agent": "ada", "user": "li", "ids": [str(foreign.id)]})
    assert (got.status_code, got.text) == (404, made_up.text)
    assert foreign.content not in forgotten.text
    assert (await (await recollect.mind("ada", "zoe")).get(foreign.id)).content == foreign.content


async def test_a_large_body_passes_the_gate_with_a_bound_key(recollect):
    memories = [{"content": "x" * 9_000}] * 10
    async with http_client(recollect, await new_bound_key(recollect)) as bound:
        let_in = await bound.post("/v1/memories", json={"agent": "ada", "user": "li", "memories": memories})
        refused = await bound.post("/v1/memories", json={"agent": "bob", "user": "li", "memories": memories})
    assert (let_in.status_code, refused.status_code) == (201, 403)


# The bounds themselves.


@pytest.mark.parametrize(
    ("bounds", "allowed", "refused"),
    [
        (("ada", None), [("ada", ""), ("ada", "li"), ("", "li"), ("", "")], [("bob", ""), ("bob", "li")]),
        (("ada", ""), [("ada", ""), ("", "")], [("ada", "li"), ("", "li"), ("bob", "")]),
        (("ada", "li"), [("ada", "li"), ("", ""), ("ada", ""), ("", "li")], [("ada", "zoe"), ("", "zoe"), ("bob", "")]),
    ],
)
async def test_what_a_key_may_name(recollect, bounds, allowed, refused):
    secret = await new_bound_key(recollect, *bounds)
    for agent, user in allowed:
        scope = (await recollect.authorize(secret, "http", agent, user)).access.scope
        assert (scope.agent, scope.user) == ("ada", user or (bounds[1] or ""))
    for agent, user in refused:
        with pytest.raises(ForbiddenError, match="is bound"):
            await recollect.authorize(secret, "http", agent, user)


async def test_a_key_that_is_not_bound_must_name_an_agent(recollect):
    maker = await recollect.operator.act_for("default")
    _, secret = await recollect.create_key(maker, "free", [Right.READ], 50)
    with pytest.raises(InvalidInputError, match="agent is required"):
        await recollect.authorize(secret, "http", "", "")
    assert (await recollect.authenticate(secret, "http")).bounds == KeyBinding()


async def test_the_profile_is_for_keys_that_may_name_every_user(recollect):
    one = await recollect.authorize(await new_bound_key(recollect), "http", "", "")
    every = await recollect.authorize(await new_bound_key(recollect, user=None), "http", "", "li")
    profile = await every.profile()
    await every.set_profile(profile)
    for refused in (one.profile(), one.set_profile(profile), recollect.tenant.tune(one.access.caller, "")):
        with pytest.raises(ForbiddenError, match="bound to a user"):
            await refused


async def test_a_bound_caller_reaches_no_desk_of_the_tenant(recollect):
    caller = (await recollect.authorize(await new_bound_key(recollect), "http", "", "")).access.caller
    for refused in (
        recollect.jobs.page(caller),
        recollect.jobs.read_job(caller, 1),
        recollect.jobs.retry(caller, 1),
        recollect.list_keys(caller),
        recollect.revoke_key(caller, UUID(int=1)),
    ):
        with pytest.raises(ForbiddenError, match="bound to an agent"):
            await refused


@pytest.mark.parametrize("wider", [(), ("ada",), ("bob", "li"), ("ada", "zoe"), ("ada", "")], ids=str)
async def test_a_bound_key_makes_no_wider_key(recollect, wider):
    caller = (await recollect.authorize(await new_bound_key(recollect), "http", "", "")).access.caller
    with pytest.raises(ForbiddenError, match="same binding"):
        await recollect.create_key(caller, "wider", [Right.READ], 10, KeyBinding(*wider))
    key, _ = await recollect.create_key(caller, "same", [Right.READ], 10, KeyBinding("ada", "li"))
    assert (key.agent, key.user) == ("ada", "li")


async def test_a_key_bound_to_an_agent_may_bind_another_to_one_of_its_users(recollect):
    caller = (await recollect.authorize(await new_bound_key(recollect, user=None), "http", "", "")).access.caller
    key, secret = await recollect.create_key(caller, "narrower", [Right.READ], 10, KeyBinding("ada", "li"))
    assert (await recollect.authorize(secret, "http", "", "")).access.scope.user == key.user == "li"
    with pytest.raises(ForbiddenError):
        await recollect.create_key(caller, "wider", [Right.READ], 10, KeyBinding(None))


@pytest.mark.parametrize("bounds", [(None, "li"), ("", None), ("a\u200bb", None), ("ada", "l/i")], ids=str)
async def test_bounds_are_names(recollect, bounds):
    with pytest.raises(InvalidInputError):
        await new_bound_key(recollect, *bounds)


async def test_a_mistyped_key_costs_no_round_trip(recollect, monkeypatch):
    secret = await new_bound_key(recollect)

    def refuse(_database):
        raise AssertionError("the database was asked")

    monkeypatch.setattr(Database, "statement", refuse)
    mistyped = secret[:-1] + ("B" if secret[-1] == "A" else "A")
    with pytest.raises(UnauthenticatedError):
        await recollect.authorize(mistyped, "http", "ada", "")
    with pytest.raises(AssertionError):
        await recollect.authorize(secret, "http", "ada", "")


async def test_bounds_do_not_change(recollect, addresses):
    secret = await new_bound_key(recollect)
    shown = hashlib.sha256(secret.encode()).hexdigest()
    with psycopg.connect(addresses.service) as connection:
        found = connection.execute("select agent, \"user\" from authorize(%s, '', '', '1000')", [shown]).fetchall()
        assert found == [("ada", "li")]
        connection.execute("select set_config('recollect.tenant', '1', true)")
        with pytest.raises(refusals.InsufficientPrivilege):
            connection.execute("update api_keys set agent = null")


async def test_a_revoked_bound_key_is_unknown(recollect):
    maker = await recollect.operator.act_for("default")
    key, secret = await recollect.create_key(maker, "bound", [Right.READ], 50, KeyBinding("ada"))
    await recollect.revoke_key(maker, key.id)
    for refused in (recollect.authorize(secret, "http", "", ""), recollect.authenticate(secret, "http", bound=True)):
        with pytest.raises(UnauthenticatedError):
            await refused


# The ways to make one.


async def test_a_bound_key_over_http(http, recollect):
    made = (await http.post("/v1/keys", json={"name": "n", "rights": ["read"], "agent": "ada", "user": "li"})).json()
    assert (made["key"]["agent"], made["key"]["user"]) == ("ada", "li")
    assert [key["agent"] for key in (await http.get("/v1/keys")).json()["keys"]] == [None, "ada"]
    assert (await recollect.authorize(made["secret"], "http", "", "")).access.scope.user == "li"
    for wrong in ({"user": "li"}, {"agent": ""}, {"agent": "a/b"}):
        assert (await http.post("/v1/keys", json={"name": "n", "rights": ["read"], **wrong})).status_code == 422


def test_a_bound_key_from_the_command_line(addresses, monkeypatch):
    monkeypatch.setenv("RECOLLECT_DATABASE_URL", addresses.service)
    monkeypatch.setenv("RECOLLECT_OWNER_DATABASE_URL", addresses.owner)
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    monkeypatch.setenv("COLUMNS", "200")
    runner = CliRunner()
    for options in (["--agent", "ada", "--user", "li"], ["--agent", "ada"], ["--agent", "ada", "--user", ""], []):
        made = runner.invoke(command_line, ["admin", "keys", "create", "bot", *options])
        assert (made.exit_code, made.output[:4]) == (0, "rec_"), made.output
    with psycopg.connect(addresses.owner) as connection:
        found = connection.execute('select agent, "user" from api_keys order by created_at').fetchall()
    assert found == [("ada", "li"), ("ada", None), ("ada", ""), (None, None)]
    listed = runner.invoke(command_line, ["admin", "keys", "list"]).output
    assert re.findall(r" (ada\S*) ", listed) == ["ada/li", "ada", "ada/"]

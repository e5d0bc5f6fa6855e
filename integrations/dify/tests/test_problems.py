"""What goes wrong is raised, in one line that says what to do and quotes nothing that was to be remembered."""

from __future__ import annotations

import http.server
import os
import socket
import threading

import httpx
import pytest
from daemon import Dify, embedding

SECRET = "the-secret-content"
MODEL = {"provider": "langgenius/openai/openai", "model": "text-embedding-3-small", "model_type": "text-embedding"}


@pytest.fixture
def nobody():
    """The address of a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def stranger():
    """The address of a server that is not Recollect, and answers everything with a page."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404 if "missing" in self.path else 200)
            self.end_headers()
            self.wfile.write(b"<html>Welcome</html>")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_good_credentials_are_accepted(dify):
    reply = dify.validate()
    assert (reply.error, reply.result) == (None, {"result": True})
    assert dify.validate(url=f"  {dify.credentials['url']}/ ").error is None


def test_a_wrong_key_and_a_wrong_address_are_told_apart(dify, nobody, stranger):
    wrong_key = dify.validate(key="rec_nope")
    assert wrong_key.error["error_type"] == "ToolProviderCredentialValidationError"
    assert "API key is unknown or revoked" in wrong_key.problem and "Enter a valid API key" in wrong_key.problem
    away = dify.validate(url=nobody)
    assert away.error["error_type"] == "ToolProviderCredentialValidationError"
    assert f"Cannot reach {nobody}" in away.problem and "URL" in away.problem
    assert "API key is empty" in dify.validate(key="").problem
    assert "not one of Recollect's" in dify.validate(key="密钥").problem
    assert dify.validate(url=stranger).problem == "What answers at this URL is not Recollect."
    assert "The server answered 404." in dify.validate(url=f"{stranger}/missing").problem
    assert "URL" in dify.validate(url="localhost:8000").problem
    assert dify.validate(url="http://[bad").problem


def test_a_key_of_another_tenant_opens_another_memory(daemon, credentials, dify):
    dify.use("remember", content="Tea")
    theirs = Dify(daemon, credentials | {"key": os.environ["RECOLLECT_OTHER_KEY"]}, app=dify.app, user=dify.user)
    assert theirs.use("recall", cue="Tea").variables["hits"] == []


def make_key(credentials, **body):
    headers = {"Authorization": f"Bearer {credentials['key']}"}
    made = httpx.post(f"{credentials['url']}/v1/keys", json={"name": "dify"} | body, headers=headers, trust_env=False)
    return made.raise_for_status().json()["secret"]


def test_a_key_that_may_only_write_or_only_name_one_agent_is_a_good_key(daemon, credentials):
    writer = Dify(daemon, credentials | {"key": make_key(credentials, rights=["write"])})
    assert writer.validate().result == {"result": True}
    assert writer.use("remember", content="Tea").variables["status"] == "ok"
    assert writer.use("recall", cue=SECRET).error["error_type"] == "ForbiddenError"
    bound = Dify(daemon, credentials | {"key": make_key(credentials, rights=["read", "write"], agent="guide")})
    assert bound.validate().result == {"result": True}
    assert bound.use("remember", content=SECRET).error["error_type"] == "ForbiddenError"
    assert bound.use("remember", content="Tea", agent="guide").variables["status"] == "ok"


@pytest.mark.parametrize(
    ("tool", "parameters", "told"),
    [
        ("remember", {}, "content: "),
        ("remember", {"content": SECRET, "importance": 99}, "importance"),
        ("remember", {"content": SECRET, "importance": "very"}, "importance: Input should be a valid number"),
        ("remember", {"content": SECRET, "occurred_at": "yesterday"}, "occurred_at: Input should be a valid datetime"),
        ("remember", {"content": SECRET, "occurred_at": "2026-01-31T12:00:00"}, "time zone offset"),
        ("remember", {"content": SECRET * 10_000}, "content: String should have at most 32000 characters"),
        ("append", {}, "user and system messages need content"),
        ("recall", {"since": "2026-01-01"}, "since must carry a time zone offset"),
        ("recall", {"cue": SECRET, "limit": 0}, "limit: Input should be greater than or equal to 1"),
        ("recall", {"cue": SECRET, "limit": "many"}, "limit: Input should be a valid integer"),
        ("recall", {"cue": SECRET, "kinds": "message, dream"}, "kinds: Input should be 'message', 'event'"),
        ("history", {"max_tokens": -1}, "max_tokens"),
        ("context", {"cue": SECRET, "budget": "much"}, "budget: Input should be a valid integer"),
        ("associate", {"subject": SECRET, "limit": 9_999}, "limit"),
        ("forget", {"ids": SECRET}, "ids.0: Input should be a valid UUID"),
        ("forget", {}, "ids"),
        ("recall", {"cue": SECRET, "embedding_model": {"provider": "p"}}, "model: Field required"),
    ],
)
def test_what_cannot_be_done_is_raised(dify, tool, parameters, told):
    dify.use("append", user_message="Hello")
    reply = dify.use(tool, **parameters)
    assert told in reply.problem
    assert "\n" not in reply.problem
    assert reply.error["error_type"] == "InvalidInputError"
    assert (reply.text, reply.variables) == ("", {})
    assert SECRET not in str(reply.error)


def test_a_server_that_is_away_and_a_wrong_key_are_raised_by_tools(dify, nobody):
    url = dify.credentials["url"]
    dify.credentials = {"url": url, "key": "rec_nope"}
    refused = dify.use("recall", cue=SECRET)
    assert refused.error["error_type"] == "UnauthenticatedError" and "Enter a valid API key" in refused.problem
    dify.credentials = {"url": nobody, "key": "rec_nope"}
    away = dify.use("remember", content=SECRET)
    assert away.error["error_type"] == "UnavailableError" and "See that Recollect runs" in away.problem
    assert SECRET not in str(refused.error) + str(away.error)


def test_vectors_of_difys_model_arrive(dify, memory):
    """They are made by reverse invocation, and it is by them that things are found: the texts would say otherwise."""
    first, second = [1.0] + [0.0] * 383, [0.0, 1.0] + [0.0] * 382
    stored = dify.use("remember", lambda _: embedding(first), content="Alpha", embedding_model=MODEL)
    (asked,) = stored.invoked
    assert asked["type"] == "text_embedding"
    assert asked["request"] == MODEL | {"texts": ["Alpha"], "input_type": "document"}
    turn = {"user_message": "Beta", "assistant_message": "Gamma"}
    appended = dify.use("append", lambda _: embedding(second, first), embedding_model=MODEL, **turn)
    assert appended.invoked[0]["request"]["texts"] == ["Beta", "Gamma"]

    found = dify.use("recall", lambda _: embedding(second), cue="zzz", embedding_model=MODEL)
    assert found.invoked[0]["request"] == MODEL | {"texts": ["zzz"], "input_type": "query"}
    assert found.variables["hits"][0]["content"] == "Beta"
    made = dify.use("context", lambda _: embedding(first), cue="zzz", embedding_model=MODEL, conversation="new")
    assert made.variables["ids"][0] in {stored.variables["ids"][0], appended.variables["ids"][1]}
    assert dify.use("recall", cue="zzz").invoked == []


def test_an_embedding_model_that_fails_is_raised(dify):
    def refuse(_):
        raise RuntimeError("Incorrect API key provided")

    failed = dify.use("recall", refuse, cue=SECRET, embedding_model=MODEL)
    assert "Incorrect API key provided" in failed.problem and "choose another, or none" in failed.problem
    wrong = dify.use("remember", lambda _: embedding([1.0, 0.0]), content=SECRET, embedding_model=MODEL)
    assert "embedding must have 384 dimensions, not 2" in wrong.problem
    assert SECRET not in str(failed.error) + str(wrong.error)

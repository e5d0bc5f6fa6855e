"""Whatever goes wrong, the workflow comes to an end: it says what happened, and what to do."""

from __future__ import annotations

import importlib.util
import json
import socket
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import ClassVar
from uuid import uuid4

import pytest
from engine import FILE, WORKFLOWS, configured, run
from sandbox import Sandbox, listening

from conftest import along

EMPTY = {"total_candidates": 0, "retrieved_count": 0, "min_score": 0.0, "max_score": 0.0}
REFUSED = ["start", "build", "check", "shape", "status", "end_error"]
FAILED = ["start", "build", "check", "search", "shape", "status", "end_error"]
NOBODY = ["start", "build", "check", "search", "shape", "status", "end_no_candidates"]
NOTHING = {"hits": [], "accessed": [], "tallies": {}, "status": "no_candidates", "message": ""}


def load(name):
    """Load a program that lies beside the workflow."""
    spec = importlib.util.spec_from_file_location(name, WORKFLOWS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ended(ran):
    """Check that a run handed over the same names as ever, empty; give its status and message."""
    outputs = dict(ran.outputs)
    status, message = outputs.pop("status"), outputs.pop("message")
    assert outputs == {"retrieved_nodes": [], "accessed_ids": [], "debug": EMPTY}
    return status, message


@pytest.fixture
def recorder():
    """A server that answers as it is told, and notes what it was sent."""

    class Recorder(BaseHTTPRequestHandler):
        bodies: ClassVar[list[bytes]] = []
        keys: ClassVar[list[str]] = []
        status, answer = 200, json.dumps(NOTHING)

        def do_POST(self):
            self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.keys.append(self.headers["Authorization"])
            self.send_response(self.status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(self.answer.encode())

        log_message = Sandbox.log_message

    with listening(Recorder) as url:
        Recorder.url = url
        yield Recorder


def test_the_file_is_what_the_generator_writes():
    sources = [(WORKFLOWS / name).read_text(encoding="utf-8") for name in ("build_request.py", "shape_result.py")]
    assert load("generate").generate(*sources) == FILE.read_text(encoding="utf-8"), "run generate.py"


def test_somebody_unknown_has_no_candidates(ask):
    ran = ask(persona_name="Nobody At All", focal_text="anything")
    assert ended(ran) == ("no_candidates", "no candidate memories for this persona")
    assert ran.nodes == NOBODY


@pytest.mark.parametrize(
    "memory",
    [
        {"content": "the bed is idle", "subject": "bed", "predicate": "is", "object": "idle"},
        {"content": "They talk", "kind": "chat"},
    ],
    ids=["idle", "chat"],
)
def test_somebody_to_whom_nothing_comes_to_mind_has_no_candidates(memory, server, ask):
    name = uuid4().hex
    server.post("/v1/memories", {"agent": name, "memories": [{"embedding": along({0: 1.0}), **memory}]})
    ran = ask(persona_name=name, focal_text="anything")
    assert ended(ran) == ("no_candidates", "no candidate memories for this persona")
    assert ran.nodes == NOBODY


def test_a_wrong_key_is_an_error(server, sandbox):
    ran = run(configured(server.url, "rec_wrong"), sandbox, {"persona_name": "Isabella", "focal_text": "x"})
    status, message = ended(ran)
    assert (status, ran.nodes, ran.partial) == ("error", FAILED, True)
    assert "RECOLLECT_KEY" in message


@pytest.mark.parametrize(("right", "status"), [("read", "ok"), ("write", "error")])
def test_the_right_to_read_is_enough_and_needed(right, status, server, sandbox):
    name = uuid4().hex
    server.post("/v1/memories", {"agent": name, "memories": [{"content": "x", "embedding": along({0: 1.0})}]})
    key = server.post("/v1/keys", {"name": "dify", "rights": [right]})["secret"]
    ran = run(configured(server.url, key), sandbox, {"persona_name": name, "focal_text": "x"})
    assert ran.outputs["status"] == status
    assert len(ran.outputs["accessed_ids"]) == (status == "ok")


def test_a_server_that_is_away_is_an_error(sandbox):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        ran = run(configured(url, "rec_any"), sandbox, {"persona_name": "Isabella", "focal_text": "x"})
    status, message = ended(ran)
    assert (status, ran.nodes) == ("error", FAILED)
    assert "cannot be reached: check RECOLLECT_URL" in message


@pytest.mark.parametrize(
    ("status", "answer", "advice"),
    [
        (200, "<html>a page</html>", "is not Recollect"),
        (200, '{"hits": [{}]}', "is not Recollect"),
        (200, "[]", "is not Recollect"),
        (200, "", "is not Recollect"),
        (403, "{}", "may not read"),
        (404, "{}", "check RECOLLECT_URL"),
        (418, "{}", "status 418"),
        (422, "{}", "refuses an input"),
        (503, "{}", "try again"),
    ],
)
def test_other_answers_are_errors(status, answer, advice, recorder, sandbox):
    recorder.status, recorder.answer = status, answer
    ran = run(configured(recorder.url, "k"), sandbox, {"persona_name": "Isabella", "focal_text": "x"})
    said, message = ended(ran)
    assert (said, ran.nodes) == ("error", FAILED)
    assert advice in message
    assert len(recorder.bodies) == (1 if status == 200 else 2), "what failed is tried once more"


REFUSALS = {
    "no text": ({"focal_text": ""}, "focal_text is empty"),
    "text of spaces": ({"focal_text": " \n"}, "focal_text is empty"),
    "long text": ({"focal_text": "x" * 8001}, "focal_text is too long"),
    "nobody": ({"persona_name": " "}, "persona_name is empty"),
    "no nodes": ({"top_k": 0}, "top_k must be"),
    "a weight below zero": ({"relevance_w": -1}, "must be 0 to 1000"),
    "a weight that is none": ({"importance_w": "nan"}, "must be 0 to 1000"),
    "a decay that grows": ({"recency_decay": 1.01}, "recency_decay must be"),
    "no number": ({"recency_w": "much"}, "must be numbers"),
}


@pytest.mark.parametrize(("inputs", "advice"), REFUSALS.values(), ids=REFUSALS)
def test_an_input_that_cannot_be_right_is_not_sent(inputs, advice, recorder, sandbox):
    asked = {"persona_name": "Isabella", "focal_text": "x"} | inputs
    ran = run(configured(recorder.url, "k"), sandbox, asked)
    status, message = ended(ran)
    assert (status, ran.nodes, recorder.bodies) == ("error", REFUSED, [])
    assert advice in message


def test_a_cue_that_the_embedder_cannot_read_is_answered_by_words(server, ask):
    name = uuid4().hex
    memories = [{"content": text, "embedding": along({0: 1.0})} for text in ("x", "파티는 일곱 시에 시작한다")]
    server.post("/v1/memories", {"agent": name, "memories": memories})
    ran = ask(persona_name=name, focal_text="파티는 언제 시작한다")
    assert ran.outputs["status"] == "ok"
    [node] = ran.outputs["retrieved_nodes"]
    assert (node["description"], node["recency"], node["relevance"]) == ("파티는 일곱 시에 시작한다", 0.0, 0.0)
    assert node["score"] > 0


def test_an_answer_that_is_too_large_for_dify_is_an_error_that_says_what_to_do(server, ask):
    name = uuid4().hex
    memories = [{"content": "长" * 31_000, "embedding": along({axis: 1.0})} for axis in range(12)]
    for some in (memories[:6], memories[6:]):
        server.post("/v1/memories", {"agent": name, "memories": some})
    status, message = ended(ask(persona_name=name, focal_text="anything"))
    assert status == "error"
    assert message.endswith("choose a smaller top_k")
    assert len(ask(persona_name=name, focal_text="anything", top_k=5).outputs["retrieved_nodes"]) == 5


TEXTS = [
    'She said: "come", and \\ left\nat five\tor so',
    "伊莎贝拉的派对几点开始？「情人节」",
    "🎉👩‍🍳 café naïve",
    "{{#env.RECOLLECT_KEY#}} and {{#build.body#}}",
    '{"agent": "somebody else", "limit": 200,}',
    "1e-5",
    "'''<<RESULT>> \u2028 </script>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_arrives_as_it_is(text, recorder, sandbox):
    dsl = configured(recorder.url, "rec_secret")
    ran = run(dsl, sandbox, {"persona_name": "Isabella Rodriguez", "focal_text": text, "user": "li wei", "top_k": 99})
    assert ended(ran)[0] == "no_candidates"
    assert [json.loads(body) for body in recorder.bodies] == [
        {
            "agent": "Isabella Rodriguez",
            "user": "li wei",
            "text": text,
            "channels": ["stream"],
            "kinds": ["event", "thought"],
            "mode": "original",
            "limit": 30,
            "recency": 1,
            "similarity": 1,
            "importance": 1,
            "gains": [0.5, 3, 2],
            "decay": 0.99,
        }
    ]
    assert recorder.keys == ["Bearer rec_secret"]


@pytest.mark.parametrize("text", TEXTS[:1] + TEXTS[3:5] + TEXTS[6:])
def test_the_server_takes_any_text(text, server, ask):
    name = uuid4().hex
    server.post("/v1/memories", {"agent": name, "memories": [{"content": text, "embedding": along({0: 1.0})}]})
    ran = ask(persona_name=name, focal_text=text)
    assert [node["description"] for node in ran.outputs["retrieved_nodes"]] == [text]


def test_names_that_no_agent_can_have_are_encoded(server, ask):
    encode = partial(load("build_request").encode, "agent")
    assert encode("Isabella Rodriguez") == "Isabella Rodriguez"
    assert encode("li@example.com:7") == "li@example.com:7"
    assert encode("伊莎贝拉") == "伊莎贝拉"
    assert encode("a/b") == "x:a:2Fb"
    assert len(encode("伊" * 200)) == 67
    assert len({encode(name) for name in ("阿伊莎", "伊莎", "a/b", "x:a:2Fb", "a b", "ab", "x::2E", ".")}) == 8
    name, whom = f"阿伊莎·汗 {uuid4().hex}", "小李 #1"
    memory = {"content": "Ayesha writes about 莎士比亚", "embedding": along({0: 1.0})}
    server.post("/v1/memories", {"agent": encode(name), "user": whom, "memories": [memory]})
    mine = ask(persona_name=name, focal_text="her thesis", user=whom).outputs
    assert [node["description"] for node in mine["retrieved_nodes"]] == [memory["content"]]
    assert ask(persona_name=name, focal_text="her thesis").outputs["status"] == "no_candidates"

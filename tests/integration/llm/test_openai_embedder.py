"""The endpoint's embedder agrees with a real server, and bears every fault that a server can show."""

import asyncio
import base64
import contextlib
import json
import logging
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from recollect.errors import EmbedderError, SetupError
from recollect.llm import endpoint as line
from recollect.llm.build import has_minilm
from recollect.llm.embedder import Embedder
from recollect.llm.endpoint import Breaker, State, read_retry_after
from recollect.llm.local.minilm import load_minilm
from recollect.llm.openai.embedder import EmbedderEndpoint, OpenAIEmbedder
from support.programs.waiting import until

pytest_plugins = ("support.models.embedding_server",)

SECRET, TEXT = "sk-very-secret", "the user's private sentence"


@dataclass
class FaultServer:
    """A small HTTP server that plays one fault after the other; the last one goes on for ever."""

    faults: list[str] = field(default_factory=lambda: ["good"])
    questions: list[dict] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    url: str = ""

    async def answer(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
                self.heads.append(head)
                self.questions.append(json.loads(await reader.readexactly(length)))
                await self.play(self.faults.pop(0) if len(self.faults) > 1 else self.faults[0], writer)
                await writer.drain()
        writer.close()

    async def play(self, fault: str, writer):
        count = len(self.questions[-1]["input"])
        if fault == "hang":
            await asyncio.Event().wait()
        elif fault == "drip":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
            for _ in range(100):
                writer.write(b" ")
                await asyncio.sleep(0.05)
        elif fault == "drop":
            writer.transport.abort()
        elif fault == "truncated":
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{"data": [')
            writer.close()
        elif fault.startswith("status"):
            _, status, *wait = fault.split()
            header = f"Retry-After: {wait[0]}\r\n" if wait else ""
            self.send(writer, int(status), json.dumps({"error": f"{SECRET} {TEXT}"}), header)
        else:
            self.send(writer, 200, BODIES.get(fault, good)(count))

    def send(self, writer, status: int, body: str, header: str = ""):
        data = body.encode()
        writer.write(f"HTTP/1.1 {status} X\r\n{header}Content-Length: {len(data)}\r\n\r\n".encode() + data)


def vector(number: int) -> list[float]:
    return [float(number + 1), 1.0, 0.0]


def good(count: int) -> str:
    """Answer in reverse order, as the protocol allows: `index` tells the place."""
    items = [{"index": place, "embedding": vector(place)} for place in range(count)]
    return json.dumps({"data": items[::-1]})


def rows(*values: object):
    return lambda count: json.dumps({"data": [{"index": i, "embedding": v} for i, v in enumerate(values)]})


BODIES = {
    "base64": lambda count: rows(
        *(base64.b64encode(np.array(vector(i), "<f4").tobytes()).decode() for i in range(count))
    )(count),
    "no index": lambda count: json.dumps({"data": [{"embedding": vector(i)} for i in range(count)]}),
    "not json": lambda count: "<html>busy</html>",
    "wide": rows([1.0, 2.0, 3.0, 4.0]),
    "nan": rows([float("nan"), 1.0, 0.0]),
    "zero": rows([0.0, 0.0, 0.0]),
    "words": rows(["a", "b", "c"]),
    "null": rows(None),
    "broken base64": rows("%%%"),
    "odd base64": rows("AAAA"),
    "too many": rows(vector(0), vector(1)),
    "none": rows(),
    "no data": lambda count: json.dumps({"result": []}),
    "a list": lambda count: "[1, 2]",
    "wrong index": lambda count: json.dumps({"data": [{"index": 7, "embedding": vector(0)}]}),
    "oversized": lambda count: json.dumps({"data": [{"index": 0, "embedding": [1.0] * 100_000}]}),
}


@pytest.fixture
async def faults():
    server = FaultServer()
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    yield server
    listener.close()


class Naps:
    """The library as the line sees it: what it would sleep is noted, and nobody waits."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def __getattr__(self, name: str):
        return getattr(asyncio, name)

    async def sleep(self, seconds: float):
        self.slept.append(seconds)


@pytest.fixture(autouse=True)
def naps(monkeypatch):
    noted = Naps()
    monkeypatch.setattr(line, "asyncio", noted)
    return noted


class Clock:
    """A clock that goes on when it is told to."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@contextlib.asynccontextmanager
async def asking(server, breaker: Breaker | None = None, clock=time.monotonic, **changes):
    endpoint = EmbedderEndpoint(server.url, "tiny", dimensions=3, key=SECRET, timeout_seconds=10, deadline_seconds=30)
    embedder = OpenAIEmbedder(replace(endpoint, **changes), breaker, clock)
    try:
        yield embedder
    finally:
        await embedder.close()


async def refused(embedder: OpenAIEmbedder, texts: list[str] | None = None) -> EmbedderError:
    with pytest.raises(EmbedderError) as caught:
        await embedder.embed([TEXT] if texts is None else texts)
    assert SECRET not in str(caught.value)
    assert TEXT not in str(caught.value)
    return caught.value


@pytest.mark.real_model
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
class TestRealServer:
    TEXTS = (
        "This is an example sentence",
        "Ann moved to Lisbon in spring and plays the cello.",
        "The disk was full, so the server went down!",
        "ok",
        "Prices rose by 3.5% (again), didn't they?",
        *(f"memory number {number}" for number in range(20)),
    )

    @pytest.mark.parametrize("encoding", ["float", "base64"])
    async def test_it_agrees_with_the_local_model(self, embedding_server, encoding):
        endpoint = EmbedderEndpoint(embedding_server.url, "minilm", 384, batch=10, encoding=encoding)
        remote: Embedder = OpenAIEmbedder(endpoint)
        local = load_minilm()
        vectors = await remote.embed(self.TEXTS)
        cosines = (vectors * await local.embed(self.TEXTS)).sum(axis=1)
        assert cosines.min() >= 0.9999
        assert vectors[0, :3].tolist() == pytest.approx([0.0677, 0.0635, 0.0487], abs=1e-3)
        await remote.close()
        await local.close()

    async def test_wrong_dimensions_are_noticed(self, embedding_server):
        async with asking(embedding_server, dimensions=768, timeout_seconds=10) as embedder:
            error = await refused(embedder)
        assert error.lasting
        assert "384" in str(error)

    async def test_it_comes_back_after_the_server_did(self, embedding_server):
        breaker, clock = Breaker(failures=2, seconds=10), Clock()
        async with asking(embedding_server, breaker, clock, dimensions=384) as embedder:
            assert (await embedder.embed(["before"])).shape == (1, 384)
            embedding_server.kill()
            try:
                assert not (await refused(embedder)).lasting
            finally:
                await asyncio.to_thread(embedding_server.start)
            clock.seconds += 10
            assert (await embedder.embed(["after"])).shape == (1, 384)


@pytest.mark.parametrize("fault", ["good", "base64", "no index"])
async def test_vectors_come_in_the_order_of_the_texts(faults, fault):
    faults.faults = [fault]
    async with asking(faults, batch=4) as embedder:
        vectors = await embedder.embed([f"text {number}" for number in range(10)])
    expected = np.array([vector(number % 4) for number in range(10)])
    assert np.allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True))
    assert sorted(len(question["input"]) for question in faults.questions) == [2, 4, 4]


async def test_the_question_is_what_the_protocol_asks(faults):
    async with asking(faults, characters=5) as embedder:
        await embedder.embed(["好 cut here \ud800", "\ud800"])
        assert embedder.model == "tiny"
        assert embedder.reads("安喜欢喝茶")
    assert faults.questions == [{"model": "tiny", "input": ["好 cut", "?"], "encoding_format": "float"}]
    assert faults.heads[0].startswith("POST /v1/embeddings ")
    assert f"Bearer {SECRET}" in faults.heads[0]
    async with asking(faults, key="") as embedder:
        await embedder.embed(["a"])
    assert "authorization" not in faults.heads[-1].lower()


async def test_dimensions_are_named_only_where_the_model_gives_others(faults):
    faults.faults = ["wide", "good"]
    async with asking(faults) as embedder:
        assert (await embedder.embed(["a"])).shape == (1, 3)
        await embedder.embed(["b"])
    assert [question.get("dimensions") for question in faults.questions] == [None, 3, 3]


async def test_a_model_that_refuses_to_choose_is_reported_with_its_own_dimensions(faults):
    faults.faults = ["wide", "status 400"]
    async with asking(faults) as embedder:
        error = await refused(embedder)
    assert error.lasting
    assert "1 x 4 values instead of 1 x 3" in str(error)


async def test_no_texts_need_no_request(faults):
    async with asking(faults) as embedder:
        assert (await embedder.embed([])).shape == (0, 3)
    assert faults.questions == []


async def test_a_few_batches_are_under_way_together(faults, monkeypatch):
    post, meeting, busy, most = line.EndpointClient.post, asyncio.Barrier(3), 0, 0

    async def post_together(*given):
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        # Nobody goes on before three have come; by then, whoever else may come has come.
        await meeting.wait()
        answer = await post(*given)
        busy -= 1
        return answer

    monkeypatch.setattr(line.EndpointClient, "post", post_together)
    async with asking(faults, batch=1, parallel=3) as embedder:
        await embedder.embed(["a"] * 9)
    assert most == 3


@pytest.mark.parametrize(
    "fault",
    ["status 500", "status 503", "status 429", "status 408", "status 409", "drop", "truncated", "not json"],
)
async def test_passing_faults_are_tried_again(faults, fault):
    faults.faults = [fault, fault, "good"]
    async with asking(faults) as embedder:
        assert (await embedder.embed(["a"])).shape == (1, 3)
    assert len(faults.questions) == 3


async def test_retry_after_is_honoured(faults, naps):
    faults.faults = ["status 429 7", "good"]
    async with asking(faults) as embedder:
        await embedder.embed(["a"])
    assert naps.slept == [7.0]


async def test_a_retry_after_beyond_the_deadline_gives_up_at_once(faults, naps):
    faults.faults = ["status 429 3600"]
    async with asking(faults) as embedder:
        error = await refused(embedder)
    assert not error.lasting
    assert "429" in str(error)
    assert naps.slept == []
    assert len(faults.questions) == 1


async def test_attempts_come_to_an_end(faults, naps):
    faults.faults = ["status 500"]
    async with asking(faults, attempts=3) as embedder:
        error = await refused(embedder)
    assert not error.lasting
    assert "500" in str(error)
    assert len(faults.questions) == 3
    assert [0 <= seconds <= longest for seconds, longest in zip(naps.slept, (0.25, 0.5), strict=True)] == [True, True]


@pytest.mark.parametrize("fault", ["hang", "drip"])
async def test_one_request_does_not_outlast_its_timeout(faults, fault):
    faults.faults = [fault, "good"]
    async with asking(faults, timeout_seconds=0.3) as embedder:
        await embedder.embed(["a"])
    assert len(faults.questions) > 1


async def test_the_whole_call_does_not_outlast_its_deadline(faults):
    faults.faults = ["hang"]
    async with asking(faults, timeout_seconds=60, deadline_seconds=0.4) as embedder:
        error = await refused(embedder, ["a"] * 200)
    assert not error.lasting
    assert "no answer in 0.4 s" in str(error)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_lasting_and_not_repeated(faults, status):
    faults.faults = [f"status {status}"]
    async with asking(faults) as embedder:
        error = await refused(embedder)
    assert error.lasting
    assert str(status) in str(error)
    assert len(faults.questions) == 1


@pytest.mark.parametrize("fault", sorted(BODIES.keys() - {"base64", "no index", "not json", "oversized"}))
async def test_an_unusable_answer_is_lasting(faults, fault):
    faults.faults = [fault]
    async with asking(faults) as embedder:
        assert (await refused(embedder)).lasting
    assert len(faults.questions) == (2 if fault == "wide" else 1)


async def test_an_oversized_answer_is_not_read_to_its_end(faults):
    faults.faults = ["oversized"]
    async with asking(faults) as embedder:
        error = await refused(embedder)
    assert error.lasting
    assert "bytes" in str(error)


async def test_one_bad_batch_fails_the_call(faults):
    faults.faults = ["hang", "status 401", "hang"]
    async with asking(faults, batch=1) as embedder:
        assert (await refused(embedder, ["a"] * 3)).lasting


async def test_the_breaker_opens_refuses_at_once_and_recovers(faults):
    faults.faults = ["status 500"]
    breaker, clock = Breaker(failures=3, seconds=10), Clock()
    async with asking(faults, breaker, clock) as embedder:
        assert "500" in str(await refused(embedder))
        assert len(faults.questions) == 3
        assert "keeps failing" in str(await refused(embedder))
        assert len(faults.questions) == 3
        faults.faults = ["good"]
        clock.seconds += 10
        assert (await embedder.embed(["a"] * 5)).shape == (5, 3)
        assert breaker.state(clock.seconds) is State.CLOSED


async def test_refusals_do_not_open_the_breaker(faults):
    faults.faults = ["status 400"]
    async with asking(faults, Breaker(failures=2)) as embedder:
        for _ in range(4):
            assert "400" in str(await refused(embedder))


async def test_callers_who_give_up_open_the_breaker(faults):
    faults.faults, clock = ["hang"], Clock()
    async with asking(faults, Breaker(failures=2), clock, slow_seconds=5) as embedder:
        for number in (1, 2):
            await give_up(faults, embedder, number, clock, 5)
        assert "keeps failing" in str(await refused(embedder))


async def give_up(faults, embedder, number, clock, seconds):
    """Ask, and leave so many seconds after the question has arrived."""
    asking = asyncio.create_task(embedder.embed(["a"]))
    await until(lambda: len(faults.questions) == number)
    clock.seconds += seconds
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_callers_who_leave_early_do_not(faults):
    faults.faults, clock = ["hang"], Clock()
    breaker = Breaker(failures=1)
    async with asking(faults, breaker, clock, slow_seconds=5) as embedder:
        await give_up(faults, embedder, 1, clock, 4.9)
    assert breaker.state(clock.seconds) is State.CLOSED


async def test_nobody_there_is_a_passing_fault():
    nowhere = FaultServer(url="http://127.0.0.1:9/v1")
    async with asking(nowhere, attempts=2) as embedder:
        error = await refused(embedder)
    assert not error.lasting
    assert "ConnectError" in str(error)


@pytest.mark.promise("Neither texts nor keys of a model reach the log")
async def test_nothing_private_reaches_the_log(faults, caplog):
    faults.faults = ["status 400"]
    with caplog.at_level(logging.DEBUG, logger="recollect"):
        async with asking(faults) as embedder:
            error = await refused(embedder)
    assert SECRET not in caplog.text
    assert error.__cause__ is None
    assert SECRET not in repr(EmbedderEndpoint(faults.url, "tiny", 3, key=SECRET))


async def test_proxies_of_the_environment_are_ignored(faults, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with asking(faults) as embedder:
        assert (await embedder.embed(["a"])).shape == (1, 3)


async def test_a_closed_embedder_refuses(faults):
    async with asking(faults) as embedder:
        pass
    assert (await refused(embedder)).lasting


@pytest.mark.parametrize(
    "changes",
    [{"url": "localhost:8080"}, {"model": ""}, {"dimensions": 0}, {"key": "a\nb"}, {"key": "schlüssel"}],
)
def test_a_wrong_configuration_is_explained(changes):
    endpoint = replace(EmbedderEndpoint("http://127.0.0.1:9/v1", "tiny", 3), **changes)
    with pytest.raises(SetupError, match="RECOLLECT_EMBEDDER"):
        OpenAIEmbedder(endpoint)


def test_retry_after_is_read_as_number_or_date():
    now = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
    assert read_retry_after("7", now) == 7.0
    assert read_retry_after("0.5", now) == 0.5
    assert read_retry_after(format_datetime(now + timedelta(seconds=9), usegmt=True), now) == 9.0
    assert read_retry_after(format_datetime(now - timedelta(seconds=9), usegmt=True), now) == 0.0
    assert [read_retry_after(header, now) for header in ("", "soon", "-3", "nan")] == [0.0] * 4

"""No upload stops the service: bombs cost it little, and what it accepts can be read and written afterwards."""

from __future__ import annotations

import asyncio
import io
import json
import time
import zlib
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from recollect.doors.http.app import create_app
from recollect.models.imports import ExportRequest, ImportOptions
from recollect.models.service import KeyBinding, Right
from recollect.wiring import connected
from support.imports.forged_exports import edit_rows, make_bomb, mutate, pack, unpack, vary
from support.imports.whole_scopes import EVERYTHING, Life
from support.measuring.sizes import Sizes
from support.models.fake_chat import FakeChatModel
from support.service.made_settings import PATIENT, make_settings
from support.service.serving import serving

BOMBS = Sizes("bombs", ci=10, long=200)
MUTANTS = Sizes("exports", ci=50, long=1_000)
VARIANTS = Sizes("exports", ci=8, long=100)
LONGEST_HOLD, MOST_MEMORY = 0.2, 64 << 20
STEPS = [step for step in EVERYTHING if step[1] in {0, 3, 8}]
SEVERAL = 3


@pytest.fixture
async def recollect(addresses, embedder, script):
    async with connected(
        make_settings(embedder="fake", **PATIENT), addresses, embedder, FakeChatModel(script)
    ) as running:
        yield running


@pytest.fixture
async def url(recollect):
    async with serving(create_app(recollect=recollect)) as address:
        yield address


@pytest.fixture
async def base(recollect, script):
    mind = await recollect.mind("ada", "li")
    await Life(mind, script).live(STEPS)
    await recollect.operator.embed_waiting(mind, lambda _: None)
    return await export(recollect)


async def export(recollect, tenant="default", **order):
    file = io.BytesIO()
    caller = await recollect.operator.act_for(tenant)
    await recollect.operator.exports.write_export_file(caller, ExportRequest(vectors=("all",), **order), file)
    return file.getvalue()


async def new_key(recollect, tenant="default", rights=tuple(Right), bounds=KeyBinding()):  # noqa: B008
    return (await recollect.create_key(await recollect.operator.act_for(tenant), "web", rights, 100, bounds))[1]


def memory(name):
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) << 10


class Watch:
    """The processor time that the process took between two wakes of a task, at most, and the memory it gained."""

    def __init__(self):
        Path("/proc/self/clear_refs").write_text("5")
        self.longest, self._before = 0.0, memory("VmRSS")

    @property
    def gained(self):
        return memory("VmHWM") - self._before

    async def run(self):
        while True:
            before = time.process_time()
            await asyncio.sleep(0.01)
            self.longest = max(self.longest, time.process_time() - before)


@asynccontextmanager
async def watching():
    watch = Watch()
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()


async def upload(client, data, **order):
    """Send what was made before, in pieces, so that the client of the test takes no time of the watched process."""

    async def pieces():
        for start in range(0, len(data), 1 << 16):
            yield data[start : start + (1 << 16)]

    return await client.post("/v1/import", params=order, content=pieces(), timeout=600)


@pytest.mark.promise("No bomb in an upload takes 64 MB of the service, or holds it for 0.2 s", BOMBS)
async def test_bombs_cost_little(recollect, url, base, figure):
    bound = await new_key(recollect, rights=(Right.READ, Right.WRITE), bounds=KeyBinding("ada", "li"))
    keys = (bound, await new_key(recollect, "elsewhere"))
    seen, longest, gained = set(), 0.0, 0
    for number in range(BOMBS.now):
        data = await asyncio.to_thread(make_bomb, base, number)
        async with httpx.AsyncClient(base_url=url) as client:
            client.headers["Authorization"] = f"Bearer {keys[number % 2]}"
            await client.get("/health/live")
            async with watching() as watch:
                answer = await upload(client, data, agent="ada", user="li")
        assert answer.status_code in {200, 422}, (number, answer.text)
        assert watch.longest < LONGEST_HOLD, (number, watch.longest)
        assert watch.gained <= MOST_MEMORY, (number, watch.gained)
        seen.add(answer.status_code)
        longest, gained = max(longest, watch.longest), max(gained, watch.gained)
    assert 422 in seen
    figure(f"at most {longest:.3f} s of processor time between two wakes, {gained / 1e6:.0f} MB")


READ = (
    "memories", "memories?state=faded", "conversations", "conversations?state=deleted", "conversations?state=archived",
    "facts", "facts?at=any", "entities", "entities?order=facts", "entities/duplicates", "graph", "topics",
    "topics/text", "recalls", "overview?days=30", "receipts", "ledger", "jobs", "conversations/chat-2/messages",
    "conversations/chat-2", "conversations/chat-2/segments", "receipts?conversation=chat-0",
    "topics/links?path=food", "topics?path=food", "memories?as_of=2026-11-18T00:00:00Z", "export",
)  # fmt: skip
"""What is read of a scope."""
POSTED = (
    ("recall", {"text": "tea of Ann in Town 3", "keep": True}),
    ("recall", {"text": "tea", "channels": ["stream"], "limit": 50}),
    ("associate", {"text": "tea"}),
    ("context", {"text": "tea", "conversation": "chat-2", "budget": 2_000}),
    ("history", {"conversation": "chat-0", "max_tokens": 10_000}),
    ("history", {"conversation": "chat-2", "max_tokens": 10_000}),
    ("items", {"operations": [{"op": "find", "under": ["notes"]}]}),
    ("tune", {}), ("fade", {}), ("forget", {"dry_run": True, "kinds": ["event"]}),
    ("messages", {"conversation": "chat-2", "messages": [{"role": "user", "content": "more tea"}]}),
    ("memories", {"content": "more tea", "keywords": ["tea"], "topic": "food->tea"}),
    ("facts", {"facts": [{"subject": "Ann", "predicate": "lives in", "object": "Town 9"}]}),
    ("blocks", {"text": "tea", "conversation": "chat-2"}),
)  # fmt: skip
OF_EACH = {
    "memories": ("id", "/v1/memories/{}", "/v1/memories/{}/evidence"),
    "entities": ("id", "/v1/entities?ids={}", "/v1/entities/{}/neighbors"),
    "recalls": ("recall_id", "/v1/recalls/{}"),
    "conversations": ("id", "/v1/conversations/{}", "/v1/conversations/{}/messages"),
}


async def probe(client, agent):
    """Make every call on a scope; return those that the service could not answer, and how many it answered."""
    scope, answers = {"agent": agent, "user": "li"}, []

    async def call(method, path, **given):
        answers.append(await client.request(method, path, **given, timeout=120))
        return answers[-1]

    for path in READ:
        name, _, more = path.partition("?")
        found = await call("GET", f"/v1/{name}", params=scope | dict([more.split("=")] if more else []))
        key, *paths = OF_EACH.get(path, ("",)) if found.status_code == 200 else ("",)
        for each in (found.json()[path] if paths else ())[:2]:
            for one in paths:
                await call("GET", one.format(each[key]), params=scope)
        if path == "recalls" and paths and found.json()[path]:
            await call("POST", f"/v1/recalls/{found.json()[path][0][key]}/replay", json=scope)
    for name, body in POSTED:
        await call("POST", f"/v1/{name}", json=scope | body)
    for path in ("/v1/scopes", "/v1/scopes?order=size", f"/v1/profile?agent={agent}"):
        await call("GET", path)
    failed = [(each.request.url.path, each.request.content, each.text) for each in answers if each.status_code >= 500]
    return failed, sum(each.is_success for each in answers)


async def test_the_calls_are_answered(recollect, url, base):
    """What is called after an import is what the service can answer."""
    async with httpx.AsyncClient(base_url=url) as client:
        client.headers["Authorization"] = f"Bearer {await new_key(recollect)}"
        failed, answered = await probe(client, "ada")
    assert not failed
    assert answered >= len(READ) + len(POSTED) + len(OF_EACH) + sum(len(paths) for _, *paths in OF_EACH.values())


@pytest.mark.promise("What an import accepts can be read and written afterwards", MUTANTS)
async def test_no_call_fails_after_an_import_was_accepted(recollect, url, base, figure):
    secret = await new_key(recollect, "elsewhere")
    accepted, problems, numbers = [], [], iter(range(MUTANTS.now))

    async def work():
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {secret}"}) as client:
            for number in numbers:
                data = mutate(base, number)
                answer = await upload(client, data, agent=f"agent-{number}", user="li")
                if answer.status_code not in {200, 422}:
                    problems.append((number, answer.text))
                elif answer.status_code == 200:
                    accepted.append(number)
                    failed, _ = await probe(client, f"agent-{number}")
                    problems.extend((number, *each) for each in failed)

    await asyncio.gather(*(work() for _ in range(SEVERAL)))
    assert not problems
    assert accepted
    figure(f"{len(accepted)} of {MUTANTS.now} accepted")


def pack_input(**changed):
    """Write the input of a ranking of nothing, with some fields changed."""
    heading = {"facets": {}, "clocks": [], "weights": {}, "limit": 5, "rarities": [], "channels": {}, "features": None}
    return "\\x34" + zlib.compress(json.dumps(heading | changed).encode() + b"\n").hex()


async def test_a_kept_recall_of_another_shape_fails_no_call(recollect, url, base):
    name = "1/recall/recalls.jsonl"
    shapes = (
        {"hits": [{}]},
        {"tallies": {"a": "b"}},
        {"cue": {"text": [1]}},
        {"vector": "\\x00"},
        {"inputs": "\\x34" + zlib.compress(b"[]").hex()},
        *(
            {"inputs": pack_input(**each)}
            for each in ({}, {"weights": {"text": 1e308}}, {"channels": {"text": [9, 0]}})
        ),
        {"inputs": pack_input(channels={"text": [0, False]}, features=0, rarities=[1.0], speakers=["a"])},
    )
    statuses = set()
    async with httpx.AsyncClient(base_url=url) as client:
        client.headers["Authorization"] = f"Bearer {await new_key(recollect, 'elsewhere')}"
        for number, shape in enumerate(shapes):
            data = pack(edit_rows(unpack(base), name, lambda rows: [row | shape for row in rows]))  # noqa: B023
            answer = await upload(client, data, agent=(agent := f"agent-{number}"), user="li")
            assert answer.status_code == 200, answer.text
            scope = {"agent": agent, "user": "li"}
            [*kept] = (await client.get("/v1/recalls", params=scope)).json()["recalls"]
            path = f"/v1/recalls/{kept[0]['recall_id']}"
            asked = [await client.get(path, params=scope)]
            asked += [await client.post(f"{path}/replay", json=scope | more) for more in ({}, {"weights": {"text": 2}})]
            statuses |= {each.status_code for each in asked}
    assert statuses <= {200, 422}
    assert 422 in statuses


@pytest.mark.promise("An export that was written in another way is accepted and is the same", VARIANTS)
async def test_changes_that_say_nothing_are_accepted(recollect, base):
    for number in range(VARIANTS.now):
        tenant = f"variant-{number}"
        caller = await recollect.operator.act_for(tenant)
        outcome = await recollect.operator.exports.import_export_file(
            caller, ImportOptions("x"), io.BytesIO(vary(base, number))
        )
        assert outcome.restored
        assert all(".later_" in name for name in outcome.left_out)
        assert await export(recollect, tenant) == base

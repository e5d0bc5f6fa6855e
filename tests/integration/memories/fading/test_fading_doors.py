"""Fading through every door: HTTP, the SDK, blocking code, the command line, and files of lines."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import pytest

from conftest import http_client, new_key
from integration.memories.fading.test_fading import MONTH, age
from recollect import NewMemory, sync
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.doors.imports.jsonl import export_lines, import_lines
from recollect.models import FadingRules, Kind, Profile
from recollect.models.service import Right
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.serving import serving

SCOPE = {"agent": "ada", "user": "li"}


async def old(mind, owner):
    """Store one thing that fades within a month and one that does not."""
    receipts = await mind.remember([NewMemory("A SECRET lamp.", importance=2), NewMemory("A dear lamp.", importance=9)])
    ids = [receipt.id for receipt in receipts]
    age(owner, ids, 300)
    return ids


async def test_http_tells_fades_lists_and_restores(http, mind, owner):
    gone, kept = await old(mind, owner)
    shown = (await http.post("/v1/fade", json=SCOPE | {"days": 30, "dry_run": True})).json()
    assert (shown["dry_run"], shown["looked_at"], shown["faded"]) == (True, 2, 1)
    assert shown["grounds"] == {"decayed": 1, "protected": 1}
    assert shown["rules"] == {"days": 30, "threshold": 0.7, "fact_days": 0}
    listing = SCOPE | {"state": "faded"}
    assert (await http.get("/v1/memories", params=listing)).json() == {"memories": [], "next_cursor": None}
    done = await http.post("/v1/fade", json=SCOPE | {"days": 30})
    assert (done.status_code, done.json()["judgements"][0]["id"]) == (200, str(gone))
    assert [each["id"] for each in (await http.get("/v1/memories", params=listing)).json()["memories"]] == [str(gone)]
    body = SCOPE | {"ids": [str(gone), str(kept)]}
    report = (await http.post("/v1/fade", json=body | {"days": 30, "dry_run": True})).json()
    standing, faded = report["judgements"]
    assert (standing["id"], standing["fades"], standing["grounds"]) == (str(kept), False, "protected")
    assert (faded["id"], faded["kind"], faded["grounds"]) == (str(gone), "event", "decayed")
    assert faded["faded_at"] and standing["faded_at"] is None and report["faded"] == 0
    assert (await http.post("/v1/fade/restore", json=body)).json() == {"restored": [str(gone)]}
    assert "SECRET" not in done.text + str(report)


async def test_http_keeps_rights_and_bounds(recollect, mind, owner):
    await old(mind, owner)
    _, secret = await new_key(recollect, rights=(Right.READ,))
    async with http_client(recollect, secret) as reader:
        assert (await reader.post("/v1/fade", json=SCOPE | {"dry_run": True})).status_code == 200
        assert (await reader.post("/v1/fade", json=SCOPE)).status_code == 403
        assert (await reader.post("/v1/fade/restore", json=SCOPE | {"ids": [str(uuid4())]})).status_code == 403
        for wrong in (
            {"days": -1},
            {"threshold": 1.1},
            {"fact_days": "90"},
            {"dry_run": "yes"},
            {"cursor": "x"},
            {"x": 1},
        ):
            assert (await reader.post("/v1/fade", json=SCOPE | {"dry_run": True} | wrong)).status_code == 422, wrong
    _, stranger = await new_key(recollect, "another")
    async with http_client(recollect, stranger) as other:
        assert (await other.post("/v1/fade", json=SCOPE | {"days": 30})).json()["looked_at"] == 0


async def test_http_takes_an_expiry_and_a_profile_that_fades(http, mind):
    moment = "2031-02-03T04:05:06+08:00"
    sent = await http.post("/v1/memories", json=SCOPE | {"memories": [{"content": "x", "expires_at": moment}]})
    identity = sent.json()["memories"][0]["id"]
    found = (await http.get(f"/v1/memories/{identity}", params=SCOPE)).json()
    assert datetime.fromisoformat(found["expires_at"]) == datetime.fromisoformat(moment)
    wrong = {"content": "x", "occurred_at": "2032-01-01T00:00:00Z", "expires_at": moment}
    assert (await http.post("/v1/memories", json=SCOPE | {"memories": [wrong]})).status_code == 422
    chosen = {"agent": "ada", "fading_days": 20, "fading_threshold": 0.6, "fading_fact_days": 90}
    assert (await http.put("/v1/profile", json=chosen)).status_code == 200
    assert await mind.profile() == Profile(fading_days=20, fading_threshold=0.6, fading_fact_days=90)
    assert (await mind.fade(dry_run=True)).rules == FadingRules(20, 0.6, 90)


async def test_the_sdk_and_blocking_code_say_the_same(recollect, mind, owner):
    gone, kept = await old(mind, owner)

    def block(url, secret):
        with sync.using(Client(url, secret)) as client:
            view = client.mind("ada", "li")
            explained = view.fade(MONTH, ids=[kept], dry_run=True).judgements
            faded = view.list(filter={"state": "faded"}).memories
            return view.fade(MONTH, dry_run=True), explained, faded, view.restore([gone])

    async with serving(create_app(recollect=recollect)) as url:
        _, secret = await new_key(recollect)
        async with Client(url, secret) as client:
            there = await client.mind("ada", "li")
            assert (await there.fade(MONTH, dry_run=True)) == (await mind.fade(MONTH, dry_run=True))
            judged = (await there.fade(MONTH, ids=[gone, kept], dry_run=True)).judgements
            assert [each.fades for each in judged] == [True, False]
            assert (await there.fade(MONTH)).faded == 1
            faded = {"state": "faded"}
            assert (await there.list(filter=faded)) == (await mind.list(filter=faded))
            assert (await there.list(filter=faded, cursor=gone)).memories == ()
            assert (await there.fade(ids=[gone])) == (await mind.fade(ids=[gone]))
            shown, explained, faded, restored = await asyncio.to_thread(block, url, secret)
            moment = datetime.now(UTC) + timedelta(days=1)
            [receipt] = await there.remember(NewMemory("x", expires_at=moment))
            assert (await there.get(receipt.id)).expires_at == moment
            await there.set_profile(Profile(fading_days=7))
            assert (await there.profile()).fading_days == 7
    assert (shown.faded, [each.id for each in explained]) == (0, [kept])
    assert [each.id for each in faded] == restored == [gone]


@pytest.fixture
def run(addresses):
    """Run a command against this test's own database."""
    return partial(command_line.run, settings=settings_of(addresses))


def test_the_command_line_shows_fades_lists_and_restores(run, owner):
    mine = ("--agent", "ada")
    gone = run("remember", *mine, "A SECRET lamp", "--importance", "2").split()[0]
    run("remember", *mine, "A dear lamp", "--importance", "9")
    run("remember", *mine, "A code", "--expires-at", "2020-01-01")
    age(owner, [gone], 300)
    shown = run("mind", "fade", *mine, "--dry-run")
    assert "Only what has expired fades" in shown
    assert "1 memories would fade." in shown
    shown = run("mind", "fade", *mine, "--days", "30", "--dry-run")
    assert re.search(rf"{gone[-8:]}.*event.*1\.000.*decayed.*Score 1 is above 0\.7", shown)
    assert "2 memories would fade." in shown
    assert "SECRET" not in shown
    run("mind", "profile", *mine, "--fading-days", "30", "--fading-fact-days", "90")
    assert "2 memories have faded." in run("mind", "fade", *mine)
    listed = run("mind", "fade", *mine, "--list")
    assert "expired" in listed
    assert gone[-8:] in listed
    assert "1 memories are back." in run("mind", "fade", *mine, "--restore", gone)
    assert "1 memories are back." in run("mind", "fade", *mine, "--restore", "all")
    assert "or a short ID: m" in run("mind", "fade", *mine, "--restore", "lamp", fails=True)
    assert "0 memories would fade." in run("mind", "fade", *mine, "--dry-run")


async def test_an_expiry_travels_with_the_line(recollect, mind, tmp_path):
    moment = datetime(2031, 1, 1, tzinfo=UTC)
    await mind.remember([NewMemory("x", Kind.EVENT, expires_at=moment), NewMemory("y")])
    await export_lines(mind, tmp_path / "lines", lambda _: None)
    there = await recollect.mind("copy")
    await import_lines(there, tmp_path / "lines", lambda _: None)
    assert [memory.expires_at for memory in (await there.list()).memories] == [moment, None]

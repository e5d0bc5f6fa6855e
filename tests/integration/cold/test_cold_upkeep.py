"""What is not asked for: scopes leave by themselves when nobody touches them, rules reach those that have left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.conversations.retention import default_rules
from recollect.jobs.cold import run_cold_pass, tidy
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import NewMemory, Role
from recollect.models.recall import Cue
from recollect.store.cold import tiers
from recollect.store.knowledge import facts
from recollect.store.service import maintenance
from support.memories.cold_scopes import chilly, objects_in, rows_of, send_out, tier_of
from support.programs import command_line

LONG_AGO = "update scopes set last_written_at = now() - interval '40 days'"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "objects"


@pytest.fixture
async def recollect(addresses, embedder, folder):
    async with chilly(addresses, embedder, f"file://{folder}", cold__after_days=30) as running:
        yield running


async def filled(recollect, agent="ada", user="li", **more):
    mind = await recollect.mind(agent, user)
    await mind.remember(NewMemory("Li likes green tea.", **more))
    return mind


async def a_day_passes(recollect, owner):
    """Do what is done daily; whoever is marked was so since yesterday."""
    owner.execute("update scopes set tier_since = tier_since - interval '1 day' where tier = 'leaving'")
    parts, settings = recollect.parts, recollect.settings
    await run_cold_pass(parts.database, parts.cold, settings.cold.after_days, default_rules(settings))
    await recollect.work(until_empty=True)


async def test_a_scope_that_nobody_touched_leaves_on_the_second_day(recollect, owner):
    await filled(recollect, "old")
    owner.execute(LONG_AGO)
    await filled(recollect, "new")
    await recollect.work(until_empty=True)
    await a_day_passes(recollect, owner)
    assert (tier_of(owner, "old"), tier_of(owner, "new")) == ("leaving", "hot")
    await a_day_passes(recollect, owner)
    assert (tier_of(owner, "old"), tier_of(owner, "new")) == ("cold", "hot")


async def test_whoever_reads_a_scope_keeps_it(recollect, owner):
    recalled, looked_at = await filled(recollect, "recalled"), await filled(recollect, "looked-at")
    owner.execute(LONG_AGO)
    await recalled.recall(Cue("tea"))
    await recollect.work(until_empty=True)
    await a_day_passes(recollect, owner)
    assert (tier_of(owner, "recalled"), tier_of(owner, "looked-at")) == ("hot", "leaving")
    await looked_at.list()
    for _ in range(3):
        await a_day_passes(recollect, owner)
    assert (tier_of(owner, "recalled"), tier_of(owner, "looked-at")) == ("hot", "hot")


async def test_without_a_rule_nothing_leaves(recollect, owner):
    await filled(recollect)
    owner.execute(LONG_AGO)
    parts, rules = recollect.parts, default_rules(recollect.settings)
    for _ in range(2):
        await run_cold_pass(parts.database, parts.cold, 0, rules, marked_seconds=0)
    assert tier_of(owner) == "hot"


async def expire(mind):
    await mind.remember(NewMemory("Li travels.", expires_at=datetime.now(UTC) + timedelta(hours=1)))
    return "update cold_objects set expires_at = expires_at - interval '2 hours'"


async def delete_a_conversation(mind):
    await mind.conversation("dinner").append([NewMessage(Role.USER, "Shall we cook?")])
    await mind.conversation("dinner").delete()
    return "update cold_objects set deleted_at = deleted_at - interval '31 days'"


async def keep_a_recall(mind):
    await mind.recall(Cue("tea", keep=True))
    return "update cold_objects set recalled_at = recalled_at - interval '31 days'"


@pytest.mark.parametrize("ending", [expire, delete_a_conversation, keep_a_recall])
async def test_what_comes_to_its_end_in_a_cold_scope_brings_it_back(recollect, owner, ending):
    mind = await filled(recollect)
    later = await ending(mind)
    owner.execute("delete from procrastinate_jobs")
    await send_out(recollect)
    await a_day_passes(recollect, owner)
    assert tier_of(owner) == "cold"
    owner.execute(later)
    await a_day_passes(recollect, owner)
    assert tier_of(owner) == "hot"


async def test_upkeep_that_meets_a_scope_about_to_leave_keeps_it(recollect, owner):
    """What is looked for over all tenants must not stop at a mark."""
    mind = await filled(recollect)
    now = datetime.now(UTC)
    stated = NewFact("Bo", "knows", "Zoe", valid_at=now - timedelta(days=9), invalid_at=now + timedelta(days=9))
    await mind.knowledge.add(stated)
    owner.execute("delete from procrastinate_jobs")
    scope_id = (await mind.access.locate()).scope_id
    database = recollect.parts.database

    async def fill():
        changed = replace(recollect, parts=replace(recollect.parts, embedder=FakeEmbedder(32)))
        await changed.operator.spaces.change(lambda _: None)

    for work in (lambda: facts.withhold_ended(database), fill):
        owner.execute("update beliefs set invalid_at = now() - interval '1 hour' where superseded_at is null")
        assert await tiers.mark(database, scope_id >> 40, [scope_id]) == [scope_id]
        await work()
        assert tier_of(owner) == "hot"


async def test_fading_does_not_keep_a_scope(recollect, owner):
    await filled(recollect)
    await tiers.mark(recollect.parts.database, 1, [row[0] for row in owner.execute("select id from scopes").fetchall()])
    assert await maintenance.defer_due(recollect.parts.database, "fade", usual=30) == 0
    assert tier_of(owner) == "leaving"


async def test_an_erased_user_is_gone_from_object_storage(recollect, owner, folder):
    await filled(recollect, "ada")
    await filled(recollect, "bob")
    await send_out(recollect, "ada")
    caller = await recollect.operator.act_for("default")
    forget = recollect.operator.erasures.forget_user
    foreseen = await forget(caller, "li", dry_run=True)
    receipt = await forget(caller, "li")
    assert receipt.removed == foreseen.removed
    assert (receipt.removed["memories"], receipt.removed["vectors"], receipt.removed["cold_objects"]) == (2, 2, 1)
    assert receipt.finished_at is not None and objects_in(folder) == []
    for (scope_id,) in owner.execute("select id from scopes").fetchall():
        assert rows_of(owner, scope_id).keys() <= {"changes"}
    assert owner.execute("select distinct tier, memory_count from scopes").fetchall() == [("hot", 0)]


async def test_an_erasure_is_not_finished_before_its_objects_are_gone(recollect, addresses, embedder, owner, folder):
    await filled(recollect)
    await send_out(recollect)
    for url in ("", "s3://nowhere/x"):
        options = "endpoint=http://127.0.0.1:9 access_key_id=a secret_access_key=b region=c" if url else ""
        async with chilly(addresses, embedder, url, cold__options=options, cold__timeout_seconds=2) as other:
            caller = await other.operator.act_for("default")
            left = await other.operator.erasures.forget_user(caller, "li")
            assert (left.erased_at, left.finished_at, left.removed["cold_objects"]) == (None, None, 1)
    assert owner.execute("select erased_at from erasure_receipts").fetchall() == [(None,)]
    assert len(objects_in(folder)) == 1
    caller = await recollect.operator.act_for("default")
    owner.execute("update procrastinate_jobs set scheduled_at = now() where task_name = 'erase'")
    await recollect.work(until_empty=True)
    [receipt] = await recollect.operator.erasures.receipts(caller, "li")
    assert receipt.finished_at is not None and (receipt.scopes, receipt.removed["cold_objects"]) == (1, 1)
    assert objects_in(folder) == []


async def test_what_a_crash_left_behind_is_removed(recollect, owner, folder):
    """An object is named before it is written, so that none is ever forgotten."""
    mind = await filled(recollect)
    scope_id = (await mind.access.locate()).scope_id
    made = await tiers.begin_object(recollect.parts.database, scope_id)
    (folder / made.name).parent.mkdir(parents=True)
    (folder / made.name).write_bytes(b"half of it")
    storage, database = recollect.parts.cold, recollect.parts.database
    assert await tidy(database, storage) == 0, "it may still be on its way"
    owner.execute("update cold_objects set since = since - interval '3 hours'")
    assert await tidy(database, storage) == 1
    assert objects_in(folder) == [] and not rows_of(owner, scope_id).get("cold_objects")


async def test_the_command_line_moves_scopes(recollect, addresses, owner, folder):
    await filled(recollect)
    settings = command_line.settings_of(addresses, cold__url=f"file://{folder}", request_timeout_seconds="0.1")
    said = command_line.run("admin", "cold", "out", "--agent", "ada", settings=settings)
    assert "1 scopes are out" in said and tier_of(owner) == "cold"
    said = command_line.run("admin", "cold", "status", settings=settings)
    assert "1 cold scopes" in said and "ada" in said and "li" in said
    said = command_line.run("admin", "cold", "back", "--agent", "ada", "--user", "li", settings=settings)
    assert "1 scopes are back" in said and tier_of(owner) == "hot"
    assert "0 objects removed" in command_line.run("admin", "cold", "tidy", settings=settings)
    outcome = command_line.call("admin", "cold", "out", "--agent", "nobody", settings=settings)
    assert outcome.code == 1 and "not_found" in outcome.stderr
    outcome = command_line.call("admin", "cold", "out", "--agent", "ada", settings=command_line.settings_of(addresses))
    assert outcome.code == 1 and "RECOLLECT_COLD__URL" in outcome.stderr

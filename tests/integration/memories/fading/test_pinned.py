"""A pin is written with a memory or set later, goes where the memory goes, and is gone with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from recollect.core.memories.ids import fingerprint
from recollect.doors.imports.jsonl import export_lines, import_lines
from recollect.errors import ConflictError, ForbiddenError, NotFoundError
from recollect.models.agents import MindSnapshot, Profile
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import NewFact
from recollect.models.memories import FadingRules, MemoryProgress, NewMemory, Role, UpdateResult
from recollect.models.recall import Cue
from recollect.models.service import Right
from recollect.verbs.memories.load import restore_mind
from support.service.accesses import with_access

ROWS = "select m.id, f.pinned from memories m left join memory_features f using (scope_id, id)"


async def pins(mind):
    return {each.content: each.pinned for each in (await mind.list(limit=100)).memories}


async def test_a_pin_is_written_with_its_memory_by_every_way_in(mind, owner):
    both = [NewMemory("kept", pinned=True), NewMemory("plain")]
    await mind.remember(both)
    await mind.load([replace(each, content=f"loaded {each.content}") for each in both])
    [said] = await mind.conversation("c").append([NewMessage(Role.USER, "hello")])
    [fact] = await mind.knowledge.add([NewFact("Ann", "lives in", "Rome")])
    found = await pins(mind)
    assert [content for content, pinned in found.items() if pinned] == ["kept", "loaded kept"]
    rows = dict(owner.execute(ROWS).fetchall())
    assert len(rows) == 6 and None not in rows.values(), "one row for each memory, whichever way it came"
    assert rows[said.id] is rows[fact.memory_id] is False


async def test_memories_are_pinned_and_let_go_later(mind):
    one, two, three = [receipt.id for receipt in await mind.remember(["one", "two", "three"])]
    for memory_id in (one, two):
        assert await mind.update(memory_id, pinned=True) == UpdateResult(memory_id, MemoryProgress.EMBEDDED, 1)
    assert not (await mind.update(two, pinned=True)).changed, "it is pinned already"
    with pytest.raises(NotFoundError):
        await mind.update(uuid4(), pinned=True)
    assert (await mind.get(two)).pinned
    assert await pins(mind) == {"one": True, "two": True, "three": False}
    assert [(await mind.update(each, pinned=False)).changed for each in (two, three)] == [True, False]
    assert await pins(mind) == {"one": True, "two": False, "three": False}
    assert (await mind.recall(Cue("one"))).hits[0].memory.pinned


async def test_who_may_not_write_may_not_pin(mind):
    [receipt] = await mind.remember("one")
    reader = with_access(mind, caller=replace(mind.access.caller, rights=frozenset({Right.READ})))
    with pytest.raises(ForbiddenError):
        await reader.update(receipt.id, pinned=True)


async def test_only_what_is_in_sight_is_pinned(recollect, mind):
    conversation = mind.conversation("c")
    [said] = await conversation.append([NewMessage(Role.USER, "hello")])
    other = await recollect.mind("ada", "li", tenant="other")
    await other.remember("theirs")
    with pytest.raises(NotFoundError):
        await other.update(said.id, pinned=True)
    await conversation.update(state="archived")
    assert (await mind.update(said.id, pinned=True)).changed
    await conversation.delete()
    with pytest.raises(NotFoundError):
        await mind.update(said.id, pinned=False)
    await conversation.update(state="active")
    assert (await mind.get(said.id)).pinned


async def test_a_body_that_is_pinned_is_another_body(mind):
    assert fingerprint([NewMemory("a")]) != fingerprint([NewMemory("a", pinned=True)])
    await mind.remember(NewMemory("a", pinned=True), idempotency_key="k")
    with pytest.raises(ConflictError):
        await mind.remember(NewMemory("a"), idempotency_key="k")


async def test_a_pin_is_exported_and_imported(recollect, mind, tmp_path):
    await mind.remember([NewMemory("kept", pinned=True), NewMemory("plain")])
    await export_lines(mind, tmp_path / "all.jsonl", lambda _: None)
    assert (tmp_path / "all.jsonl").read_text().count("pinned") == 1
    copy = await recollect.mind("eve")
    await import_lines(copy, tmp_path / "all.jsonl", lambda _: None)
    assert await pins(copy) == {"kept": True, "plain": False}


async def test_a_saved_mind_comes_back_with_its_pins(recollect):
    empty = await recollect.mind("eve")
    saved = MindSnapshot([NewMemory("kept", pinned=True), NewMemory("plain")], None, Profile(), 0, 0)
    await restore_mind(empty.access.parts, empty.access.caller, empty.access.scope, saved)
    assert await pins(empty) == {"kept": True, "plain": False}


async def test_a_pin_outlives_fading_and_comes_back_with_its_memory(mind, owner):
    old = datetime.now(UTC) - timedelta(days=900)
    [receipt] = await mind.remember(NewMemory("kept", pinned=True, importance=1, occurred_at=old))
    owner.execute("update memories set created_at = %s", [old])
    assert (await mind.fade(FadingRules(days=1))).faded == 1
    assert (await mind.get(receipt.id)).pinned
    assert (await mind.recall(Cue("kept", pinned=True))).hits == ()
    assert await mind.restore([receipt.id]) == [receipt.id]
    assert [hit.memory.pinned for hit in (await mind.recall(Cue("kept", pinned=True))).hits] == [True]


async def test_a_further_version_of_a_pinned_fact_is_pinned(mind):
    [fact] = await mind.knowledge.add([NewFact("Ann", "lives in", "Rome")])
    await mind.update(fact.memory_id, pinned=True)
    ended = await mind.knowledge.end(fact.id, datetime.now(UTC) + timedelta(days=1))
    assert ended.memory_id != fact.memory_id
    assert (await mind.get(ended.memory_id)).pinned


async def test_features_go_with_their_memories(mind, owner):
    receipts = await mind.remember([NewMemory("one", pinned=True), NewMemory("two")])
    await mind.forget([receipts[0].id])
    assert owner.execute("select id from memory_features").fetchall() == [(receipts[1].id,)]
    conversation = mind.conversation("c")
    await conversation.append([NewMessage(Role.USER, "hello")])
    await conversation.delete()
    await conversation.purge()
    assert owner.execute("select id from memory_features").fetchall() == [(receipts[1].id,)]


async def test_features_are_hidden_from_other_tenants(recollect, mind, addresses):
    other = await recollect.mind("ada", "li", tenant="other")
    [mine], _ = await mind.remember(NewMemory("mine", pinned=True)), await other.remember("theirs")
    with psycopg.connect(addresses.service) as service:
        for tenant, found in ((mind.access.scope.tenant_id, [(mine.id,)]), ("", [])):
            service.execute("select set_config('recollect.tenant', %s, true)", [str(tenant)])
            assert service.execute("select id from memory_features").fetchall() == found
            service.execute("update memory_features set pinned = true")
    assert await pins(other) == {"theirs": False}


async def test_the_pinned_are_found_by_their_index(mind, addresses, owner):
    await mind.load([NewMemory(f"memory {number}", pinned=number % 1_000 == 0) for number in range(3_000)])
    owner.execute("vacuum analyze")
    with psycopg.connect(addresses.service) as service:
        service.execute("select set_config('recollect.tenant', %s, true)", [str(mind.access.scope.tenant_id)])
        [scope_id] = service.execute("select id from scopes").fetchone()
        query = "explain select id from memory_features where scope_id = %s and pinned = %s::boolean"
        plan = "\n".join(line for (line,) in service.execute(query, [scope_id, True], prepare=False).fetchall())
    assert "memory_features_pinned" in plan

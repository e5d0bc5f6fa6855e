"""The mirror in OpenSearch holds what the record says, proposes ids, and is asked about nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from recollect.channels import mirror as channel
from recollect.core.mirrors.rows import MirrorBatch, MirroredTable, RowKey
from recollect.errors import ConflictError, InvalidInputError, MirrorError, NotFoundError
from recollect.jobs import mirror as job
from recollect.jobs.mirror import check, feed_tenant
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import Cue
from support.engines.mirrored import feed_of, follow, held_ids, mirrored, scope_of, search_settings
from support.service.purge_receipts import receipts_of

pytestmark = pytest.mark.engines
ALONE = ("opensearch",)
NAME = "opensearch"


def silently(_):
    """Report nothing."""


@pytest.fixture
async def recollect(addresses, embedder, search_server):
    async with mirrored(addresses, embedder, **search_settings(search_server.url)) as running:
        yield running


@pytest.fixture
async def mind(recollect):
    """A mind with a memory, in a mirror that is built."""
    opened = await recollect.mind("ada", "li")
    await opened.remember("Li walks along the harbour.")
    await recollect.operator.mirrors.build(NAME, silently)
    return opened


async def ids_of(mind, text, **more):
    found = await mind.recall(Cue(text, channels=ALONE, **more))
    return [hit.memory.id for hit in found.hits]


async def remember(mind, *texts, **more):
    return [each.id for each in await mind.remember([NewMemory(text, **more) for text in texts])]


async def differing(recollect):
    return (await recollect.operator.mirrors.verify(NAME, silently)).differing


async def method(mind, text="harbour", **more):
    return (await mind.recall(Cue(text, channels=ALONE, **more))).methods[NAME]


async def test_what_changes_in_the_record_changes_in_the_mirror(recollect):
    mind = await recollect.mind("ada", "li")
    harbour, tea = await remember(mind, "Li walks along the harbour.", "我在海港散步")
    [built] = await recollect.operator.mirrors.build(NAME, silently)
    assert (built.state, built.scopes, built.behind, built.answers) == ("ready", 1, 0, True)
    assert (await ids_of(mind, "harbour"))[0] == harbour
    assert await method(mind) == "mirror"
    assert tea in await ids_of(mind, "海港")

    [rice] = await remember(mind, "Bo brings the rice.")
    await follow(recollect)
    revised = await mind.update(rice, content="Bo brings the noodles.")
    await mind.forget([harbour])
    await follow(recollect)
    assert await held_ids(recollect, NAME, mind) == {tea, revised.id}
    assert (await recollect.operator.mirrors.verify(NAME, silently)).differing == 0


async def test_the_worker_follows_by_itself(recollect, mind):
    [rice] = await remember(mind, "Bo brings the rice.")
    assert [each.task for each in (await recollect.jobs.unfinished()) if each.task == "mirror"] == ["mirror"]
    await recollect.work(until_empty=True)
    assert rice in await held_ids(recollect, NAME, mind)
    [status] = await recollect.operator.mirrors.status()
    assert (status.behind, status.lag_seconds) == (0, 0)


async def test_content_state_and_tenant_are_the_records(recollect, mind):
    """Whatever somebody writes into the mirror, an answer shows the record."""
    other = await recollect.mind("ada", "li", tenant="other")
    [foreign] = await remember(other, "The harbour of somebody else.")
    [gone] = await remember(mind, "The harbour at night.")
    await follow(recollect)
    feed = await feed_of(recollect, NAME)
    scope, rows = (
        await scope_of(mind),
        [row async for page in feed.mirror.walk(feed.generation, await scope_of(mind)) for row in page],
    )
    await mind.forget([gone])
    await follow(recollect)
    [kept] = [row for row in rows if row.id != gone]
    lies = [
        *(type(kept)(row.table, row.id, {**row.values, "text": "harbour harbour"}) for row in rows),
        type(kept)(kept.table, foreign, kept.values),
    ]
    await feed.mirror.apply(feed.generation, [MirrorBatch(scope, 10_000, 10_000, lies)])
    found = await mind.recall(Cue("harbour", channels=ALONE))
    assert [hit.memory.content for hit in found.hits] == ["Li walks along the harbour."]
    assert set(found.hits[0].channels) >= {NAME, "vector", "text"}, "ranked by what the record knows"


async def test_a_filter_is_applied_before_the_limit(recollect, mind, monkeypatch):
    thoughts = await remember(mind, *(f"harbour thought {number}" for number in range(3)), kind=Kind.THOUGHT)
    await remember(mind, *(f"harbour harbour {number}" for number in range(60)))
    await follow(recollect)
    assert set(await ids_of(mind, "harbour", kinds=(Kind.THOUGHT,), limit=5)) == set(thoughts)
    assert await method(mind, as_of=datetime.now(UTC)) == "skipped: the mirror holds the present alone"
    monkeypatch.setattr(channel, "MAX_FILTER_MATCHES", 2)
    assert await method(mind, kinds=(Kind.THOUGHT,)) == "skipped: the filter admits more than 2 memories"


async def test_it_is_asked_only_where_it_is_named(recollect, mind):
    assert NAME not in (await mind.recall(Cue("harbour"))).methods
    both = await mind.recall(Cue("harbour", channels=("text", "vector", NAME)))
    assert both.methods == {"text": "exact", "vector": "exact", NAME: "mirror"}
    with pytest.raises(InvalidInputError, match="there is no channel 'neo4j'"):
        await mind.recall(Cue("harbour", channels=("neo4j",)))


async def test_lag_is_told_and_beyond_a_limit_it_abstains(recollect, mind, owner):
    await remember(mind, "Bo brings the rice.")
    owner.execute("update changes set at = at - interval '20 seconds'")
    assert "mirror, 2" in await method(mind) and (await method(mind)).endswith("s behind")
    [status] = await recollect.operator.mirrors.status()
    assert status.behind == 1 and status.lag_seconds > 19
    owner.execute("update changes set at = at - interval '60 seconds'")
    assert (await method(mind)).startswith("skipped: the mirror is 8")
    await follow(recollect)
    assert await method(mind) == "mirror"


async def test_a_receipt_is_finished_when_the_mirror_has_been_seen_without_it(recollect, mind, owner):
    conversation = mind.conversation("dinner")
    said = [each.id for each in await conversation.append(["Shall we cook?", "Gladly."])]
    await follow(recollect)
    assert set(said) <= await held_ids(recollect, NAME, mind)
    receipt = await conversation.purge()
    assert receipt.erased_at is not None and receipt.finished_at is None and receipt.mirrors == {}
    await follow(recollect)
    [receipt] = await receipts_of(conversation)
    assert receipt.finished_at >= receipt.erased_at
    assert receipt.mirrors[NAME].startswith("seen without it 20")
    assert not set(said) & await held_ids(recollect, NAME, mind)
    assert owner.execute("select count(*) from awaited_mirrors").fetchone() == (0,)


async def test_a_receipt_waits_while_the_mirror_still_has_a_row(recollect, mind, monkeypatch):
    conversation = mind.conversation("dinner")
    await conversation.append("Shall we cook?")
    await follow(recollect)
    await conversation.purge()
    feed = await feed_of(recollect, NAME)
    monkeypatch.setattr(type(feed.mirror), "apply", lambda *_: nothing())
    with pytest.raises(MirrorError, match="still contains rows"):
        await follow(recollect)
    [receipt] = await receipts_of(conversation)
    assert receipt.finished_at is None
    monkeypatch.undo()
    await follow(recollect)
    assert (await receipts_of(conversation))[0].finished_at is not None


async def nothing():
    """Answer as if something were done."""


async def test_an_erasure_waits_for_every_scope_of_the_user(recollect, mind):
    second = await recollect.mind("bo", "li")
    await remember(second, "Li likes the sea.")
    await follow(recollect)
    caller = await recollect.operator.act_for("default")
    erased = await recollect.operator.erasures.forget_user(caller, "li")
    assert erased.erased_at is not None and erased.finished_at is None
    await follow(recollect)
    [receipt] = await recollect.operator.erasures.receipts(caller, "li")
    assert receipt.finished_at is not None and NAME in receipt.mirrors
    assert [await held_ids(recollect, NAME, each) for each in (mind, second)] == [set(), set()]
    # The next erasure is one of its own.
    await remember(second, "Li is back.")
    assert (await recollect.operator.erasures.forget_user(caller, "li")).id != receipt.id


async def test_dropping_ends_what_waits_with_a_note(recollect, mind, owner):
    conversation = mind.conversation("dinner")
    await conversation.append("Shall we cook?")
    await conversation.purge()
    assert await recollect.operator.mirrors.drop(NAME) == (1, True)
    [receipt] = await receipts_of(conversation)
    assert receipt.finished_at is not None and receipt.mirrors == {NAME: "dropped, with all its data"}
    assert await method(mind) == "skipped: the mirror is not built"
    with pytest.raises(NotFoundError):
        await recollect.operator.mirrors.drop(NAME)
    await remember(mind, "Bo brings the rice.")
    await recollect.work(until_empty=True)
    for table in ("mirrors", "mirror_positions", "awaited_mirrors"):
        assert owner.execute(f"select count(*) from {table}").fetchone() == (0,)


async def test_a_mirror_of_another_record_is_filled_again(recollect, mind, owner):
    owner.execute("select renew_incarnation()")
    # What was given after the backup is given again.
    owner.execute("update scopes set change_number = 1")
    owner.execute("delete from changes where number > 1")
    assert "before a backup was restored" in await method(mind)
    [rice] = await remember(mind, "Bo brings the rice.")
    with pytest.raises(MirrorError, match="is being rebuilt"):
        await follow(recollect)
    await recollect.work(until_empty=True)
    [status] = await recollect.operator.mirrors.status()
    assert (status.generation, status.state) == (2, "ready")
    assert rice in await held_ids(recollect, NAME, mind) and await differing(recollect) == 0


async def test_another_embedding_space_fills_it_again(recollect, mind, owner):
    owner.execute("select create_embedding_space(99, 'other', 8, 'half')")
    owner.execute("select switch_embedding_space(99)")
    [status] = await recollect.operator.mirrors.status()
    assert status.state == "stale"
    await check(recollect.parts.database, recollect.parts.mirrors)
    [status] = await recollect.operator.mirrors.status()
    assert (status.generation, status.state) == (2, "ready")


async def test_a_log_that_is_gone_leads_to_a_comparison(recollect, mind, owner):
    [rice] = await remember(mind, "Bo brings the rice.")
    [noodles] = await remember(mind, "Bo brings noodles.")
    owner.execute("delete from changes where number = (select min(number) + 1 from changes)")
    assert "log that the mirror would follow is gone" in await method(mind)
    await follow(recollect)
    assert {rice, noodles} <= await held_ids(recollect, NAME, mind)
    assert await method(mind) == "mirror"


async def test_the_log_is_kept_for_a_mirror_within_a_bound(recollect, mind, owner):
    from recollect.core.conversations.retention import RetentionRules
    from recollect.jobs.maintenance import prune_changes

    await remember(mind, "Bo brings the rice.")
    [position] = owner.execute("select position from mirror_positions").fetchone()

    async def left(days):
        owner.execute("update changes set at = now() - %s * interval '1 day'", [days])
        await prune_changes(recollect.parts.database, RetentionRules(change_days=7, unread_change_days=30))
        return [number for (number,) in owner.execute("select number from changes order by number").fetchall()]

    assert await left(8) == [position + 1]
    assert await left(31) == []


async def test_it_is_built_beside_and_switched(recollect, mind, monkeypatch):
    feed = await feed_of(recollect, NAME)
    client, prefix = feed.mirror._client, feed.mirror._layout.prefix
    seen = []
    switch = type(feed.mirror).switch

    async def look(self, generation):
        seen.append(await method(mind))
        seen.append(sorted(await client.indices.get_alias(index=f"{prefix}-*")))
        await switch(self, generation)

    monkeypatch.setattr(type(feed.mirror), "switch", look)
    with pytest.raises(ConflictError, match="already exists"):
        await recollect.operator.mirrors.build(NAME, silently)
    done = []
    await recollect.operator.mirrors.rebuild(NAME, done.append)
    assert seen == ["mirror", [f"{prefix}-1", f"{prefix}-2"]] and done == [1]
    assert sorted(await client.indices.get_alias(name=prefix)) == [f"{prefix}-2"]
    assert sorted(await client.indices.get_alias(index=f"{prefix}-*")) == [f"{prefix}-2"]


async def test_a_build_that_was_broken_off_goes_on(recollect, monkeypatch):
    minds = [await recollect.mind("ada", user) for user in "abc"]
    for each in minds:
        await remember(each, "harbour")
    mend, mended = job.MirrorFeed.repair_scope, []

    async def count(self, scope_id):
        if len(mended) == 2:
            raise MirrorError("broken off")
        mended.append(scope_id)
        return await mend(self, scope_id)

    monkeypatch.setattr(job.MirrorFeed, "repair_scope", count)
    with pytest.raises(MirrorError):
        await recollect.operator.mirrors.build(NAME, silently)
    [status] = await recollect.operator.mirrors.status()
    assert (status.state, status.scopes) == ("building", 2)
    mended.clear()
    await recollect.operator.mirrors.build(NAME, silently)
    assert len(mended) == 1
    assert [await method(each) for each in minds] == ["mirror"] * 3


async def test_what_is_older_never_takes_the_place_of_what_is_newer(recollect, mind):
    feed, scope = await feed_of(recollect, NAME), await scope_of(mind)
    [rice] = await remember(mind, "Bo brings the rice.")
    await follow(recollect)
    [row] = [each async for page in feed.mirror.walk(feed.generation, scope) for each in page if each.id == rice]
    await mind.forget([rice])
    await follow(recollect)
    # The request of before is delivered once more, late.
    await feed.mirror.apply(feed.generation, [MirrorBatch(scope, 2, 1, [row])])
    assert rice not in await held_ids(recollect, NAME, mind)
    assert await method(mind) == "mirror"
    assert await differing(recollect) == 0


async def test_a_comparison_finds_every_difference_and_mends_it(recollect, mind):
    await remember(mind, "Bo brings the rice.", "Li brings tea.")
    await follow(recollect)
    feed, scope = await feed_of(recollect, NAME), await scope_of(mind)
    rows = [row async for page in feed.mirror.walk(feed.generation, scope) for row in page]
    changed = type(rows[0])(rows[0].table, rows[0].id, {**rows[0].values, "text": "something else"})
    extra = type(rows[0])(rows[0].table, scope_uuid(), rows[0].values)
    gone = RowKey(MirroredTable.MEMORIES, rows[1].id)
    position = (await feed.mirror.read_positions(feed.generation, [scope]))[scope]
    await feed.mirror.apply(feed.generation, [MirrorBatch(scope, position, position, [changed, extra], [gone])])
    found = await recollect.operator.mirrors.verify(NAME, silently)
    assert (found.missing, found.changed, found.extra) == (1, 1, 1)
    assert (await recollect.operator.mirrors.verify(NAME, silently, mend=True)).differing == 3
    assert await differing(recollect) == 0


def scope_uuid():
    from uuid import UUID

    return UUID(int=7)


async def test_a_worker_without_the_address_leaves_the_job_to_another(recollect, mind):
    await remember(mind, "Bo brings the rice.")
    with pytest.raises(MirrorError, match="another worker may have it"):
        await feed_tenant(recollect.parts.database, {}, (await scope_of(mind)) >> 40)


async def test_vectors_that_come_later_come_to_the_mirror(recollect, mind, embedder):
    embedder.fail()
    [rice] = await remember(mind, "Bo brings the rice.")
    await follow(recollect)
    embedder.recover()
    await recollect.work(until_empty=True)
    feed, scope = await feed_of(recollect, NAME), await scope_of(mind)
    [row] = [each async for page in feed.mirror.walk(feed.generation, scope) for each in page if each.id == rice]
    assert "vector" in row.values and await differing(recollect) == 0
    assert json.dumps(row.values["vector"].tolist())


async def test_many_ids_in_one_change_are_followed(recollect, mind):
    loaded = await mind.load(
        [NewMemory(f"note {number}", occurred_at=datetime.now(UTC) - timedelta(days=1)) for number in range(1200)]
    )
    await follow(recollect)
    assert set(loaded) <= await held_ids(recollect, NAME, mind)

"""Following a scope: every change once and in order, however it is heard of, until the key or the server ends."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.doors.cli.server import build_server
from recollect.doors.http.app import create_app
from recollect.doors.http.routes import service as routes
from recollect.errors import CursorExpiredError, ForbiddenError, InvalidInputError, UnauthenticatedError
from recollect.models.memories import NewMemory
from recollect.models.service import KeyBinding, Right
from recollect.store.service import changes as feed
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.programs.waiting import until
from support.service.serving import serving

WRITES = Sizes("writes by 8 writers", fast=120, ci=400, long=10_000)
LOG = """
select number, operation, ids from changes join scopes on scopes.id = changes.scope_id
where scopes.tenant_id = 1 and scopes.agent = %s and scopes."user" = %s order by number
"""
SCOPE = {"agent": "ada", "user": "li"}
HEX = "0123456789abcdef" * 2


def told(change):
    return change.number, change.operation, list(change.ids)


async def take(changes, count):
    """Take so many changes after the one that says where it begins."""
    began = await anext(changes)
    assert (began.operation, began.ids) == ("began", ())
    return began, [await anext(changes) for _ in range(count)]


# One follower.


@pytest.mark.promise("Who follows a scope hears of every change after the cursor, and of no other")
async def test_changes_come_as_they_are_committed(recollect, mind):
    await mind.remember("before")
    other = await recollect.mind("ada", "zoe")
    async with aclosing(mind.changes()) as changes:
        began, _ = await take(changes, 0)
        await other.remember("of another scope")
        [first] = await mind.remember("tea")
        stored = await anext(changes)
        await mind.forget([first.id])
        forgotten = await anext(changes)
    assert (stored.operation, stored.ids, stored.number) == ("stored", (first.id,), began.number + 1)
    assert (forgotten.operation, forgotten.ids, forgotten.number) == ("forgotten", (first.id,), began.number + 2)
    async with aclosing(mind.changes(began.cursor)) as changes:
        again, both = await take(changes, 2)
    assert (again.cursor, both) == (began.cursor, [stored, forgotten])
    async with aclosing(mind.changes(stored.cursor)) as changes:
        assert (await take(changes, 1))[1] == [forgotten]


async def test_a_scope_that_is_not_there_yet_can_be_followed(mind):
    async with aclosing(mind.changes()) as changes:
        began, _ = await take(changes, 0)
        await mind.remember("the first of all")
        assert (began.number, (await anext(changes)).number) == (0, 1)


async def test_more_than_a_page_is_read_on(mind, monkeypatch):
    monkeypatch.setattr("recollect.verbs.service.changes.PAGE", 3)
    async with aclosing(mind.changes()) as changes:
        began, _ = await take(changes, 0)
    for number in range(8):
        await mind.remember(f"tea {number}")
    async with aclosing(mind.changes(began.cursor)) as changes:
        _, seen = await take(changes, 8)
    assert [change.number for change in seen] == list(range(1, 9))


async def test_a_write_that_is_not_followed_tells_nobody(mind, owner, addresses):
    """Whoever notifies commits after others who do: only writes to scopes that are followed may."""
    await mind.remember("tea")
    [[channel]] = owner.execute("select change_channel()").fetchall()
    async with await psycopg.AsyncConnection.connect(addresses.owner, autocommit=True) as listening:
        await listening.execute(f"listen {channel}")
        await mind.remember("unheard")
        assert [note async for note in listening.notifies(timeout=0.3)] == []
        async with aclosing(mind.changes()) as changes:
            await take(changes, 0)
            waiting = asyncio.ensure_future(anext(changes))
            await until(lambda: owner.execute("select from scopes where followed_until > now()").fetchall())
            await mind.remember("heard")
            await waiting
        [[number]] = owner.execute("select id from scopes").fetchall()
        heard = [note.payload async for note in listening.notifies(timeout=1) if note.payload]
    assert heard == [str(number)]


@pytest.mark.parametrize("lost", ["never connected", "cut while listening", "looked for"])
async def test_changes_come_where_nobody_tells_of_them(mind, owner, monkeypatch, lost):
    async def refuse(_dsn):
        raise psycopg.OperationalError

    if lost == "never connected":
        monkeypatch.setattr(feed, "connect", refuse)
    if lost == "looked for":
        monkeypatch.setattr(feed, "HEAR_SECONDS", -1.0)
    await mind.remember("before")
    async with aclosing(mind.changes()) as changes:
        await take(changes, 0)
        if lost == "cut while listening":
            listens = "select pid from pg_stat_activity where query like 'listen%%' and datname = current_database()"
            await until(lambda: owner.execute(listens).fetchall())
            owner.execute(f"select pg_terminate_backend(pid) from ({listens}) listening")
        await mind.remember("tea")
        assert (await anext(changes)).operation == "stored"


async def test_a_scope_that_is_locked_for_long_is_followed_all_the_same(mind, owner):
    await mind.remember("before")
    async with aclosing(mind.changes()) as changes:
        with owner.transaction():
            owner.execute("select from scopes for update")
            await take(changes, 0)
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(1.5)
        await mind.remember("after")
        assert (await waiting).operation == "stored"


# Cursors.


@pytest.mark.parametrize("since", ["x", "1", HEX, f"{UUID(HEX)}.1", f"{HEX}.-1", f"{HEX}.01", f"{HEX}.{10**18}"])
async def test_a_cursor_that_we_did_not_write_is_refused(mind, since):
    with pytest.raises(InvalidInputError, match="cursor"):
        await anext(mind.changes(since))


@pytest.mark.promise("A cursor after which changes are no longer known is refused, and nothing is passed over")
@pytest.mark.parametrize("why", ["another incarnation", "removed", "all removed", "not given yet", "renewed meanwhile"])
async def test_a_cursor_that_has_expired(mind, owner, why):
    async with aclosing(mind.changes()) as changes:
        [began, _] = await take(changes, 0)
    for content in ("tea", "rice", "peas"):
        await mind.remember(content)
    incarnation = began.cursor.partition(".")[0]
    if why == "renewed meanwhile":
        async with aclosing(mind.changes(began.cursor)) as changes:
            await take(changes, 3)
            owner.execute("select renew_incarnation()")
            await mind.remember("after")
            with pytest.raises(CursorExpiredError, match="reload the scope"):
                await anext(changes)
        return
    since = began.cursor
    match why:
        case "another incarnation":
            since = f"{uuid4().hex}.1"
        case "removed":
            owner.execute("delete from changes where number = 1")
        case "all removed":
            owner.execute("delete from changes")
        case _:
            since = f"{incarnation}.4"
    with pytest.raises(CursorExpiredError, match="reload the scope"):
        await anext(mind.changes(since))


async def test_what_is_followed_after_a_renewed_incarnation_is_heard(mind, owner):
    owner.execute("select renew_incarnation()")
    async with aclosing(mind.changes()) as changes:
        await take(changes, 0)
        await mind.remember("tea")
        assert (await anext(changes)).operation == "stored"


# Rights and ends.


async def test_following_needs_the_right_to_read(recollect):
    _, secret = await new_key(recollect, rights=(Right.WRITE,))
    with pytest.raises(ForbiddenError):
        await anext((await recollect.authorize(secret, "http", "ada", "li")).changes())


@pytest.mark.promise("A stream ends when its key is revoked, or a key that it ends with")
@pytest.mark.parametrize("revoked", ["its own", "its maker"])
async def test_a_stream_ends_with_its_key(recollect, revoked):
    key, secret = await new_key(recollect)
    child, shown = await recollect.begin_session(await recollect.authenticate(secret, "http"))
    mind = await recollect.authorize(shown, "console", "ada", "li")
    async with aclosing(mind.changes()) as changes:
        await take(changes, 0)
        ended = key.id if revoked == "its maker" else child.id
        await recollect.revoke_key(await recollect.operator.act_for("default"), ended)
        with pytest.raises(UnauthenticatedError):
            await anext(changes)


async def test_followers_end_when_the_database_is_closed(addresses, embedder, recollect):
    async with connected(recollect.settings, addresses, embedder) as other:
        mind = await other.mind("ada", "li")
        changes = mind.changes()
        await anext(changes)
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
    with pytest.raises(Exception, match="Reconnect with your last cursor"):
        await waiting


async def test_nothing_runs_when_nobody_follows(mind, owner):
    async with aclosing(mind.changes()) as changes:
        await take(changes, 0)
    listening = "select from pg_stat_activity where query like 'listen%%' and datname = current_database()"
    await until(lambda: not owner.execute(listening).fetchall())
    await until(lambda: mind.access.parts.process.feeds.of(mind.access.parts.database)._work is None)


# Over HTTP.


@asynccontextmanager
async def streaming(url, secret, **parameters):
    """Open a stream; give its answer and its lines."""
    headers = {"Authorization": f"Bearer {secret}"} | parameters.pop("headers", {})
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as client,
        client.stream("GET", "/v1/changes", params=SCOPE | parameters) as answer,
    ):
        yield answer, answer.aiter_lines()


async def read_event(lines):
    """Read one event: the fields that it has; a comment is the field without a name."""
    fields = {}
    async for line in lines:
        if not line:
            return fields
        name, _, value = line.partition(": " if not line.startswith(":") else ":")
        fields[name] = value
    return None


async def test_server_sent_events(recollect, mind, monkeypatch):
    monkeypatch.setattr(routes, "HEARTBEAT_SECONDS", 0.2)
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url:
        async with streaming(url, secret) as (answer, lines):
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-store", "no")
            assert answer.headers["x-content-type-options"] == "nosniff"
            began = await read_event(lines)
            assert await read_event(lines) == {"": " heartbeat"}
            [receipt] = await mind.remember("tea")
            while "id" not in (stored := await read_event(lines)):
                pass
        change = json.loads(stored["data"])
        assert (began["event"], stored["event"], stored["id"]) == ("began", "change", change["cursor"])
        assert change == {"cursor": stored["id"], "number": 1, "at": change["at"], "operation": "stored"} | {
            "ids": [str(receipt.id)]
        }
        for resumed in ({"since": began["id"]}, {"headers": {"Last-Event-ID": began["id"]}}):
            async with streaming(url, secret, **resumed) as (_, lines):
                assert (await read_event(lines))["id"] == began["id"]
                assert await read_event(lines) == stored


async def test_what_is_refused_over_http(recollect):
    _, secret = await new_key(recollect)
    maker = await recollect.operator.act_for("default")
    _, bound = await recollect.create_key(maker, "bound", [Right.READ], 50, KeyBinding("ada", "zoe"))
    async with http_client(recollect, secret) as http, http_client(recollect, bound) as other:
        expired = await http.get("/v1/changes", params=SCOPE | {"since": f"{uuid4().hex}.1"})
        wrong = await http.get("/v1/changes", params=SCOPE | {"since": "x"})
        foreign = await other.get("/v1/changes", params=SCOPE)
    assert [expired.status_code, wrong.status_code, foreign.status_code] == [410, 422, 403]
    assert (expired.json()["code"], "reload the scope" in expired.json()["detail"]) == ("cursor_expired", True)


async def test_a_stream_over_http_ends_with_its_key_and_with_the_incarnation(recollect, mind, owner):
    key, secret = await new_key(recollect)
    _, other = await new_key(recollect)
    async with (
        serving(create_app(recollect=recollect)) as url,
        streaming(url, secret) as (_, revoked),
        streaming(url, other) as (_, restored),
    ):
        await read_event(revoked), await read_event(restored)
        await recollect.revoke_key(await recollect.operator.act_for("default"), key.id)
        ended = await next_problem(revoked)
        owner.execute("select renew_incarnation()")
        await mind.remember("tea")
        expired = await next_problem(restored)
        assert await read_event(revoked) is await read_event(restored) is None
    assert (ended["status"], ended["code"]) == (401, "unauthenticated")
    assert (expired["status"], expired["code"]) == (410, "cursor_expired")


async def next_problem(lines):
    while (event := await read_event(lines)) is not None:
        if event.get("event") == "problem":
            return json.loads(event["data"])
    raise AssertionError("it ended without a problem")


@pytest.mark.promise("A server that drains ends its streams, and then itself")
async def test_a_stream_ends_when_the_server_drains(recollect):
    _, secret = await new_key(recollect)
    server = build_server(recollect.settings.model_copy(update={"port": 0}), recollect)
    serve = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    async with streaming(url, secret) as (_, lines):
        await read_event(lines)
        server.should_exit = True
        while await read_event(lines) is not None:
            pass
        await serve


async def test_the_clients_follow(recollect, mind):
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        remote = await client.mind("ada", "li")
        async with aclosing(remote.changes()) as changes:
            began, _ = await take(changes, 0)
            [receipt] = await mind.remember("tea")
            stored = await anext(changes)
        assert stored.ids == (receipt.id,)

        def follow():
            with sync.connect(url, secret) as blocking:
                following = blocking.mind("ada", "li").changes(began.cursor)
                return next(following), next(following), following.close()

        again, same, _ = await asyncio.to_thread(follow)
        assert (again.cursor, same) == (began.cursor, stored)
        with pytest.raises(CursorExpiredError):
            await anext(remote.changes(f"{uuid4().hex}.1"))


async def test_a_client_goes_on_where_it_was_cut(recollect, mind, monkeypatch):
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        whole = client.stream

        async def cut(path, parameters):
            """End after one change, in the middle of the next."""
            async with aclosing(whole(path, parameters)) as pieces:
                async for piece in pieces:
                    yield piece
                    if b"event: change" in piece:
                        return

        monkeypatch.setattr(client, "stream", cut)
        remote = await client.mind("ada", "li")
        async with aclosing(remote.changes()) as changes:
            await take(changes, 0)
            for number in range(1, 5):
                await mind.remember(f"tea {number}")
                assert (await anext(changes)).number == number


# Many.


async def write(minds, count, chance):
    for number in range(count):
        mind = chance.choice(minds)
        if number % 7 == 3:
            page = await mind.list(limit=5)
            await mind.forget([memory.id for memory in page.memories[:1]])
        elif number % 5 == 2:
            await mind.remember([NewMemory("two"), NewMemory("at once")])
        else:
            await mind.remember(f"memory {number}")


async def begin(mind):
    async with aclosing(mind.changes()) as changes:
        return (await anext(changes)).cursor


async def follow_and_drop(mind, cursor, chance, ends_at):
    """Follow, leave after some changes or some time, and go on from the last cursor, until all is read."""
    seen, drops = [], 0
    while not (seen and seen[-1].number == ends_at()):
        left, drops = chance.randint(1, 40), drops + 1
        async with aclosing(mind.changes(cursor)) as changes:
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.uniform(0.05, 2)):
                    async for change in changes:
                        seen += [] if change.operation == "began" else [change]
                        cursor, left = change.cursor, left - 1
                        if left < 0 or (seen and seen[-1].number == ends_at()):
                            break
    return seen, drops


@pytest.mark.promise(
    "Followers that drop and resume amid writers get every change once, in order within its scope, none foreign", WRITES
)
async def test_followers_that_drop_and_resume_miss_nothing(recollect, owner, figure):
    names = [("ada", "li"), ("ada", "zoe"), ("bob", "li")]
    minds = [await recollect.mind(*name) for name in names] + [await recollect.mind("ada", "li", tenant="other")]
    ends, (_, secret) = dict[int, int](), await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        followed = [(0, minds[0]), (1, minds[1]), (0, await client.mind(*names[0])), (2, await client.mind(*names[2]))]
        cursors = [await begin(mind) for _, mind in followed]
        async with asyncio.TaskGroup() as group:
            followers = [
                group.create_task(follow_and_drop(mind, cursor, random.Random(seed), partial(ends.get, place)))
                for seed, ((place, mind), cursor) in enumerate(zip(followed, cursors, strict=True))
            ]
            async with asyncio.TaskGroup() as writers:
                for seed in range(8):
                    writers.create_task(write(minds, WRITES.now // 8, random.Random(100 + seed)))
            logs = {place: owner.execute(LOG, name).fetchall() for place, name in enumerate(names)}
            ends |= {place: log[-1][0] for place, log in logs.items()}
    for (place, _), follower in zip(followed, followers, strict=True):
        seen, drops = follower.result()
        assert [told(change) for change in seen] == logs[place]
        assert [change.number for change in seen] == list(range(1, ends[place] + 1))
        figure(f"{len(seen)} changes over {drops} streams")

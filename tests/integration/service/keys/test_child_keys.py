"""Keys that expire, and keys that end with the key that made them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from conftest import http_client, new_key
from recollect import sync
from recollect.client import Client
from recollect.doors.cli.main import app as command_line
from recollect.doors.http.app import create_app
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError, UnauthenticatedError
from recollect.jobs.maintenance import prune_keys
from recollect.models.service import KeyBinding, KeyRequest, Right
from support.service.serving import serving

READ_WRITE = frozenset({Right.READ, Right.WRITE})
ANY, SCOPE = KeyBinding(), KeyBinding("ada", "li")


def after(**span):
    return datetime.now(UTC) + timedelta(**span)


async def caller_of(recollect, secret):
    return await recollect.authenticate(secret, "http", bound=True)


async def new_maker(recollect, *, bounds=ANY, expires_at=None, rights=(*READ_WRITE, Right.DELEGATE)):
    """Make a key that may make others."""
    operator = await recollect.operator.act_for("default")
    return await recollect.create_key(operator, "shop", rights, 50, bounds, expires_at)


async def make_child(recollect, maker_secret, **span):
    caller = await caller_of(recollect, maker_secret)
    wanted = KeyRequest("phone", READ_WRITE, 20, SCOPE, after(**(span or {"hours": 1})))
    return await recollect.make_key(caller, wanted)


def expire(owner, key):
    owner.execute("update api_keys set expires_at = clock_timestamp() - interval '1 ms' where id = %s", [key.id])


# Expiry.


async def test_an_expired_key_is_unknown(recollect, owner):
    key, secret = await new_maker(recollect, expires_at=after(hours=1))
    assert (await recollect.authorize(secret, "http", "ada", "")).access.caller.key_id == key.id
    expire(owner, key)
    for refused in (recollect.authorize(secret, "http", "ada", ""), recollect.authenticate(secret, "http")):
        with pytest.raises(UnauthenticatedError):
            await refused


async def test_a_key_is_made_to_expire_in_the_future(recollect):
    with pytest.raises(InvalidInputError, match="future"):
        await new_maker(recollect, expires_at=after(seconds=-1))


async def test_a_key_that_expires_makes_none_that_outlives_it(recollect):
    _, secret = await new_maker(recollect, expires_at=after(hours=1), rights=tuple(Right))
    caller = await caller_of(recollect, secret)
    for expires_at in (None, after(hours=2)):
        with pytest.raises(InvalidInputError, match="expires_at"):
            await recollect.create_key(caller, "longer", [Right.READ], 10, KeyBinding(), expires_at)
    key, _ = await recollect.create_key(caller, "shorter", [Right.READ], 10, KeyBinding(), after(minutes=30))
    assert key.parent is None


# Children.


@pytest.mark.promise(
    "A key that has expired, or whose maker is revoked or expired, is refused from the next request on"
)
@pytest.mark.parametrize("ended", ["revoked", "expired", "gone"])
async def test_a_child_ends_with_its_maker(recollect, owner, ended):
    maker, secret = await new_maker(recollect)
    child, shown = await make_child(recollect, secret)
    session, cookie = await recollect.begin_session(await caller_of(recollect, shown))
    assert (child.parent, session.parent) == (maker.id, child.id)
    for let_in in (shown, cookie):
        assert (await recollect.authorize(let_in, "http", "", "")).access.scope.user == "li"
    match ended:
        case "revoked":
            await recollect.revoke_key(await recollect.operator.act_for("default"), maker.id)
        case "expired":
            expire(owner, maker)
        case "gone":
            owner.execute("delete from api_keys where id = %s", [maker.id])
    for refused in (shown, cookie):
        with pytest.raises(UnauthenticatedError):
            await recollect.authorize(refused, "http", "", "")


async def test_a_child_that_is_revoked_leaves_its_maker(recollect):
    _, secret = await new_maker(recollect)
    child, shown = await make_child(recollect, secret)
    await recollect.revoke_key(await caller_of(recollect, secret), child.id)
    with pytest.raises(UnauthenticatedError):
        await caller_of(recollect, shown)
    assert (await caller_of(recollect, secret)).rights > READ_WRITE


@pytest.mark.promise("A key that may make short-lived keys gives none more rights, trust, time or scopes than it has")
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"rights": frozenset({Right.READ, Right.ADMIN})}, "only `read` and `write`"),
        ({"rights": frozenset({Right.DELEGATE})}, "only `read` and `write`"),
        ({"rights": frozenset({Right.WRITE})}, "must not exceed those of your key"),
        ({"rights": frozenset()}, "rights must not be empty"),
        ({"trust": 51}, "trust"),
        ({"bounds": KeyBinding()}, "one agent and user"),
        ({"bounds": KeyBinding("ada")}, "one agent and user"),
        ({"expires_at": None}, "24 hours"),
        ({"expires_at": 25}, "24 hours"),
        ({"expires_at": 3}, "not be later than that of your key"),
        ({"expires_at": -1}, "future"),
    ],
    ids=["admin", "delegate", "lacking", "none", "trust", "unbound", "agent", "lasting", "late", "later", "past"],
)
async def test_a_maker_gives_no_more_than_it_has(recollect, changed, sentence):
    _, secret = await new_maker(recollect, expires_at=after(hours=2), rights=(Right.READ, Right.DELEGATE))
    asked = {
        "name": "phone",
        "rights": frozenset({Right.READ}),
        "trust": 50,
        "bounds": SCOPE,
        "expires_at": 1,
    } | changed
    asked["expires_at"] = asked["expires_at"] and after(hours=asked["expires_at"])
    with pytest.raises(InvalidInputError, match=sentence):
        await recollect.make_key(await caller_of(recollect, secret), KeyRequest(**asked))


async def test_a_bound_maker_binds_to_its_own_names(recollect):
    _, secret = await new_maker(recollect, bounds=KeyBinding("ada"))
    caller = await caller_of(recollect, secret)
    child, _ = await recollect.make_key(caller, KeyRequest("phone", READ_WRITE, 20, SCOPE, after(hours=1)))
    assert (child.agent, child.user) == ("ada", "li")
    with pytest.raises(ForbiddenError, match="same binding"):
        await recollect.make_key(caller, KeyRequest("phone", READ_WRITE, 20, KeyBinding("bob", "li"), after(hours=1)))


async def test_a_child_makes_no_keys(recollect):
    _, secret = await new_maker(recollect)
    _, shown = await make_child(recollect, secret)
    with pytest.raises(ForbiddenError):
        await make_child(recollect, shown)


async def test_who_may_make_no_keys_is_told_so(recollect):
    _, secret = await new_key(recollect, rights=(Right.READ, Right.WRITE))
    with pytest.raises(ForbiddenError, match="admin"):
        await make_child(recollect, secret)


async def test_a_maker_revokes_its_own_children_alone(recollect):
    _, secret = await new_maker(recollect)
    _, other = await new_maker(recollect)
    child, _ = await make_child(recollect, other)
    independent, _ = await new_key(recollect)
    for foreign in (child, independent):
        with pytest.raises(NotFoundError):
            await recollect.revoke_key(await caller_of(recollect, secret), foreign.id)


# Sessions.


async def test_a_session_has_what_its_key_has_and_acts_for_it(recollect):
    maker, secret = await new_maker(recollect, rights=tuple(Right))
    session, cookie = await recollect.begin_session(await caller_of(recollect, secret))
    caller = await recollect.authenticate(cookie, "console")
    assert (caller.rights, caller.trust, caller.origin) == (frozenset(Right), 50, "console:shop")
    assert timedelta(hours=11) < session.expires_at - datetime.now(UTC) <= timedelta(hours=12)
    made, _ = await recollect.make_key(caller, KeyRequest("lasting", READ_WRITE, 50))
    assert (made.parent, made.expires_at) == (None, None)
    await recollect.end_session(caller)
    with pytest.raises(UnauthenticatedError):
        await recollect.authenticate(cookie, "console")
    assert (await recollect.current_key(await caller_of(recollect, secret))).id == maker.id


async def test_a_session_cannot_begin_another(recollect, owner):
    _, secret = await new_maker(recollect)
    _, shown = await make_child(recollect, secret)
    for each in (secret, shown):
        _, cookie = await recollect.begin_session(await caller_of(recollect, each))
        with pytest.raises(ForbiddenError, match="sign in with an API key"):
            await recollect.begin_session(await caller_of(recollect, cookie))
    # So a key is checked by at most three rows, whatever its holder does.
    walked = """
        with recursive above (id, steps) as (
            select id, 1 from api_keys where parent is null
            union all select child.id, steps + 1 from api_keys child join above on child.parent = above.id
        ) select max(steps) as steps from above
    """
    assert owner.execute(walked).fetchone() == (3,)


async def test_what_a_session_delegates_outlives_it_but_not_its_key(recollect):
    maker, secret = await new_maker(recollect)
    _, cookie = await recollect.begin_session(await caller_of(recollect, secret))
    child, shown = await make_child(recollect, cookie, hours=20)
    assert child.parent == maker.id
    await recollect.end_session(await caller_of(recollect, cookie))
    assert (await caller_of(recollect, shown)).bounds == SCOPE


async def test_a_session_ends_no_later_than_its_key(recollect):
    maker, secret = await new_maker(recollect, expires_at=after(hours=1))
    session, _ = await recollect.begin_session(await caller_of(recollect, secret))
    assert session.expires_at == maker.expires_at


async def test_who_ends_a_session_with_a_lasting_key_keeps_it(recollect):
    _, secret = await new_key(recollect)
    await recollect.end_session(await caller_of(recollect, secret))
    await caller_of(recollect, secret)


# What is written down.


async def test_the_day_of_use_is_noted_once_a_day(recollect, owner):
    key, secret = await new_key(recollect)
    version = "select last_used_at, xmin::text from api_keys where id = %s"
    for _ in range(2):
        await recollect.authorize(secret, "http", "ada", "")
    used_at, first = owner.execute(version, [key.id]).fetchone()
    assert used_at == datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    await recollect.authorize(secret, "http", "ada", "")
    assert owner.execute(version, [key.id]).fetchone()[1] == first
    owner.execute("update api_keys set last_used_at = last_used_at - interval '1 day' where id = %s", [key.id])
    await asyncio.gather(*(recollect.authorize(secret, "http", "ada", "") for _ in range(8)))
    assert owner.execute(version, [key.id]).fetchone()[0] == used_at


async def test_a_day_that_somebody_else_notes_is_not_waited_for(recollect, owner):
    key, secret = await new_key(recollect)
    with owner.transaction():
        owner.execute("select from api_keys where id = %s for update", [key.id])
        async with asyncio.timeout(5):
            await recollect.authorize(secret, "http", "ada", "")


async def test_children_that_are_over_are_left_out_and_deleted_in_the_end(recollect, owner):
    _, secret = await new_maker(recollect)
    operator = await recollect.operator.act_for("default")
    over, _ = await make_child(recollect, secret)
    valid, _ = await make_child(recollect, secret)
    expire(owner, over)
    assert [key.id for key in await recollect.list_keys(operator) if key.parent] == [valid.id]
    assert await prune_keys(recollect.parts.database) == 0
    owner.execute("update api_keys set expires_at = now() - interval '31 days' where id = %s", [over.id])
    assert await prune_keys(recollect.parts.database) == 1
    assert owner.execute("select count(*) from api_keys where parent is not null").fetchone() == (1,)


# The doors.


async def test_a_key_is_told_about_itself_over_http(recollect, http):
    until = after(hours=1)
    body = {"name": "n", "rights": ["read"], "agent": "ada", "user": "li", "expires_at": until.isoformat()}
    made = (await http.post("/v1/keys", json=body)).json()
    assert datetime.fromisoformat(made["key"]["expires_at"]) == until
    async with http_client(recollect, made["secret"]) as bound:
        own = (await bound.get("/v1/key")).json()
    expected = {"id": made["key"]["id"], "name": "n", "rights": ["read"], "trust": 50, "tenant": 1, "agent": "ada"}
    same = {"created_at": made["key"]["created_at"], "expires_at": made["key"]["expires_at"]}
    assert own == expected | {"user": "li"} | same
    listed = (await http.get("/v1/keys")).json()["keys"]
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
    assert [key["last_used_at"] for key in listed] == [today, today]
    async with http_client(recollect, "") as nobody:
        assert (await nobody.get("/v1/key")).status_code == 401


async def test_a_product_makes_a_key_for_its_user_over_http(recollect):
    _, secret = await new_maker(recollect)
    body = {"name": "phone", "rights": ["read"], "trust": 20, "agent": "ada", "user": "li"}
    async with http_client(recollect, secret) as shop:
        refused = await shop.post("/v1/keys", json=body)
        made = await shop.post("/v1/keys", json=body | {"expires_at": after(hours=1).isoformat()})
        listed = await shop.get("/v1/keys")
        async with http_client(recollect, made.json()["secret"]) as phone:
            before = await phone.get("/v1/memories", params={"agent": "ada"})
            await shop.delete(f"/v1/keys/{made.json()['key']['id']}")
            then = await phone.get("/v1/memories", params={"agent": "ada"})
    assert (refused.status_code, made.status_code, listed.status_code) == (422, 201, 403)
    assert (before.status_code, then.status_code) == (200, 401)


async def test_keys_through_the_clients(recollect):
    _, secret = await new_maker(recollect, rights=tuple(Right))
    async with serving(create_app(recollect=recollect)) as url:
        await ask_both(url, secret)


async def ask_both(url, secret):
    async with Client(url, secret) as client:
        own = await client.key()
        made = await client.create_key("phone", ["read"], agent="ada", user="li", expires_at=after(hours=1))
        assert made.key.id in [key.id for key in await client.keys()]
        revoked = await client.revoke_key(made.key.id)
    assert (own.name, own.rights, revoked.revoked_at is not None) == ("shop", frozenset(Right), True)

    def ask():
        with sync.connect(url, secret) as blocking:
            return blocking.key()

    assert await asyncio.to_thread(ask) == own


def test_a_key_that_expires_by_the_command_line(addresses, monkeypatch):
    monkeypatch.setenv("RECOLLECT_DATABASE_URL", addresses.service)
    monkeypatch.setenv("RECOLLECT_OWNER_DATABASE_URL", addresses.owner)
    monkeypatch.setenv("COLUMNS", "250")
    runner = CliRunner()
    made = runner.invoke(command_line, ["admin", "keys", "create", "guest", "--right", "delegate", "--hours", "2"])
    assert made.output.startswith("rec_")
    listed = runner.invoke(command_line, ["admin", "keys", "list"]).output
    assert f"{after(hours=2):%F %H:%M}"[:13] in listed
    assert "delegate" in listed

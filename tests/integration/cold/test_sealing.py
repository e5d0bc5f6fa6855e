"""Objects are sealed with a key of their tenant, which the operator's master key wraps: who lacks it reads nothing."""

from __future__ import annotations

import base64
import io
import os

import pytest

from recollect.errors import ColdStorageError
from recollect.models.memories import NewMemory
from recollect.store.cold.sealing import MAGIC, PIECE, SealedWriter, SealingKey, open_sealed
from support.memories.cold_scopes import chilly, objects_in, send_out, tier_of

SECRET = "Li hides the key under the green stone."
KEY = SealingKey(3, bytes(range(32)))


def master():
    return base64.b64encode(os.urandom(32)).decode()


def seal(data, key=KEY, scope_id=7):
    file = io.BytesIO()
    writer = SealedWriter(file, scope_id, key)
    writer.write(data)
    writer.finish_object()
    return file.getvalue()


def unseal(sealed, key=KEY, scope_id=7):
    file = io.BytesIO()
    open_sealed(io.BytesIO(sealed), scope_id, lambda version: key if version else SealingKey(), file)
    return file.getvalue()


LARGE = os.urandom(2 * PIECE + 5)


@pytest.mark.parametrize("key", [KEY, SealingKey()], ids=["sealed", "plain"])
@pytest.mark.parametrize("data", [b"", b"x", b"y" * 5_000_000, LARGE], ids=["empty", "one", "packed", "pieces"])
def test_what_is_sealed_is_read_back(key, data):
    assert unseal(seal(data, key), key) == data


def test_nothing_can_be_changed_moved_or_left_out():
    sealed = seal(LARGE)
    head = sealed.index(b"\n", len(MAGIC)) + 1
    size = 4 + PIECE + 16
    first, second, rest = sealed[head : head + size], sealed[head + size : head + 2 * size], sealed[head + 2 * size :]
    heading = sealed[:head]
    for changed in (
        heading + second + first + rest,
        heading + first + second,
        heading + first + rest,
        heading + first + second + rest[:-1],
        heading + first + second + rest + rest,
        heading,
        sealed[: head + 100] + bytes([sealed[head + 100] ^ 1]) + sealed[head + 101 :],
        sealed.replace(b'"key": 3', b'"key": 4'),
        b"something else",
    ):
        with pytest.raises(ColdStorageError, match="is damaged"):
            unseal(changed)
    with pytest.raises(ColdStorageError, match="scope 7"):
        unseal(sealed, scope_id=8)
    with pytest.raises(ColdStorageError, match="is damaged"):
        unseal(sealed, SealingKey(3, bytes(32)))


async def filled(recollect, tenant="default"):
    mind = await recollect.mind("ada", "li", tenant=tenant)
    await mind.remember(NewMemory(SECRET))
    return mind


async def test_objects_are_sealed_where_there_is_a_master_key(addresses, embedder, tmp_path, owner):
    key = master()
    async with chilly(addresses, embedder, f"file://{tmp_path}", cold__key=key) as recollect:
        minds = [await filled(recollect, tenant) for tenant in ("default", "other")]
        for tenant in ("default", "other"):
            assert (await send_out(recollect, tenant=tenant)).moved == 1
        for path in objects_in(tmp_path):
            assert path.read_bytes().startswith(MAGIC) and b'"key": 1' in path.read_bytes()
        wrapped = [bytes(row[0]) for row in owner.execute("select wrapped from tenant_keys").fetchall()]
        assert len({*wrapped}) == 2 and base64.b64decode(key) not in b"".join(wrapped)
        for mind in minds:
            assert [each.content for each in (await mind.list()).memories] == [SECRET]


@pytest.mark.parametrize("wrong", ["", "other"])
async def test_the_wrong_master_key_is_told_and_loses_nothing(addresses, embedder, tmp_path, owner, wrong):
    url, key = f"file://{tmp_path}", master()
    async with chilly(addresses, embedder, url, cold__key=key) as recollect:
        await filled(recollect)
        await send_out(recollect)
    async with chilly(addresses, embedder, url, cold__key=master() if wrong else "") as recollect:
        mind = await recollect.mind("ada", "li")
        with pytest.raises(ColdStorageError, match="RECOLLECT_COLD__KEY does not match"):
            await mind.list()
    assert tier_of(owner) == "cold" and len(objects_in(tmp_path)) == 1
    async with chilly(addresses, embedder, url, cold__key=key) as recollect:
        assert len((await (await recollect.mind("ada", "li")).list()).memories) == 1


async def test_a_new_master_key_wraps_the_keys_again(addresses, embedder, tmp_path, owner):
    url, old, new = f"file://{tmp_path}", master(), master()
    async with chilly(addresses, embedder, url, cold__key=old) as recollect:
        await filled(recollect)
        await send_out(recollect)
    async with chilly(addresses, embedder, url, cold__key=new, cold__previous_key=old) as recollect:
        assert await recollect.operator.cold.rewrap() == 1
        assert await recollect.operator.cold.rewrap() == 0
    async with chilly(addresses, embedder, url, cold__key=new) as recollect:
        assert len((await (await recollect.mind("ada", "li")).list()).memories) == 1


async def test_a_tenants_key_goes_with_the_tenant(addresses, embedder, tmp_path, owner):
    async with chilly(addresses, embedder, f"file://{tmp_path}", cold__key=master()) as recollect:
        await filled(recollect)
        await send_out(recollect)
    owner.execute("delete from agents; delete from scope_counters; delete from scopes; delete from tenants")
    assert owner.execute("select count(*) from tenant_keys").fetchone()[0] == 0

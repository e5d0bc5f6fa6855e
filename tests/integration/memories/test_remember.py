"""Remember on a real PostgreSQL: one transaction, no half-written memory, nothing stored twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import pytest

from conftest import http_client, new_key
from recollect.core.service.numbers import bucket_of, number_scope
from recollect.errors import ConflictError, ForbiddenError, InvalidInputError
from recollect.models.memories import Kind, MemoryProgress, NewMemory
from recollect.models.recall import Cue
from recollect.models.service import Right
from support.service.known_numbers import VECTORS, first_number

ZHANG_WEI = "张伟是一位资深软件工程师，在腾讯工作了五年"


def count(owner, table):
    return owner.execute(f"select count(*) from {table}").fetchone()[0]


async def test_a_memory_comes_back_as_it_was_given(mind):
    moment = datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)
    new = NewMemory(
        "Ann bought\ngreen apples 🍏",
        Kind.MESSAGE,
        speaker="Ann",
        importance=7.5,
        keywords=("Fruit", "the Ville:market:APPLES", "ｆｒｕｉｔ"),
        occurred_at=moment,
        metadata={"source": {"page": 3, "tags": ["a", None, True]}},
    )
    [receipt] = await mind.remember(new)
    memory = await mind.get(receipt.id)
    assert (memory.content, memory.kind, memory.speaker) == (new.content, Kind.MESSAGE, "Ann")
    assert (memory.importance, memory.occurred_at, memory.metadata) == (7.5, moment, new.metadata)
    assert memory.keywords == ("fruit", "apples")
    assert (memory.origin, memory.trust) == ("library", 100)
    assert abs(memory.created_at - datetime.now(UTC)) < timedelta(seconds=30)


async def test_chinese_is_found_by_a_name_inside_a_sentence(mind):
    await mind.remember([NewMemory(ZHANG_WEI), NewMemory("李雷喜欢打篮球"), NewMemory("Ann bought apples")])
    hits = (await mind.recall("张伟")).hits
    assert hits[0].memory.content == ZHANG_WEI
    assert hits[0].channels["text"].score > 0


async def test_ids_follow_the_order_of_writing(mind):
    receipts = []
    for start in range(0, 30, 10):
        receipts += await mind.remember([NewMemory(f"memory {number}") for number in range(start, start + 10)])
    ids = [receipt.id for receipt in receipts]
    assert ids == sorted(ids)
    first, second = await mind.list(limit=20), await mind.list(cursor=ids[19], limit=20)
    assert [memory.id for memory in first.memories + second.memories] == ids
    assert (first.next_cursor, second.next_cursor) == (ids[19], None)


@pytest.mark.promise("Writers who make a scope at the same moment all succeed")
async def test_concurrent_writers_of_one_new_scope_all_succeed(recollect, owner):
    minds = [await recollect.mind("crowd", tenant="crowd") for _ in range(8)]
    answers = await asyncio.gather(*(mind.remember(f"memory {number}") for number, mind in enumerate(minds * 5)))
    ids = {receipt.id for receipts in answers for receipt in receipts}
    assert len(ids) == 40
    assert owner.execute("select memory_count from scopes").fetchall() == [(40,)]


async def test_numbers_of_scopes_are_counted_in_each_bucket(recollect, owner):
    mind = await recollect.mind("ada", tenant="crowd")
    tenant_id, bucket = mind.access.scope.tenant_id, bucket_of("ada", "")
    others = [name for name in map(str, range(40_000)) if bucket_of(name, "") == bucket][:4]
    minds = [mind, *[await recollect.mind(name, tenant="crowd") for name in others]]
    await asyncio.gather(*(each.remember("apples") for each in minds))
    numbers = [row[0] for row in owner.execute("select id from scopes order by id")]
    assert len(numbers) == len({*numbers}) == 5
    assert {number >> 28 for number in numbers} == {tenant_id << 12 | bucket}
    [(last,)] = owner.execute("select last_number from scope_counters").fetchall()
    assert numbers[-1] == number_scope(tenant_id, bucket, last)
    elsewhere = await recollect.mind("ada", tenant="another")
    await elsewhere.remember("pears")
    assert owner.execute("select max(id) from scopes").fetchone() == (first_number(elsewhere),)


@pytest.mark.promise("An idempotency key stores once, however many send it at once")
async def test_fifty_concurrent_posts_with_one_key_make_one_memory(recollect, owner):
    _, secret = await new_key(recollect)
    body = {"agent": "ada", "memories": [{"content": "only once"}, {"content": "and this"}]}
    async with http_client(recollect, secret) as http:
        posts = (http.post("/v1/memories", json=body, headers={"Idempotency-Key": "k-1"}) for _ in range(50))
        answers = await asyncio.gather(*posts)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert count(owner, "memories") == 2
    assert owner.execute("select memory_count from scopes").fetchone() == (2,)


@pytest.mark.promise("An idempotency key with another body is refused")
async def test_a_key_used_with_another_body_is_a_conflict(mind):
    await mind.remember("one", idempotency_key="k")
    with pytest.raises(ConflictError):
        await mind.remember("two", idempotency_key="k")
    assert [memory.content for memory in (await mind.list()).memories] == ["one"]


@pytest.mark.promise("A repeated key writes too, so that its commit waits as the first one did")
async def test_a_replay_writes_so_that_its_commit_waits_too(mind, owner):
    await mind.remember("one", idempotency_key="k")
    assert owner.execute("select replayed_at from idempotency_keys").fetchone() == (None,)
    await mind.remember("one", idempotency_key="k")
    assert owner.execute("select replayed_at is not null from idempotency_keys").fetchone() == (True,)


@pytest.mark.promise("What belongs to one write is there as a whole or not at all")
async def test_a_failing_write_leaves_nothing_behind(mind, owner):
    with pytest.raises(InvalidInputError, match="evidence"):
        await mind.remember([NewMemory("good"), NewMemory("bad", evidence=(uuid4(),))])
    assert [count(owner, table) for table in ("memories", "memory_terms", VECTORS, "scopes")] == [0, 0, 0, 0]


@pytest.mark.promise("What is derived is trusted as the least of its sources, whoever words it")
async def test_trust_of_what_is_derived_is_the_least_of_its_sources(recollect):
    ids = []
    for trust in (80, 20):
        _, secret = await new_key(recollect, trust=trust)
        mind = await recollect.authorize(secret, "http", "ada", "")
        ids += [receipt.id for receipt in await mind.remember(f"said with trust {trust}")]
    library = await recollect.mind("ada")
    [derived] = await library.remember(NewMemory("a thought", Kind.THOUGHT, evidence=tuple(ids)))
    [deeper] = await library.remember(NewMemory("a deeper one", Kind.THOUGHT, evidence=(derived.id,)))
    assert [(await library.get(each)).trust for each in (*ids, derived.id, deeper.id)] == [80, 20, 20, 20]
    assert (await library.get(derived.id)).evidence == tuple(sorted(ids))
    assert {hit.memory.trust for hit in (await library.recall(Cue("trust thought", min_trust=50))).hits} == {80}


@pytest.mark.promise("What is forgotten takes along what was derived from it")
async def test_forgetting_takes_what_was_derived_along(mind, owner):
    [source, other] = await mind.remember([NewMemory("the secret is 1234"), NewMemory("something else")])
    [derived] = await mind.remember(NewMemory("a thought on 1234", evidence=(source.id,)))
    [deeper] = await mind.remember(NewMemory("more on 1234", evidence=(derived.id, other.id)))
    assert set(await mind.forget([source.id])) == {source.id, derived.id, deeper.id}
    assert [memory.id for memory in (await mind.list()).memories] == [other.id]
    for table in ("memory_terms", VECTORS, "pending_embeddings"):
        assert owner.execute(f"select count(*) from {table} where id <> %s", [other.id]).fetchone() == (0,)
    assert count(owner, "evidence") == 0
    assert owner.execute("select memory_count from scopes").fetchone() == (1,)
    assert await mind.forget([source.id]) == []


async def test_an_embedding_of_the_callers_own_is_searched(mind):
    axis = np.zeros(64)
    axis[3] = 5.0
    [receipt] = await mind.remember(NewMemory("xyz", embedding=axis.tolist()))
    await mind.remember([NewMemory(f"noise {number}") for number in range(20)])
    assert receipt.progress is MemoryProgress.EMBEDDED
    hit = (await mind.recall(Cue(embedding=axis.tolist(), limit=1))).hits[0]
    assert (hit.memory.id, round(hit.channels["vector"].score, 3)) == (receipt.id, 1.0)


@pytest.mark.promise("A vector that no search could use is refused")
@pytest.mark.parametrize(
    "vector", [[1.0] * 63, [0.0] * 64, [float("nan")] * 64, [float("inf")] * 64, [1e300] * 64, [1e-9] * 64]
)
async def test_vectors_that_no_search_could_use_are_refused(mind, vector):
    with pytest.raises(InvalidInputError, match="embedding"):
        await mind.remember(NewMemory("x", embedding=vector))
    with pytest.raises(InvalidInputError, match="embedding"):
        await mind.recall(Cue("x", embedding=vector))


async def test_the_longest_chinese_content_is_stored_and_found(mind):
    text = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(32_000))
    await mind.remember(text)
    assert (await mind.recall(text[100:110])).hits[0].memory.content == text


async def test_rights_are_enforced(recollect):
    _, reader = await new_key(recollect, rights=(Right.READ,))
    _, writer = await new_key(recollect, rights=(Right.WRITE,))
    reading, writing = [await recollect.authorize(secret, "http", "ada", "") for secret in (reader, writer)]
    [receipt] = await writing.remember("hello")
    for refused in (reading.remember("x"), reading.forget([receipt.id]), writing.recall("x"), writing.get(receipt.id)):
        with pytest.raises(ForbiddenError):
            await refused


async def test_a_load_takes_contents_that_fit_no_page(mind):
    long = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(20_000))
    [identity, _] = await mind.load([NewMemory(long), NewMemory("short")])
    memory = await mind.get(identity)
    assert memory.content == long


async def test_bulk_load_equals_remember(recollect, owner):
    new = [NewMemory(f"的 number {n} 张伟", keywords=("One", "two"), speaker="Ann", importance=3) for n in range(300)]
    one, many = await recollect.mind("one"), await recollect.mind("many")
    await one.remember(new)
    source = (await many.load(new))[0]
    await many.load([NewMemory("derived", evidence=(source,))])
    await recollect.work(until_empty=True)
    rows = "select kind, content, speaker, importance, keywords, trust, origin, cardinality(terms), t.weights is null"
    query = f"""{rows} from memories m join memory_terms t using (scope_id, id) join {VECTORS} v using (scope_id, id)
        join scopes s on s.id = m.scope_id where agent = %s and content <> 'derived' order by m.id"""
    query = query.replace("kind,", "m.kind,").replace("importance", "m.importance").replace(" trust", " m.trust")
    loaded = owner.execute(query, ["many"]).fetchall()
    assert loaded == owner.execute(query, ["one"]).fetchall()
    assert len(loaded) == 300
    assert (await many.recall("number 7")).hits[0].memory.content == "的 number 7 张伟"

"""A scope's texts are folded by one version of the rules: who lacks it does not write, and rewriting brings a newer."""

from __future__ import annotations

import asyncio
import io

import pytest

import command_line
from conftest import PATIENT, http_client, new_key
from recollect.core.text import variants
from recollect.core.text.variants import NEWEST, PLAIN
from recollect.errors import SchemaError
from recollect.models.conversations import NewMessage
from recollect.models.imports import ExportOrder, ImportOrder
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Revision, Role
from recollect.models.recall import Cue, Filter
from recollect.settings import Settings
from recollect.wiring import connected

TRADITIONAL, SIMPLIFIED = "明天去圖書館", "图书馆在哪里"
SCOPE = {"agent": "ada", "user": "li"}


@pytest.fixture
def older(owner):
    """A database that an older release made."""
    owner.execute("update text_rules set version = %s", [PLAIN])


async def find(mind, text=SIMPLIFIED, channel="text", **more):
    return {hit.memory.content for hit in (await mind.recall(Cue(text, channels=(channel,), **more))).hits}


def versions(owner):
    return [row[0] for row in owner.execute("select text_version from scopes order by id").fetchall()]


async def test_a_new_database_begins_with_the_newest_version(recollect, owner, mind):
    await mind.remember("hello")
    assert owner.execute("select version from text_rules").fetchone() == (NEWEST,)
    assert versions(owner) == [NEWEST]


async def test_an_older_database_is_written_and_read_as_before(older, owner, recollect, mind):
    await mind.remember([TRADITIONAL, "今天下雨"])
    await mind.conversation("c").append(NewMessage(Role.USER, "在圖書館見"))
    [first, *_] = (await mind.browse()).memories
    await mind.revise(first.id, Revision(content="後天去圖書館"))
    await mind.load([NewMemory("圖書館很大")])
    assert versions(owner) == [PLAIN]
    assert await find(mind) == set()
    assert await find(mind, "圖書館") == {"後天去圖書館", "在圖書館見", "圖書館很大"}


async def test_an_older_database_knows_names_as_before(addresses, older, owner):
    async with connected(Settings(embedder="none", **PATIENT), addresses, None) as recollect:
        mind = await recollect.mind("ada", "li")
        await mind.remember(NewMemory("quiet", speaker="馬麗"))
        await mind.knowledge.add(NewFact("馬麗", "住在", "臺北"))
        assert [memory.content for memory in (await mind.browse(only=Filter(speakers=("馬麗",)))).memories] == ["quiet"]
        assert len((await mind.knowledge.entities("馬麗")).entities) == 1
        assert (await mind.knowledge.entities("马丽")).entities == ()
        assert len((await mind.knowledge.facts(predicate="住在")).facts) == 1


async def test_scopes_of_two_versions_are_read_beside_each_other(older, owner, recollect, mind):
    await mind.remember(TRADITIONAL)
    owner.execute("update text_rules set version = %s", [NEWEST])
    await (await recollect.mind("ada", "bo")).remember(NewMemory("圖書館很大"))
    assert sorted(versions(owner)) == [PLAIN, NEWEST]
    assert await find(mind, "圖書館", also=("ada/bo",)) == {TRADITIONAL, "圖書館很大"}
    assert await find(mind, "图书馆", also=("ada/bo",)) == {"圖書館很大"}


async def test_a_job_stores_what_it_learns_as_its_scope_does(older, owner, recollect, mind):
    await mind.conversation("c").append(NewMessage(Role.USER, "明天去圖書館借書。圖書館很大。"))
    await mind.conversation("c").close_segment()
    await recollect.work(until_empty=True)
    [segment] = await mind.conversation("c").segments()
    summary = await mind.get(segment.summary_id)
    assert "圖書館" in summary.content
    assert summary.content in await find(mind, "圖書館", kinds=(Kind.SUMMARY,))
    assert await find(mind, "图书馆", kinds=(Kind.SUMMARY,)) == set()
    assert versions(owner) == [PLAIN]


async def test_an_export_takes_its_version_along(older, owner, recollect, mind):
    await mind.remember(TRADITIONAL)
    file = io.BytesIO()
    await recollect.operator.exports.write(await recollect.operator.act_for("default"), ExportOrder("ada", "li"), file)
    owner.execute("update text_rules set version = %s", [NEWEST])
    other = await recollect.operator.act_for("other")
    await recollect.operator.exports.read(other, ImportOrder("back"), file)
    assert versions(owner) == [PLAIN, PLAIN]
    assert await find(await recollect.mind("ada", "li", tenant="other"), "圖書館") == {TRADITIONAL}


async def test_a_server_writes_to_an_older_database_as_before(older, owner, recollect):
    secret = (await new_key(recollect))[1]
    async with http_client(recollect, secret) as http:
        for _ in range(2):
            assert (await http.post("/v1/memories", json=SCOPE | {"memories": [{"content": TRADITIONAL}]})).is_success
        for text, count in ((SIMPLIFIED, 0), ("圖書館", 2)):
            answer = await http.post("/v1/recall", json=SCOPE | {"text": text, "channels": ["text"]})
            assert len(answer.json()["hits"]) == count
    assert versions(owner) == [PLAIN]


async def test_rewriting_makes_both_scripts_one(older, owner, recollect, mind):
    await mind.remember(
        [
            NewMemory(TRADITIONAL, speaker="馬麗", keywords=("圖書館", "書")),
            NewMemory("图书馆很大", speaker="马丽", keywords=("图书馆", "圖書館")),
            NewMemory("plain words", keywords=("library",)),
            NewMemory("filed", topic="城市->圖書館->書"),
            NewMemory("filed too", topic="城市->图书馆"),
        ]
    )
    await mind.knowledge.add(NewFact("馬麗", "住在", "臺北", text="one"))
    await mind.knowledge.add(NewFact("马丽", "喜欢", "茶", text="two"))
    untouched = owner.execute("select terms from memory_terms order by id offset 2 limit 1").fetchone()
    rewritten = []
    assert await recollect.operator.rewrite_terms(rewritten.append) == 1
    assert rewritten == [3]
    assert versions(owner) == [NEWEST]
    assert owner.execute("select terms from memory_terms order by id offset 2 limit 1").fetchone() == untouched
    for text in ("图书馆", "圖書館"):
        assert await find(mind, text) == {TRADITIONAL, "图书馆很大"}
        assert await find(mind, text, "keyword") == {TRADITIONAL, "图书馆很大"}
        assert await find(mind, "", "topic", topics=(f"城市->{text}",), below=True) == {"filed", "filed too"}
    for name in ("馬麗", "马丽"):
        page = await mind.browse(only=Filter(speakers=(name,)))
        assert [memory.content for memory in page.memories] == [TRADITIONAL, "图书馆很大"]
        assert len((await mind.knowledge.entities(name)).entities) == 2
    assert [topic.path for topic in (await mind.topics.tree()).topics] == ["城市", "城市->图书馆", "城市->图书馆->書"]
    strengths = dict(owner.execute("select keyword, strength from keyword_strengths").fetchall())
    assert strengths == {"图书馆": 2, "书": 1, "library": 1}
    assert await recollect.operator.rewrite_terms() == 0


async def test_a_rewritten_scope_is_as_one_that_was_folded_so_at_once(older, owner, recollect):
    told = [NewMemory("我與圖書館", speaker="馬麗", keywords=("書",)), NewMemory("後天再去"), NewMemory("plain")]
    await (await recollect.mind("ada")).remember(told)
    await recollect.operator.rewrite_terms()
    await (await recollect.mind("bo")).remember(told)
    same = """select array_agg(x order by x) from (
        select row(speaker, length, tells)::text as x from memory_features where scope_id = %(id)s
        union all select row(keyword, strength)::text from keyword_strengths where scope_id = %(id)s
        union all select regexp_replace(weights::text, ':[0-9.]+', '', 'g') from memory_terms where scope_id = %(id)s
        union all select term_count::text from scopes where id = %(id)s) each"""
    [one, other] = [row[0] for row in owner.execute("select id from scopes order by agent").fetchall()]
    assert owner.execute(same, {"id": one}).fetchone() == owner.execute(same, {"id": other}).fetchone()


async def test_what_was_withheld_comes_back_as_it_is_folded_now(older, recollect, mind):
    [receipt] = await mind.conversation("c").append(NewMessage(Role.USER, TRADITIONAL))
    await mind.conversation("c").archive()
    await recollect.operator.rewrite_terms()
    await mind.conversation("c").restore()
    assert await find(mind) == {TRADITIONAL}
    assert (await mind.get(receipt.id)).content == TRADITIONAL


async def test_a_write_under_way_while_its_scope_is_rewritten_is_folded_anew(older, recollect, mind):
    await mind.remember(["first", TRADITIONAL])
    writes = [mind.remember(f"{TRADITIONAL}{number}") for number in range(20)]
    await asyncio.gather(*writes[:10], recollect.operator.rewrite_terms(), *writes[10:])
    assert len(await find(mind, limit=50)) == 21


async def test_a_program_that_lacks_the_version_does_not_write_and_says_so(addresses, owner, recollect, mind):
    await mind.remember(TRADITIONAL)
    owner.execute("update text_rules set version = %s", [NEWEST + 1])
    owner.execute("update scopes set text_version = %s", [NEWEST + 1])
    for write in (
        mind.remember("later"),
        mind.load([NewMemory("later")]),
        mind.conversation("c").append(NewMessage(Role.USER, "later")),
        mind.knowledge.add(NewFact("a", "b", "c")),
        (await recollect.mind("new")).remember("later"),
    ):
        with pytest.raises(SchemaError, match=f"version {NEWEST + 1} of the text rules.*update it"):
            await write
    assert await find(mind) == {TRADITIONAL}
    assert owner.execute("select count(*) from memories").fetchone() == (1,)
    async with http_client(recollect, "") as http:
        answer = await http.get("/health/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "setup")
    assert f"version {NEWEST + 1} of the text rules" in answer.json()["detail"]
    with pytest.raises(SchemaError, match="update it"):
        async with connected(Settings(embedder="none", **PATIENT), addresses, None):
            pass


async def test_a_program_that_has_dropped_the_version_says_how_to_go_on(older, mind, monkeypatch):
    monkeypatch.setattr(variants, "CARRIED", frozenset({NEWEST}))
    with pytest.raises(SchemaError, match="rewrite-terms"):
        await mind.remember("later")


async def test_the_command_rewrites_and_counts(older, addresses, owner, recollect, mind):
    await mind.remember(TRADITIONAL)
    settings = command_line.settings_of(addresses)
    told = await asyncio.to_thread(command_line.run, "rewrite-terms", settings=settings)
    assert "1 scopes are rewritten." in told
    assert versions(owner) == [NEWEST]

"""The local spaces: the database says which one is read, whatever a process has installed."""

from __future__ import annotations

import psycopg
import pytest

from conftest import addresses_of, execute, http_client
from recollect.llm import build
from recollect.llm.build import has_minilm
from recollect.llm.embedder import GLOSS, MINILM
from recollect.llm.local.encoder import Encoder
from recollect.models.knowledge import NewFact
from recollect.models.memories import MemoryProgress, NewMemory
from recollect.models.recall import Cue
from recollect.settings import Settings
from recollect.wiring import open_recollect, set_up
from support.database.clones import NUMBERS
from support.programs import command_line
from support.service.made_settings import PATIENT, make_settings

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not has_minilm(), reason="the local model is not installed"),
]
ENGLISH = ("Our cat sleeps on the piano.", "The rent is due on Monday.")
CHINESE = ("我们家的猫睡在钢琴上。", "张伟对花生过敏。")
ASKED = Cue("宠物在哪里休息？", channels=("vector",))


@pytest.fixture
def database(cluster, template):
    """The addresses of a database that nobody has migrated."""
    name = f"local_{next(NUMBERS)}"
    execute(cluster, f"create database {name}")
    yield addresses_of(cluster, name)
    execute(cluster, f"drop database {name} with (force)")


def choose(addresses, embedder="auto"):
    names = {"database_url": addresses.service, "owner_database_url": addresses.owner}
    return make_settings(embedder=embedder, **names, **PATIENT)


def opened(addresses, embedder="auto"):
    return open_recollect(choose(addresses, embedder), work=False)


async def make(addresses, embedder):
    """Make a database whose first space is the one of an embedder."""
    await set_up(choose(addresses, embedder), lambda _: None)


def list_vectors(addresses):
    """Read the active space, and every vector in it by the memory's content."""
    with psycopg.connect(addresses.owner) as owner:
        space, model = owner.execute("select id, model from embedding_spaces where state = 'active'").fetchone()
        found = owner.execute(
            f"select content, embedding::text from vectors_{space} join memories using (scope_id, id)"
        )
        return model, dict(found.fetchall())


async def test_a_new_database_starts_in_the_space_that_reads_most(database):
    await make(database, "auto")
    async with opened(database) as recollect:
        assert recollect.parts.embedder.model == GLOSS
        assert await recollect.ready() == ""
        mind = await recollect.mind("ada")
        await mind.remember([*ENGLISH, *CHINESE])
        found = await mind.recall(ASKED)
        assert found.methods["vector"] == "exact"
        assert {hit.memory.content for hit in found.hits[:2]} == {ENGLISH[0], CHINESE[0]}
    assert list_vectors(database)[0] == GLOSS


async def test_an_existing_database_stays_in_its_space_until_it_is_changed(database, monkeypatch):
    await make(database, "minilm")
    await make(database, "auto")
    async with opened(database) as recollect:
        assert recollect.parts.embedder.model == MINILM
        mind = await recollect.mind("ada")
        await mind.remember([*ENGLISH, *CHINESE])
        await mind.knowledge.add([NewFact("Ada", "plays", "钢琴", "Ada plays the piano")])
        await recollect.work(until_empty=True)
        assert (await mind.recall(ASKED)).methods["vector"].endswith("does not support this script")
        _, before = list_vectors(database)
        embedded, embed = [], Encoder.embed

        async def note_and_embed(self, texts):
            embedded.extend(texts)
            return await embed(self, texts)

        monkeypatch.setattr(Encoder, "embed", note_and_embed)
        done: list[int] = []
        space, refused = await recollect.operator.spaces.change(done.append)
        assert (space.model, space.state, refused) == (GLOSS, "active", 0)
        assert max(done) == 7
    model, after = list_vectors(database)
    assert model == GLOSS
    assert after.keys() == before.keys()
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in text) for text in embedded)
    assert {text for text in after if after[text] == before[text]} == {*ENGLISH, "Ada plays the piano"}
    async with opened(database) as recollect:
        found = await (await recollect.mind("ada")).recall(ASKED)
        assert {hit.memory.content for hit in found.hits[:2]} == {ENGLISH[0], CHINESE[0]}


async def test_a_vector_that_waits_to_be_made_again_is_not_copied(database, monkeypatch):
    await make(database, "minilm")
    async with opened(database) as recollect:
        await (await recollect.mind("ada")).remember([*ENGLISH])
        with psycopg.connect(database.owner, autocommit=True) as owner:
            owner.execute("insert into pending_embeddings (scope_id, id) select scope_id, id from memories limit 1")
        embedded, embed = [], Encoder.embed

        async def note_and_embed(self, texts):
            embedded.extend(texts)
            return await embed(self, texts)

        monkeypatch.setattr(Encoder, "embed", note_and_embed)
        await recollect.operator.spaces.change(lambda _: None)
    assert len(embedded) == 1
    assert len(list_vectors(database)[1]) == 2


async def test_a_process_without_the_active_space_s_code_recalls_by_words_and_says_so(database, monkeypatch):
    await make(database, "auto")
    async with opened(database) as recollect:
        await (await recollect.mind("ada")).remember([*ENGLISH])
    monkeypatch.setattr(build, "has_gloss", lambda: False)
    async with opened(database) as recollect:
        assert recollect.parts.embedder.model == MINILM
        lacking = f"the embedder here is {MINILM}, the active space is {GLOSS}"
        async with http_client(recollect, "") as http:
            assert (await http.get("/health/ready")).json() == {"status": "ok", "by_words": lacking}
        mind = await recollect.mind("ada")
        found = await mind.recall("Where does the cat sleep?")
        assert found.methods["vector"] == f"skipped: {lacking}"
        assert found.hits[0].memory.content == ENGLISH[0]
        [receipt] = await mind.remember(NewMemory("The dog sleeps in the hall."))
        assert receipt.progress is MemoryProgress.STORED
        await recollect.work(until_empty=True)
    assert list_vectors(database)[1].keys() == {*ENGLISH}
    monkeypatch.undo()
    async with opened(database) as recollect:
        with psycopg.connect(database.owner, autocommit=True) as owner:
            owner.execute("update procrastinate_jobs set scheduled_at = null where status = 'todo'")
        await recollect.work(until_empty=True)
    assert len(list_vectors(database)[1]) == 3


async def test_a_setting_leads_back_to_the_space_without_chinese(database):
    await make(database, "auto")
    async with opened(database, "minilm") as recollect:
        assert recollect.parts.embedder.model == MINILM
        assert GLOSS in await recollect.ready()
        await (await recollect.mind("ada")).remember([*ENGLISH, *CHINESE])
        await recollect.operator.spaces.change(lambda _: None)
    model, vectors = list_vectors(database)
    assert (model, len(vectors)) == (MINILM, 4)
    async with opened(database) as recollect:
        assert recollect.parts.embedder.model == MINILM


@pytest.mark.parametrize(
    ("setting", "installed", "active", "chosen"),
    [
        ("auto", True, None, GLOSS),
        ("auto", True, MINILM, MINILM),
        ("auto", True, "bge-m3", GLOSS),
        ("auto", False, None, MINILM),
        ("auto", False, GLOSS, MINILM),
        ("local", True, None, GLOSS),
        ("local", True, MINILM, MINILM),
        ("local", False, GLOSS, MINILM),
        ("minilm", True, GLOSS, MINILM),
        ("openai", True, GLOSS, None),
        ("none", True, GLOSS, None),
    ],
)
def test_what_is_installed_decides_for_a_new_database_alone(monkeypatch, setting, installed, active, chosen):
    monkeypatch.setattr(build, "has_gloss", lambda: installed)
    assert build.choose_local(Settings(embedder=setting), active) == chosen


async def test_a_list_of_spaces_names_whose_work_they_are_made_with(database):
    await make(database, "auto")
    listed = command_line.run(
        "admin", "embeddings", "list", settings=command_line.settings_of(database, embedder="none")
    )
    assert GLOSS in listed
    assert "CC-CEDICT, published by MDBG, CC BY-SA 4.0" in listed

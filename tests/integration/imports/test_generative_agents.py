"""The folders of Generative Agents go into a real database and come out of it equal."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.doors.imports.generative_agents.folder import read_folder
from recollect.doors.imports.generative_agents.transfer import MODEL, export_folder, import_folder
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import Kind, NewMemory
from recollect.models.recall import StreamWeights
from recollect.wiring import connected
from support.imports.generative_agents import MINDS, read_mind
from support.imports.saved_folder import SCRATCH, make_embeddings, make_nodes, read_saved_folder, write_saved_folder


def silent(step, done, total):
    assert 0 <= done <= total


@pytest.fixture
def folder(tmp_path):
    return write_saved_folder(tmp_path / "Ann Lee")


@pytest.fixture
def bring(recollect):
    async def work(folder, agent="ann", user=""):
        mind = await recollect.mind(agent, user)
        return mind, await import_folder(recollect, mind, folder, silent)

    return work


def in_folder(arrival):
    return {line.thing: (line.in_folder, line.stored, line.differ) for line in arrival.lines}


async def test_a_folder_comes_back_equal(bring, recollect, folder, tmp_path):
    mind, arrival = await bring(folder)
    assert in_folder(arrival) == {
        "events": (4, 4, 0),
        "thoughts": (5, 5, 0),
        "chats": (1, 1, 0),
        "evidence links": (7, 7, 0),
        "vectors": (10, 10, 0),
        "keyword strengths": (10, 10, 0),
        "scratch values": (11, 11, 0),
    }
    written = await export_folder(recollect.operator, mind, tmp_path / "back", silent)
    assert read_saved_folder(tmp_path / "back") == read_saved_folder(folder)
    assert (written.left_out, written.unembedded) == (0, 0)


@pytest.mark.parametrize("name", MINDS)
async def test_real_folders_come_back_equal(bring, recollect, shared, tmp_path, name):
    saved = read_mind(shared, name)
    mind, arrival = await bring(saved.folder)
    assert [line.thing for line in arrival.lines if line.differ] == []
    await export_folder(recollect.operator, mind, tmp_path / "back", silent)
    back = read_saved_folder(tmp_path / "back")
    written = tmp_path / "back" / "bootstrap_memory" / "associative_memory" / "nodes.json"
    assert written.read_bytes() == (saved.folder / "nodes.json").read_bytes()
    assert back["kw_strength.json"] == saved.strengths
    assert back["scratch.json"] == saved.scratch
    assert back["embeddings.json"] == {key: row.astype(np.float64).tolist() for key, row in saved.vectors.items()}


async def test_the_mind_answers_in_our_words(bring, folder):
    mind, _ = await bring(folder)
    memories = (await mind.list()).memories
    assert [memory.depth for memory in memories] == [0, 0, 0, 1, 0, 2, 3, 1, 1, 0]
    assert [memory.content for memory in memories if memory.idle] == ["machine is idle", "Bo 空闲"]
    overview = await mind.overview()
    assert (overview.events, overview.thoughts, overview.chats) == (4, 5, 1)
    assert (overview.unreflected_importance, overview.unreflected_memories) == (150 - 61, 7)
    assert overview.profile == Profile(
        StreamWeights(recency=1, similarity=1.5, importance=2, decay=0.995), reflection_threshold=150
    )


async def test_original_vectors_lie_in_a_space_of_their_own(bring, recollect, folder, owner):
    mind, arrival = await bring(folder)
    spaces = [space for space, _ in await recollect.operator.spaces.list()]
    assert [(space.model, space.state, space.precision) for space in spaces][1:] == [(MODEL, "filling", "single")]
    assert arrival.unembedded == ""
    for space in spaces:
        assert owner.execute(f"select count(*) from vectors_{space.id}").fetchone() == (10,)
    assert owner.execute("select count(*) from pending_embeddings").fetchone() == (0,)
    found = await mind.recall("Ann is on a break (tea)", limit=1)
    assert found.methods["vector"] == "exact"


async def test_a_vector_that_is_not_of_unit_length_is_made_so(bring, recollect, tmp_path):
    longer = {key: [2 * number for number in row] for key, row in make_embeddings().items()}
    mind, arrival = await bring(write_saved_folder(tmp_path / "longer", embeddings=longer))
    assert in_folder(arrival)["vectors"] == (10, 10, 10)
    await export_folder(recollect.operator, mind, tmp_path / "back", silent)
    back = read_folder(tmp_path / "back").vectors
    for key, row in make_embeddings().items():
        np.testing.assert_allclose(back[key], row, rtol=1e-6)


async def test_without_a_model_memories_arrive_and_the_reason_is_told(recollect, addresses, folder):
    async with connected(recollect.settings, addresses, None) as bare:
        mind = await bare.mind("ann")
        arrival = await import_folder(bare, mind, folder, silent)
    assert "RECOLLECT_EMBEDDER" in arrival.unembedded
    assert in_folder(arrival)["events"] == (4, 4, 0)


async def test_a_folder_without_vectors_is_exported_without_them(bring, recollect, tmp_path):
    mind, arrival = await bring(write_saved_folder(tmp_path / "bare", embeddings=None, spatial_memory=None))
    assert in_folder(arrival)["vectors"] == (0, 0, 0)
    written = await export_folder(recollect.operator, mind, tmp_path / "back", silent)
    assert written.unembedded == 10
    assert read_saved_folder(tmp_path / "back")["embeddings.json"] == {}
    assert not list((tmp_path / "back").rglob("spatial_memory.json"))


async def test_somebody_without_memories_yet_comes_back_equal(bring, recollect, tmp_path):
    nothing = {"nodes": {}, "embeddings": {}, "kw_strength": {"kw_strength_event": {}, "kw_strength_thought": {}}}
    folder = write_saved_folder(tmp_path / "new", **nothing)
    mind, arrival = await bring(folder)
    assert in_folder(arrival)["scratch values"] == (11, 11, 0)
    await export_folder(recollect.operator, mind, tmp_path / "back", silent)
    assert read_saved_folder(tmp_path / "back") == read_saved_folder(folder)


async def test_a_scope_with_memories_is_refused_and_stays_as_it_was(bring, recollect, folder):
    mind = await recollect.mind("ann")
    await mind.remember("I was here before")
    with pytest.raises(InvalidInputError, match="ann has 1 memories already"):
        await bring(folder)
    assert [memory.content for memory in (await mind.list()).memories] == ["I was here before"]
    assert await mind.profile() == Profile()
    other, arrival = await bring(folder, user="li")
    assert in_folder(arrival)["events"] == (4, 4, 0)
    assert other.access.scope != mind.access.scope


async def test_a_node_that_cannot_be_stored_leaves_nothing_behind(bring, recollect, tmp_path, owner):
    nodes = make_nodes()
    nodes["node_2"]["filling"] = [["Ann", "so much to say " * 1200]]
    with pytest.raises(InvalidInputError, match=r"^memory 2: metadata must be at most 16384 bytes"):
        await bring(write_saved_folder(tmp_path / "long", nodes=nodes))
    for table in ("memories", "agents", "scopes", "keyword_strengths", "pending_embeddings"):
        assert owner.execute(f"select count(*) from {table}").fetchone() == (0,), table


async def test_strengths_that_the_rules_do_not_give_are_reported(bring, tmp_path):
    wrong = {"kw_strength_event": {"bo": 2, "ann": 2, "tea": 1, "ghost": 1}, "kw_strength_thought": {}}
    _, arrival = await bring(write_saved_folder(tmp_path / "wrong", kw_strength=wrong))
    assert in_folder(arrival)["keyword strengths"] == (4, 10, 9)


async def test_what_was_remembered_and_forgotten_since_is_in_the_folder(bring, recollect, folder, tmp_path):
    mind, _ = await bring(folder)
    memories = (await mind.list()).memories
    chat, tired = memories[1], memories[3]
    await mind.remember(
        [
            NewMemory("Ann slept", kind=Kind.EVENT, importance=3, keywords=("Ann", "sleep")),
            NewMemory("Ann rests", kind=Kind.THOUGHT, evidence=(0,)),
            NewMemory("Good morning", kind=Kind.MESSAGE, speaker="Bo"),
        ]
    )
    gone = await mind.forget([chat.id])
    assert tired.id in gone
    written = await export_folder(recollect.operator, mind, tmp_path / "back", silent)
    assert (written.left_out, written.unembedded) == (1, 2)
    nodes = read_saved_folder(tmp_path / "back")["nodes.json"]
    assert [node["description"] for node in nodes.values()][:2] == ["Ann rests", "Ann slept"]
    assert nodes["node_7"] | {"created": "", "expiration": ""} == {
        "node_count": 7,
        "type_count": 3,
        "type": "thought",
        "depth": 1,
        "created": "",
        "expiration": "",
        "subject": "",
        "predicate": "",
        "object": "",
        "description": "Ann rests",
        "embedding_key": "Ann rests",
        "poignancy": 5,
        "keywords": [],
        "filling": ["node_6"],
    }
    scratch = read_saved_folder(tmp_path / "back")["scratch.json"]
    assert scratch == SCRATCH | {"importance_trigger_curr": 58, "importance_ele_n": 8}
    _, arrival = await bring(tmp_path / "back", "again")
    assert [line.thing for line in arrival.lines if line.differ] == []


async def test_changed_weights_are_written(bring, recollect, folder, tmp_path):
    mind, _ = await bring(folder)
    await mind.set_profile(Profile(StreamWeights(similarity=3)))
    await export_folder(recollect.operator, mind, tmp_path / "back", silent)
    scratch = read_saved_folder(tmp_path / "back")["scratch.json"]
    assert scratch == SCRATCH | {"relevance_w": 3, "importance_w": 1, "recency_decay": 0.99}

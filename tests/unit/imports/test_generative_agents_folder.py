"""The saved folders of Generative Agents become values and come back equal, without a database."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.doors.imports.generative_agents.folder import SavedNode, find_name, read_folder, write_folder
from recollect.doors.imports.generative_agents.nodes import (
    OURS,
    count_strengths,
    find_sources,
    to_memories,
    to_nodes,
    to_profile,
    to_scratch,
)
from recollect.errors import InvalidInputError
from recollect.models.agents import Overview, Profile
from recollect.models.memories import Kind, Memory, Triple
from recollect.models.recall import StreamWeights
from support.imports.saved_folder import (
    LINES,
    SCRATCH,
    STRENGTHS,
    make_embeddings,
    make_nodes,
    read_saved_folder,
    write_saved_folder,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def saved(tmp_path):
    return read_folder(write_saved_folder(tmp_path / "Ann Lee"))


def store(memories) -> list[Memory]:
    """Stand in for the store: evidence by id and in no order, keywords in the form they are filed under."""
    stored: list[Memory] = []
    for position, new in enumerate(memories):
        sources = [stored[source] for source in new.evidence]
        depth = 1 + max((source.depth for source in sources), default=0) if new.kind is Kind.THOUGHT else 0
        stored.append(
            Memory(
                id=UUID(int=position + 1),
                kind=new.kind,
                content=new.content,
                speaker=new.speaker,
                importance=new.importance,
                triple=new.triple,
                idle=False,
                depth=depth,
                keywords=tuple(keyword.casefold() for keyword in new.keywords),
                origin="test",
                trust=100,
                occurred_at=new.occurred_at,
                created_at=NOW,
                last_accessed_at=NOW,
                evidence=tuple(sorted({source.id for source in sources})),
                embedding_text=new.embedding_text,
                metadata=json.loads(json.dumps(new.metadata)),
            )
        )
    return stored


def test_nodes_become_memories_in_our_words(saved):
    memories = to_memories(saved.nodes, saved.vectors)
    chat, thought, tea = memories[1], memories[3], memories[4]
    assert (chat.kind, chat.content, chat.importance) == (Kind.CHAT, "a talk about sleep", 4)
    assert chat.triple == Triple("Ann", "chat with", "Bo")
    assert chat.keywords == ("Bo", "Ann")
    assert thought.occurred_at == datetime(2023, 2, 13, 8, 0, 20, tzinfo=UTC)
    assert (tea.embedding_text, thought.embedding_text) == ("tea", "")
    assert tea.embedding == make_embeddings()["tea"]


def test_evidence_goes_by_position_and_only_earlier_nodes_are_evidence(saved):
    positions = [memory.evidence for memory in to_memories(saved.nodes, {})]
    assert positions == [(), (), (1,), (1,), (), (0, 3, 4), (1, 5), (), (), ()]


def test_metadata_keeps_only_what_the_way_back_would_not_give(saved):
    kept = [memory.metadata[OURS] for memory in to_memories(saved.nodes, {})]
    beside_keywords = [{name: value for name, value in line.items() if name != "keywords"} for line in kept]
    assert beside_keywords == [
        {},
        {"filling": LINES},
        {"poignancy": 0},
        {},
        {"poignancy": 12},
        {"order": [2, 0, 1]},
        {"order": [1, 0, 1]},
        {"subject": "a\nb", "expiration": None},
        {"filling": "node_1"},
        {},
    ]


def test_importance_is_brought_between_one_and_ten(saved):
    importances = [memory.importance for memory in to_memories(saved.nodes, {})]
    assert importances == [1, 4, 1, 6, 10, 7, 7, 5.5, 5, 1]


def test_what_a_model_wrote_without_end_or_over_lines_is_cut_and_comes_back_whole(saved):
    endless = {"node_count": 1, "type_count": 1, "predicate": "x" * 600, "embedding_key": "y" * 9000}
    node = saved.nodes[7].model_copy(update=endless | {"keywords": ["z" * 600]})
    memories = to_memories([node], {})
    assert memories[0].triple == Triple("a b", "x" * 500, "茶")
    assert (memories[0].keywords, memories[0].embedding_text) == (("z" * 500,), "y" * 8000)
    assert to_nodes(store(memories)) == [node]


def test_nodes_come_back_equal(saved):
    assert to_nodes(store(to_memories(saved.nodes, {}))) == saved.nodes


def test_what_a_fork_adds_to_a_node_comes_back(tmp_path):
    nodes = make_nodes()
    nodes["node_3"] |= {"place": {"arena": "cafe"}, "depth": 4, "type_count": 9}
    folder = read_folder(write_saved_folder(tmp_path / "fork", nodes=nodes))
    assert to_nodes(store(to_memories(folder.nodes, {})))[2].model_dump() == nodes["node_3"]


def test_strengths_are_counted_as_the_original_does(saved):
    assert count_strengths(saved.nodes).model_dump() == STRENGTHS


def test_memories_of_our_own_get_the_fields_that_the_original_would_give(saved):
    first, *_ = store(to_memories(saved.nodes[:1], {}))
    own = replace(
        first,
        id=UUID(int=9),
        kind=Kind.THOUGHT,
        content="We met",
        speaker="Bo",
        importance=6.5,
        depth=1,
        keywords=("bo",),
        evidence=(first.id,),
        metadata={},
    )
    node = to_nodes([first, replace(own, id=UUID(int=8), kind=Kind.FACT), own])[1]
    assert (node.node_count, node.type_count, node.depth) == (2, 1, 1)
    assert (node.description, node.embedding_key) == ("Bo: We met", "Bo: We met")
    assert (node.created, node.expiration) == ("2023-02-13 08:00:00", "2023-03-15 08:00:00")
    assert (node.poignancy, node.keywords, node.filling) == (6.5, ["bo"], ["node_1"])


def test_numbers_are_given_again_when_something_was_forgotten(saved):
    stored = store(to_memories(saved.nodes, {}))
    left = to_nodes([memory for memory in stored if memory.id.int not in {3, 5, 6, 7}])
    assert [node.node_count for node in left] == list(range(1, 7))
    assert [(node.type, node.type_count) for node in left if node.type == "thought"] == [
        ("thought", 1),
        ("thought", 2),
        ("thought", 3),
    ]
    assert left[2].filling == ["node_2"]


@given(st.lists(st.lists(st.integers(1, 12), max_size=6), min_size=1, max_size=12))
def test_any_list_of_nodes_comes_back_in_its_order(listed):
    template = make_nodes()["node_7"]
    nodes = [
        SavedNode.model_validate(template | {"node_count": number, "filling": [f"node_{source}" for source in sources]})
        for number, sources in enumerate(listed, start=1)
    ]
    assert to_nodes(store(to_memories(nodes, {}))) == nodes


@pytest.mark.parametrize("filling", [None, "node_1", [["Ann", "Hello"]], ["node_1", "node_9"], [1], {"node_1": 1}, []])
def test_what_is_no_list_of_earlier_nodes_is_no_evidence(filling):
    assert find_sources(filling, {"node_1": 1, "node_2": 2}) == []


def test_a_folder_is_read_from_outside_from_inside_and_flat(tmp_path, saved):
    outside = write_saved_folder(tmp_path / "Ann Lee")
    flat = tmp_path / "flat"
    flat.mkdir()
    for file in outside.rglob("*.json"):
        (flat / file.name).write_bytes(file.read_bytes())
    for path in (outside / "bootstrap_memory", flat):
        assert read_folder(path).nodes == saved.nodes
        assert read_folder(path).scratch == saved.scratch
        assert read_folder(path).spatial == saved.spatial


def test_vectors_are_read_from_an_array_with_keys(tmp_path, saved):
    folder = write_saved_folder(tmp_path / "array", embeddings=None)
    assert read_folder(folder).vectors == {}
    inner = folder / "bootstrap_memory" / "associative_memory"
    np.save(inner / "embeddings.f32.npy", np.stack(list(saved.vectors.values())))
    (inner / "embedding_keys.json").write_text(json.dumps(list(saved.vectors)))
    packed = read_folder(folder).vectors
    assert {key: row.tolist() for key, row in packed.items()} == make_embeddings()


def test_a_folder_is_written_as_it_was(tmp_path, saved):
    write_folder(tmp_path / "copy", saved)
    assert read_saved_folder(tmp_path / "copy") == read_saved_folder(tmp_path / "Ann Lee")
    nodes = "bootstrap_memory/associative_memory/nodes.json"
    assert (tmp_path / "copy" / nodes).read_bytes() == (tmp_path / "Ann Lee" / nodes).read_bytes()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Maria Lopez", "Maria Lopez"),
        ("Maria Lopez/bootstrap_memory", "Maria Lopez"),
        ("x/klaus_mueller/", "klaus_mueller"),
    ],
)
def test_an_agent_is_named_after_the_folder(path, name):
    assert find_name(Path(path)) == name


def without(nodes: dict, name: str) -> dict:
    return {key: node for key, node in nodes.items() if key != name}


def changed(name: str, **fields: object) -> dict:
    nodes = make_nodes()
    nodes[name] |= fields
    return nodes


def test_a_folder_that_holds_something_is_not_written_over(tmp_path, saved):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(InvalidInputError, match="is not empty"):
        write_folder(tmp_path / "mine", saved)
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"nodes": None}, "has no bootstrap_memory/associative_memory/nodes.json"),
        ({"nodes": "{"}, r"nodes.json is not JSON"),
        ({"nodes": '{"node_1": {"poignancy": NaN}}'}, r"nodes.json is not JSON: it holds NaN"),
        ({"nodes": "[" * 100_000}, r"nodes.json is not JSON"),
        ({"nodes": []}, "nodes.json holds no nodes by name"),
        ({"nodes": without(make_nodes(), "node_4")}, "holds 9 nodes, but no node_4"),
        ({"nodes": changed("node_4", node_count=5)}, "node_4: its node_count is 5"),
        ({"nodes": changed("node_4", type="plan")}, "node_4: type Input should be 'event', 'thought' or 'chat'"),
        ({"nodes": changed("node_4", created="yesterday")}, "node_4: created .*yesterday"),
        ({"nodes": {"node_1": {"type": "event"}}}, "node_1: node_count Field required"),
        ({"scratch": None}, "scratch.json is missing"),
        ({"scratch": {"recency_w": 1}}, "scratch.json: relevance_w Field required"),
        ({"kw_strength": None}, "kw_strength.json is missing"),
        ({"kw_strength": {"kw_strength_event": {"a": "b"}}}, r"kw_strength.json: kw_strength_event.a"),
        ({"embeddings": {"a": [1.0], "b": [1.0, 2.0]}}, "one vector per key"),
        ({"embeddings": {"a": [[1.0]]}}, "one vector per key"),
        ({"embeddings": {"a": ["x"]}}, "one vector per key"),
        ({"embeddings": [[1.0]]}, "one vector per key"),
    ],
)
def test_a_broken_folder_is_refused_in_one_line(tmp_path, files, complaint):
    folder = write_saved_folder(tmp_path / "broken", **files)
    with pytest.raises(InvalidInputError) as refused:
        read_folder(folder)
    assert re.search(complaint, str(refused.value))
    assert "\n" not in str(refused.value)


def look_over(profile: Profile, importance: float, events: int) -> Overview:
    return Overview(0, 0, 0, 0, importance, events, (), profile)


def test_scratch_becomes_what_the_agent_goes_by(saved):
    assert to_profile(saved.scratch) == Profile(
        StreamWeights(recency=1, similarity=1.5, importance=2, decay=0.995), reflection_threshold=150
    )


def test_scratch_comes_back_equal_where_nothing_changed(saved):
    assert to_scratch(SCRATCH, look_over(to_profile(saved.scratch), 89.0, 7)).model_dump() == SCRATCH


def test_living_weights_and_counters_are_written_over_the_scratch():
    profile = Profile(StreamWeights(recency=0.5, decay=0.9), reflection_threshold=80)
    scratch = to_scratch(SCRATCH, look_over(profile, 12.5, 3)).model_dump()
    assert scratch == SCRATCH | {
        "recency_w": 0.5,
        "relevance_w": 1,
        "importance_w": 1,
        "recency_decay": 0.9,
        "importance_trigger_max": 80,
        "importance_trigger_curr": 67.5,
        "importance_ele_n": 3,
    }


def test_an_agent_that_never_had_a_scratch_gets_the_living_values():
    assert to_scratch(None, look_over(Profile(), 0.0, 0)).model_dump() == {
        "recency_w": 1,
        "relevance_w": 1,
        "importance_w": 1,
        "recency_decay": 0.99,
        "importance_trigger_max": 150,
        "importance_trigger_curr": 150,
        "importance_ele_n": 0,
    }

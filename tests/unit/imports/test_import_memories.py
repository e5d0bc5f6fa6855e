"""What mem0, Letta, Graphiti and Zep hold is read with its times, its owners and its ends."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from recollect.core.imports import chatgpt, formats, graphiti, letta, mem0, zep
from recollect.core.imports.parsed import DIVIDED, MALFORMED, REFUSED, SILENT, TWICE
from recollect.core.imports.text import INVALID_TIME, LARGE, hash_parts, to_identifier, to_moment
from recollect.errors import InvalidInputError
from recollect.models.conversations import Part, PartType
from recollect.models.imports import FileImport, Format, UserField
from recollect.models.knowledge import EntityType
from recollect.models.memories import Kind, Triple
from support.imports.foreign_exports import (
    BEGINNING,
    graphiti_edge,
    graphiti_episode,
    graphiti_node,
    letta_block,
    letta_call,
    letta_file,
    letta_message,
    letta_passage,
    letta_user,
    mem0_memory,
    mem0_point,
    moment,
    name,
    zep_message,
    zep_thread,
)


def remarks(data):
    return dict(+data.remarks)


def contents(data):
    return [each.memory.content for each in data.memories]


def said(data):
    return [(each.message.role.value, each.message.content) for each in data.conversations[0].messages]


def test_a_memory_of_mem0_keeps_its_time_its_owners_and_its_categories():
    entry = mem0_memory(
        "早上喝乌龙茶", agent_id="ada", run_id="r1", actor_id="Li", categories=["drinks", "habits"],
        metadata={"category": "tea", "mood": "calm"}, expiration_date="2030-01-01",
    )  # fmt: skip
    found = mem0.parse_mem0({"results": [entry]}).memories[0]
    memory = found.memory
    assert (found.key, memory.content, memory.kind, memory.speaker) == (entry["id"], "早上喝乌龙茶", Kind.THOUGHT, "Li")
    assert (memory.occurred_at, memory.keywords) == (BEGINNING, ("drinks", "habits", "tea"))
    assert memory.expires_at == datetime(2030, 1, 2, tzinfo=UTC)
    assert memory.metadata["mem0"] == {
        "actor_id": "Li", "agent_id": "ada", "expiration_date": "2030-01-01", "role": "user", "run_id": "r1",
        "user_id": "li", "metadata": {"category": "tea", "mood": "calm"}, "updated_at": moment(),
    }  # fmt: skip
    assert found.owner == {UserField.USER_ID: "li", UserField.AGENT_ID: "ada", UserField.RUN_ID: "r1"}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda points: points,
        lambda points: {"points": points},
        lambda points: {"result": {"points": points, "next_page_offset": None}, "status": "ok"},
    ],
)
def test_points_of_qdrant_say_the_same(wrap):
    listed = mem0.parse_mem0([mem0_memory("tea", metadata={"category": "drinks"}, key="tea")])
    points = mem0.parse_mem0(wrap([mem0_point("tea", category="drinks", role="user")]))
    assert points.memories == listed.memories


def test_odd_memories_of_mem0():
    entries = [
        mem0_memory("tea"), mem0_memory("tea"), mem0_memory(""), "x", None, {"id": 7, "memory": "seven"},
        mem0_memory("dated", created_at="yesterday", expiration_date="2020-01-01"),
        mem0_memory("deep", metadata={"x": "y" * 20_000}), mem0_memory("長" * 70_000),
    ]  # fmt: skip
    data = mem0.parse_mem0({"memories": entries})
    assert [each.key for each in data.memories[:2]] == [name("tea"), "7"]
    assert data.memories[2].memory.expires_at == datetime(2020, 1, 2, tzinfo=UTC)
    assert "metadata" not in data.memories[3].memory.metadata["mem0"]
    assert [len(text) for text in contents(data)[4:]] == [32_000, 32_000, 6_000]
    assert [each.key for each in data.memories[5:]] == [f"{name('長' * 70_000)}#2", f"{name('長' * 70_000)}#3"]
    assert remarks(data) == {TWICE: 1, MALFORMED: 3, INVALID_TIME: 1, LARGE: 1, DIVIDED: 1}
    assert data.seen["memories"] == len(data.memories) + 4


def test_a_memory_that_had_expired_when_it_was_made_stays_expired():
    made = {"created_at": "2024-01-02T10:00:00Z"}
    dates = ["2023-01-01", "2024-01-02T10:00:00Z", "2024-01-02"]
    data = mem0.parse_mem0([mem0_memory(date, expiration_date=date, **made) for date in dates])
    over = datetime(2024, 1, 2, 10, microsecond=1, tzinfo=UTC)
    assert [each.memory.expires_at for each in data.memories] == [over, over, datetime(2024, 1, 3, tzinfo=UTC)]
    assert data.memories[0].memory.metadata["mem0"]["expiration_date"] == "2023-01-01"
    assert remarks(data) == {mem0.OVER: 2}


def test_the_same_words_of_two_users_are_two_memories():
    entries = [mem0_memory("tea", id=None), mem0_memory("tea", id=None, user_id="mo"), mem0_memory("tea", id=None)]
    data = mem0.parse_mem0({"results": entries})
    assert [each.owner[UserField.USER_ID] for each in data.memories] == ["li", "mo"]
    assert remarks(data) == {TWICE: 1}


def test_pages_of_mem0_are_read_one_after_the_other():
    relation = {"source": "li", "relationship": "drinks", "target": "oolong"}
    pages = [
        {"count": 2, "next": "https://x.org", "results": [mem0_memory("one")], "relations": [relation]},
        {"count": 2, "next": None, "results": [mem0_memory("two"), mem0_memory("one")]},
        {"results": []},
    ]
    data = mem0.parse_mem0(pages)
    assert (contents(data), len(data.facts)) == (["one", "two"], 1)
    assert (remarks(data), data.seen["memories"]) == ({TWICE: 1}, 3)


def test_relations_of_mem0_are_facts():
    relations = [
        {"source": "li", "relationship": "drinks", "target": "oolong"},
        {"source": "li", "relationship": "lives_in", "destination": "hangzhou"},
        {"source": "li", "relationship": "", "target": "li"},
    ]
    data = mem0.parse_mem0({"results": [], "relations": relations})
    assert [(each.fact.subject, each.fact.predicate, each.fact.object) for each in data.facts] == [
        ("li", "drinks", "oolong"), ("li", "lives_in", "hangzhou"),
    ]  # fmt: skip
    assert contents(data) == ["li  li"]


def test_a_letta_agent_is_read_as_it_spoke():
    asked = {"type": "heartbeat", "reason": "timer", "time": "now"}
    messages = [
        letta_message("system", "You are Ada. <memory_blocks>..."),
        letta_user("我叫李", 1),
        letta_message(
            "assistant", "They told me a name.", 2, tool_calls=[letta_call("send_message", {"message": "你好，李"})]
        ),
        letta_message("tool", '{"status": "OK", "message": "None"}', 3, tool_call_id="call-1"),
        letta_message("user", str(asked).replace("'", '"'), 4),
        letta_message(
            "assistant", None, 5, tool_calls=[letta_call("archival_memory_search", {"query": "tea"}, "call-2")]
        ),
        letta_message("tool", "nothing", 6, tool_call_id="call-2"),
        letta_message("assistant", "Plain answer", 7),
        letta_message("assistant", "", 8),
        letta_message("approval", "may I?", 9),
    ]
    messages[7]["content"].insert(0, {"type": "reasoning", "is_native": True, "reasoning": "hm", "signature": None})
    data = letta.parse_letta(
        letta_file(messages, [letta_block("human", "Li likes tea"), letta_block("persona", " ", 1)])
    )
    assert said(data) == [
        ("user", "我叫李"), ("assistant", "你好，李"), ("assistant", ""), ("tool", ""), ("assistant", "Plain answer"),
    ]  # fmt: skip
    call, result = (data.conversations[0].messages[place].message.parts[0] for place in (2, 3))
    assert call == Part(PartType.TOOL_CALL, '{"query": "tea"}', "archival_memory_search", call_id="call-2")
    assert result == Part(PartType.TOOL_RESULT, "nothing", call_id="call-2")
    assert (data.conversations[0].id, contents(data)) == ("letta:ada", ["Li likes tea"])
    assert data.memories[0].memory.metadata["letta"]["label"] == "human"
    assert remarks(data) == {
        letta.PROMPTS: 1, letta.REASONING: 2, letta.RECEIPTS: 1, letta.EVENTS: 1, letta.BLANK: 1,
        chatgpt.EMPTY: 1, chatgpt.OTHER: 1,
    }  # fmt: skip


def test_letta_messages_are_known_whatever_their_number_in_the_file():
    spoken = [letta_user("one", 1), letta_user("two", 2), letta_user("two", 2)]
    whole = letta.parse_letta(letta_file(spoken, [])).conversations[0].messages
    later = letta.parse_letta(letta_file(spoken[1:], [])).conversations[0].messages
    assert [each.key for each in whole[1:]] == [each.key for each in later]
    assert len({each.key for each in whole}) == 3


def test_letta_agents_of_one_name_are_told_apart():
    first, second = (
        letta_file([letta_user(text)], [letta_block("human", text, number)])
        for number, text in enumerate(("one", "two"))
    )
    second["agents"][0]["id"] = "agent-1"
    file = first | {"agents": first["agents"] + second["agents"], "blocks": first["blocks"] + second["blocks"]}
    data = letta.parse_letta(file)
    assert [conversation.id for conversation in data.conversations] == ["letta:ada", "letta:ada:agent-1"]
    assert [each.key for each in data.memories] == ["block:ada:human", "block:ada:agent-1:human"]
    for agent in file["agents"]:
        del agent["id"]
    assert [conversation.id for conversation in letta.parse_letta(file).conversations] == ["letta:ada", "letta:ada:1"]


def test_older_letta_files_and_lists_of_passages():
    block = {"label": "human", "value": "喜欢茶", "created_at": moment(), "updated_at": moment(1), "limit": 5_000}
    old = {"agent_type": "memgpt_agent", "core_memory": [block], "messages": [letta_user("hi")], "name": "阿达"}
    data = letta.parse_letta(old | {"version": "0.6.54"})
    assert (contents(data), said(data)) == (["喜欢茶"], [("user", "hi")])
    assert data.conversations[0].id == to_identifier("letta:阿达")
    passages = letta.parse_letta([letta_passage("Ada keeps bees", "bees", "学校"), {"id": "x"}])
    assert (contents(passages), passages.memories[0].memory.keywords) == (["Ada keeps bees"], ("bees", "学校"))
    assert passages.memories[0].memory.kind is Kind.EVENT
    assert remarks(passages) == {MALFORMED: 1}
    assert contents(letta.parse_letta(letta_file([], []) | {"passages": [letta_passage("in the file")]})) == [
        "in the file"
    ]


def test_a_graph_is_read_with_its_times():
    edges = [
        graphiti_edge(
            "Ada", "LIVES_IN", "Hangzhou", "Ada lives in Hangzhou", valid_at=moment(-60), invalid_at=moment(60),
            expired_at=moment(90), episodes=[name("Ada: hi")], created_at=moment(5), attributes={"since": "2024"},
        ),
        graphiti_edge("Ada", "KNOWS", "Li", "Ada knows Li", expired_at=moment(30)),
        graphiti_edge("Ada", "MET", "Li", "Ada met Li", valid_at=moment(9), invalid_at=moment(9)),
    ]  # fmt: skip
    nodes = [
        graphiti_node("Ada", "Teaches bees.", "Person"),
        graphiti_node("Hangzhou"),
        graphiti_node("Li", "", "User"),
    ]
    data = graphiti.parse_graphiti({"episodes": [graphiti_episode("Ada: hi", 3)], "nodes": nodes, "edges": edges})
    lives, knows, met = (each.fact for each in data.facts)
    assert (lives.subject, lives.predicate, lives.object, lives.text) == (
        "Ada", "LIVES_IN", "Hangzhou", "Ada lives in Hangzhou",
    )  # fmt: skip
    times = (lives.valid_at, lives.invalid_at, lives.occurred_at)
    assert [(value - BEGINNING).total_seconds() / 60 for value in times] == [-60, 60, 5]
    assert (lives.subject_type, lives.object_type, knows.object_type) == (EntityType.PERSON, None, EntityType.PERSON)
    assert data.facts[0].sources == (name("Ada: hi"),)
    assert data.facts[0].spare.metadata["graphiti"]["expired_at"] == moment(90)
    assert ((knows.invalid_at - BEGINNING).seconds / 60, knows.valid_at) == (30, None)
    assert ((met.invalid_at - BEGINNING).seconds / 60, met.valid_at) == (9, None)
    told, summary = data.memories
    assert (told.memory.content, told.memory.kind, told.key) == ("Ada: hi", Kind.EVENT, name("Ada: hi"))
    assert (told.memory.occurred_at - BEGINNING).seconds / 60 == 3
    assert (summary.memory.content, summary.memory.kind, summary.memory.keywords) == (
        "Ada: Teaches bees.", Kind.THOUGHT, ("Ada",),
    )  # fmt: skip
    assert remarks(data) == {graphiti.BACKWARDS: 1, graphiti.UNSUMMED: 2}
    assert data.facts[0].owner == {UserField.GROUP_ID: "li"}


def test_facts_without_two_ends_are_memories_that_end_with_them():
    edges = [
        graphiti_edge("Ada", "IS", "Ada", "Ada is herself"),
        graphiti_edge(
            "Ada", "SAW", "nobody", "Ada saw somebody", valid_at=moment(), invalid_at=moment(5), created_at=moment(9)
        ),
        graphiti_edge("Ada", "", "", ""),
        {"fact": "no id"},
        graphiti_edge("Ada", "IS", "Ada", "Ada is herself"),
    ]
    nodes = [graphiti_node("Ada"), {"uuid": ""}]
    data = graphiti.parse_graphiti({"entity_nodes": nodes, "entity_edges": edges, "communities": [{}]})
    assert (data.facts, contents(data)) == ([], ["Ada is herself", "Ada saw somebody", "Ada"])
    ended = data.memories[1].memory
    assert (ended.triple, ended.occurred_at) == (Triple("Ada", "SAW", ""), BEGINNING)
    assert (ended.expires_at - BEGINNING).seconds / 60 == 5
    assert remarks(data) == {MALFORMED: 2, TWICE: 1, graphiti.COMMUNITIES: 1, graphiti.UNSUMMED: 1}


def test_threads_of_zep_with_a_graph_and_its_episodes():
    messages = [
        zep_message("hi", "user", "Li"),
        zep_message("你好", "assistant", "Ada", 1),
        zep_message("", "user", "Li", 2),
    ]
    episodes = [{"uuid": name("hi"), "content": "hi"}, {"uuid": "e2", "content": "a document", "role": "Li"}]
    edge = {"uuid": "f1", "fact": "Li drinks tea", "name": "DRINKS", "source_node_uuid": "a", "source_node_name": "Li",
            "target_node_uuid": "b", "target_node_name": "tea", "target_node_labels": ["Entity", "Object"],
            "created_at": moment(), "episode_uuids": ["e2"], "user_uuid": "u-1"}  # fmt: skip
    document = {
        "users": [{"uuid": "u-1", "user_id": "li"}], "threads": [zep_thread("晚上", messages[::-1])],
        "episodes": episodes, "edges": [edge], "nodes": [],
    }  # fmt: skip
    data = zep.parse_zep(document)
    conversation = data.conversations[0]
    assert said(data) == [("user", "hi"), ("assistant", "你好")]
    assert (conversation.messages[0].message.name, conversation.owner) == ("Li", {UserField.USER_ID: "li"})
    assert (conversation.id, conversation.metadata) == (to_identifier("晚上"), {"zep": {"id": "晚上"}})
    assert (contents(data), data.memories[0].memory.speaker) == (["a document"], "Li")
    fact = data.facts[0]
    assert (fact.fact.subject, fact.fact.object, fact.fact.object_type) == ("Li", "tea", EntityType.THING)
    assert (fact.sources, fact.owner) == (("e2",), {UserField.USER_ID: "li"})
    assert remarks(data) == {chatgpt.EMPTY: 1, zep.SAID_TWICE: 1}


def test_a_thread_of_zep_in_several_entries_is_one():
    one, two, three = (zep_message(text, "user", "Li", minutes) for minutes, text in enumerate(("one", "two", "three")))
    pages = [zep_thread("t", [three]), zep_thread("t", [one, two]), zep_thread("t", [two, three]), zep_thread("u", [])]
    pages.append(zep_thread("t", [one], user="mo"))
    data = zep.parse_zep({"threads": pages})
    assert [(each.message.content, each.parent) for each in data.conversations[0].messages] == [
        ("one", None), ("two", name("one")), ("three", name("two")),
    ]  # fmt: skip
    assert [conversation.owner[UserField.USER_ID] for conversation in data.conversations] == ["li", "mo"]
    assert (data.seen["messages"], remarks(data)) == (6, {TWICE: 2, SILENT: 1})


def test_what_is_said_again_on_the_next_page_without_a_time_is_kept():
    pages = [{"session_id": "s", "messages": [{"role": "user", "content": text} for text in texts]}
             for texts in (("ok", "and?"), ("ok", "and?"), ("ok",))]  # fmt: skip
    data = zep.parse_zep({"sessions": pages[1:]})
    assert said(data) == [("user", "ok"), ("user", "and?"), ("user", "ok")]
    again = zep.parse_zep({"sessions": pages[:2]})
    assert (said(again), remarks(again)) == ([("user", "ok"), ("user", "and?")], {TWICE: 2})


def test_facts_of_zep_without_an_id_are_named_by_what_they_say():
    facts = ["A is b", {"fact": "C is d"}, {"fact": "E is f"}]
    data = zep.parse_zep({"sessions": [{"session_id": "s", "messages": [], "facts": facts}], "facts": facts})
    texts = ("A is b", "C is d", "E is f")
    assert [each.key for each in data.memories] == [
        f"{place}:{hash_parts(text)}" for place in ("s", "facts") for text in texts
    ]


def test_sessions_of_older_zep_have_facts_as_sentences():
    message = {"content": "hi", "role": "Li", "role_type": "user", "created_at": moment(), "uuid": "m1"}
    rated = {"fact": "Li has a dog", "rating": 0.5, "uuid": "f1", "created_at": moment()}
    sessions = [
        {"session_id": "s1", "user_id": "li", "messages": [message], "facts": ["Li drinks tea", rated]},
        {"session_id": "s2", "user_id": "mo", "messages": []},
        {"messages": [message]},
    ]
    data = zep.parse_zep({"sessions": sessions, "facts": [{"fact": ""}]})
    assert (said(data), data.conversations[0].messages[0].message.name) == ([("user", "hi")], "Li")
    assert [(each.key, each.memory.content) for each in data.memories] == [
        (f"s1:{hash_parts('Li drinks tea')}", "Li drinks tea"), ("f1", "Li has a dog"),
    ]  # fmt: skip
    assert data.memories[1].memory.metadata == {"zep": {"rating": 0.5}}
    assert remarks(data) == {MALFORMED: 2, SILENT: 1}


@pytest.mark.parametrize(("read", "expected"), [
    (mem0.parse_mem0, mem0.EXPECTED), (letta.parse_letta, letta.EXPECTED), (graphiti.parse_graphiti, graphiti.EXPECTED),
    (zep.parse_zep, zep.EXPECTED),
])  # fmt: skip
@pytest.mark.parametrize("value", [None, 1, "x", {}, {"mapping": {}}, {"results": 5, "agents": 5, "edges": 5}])
def test_another_file_is_refused_with_one_sentence_on_how_to_come_by_the_right_one(read, expected, value):
    with pytest.raises(InvalidInputError) as refused:
        read(value)
    assert str(refused.value) == expected


def test_whose_export_a_file_is():
    problem = formats.refuse(FileImport(Format.MEM0, "ada"), [{"chat_messages": []}])
    assert "recollect mind import claude" in str(problem)
    assert "recollect mind import" not in str(formats.refuse(FileImport(Format.MEM0, "ada"), [{"x": 1}]))
    with pytest.raises(InvalidInputError, match="user-id, agent-id, run-id"):
        formats.check_order(FileImport(Format.MEM0, "ada", user_by=UserField.ACCOUNT))


@pytest.mark.parametrize(("value", "read"), [
    ("2024-03-01T09:00:00Z", BEGINNING), ("2024-03-01T09:00:00", BEGINNING), ("2024-03-01T17:00:00+08:00", BEGINNING),
    (BEGINNING.timestamp(), BEGINNING), (BEGINNING.timestamp() * 1000, BEGINNING), (None, None), ("", None),
    ("soon", None), (True, None), ([], None), (1e300, None), (float("nan"), None),
])  # fmt: skip
def test_times_of_every_sort(value, read):
    noted = Counter[str]()
    assert to_moment(value, noted) == read
    assert noted[INVALID_TIME] == (read is None and value not in (None, ""))


def test_names_that_do_not_fit_become_others_that_do():
    names = ["li", "李雷", "李磊", "a b", "a-b", "a/b", "...", "x" * 200, "x" * 201, ""]
    made = [to_identifier(each) for each in names]
    assert made[0] == "li"
    assert made[4] == "a-b"
    assert len(set(made)) == len(names)
    assert all(1 <= len(each) <= 128 for each in made)


def test_a_fact_that_is_too_long_to_be_named_is_kept_as_a_memory():
    data = graphiti.parse_graphiti(
        {"edges": [graphiti_edge("a", "p", "b", "x") | {"source_node_name": "\u200b", "target_node_name": "b"}]}
    )
    assert (data.facts, contents(data), remarks(data).get(REFUSED)) == ([], ["x"], None)

"""Every field of an entry of another system's export is kept where it belongs, under whichever name it has there."""

from __future__ import annotations

import json

import pytest

from recollect.core.imports import claude, graphiti, letta, mem0
from recollect.core.imports.parsed import MALFORMED, TWICE
from recollect.core.imports.text import hash_parts
from recollect.models.conversations import Attachment
from recollect.models.imports import UserField
from recollect.models.knowledge import EntityType
from recollect.models.memories import Kind, NewMemory, Role, Triple
from support.imports.foreign_exports import (
    BEGINNING,
    claude_conversation,
    claude_message,
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
)

MINUTES = 5


def remarks(data):
    return dict(+data.remarks)


def minutes(value):
    return (value - BEGINNING).total_seconds() / 60


def spoken(*messages, **agent):
    file = letta_file(list(messages), [])
    file["agents"][0] |= agent
    return letta.parse_letta(file)


def contents(data):
    return [each.message.content for each in data.conversations[0].messages]


def test_a_block_of_letta_is_a_thought_with_its_label_and_its_times():
    block = letta_block("human", "Li likes tea") | {"metadata": {"a": 1}, "created_at": moment(MINUTES)}
    [found] = letta.parse_letta(letta_file([], [block])).memories
    told = {"agent": "ada", "label": "human", "description": "The human block", "metadata": {"a": 1}}
    memory = found.memory
    assert (found.key, memory.content, memory.kind, memory.importance, memory.keywords, memory.metadata) == (
        "block:ada:human", "Li likes tea", Kind.THOUGHT, 8.0, ("human",), {"letta": told},
    )  # fmt: skip
    assert minutes(memory.occurred_at) == MINUTES
    [changed] = letta.parse_letta(letta_file([], [block | {"updated_at": moment(9), "label": None}])).memories
    assert (minutes(changed.memory.occurred_at), changed.memory.keywords) == (9, ())


def test_a_passage_of_letta_is_an_event_with_its_tags():
    passage = letta_passage("Ada keeps bees", "bees") | {"metadata": {"a": 1}, "created_at": moment(MINUTES)}
    named, unnamed = letta.parse_letta([passage, {"text": "no id"}]).memories
    assert (named.key, named.memory.keywords) == (passage["id"], ("bees",))
    assert (minutes(named.memory.occurred_at), named.memory.metadata) == (MINUTES, {"letta": {"metadata": {"a": 1}}})
    assert unnamed.key == f"passage:{hash_parts('no id')}"


def test_blocks_and_passages_may_be_written_within_an_agent_of_letta():
    own = {"memory_blocks": [letta_block("human", "in the agent")], "passages": [letta_passage("its own")], "name": ""}
    data = spoken(**own)
    assert [(each.key, each.memory.content) for each in data.memories] == [
        ("block:agent:human", "in the agent"), (f"passage-{name('its own')}", "its own"),
    ]  # fmt: skip
    data = letta.parse_letta(letta_file([], []) | {"files": [{}, {}]})
    assert remarks(data) == {"files and their passages: skipped": 2}


def test_a_conversation_of_letta_keeps_its_agent_and_its_time():
    data = spoken(letta_user("hi", MINUTES), created_at=moment(1), description="A teacher")
    [conversation] = data.conversations
    assert (conversation.name, minutes(conversation.created_at)) == ("ada", 1)
    assert conversation.metadata == {"letta": {"agent": "ada", "description": "A teacher"}}
    assert minutes(conversation.messages[0].message.occurred_at) == MINUTES
    assert dict(data.seen) == {"conversations": 1, "messages": 1}


def test_the_content_of_letta_is_a_text_or_parts_or_beside_them():
    parts = [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]
    returned = [{"type": "tool_return", "content": "done"}]
    data = spoken(
        letta_message("user", None, content="plain", name="Li"),
        letta_message("user", None, content=parts),
        letta_message("assistant", None) | {"text": "beside"},
        letta_message("tool", None, content=returned, tool_call_id="c"),
    )
    assert contents(data) == ["plain", "one\ntwo", "beside", ""]
    assert data.conversations[0].messages[3].message.parts[0].text == "done"
    assert [each.message.name for each in data.conversations[0].messages] == ["Li", "", "", ""]


def test_only_what_a_user_says_is_unpacked():
    packed = json.dumps({"type": "user_message", "message": "hi"})
    broken = '{"type": "user_message"'
    data = spoken(
        letta_message("user", packed), letta_message("assistant", packed), letta_message("user", broken),
        letta_message("user", '{"a": 1}'),
    )  # fmt: skip
    assert contents(data) == ["hi", packed, broken, '{"a": 1}']


def test_what_is_no_message_of_letta_is_counted_by_what_it_is():
    assert remarks(spoken(letta_message("system", "You are"), letta_user("hi"))) == {"system prompts: skipped": 1}
    event = letta_message("user", json.dumps({"type": "heartbeat"}))
    assert remarks(spoken(event, letta_user("hi"))) == {letta.EVENTS: 1}
    empty = letta_message("assistant", None, tool_calls=[letta_call("send_message", {})])
    assert contents(spoken(empty, letta_user("hi"))) == ["hi"]


@pytest.mark.parametrize(
    "change",
    [{"role": "assistant"}, {"content": "other"}, {"tool_calls": [letta_call("find", {})]}, {"created_at": moment(9)}],
)
def test_messages_of_letta_that_differ_are_not_taken_for_each_other(change):
    message = letta_message("user", "hi")
    [one], [other] = (spoken(each).conversations[0].messages for each in (message, message | change))
    assert one.key != other.key


def test_a_message_of_letta_has_the_same_key_in_every_import():
    message = letta_message("user", None, content="hi")
    told = json.dumps(["user", "hi", None, moment()])
    assert [each.key for each in spoken(message, message).conversations[0].messages] == [
        hash_parts(told, 1), hash_parts(told, 2),
    ]  # fmt: skip


def test_a_conversation_of_claude_keeps_what_is_known_of_it():
    more = {"summary": "Of tea", "model": "opus", "project_uuid": "p", "is_starred": True, "created_at": moment(1)}
    [found] = claude.parse_claude(claude_conversation("t", [claude_message("hi")]) | more).conversations
    told = {"id": name("t"), "summary": "Of tea", "model": "opus", "project_uuid": "p", "is_starred": True}
    assert (found.metadata, minutes(found.created_at)) == ({"claude": told}, 1)


@pytest.mark.parametrize(
    "document", [{"chat_messages": []}, {"uuid": "x"}, {"uuid": "x", "chat_messages": {}}, [], None]
)
def test_what_is_no_conversation_of_claude_is_counted(document):
    data = claude.parse_claude(document)
    assert (data.conversations, remarks(data), dict(data.seen)) == ([], {MALFORMED: 1}, {"conversations": 1})


def test_notes_of_claude_may_be_of_all_conversations_or_of_projects_alone():
    [general] = claude.parse_claude({"conversations_memory": "Tea."}).memories
    assert (general.key, general.memory.metadata, general.owner) == ("memory:", {"claude": {}}, {})
    projects = {"project_memories": {"empty": " ", "p": "Books."}, "account_uuid": "acc"}
    [project] = claude.parse_claude(projects).memories
    assert (project.key, project.memory.content, project.owner) == ("memory:p", "Books.", {UserField.ACCOUNT: "acc"})


def test_files_of_claude_are_found_under_either_name_of_their_fields():
    files = [
        {"file_name": "a.png", "file_uuid": "u1", "id": "i1", "file_kind": "image"},
        {"file_name": "b.png", "id": "i2", "file_type": "image/png"},
        {"file_uuid": "u3"},
        {"file_size": 3},
    ]
    data = claude.parse_claude(claude_conversation("t", [claude_message("look", files=files)]))
    assert data.conversations[0].messages[0].message.attachments == (
        Attachment("image", upload_id="u1", name="a.png"), Attachment("image", upload_id="i2", name="b.png"),
        Attachment("document", upload_id="u3"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ({"file_name": "a.txt", "extracted_content": "tea"}, "[a.txt]\ntea"),
        ({"file_name": "", "extracted_content": "tea"}, "tea"),
        ({"file_name": "a.txt", "extracted_content": ""}, ""),
    ],
)
def test_what_was_pasted_stands_behind_the_name_of_its_file(pasted, text):
    data = claude.parse_claude(claude_conversation("t", [claude_message("", blocks=[], attachments=[pasted])]))
    assert contents(data) == [text]


def test_thinking_of_claude_is_left_out_even_if_it_cannot_be_read():
    blocks = [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "tea"}, {"type": "text"}]
    data = claude.parse_claude(claude_conversation("t", [claude_message("a", "user", blocks=blocks)]))
    assert contents(data) == ["tea"]
    assert remarks(data) == {"thinking blocks: skipped": 1}


def test_a_sender_that_claude_does_not_know_is_another_thing_than_an_empty_message():
    strange = claude.parse_claude(claude_conversation("t", [claude_message("who", "robot"), claude_message("hi")]))
    empty = claude.parse_claude(claude_conversation("t", [claude_message("", blocks=[]), claude_message("hi")]))
    assert remarks(strange) == {claude.OTHER: 1}
    assert remarks(empty) == {claude.EMPTY: 1}


def test_an_episode_of_graphiti_keeps_who_said_it_and_where():
    episode = graphiti_episode("hi", MINUTES, role_name="Li", role="user", episode_metadata={"a": 1})
    plain = graphiti_episode("ho", role="user", metadata={"b": 2})
    told, other = (each.memory for each in graphiti.parse_graphiti({"episodes": [episode, plain]}).memories)
    noted = {"name": "talk", "source": "message", "source_description": "chat"}
    assert (told.speaker, told.metadata) == ("Li", {"graphiti": noted | {"metadata": {"a": 1}}})
    assert (other.speaker, other.metadata) == ("user", {"graphiti": noted | {"metadata": {"b": 2}}})


@pytest.mark.parametrize(
    ("times", "at"),
    [
        ({"valid_at": moment(1), "reference_time": moment(2), "created_at": moment(3)}, 1),
        ({"valid_at": None, "reference_time": moment(2), "created_at": moment(3)}, 2),
        ({"valid_at": None, "created_at": moment(3)}, 3),
    ],
)
def test_an_episode_of_graphiti_happened_when_it_says_first(times, at):
    [found] = graphiti.parse_graphiti({"episodes": [graphiti_episode("hi") | times]}).memories
    assert minutes(found.memory.occurred_at) == at


def test_entries_of_graphiti_without_a_text_are_counted():
    edge = graphiti_edge("", "", "", "") | {"uuid": "f"}
    data = graphiti.parse_graphiti(
        {"episodic_nodes": [graphiti_episode(" ", uuid="e")], "facts": [edge], "communities": [{}]}
    )
    assert (data.memories, data.facts, dict(data.seen)) == ([], [], {"memories": 1, "facts": 1})
    assert remarks(data) == {MALFORMED: 2, "communities: skipped": 1}


def test_the_summary_of_an_entity_of_graphiti_keeps_its_labels_and_attributes():
    node = graphiti_node("Ada", "Teaches.", "Person") | {"attributes": {"age": 9}, "created_at": moment(MINUTES)}
    node |= {"uuid": None, "uuid_": "n"}
    [found] = graphiti.parse_graphiti({"entities": [node]}).memories
    assert (found.key, minutes(found.memory.occurred_at)) == ("node:n", MINUTES)
    assert found.memory.metadata == {"graphiti": {"labels": ["Entity", "Person"], "attributes": {"age": 9}}}


def test_a_fact_of_graphiti_keeps_its_attributes_and_its_times_as_they_were_written():
    long = moment() + " " * 40
    edge = graphiti_edge("Ada", "KNOWS", "Li", "", uuid="f", created_at=long, attributes={"a": 1})
    edge |= {"valid_at": moment(1), "invalid_at": moment(2)}
    data = graphiti.parse_graphiti({"nodes": [graphiti_node("Ada"), graphiti_node("Li")], "edges": [edge]})
    [found] = data.facts
    assert (found.key, found.fact.text) == ("f", "Ada KNOWS Li")
    times = {field: moment(at).replace("Z", "+00:00") for field, at in (("valid_at", 1), ("invalid_at", 2))}
    assert found.spare.metadata == {"graphiti": {"created_at": long[:40], "attributes": {"a": 1}} | times}


@pytest.mark.parametrize(("said", "ends", "occurred"), [(1, 2, 1), (2, 2, 0), (3, 2, 0), (None, 2, None), (1, None, 1)])
def test_what_stands_for_a_fact_expires_with_it_and_happened_before(said, ends, occurred):
    dated = {"created_at": said, "valid_at": 0, "invalid_at": ends}
    times = {field: None if at is None else moment(at) for field, at in dated.items()}
    [found] = graphiti.parse_graphiti({"edges": [graphiti_edge("Ada", "IS", "Ada", "Ada is") | times]}).memories
    memory = found.memory
    assert [value and minutes(value) for value in (memory.occurred_at, memory.expires_at)] == [occurred, ends]


@pytest.mark.parametrize(
    ("label", "sort"),
    [("Company", EntityType.ORGANIZATION), ("place", EntityType.PLACE), ("EVENT", EntityType.EVENT), ("Odd", None)],
)
def test_labels_of_graphiti_tell_the_type_of_an_entity(label, sort):
    nodes = [graphiti_node("Ada", "", "Odd", label), graphiti_node("Li")]
    [found] = graphiti.parse_graphiti({"nodes": nodes, "edges": [graphiti_edge("Ada", "KNOWS", "Li", "x")]}).facts
    assert (found.fact.subject_type, found.fact.object_type) == (sort, None)


def test_a_memory_of_mem0_is_found_under_either_name_of_its_text():
    entries = [
        {"id": "1", "text": "old"}, {"id": "2", "memory": "new", "text": "old"}, {"memory": "unnamed"},
        {"id": 1.5, "memory": "odd"}, {"id": "3", "memory": " "},
    ]  # fmt: skip
    data = mem0.parse_mem0(entries)
    assert [(each.key, each.memory.content) for each in data.memories] == [
        ("1", "old"), ("2", "new"), (hash_parts("unnamed"), "unnamed"), (hash_parts("odd"), "odd"),
    ]  # fmt: skip
    assert remarks(data) == {MALFORMED: 1}


def test_a_point_of_qdrant_keeps_its_own_fields_and_loses_what_was_derived():
    point = mem0_point("tea", mood="calm", category="drinks", run_id="r", actor_id="Li", expiration_date="2030-01-01")
    [found] = mem0.parse_mem0({"points": [point]}).memories
    assert (found.key, found.memory.keywords, found.memory.speaker) == (name("tea"), ("drinks",), "Li")
    assert found.memory.metadata["mem0"] == {
        "actor_id": "Li", "expiration_date": "2030-01-01", "run_id": "r", "user_id": "li",
        "metadata": {"mood": "calm", "category": "drinks"}, "updated_at": moment(),
    }  # fmt: skip
    [other] = mem0.parse_mem0([{"id": 7, "payload": {"memory": "tea", "vector": [1], "attributed_to": "x"}}]).memories
    assert (other.key, other.memory.content, other.memory.metadata) == ("7", "tea", {"mem0": {}})


def test_categories_of_mem0_are_keywords_once_and_not_too_many():
    entry = mem0_memory("tea", categories=["a", "b"], metadata={"categories": ["b", "c", 5], "category": "d"})
    many = mem0_memory("many", categories=[str(number) for number in range(200)])
    first, second = (each.memory.keywords for each in mem0.parse_mem0([entry, many]).memories)
    assert first == ("a", "b", "c", "d")
    assert second == tuple(str(number) for number in range(len(second)))
    assert len(second) < 200


def test_only_a_whole_day_lasts_until_its_end():
    ends = [" 2030-01-31 ", "2030-01-31T00:00:00Z", "20300131", moment(MINUTES)]
    data = mem0.parse_mem0([mem0_memory(end, expiration_date=end) for end in ends])
    found = [each.memory.expires_at.isoformat()[:16] for each in data.memories]
    assert found == ["2030-02-01T00:00", "2030-01-31T00:00", "2030-01-31T00:00", "2024-03-01T09:05"]


def test_a_relation_of_mem0_is_worded_and_has_an_owner():
    relation = {"source": "li", "relationship": "lives_in", "target": "hangzhou", "user_id": "li", "run_id": "r"}
    [found] = mem0.parse_mem0([{"relations": [relation], "results": []}]).facts
    assert (found.key, found.fact.text) == (
        f"relation:{hash_parts('li', 'lives_in', 'hangzhou')}",
        "li lives in hangzhou",
    )
    assert found.owner == {UserField.USER_ID: "li", UserField.RUN_ID: "r"}
    assert found.spare == NewMemory(found.fact.text, Kind.THOUGHT, triple=Triple("li", "lives_in", "hangzhou"))
    assert mem0.parse_mem0({"results": [], "relations": []}).facts == []


def test_the_same_id_twice_is_one_memory():
    data = mem0.parse_mem0([mem0_memory("one", key="k"), mem0_memory("two", key="k")])
    assert ([each.memory.content for each in data.memories], remarks(data)) == (["one"], {TWICE: 1})


def test_roles_of_claude():
    senders = [("human", Role.USER), ("user", Role.USER), ("assistant", Role.ASSISTANT)]
    messages = [claude_message(sender, sender) for sender, _ in senders]
    found = claude.parse_claude(claude_conversation("t", messages)).conversations[0].messages
    assert [each.message.role for each in found] == [role for _, role in senders]

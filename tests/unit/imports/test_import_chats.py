"""What ChatGPT and Claude export is read as it was said: trees with hidden nodes, tools, files, blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.imports import chatgpt, claude
from recollect.core.imports.parsed import MALFORMED, REFUSED, SILENT, TWICE
from recollect.core.imports.text import CLEANED, INVALID_TIME, LARGE, LONG
from recollect.models.conversations import Attachment, Part, PartType
from recollect.models.imports import UserField
from recollect.models.memories import Kind, Role
from support.imports.foreign_exports import (
    BEGINNING,
    ROOT,
    chatgpt_conversation,
    chatgpt_line,
    chatgpt_node,
    claude_conversation,
    claude_message,
    moment,
    name,
)


def told(conversation):
    """Give what is said, each behind the place of what it follows."""
    places = {each.key: place for place, each in enumerate(conversation.messages)}
    return [(each.message.content, places.get(each.parent)) for each in conversation.messages]


def remarks(data):
    return dict(+data.remarks)


def test_a_plain_conversation():
    data = chatgpt.parse_chatgpt(chatgpt_line("t", ["喝什么茶？", "乌龙。", "谢谢"], title="茶"))
    conversation = data.conversations[0]
    assert told(conversation) == [("喝什么茶？", None), ("乌龙。", 0), ("谢谢", 1)]
    assert (conversation.id, conversation.name, conversation.created_at) == (name("t"), "茶", BEGINNING)
    assert [each.message.role for each in conversation.messages] == [Role.USER, Role.ASSISTANT, Role.USER]
    assert [each.key for each in conversation.messages] == [each.message.external_id for each in conversation.messages]
    assert conversation.metadata == {"chatgpt": {"id": name("t"), "default_model_slug": "gpt-4o", "is_archived": False}}
    assert (dict(data.seen), remarks(data)) == ({"conversations": 1, "messages": 4}, {chatgpt.HIDDEN: 1})


def test_branches_keep_their_parents_and_the_one_last_seen_ends_last():
    nodes = [
        chatgpt_node("root", None),
        chatgpt_node("q", "root", "user", "q", 0),
        chatgpt_node("old", "q", "assistant", "old answer", 1),
        chatgpt_node("new", "q", "assistant", "new answer", 2),
        chatgpt_node("more", "old", "user", "more", 3),
    ]
    data = chatgpt.parse_chatgpt(chatgpt_conversation("t", nodes, current="new"))
    assert told(data.conversations[0]) == [("q", None), ("old answer", 0), ("more", 1), ("new answer", 0)]
    assert remarks(data) == {chatgpt.BRANCHED: 1}


def test_tools_are_called_and_answer():
    code = {"content": {"content_type": "code", "language": "python", "text": "print(1)"}, "recipient": "python"}
    output = {
        "content": {"content_type": "execution_output", "text": "1"},
        "author": {"role": "tool", "name": "python", "metadata": {}},
    }
    quote = {"content": {"content_type": "tether_quote", "url": "https://x.org", "text": "leaves", "title": "Tea"}}
    nodes = [
        chatgpt_node("q", None, "user", "count", 0),
        chatgpt_node("call", "q", "assistant", minutes=1, metadata={"model_slug": "gpt-4o"}, **code),
        chatgpt_node("result", "call", "tool", minutes=2, **output),
        chatgpt_node("quote", "result", "tool", minutes=3, **quote),
        chatgpt_node("a", "quote", "assistant", "one", 4),
    ]
    messages = [
        each.message for each in chatgpt.parse_chatgpt(chatgpt_conversation("t", nodes)).conversations[0].messages
    ]
    assert messages[1].parts == (Part(PartType.TOOL_CALL, "print(1)", "python", call_id="call"),)
    assert messages[1].metadata == {"chatgpt": {"model": "gpt-4o"}}
    assert messages[2].parts == (Part(PartType.TOOL_RESULT, "1", "python", call_id="call"),)
    assert messages[3].parts[0].text == "Tea\nhttps://x.org\nleaves"
    assert [message.role for message in messages[1:]] == [Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.ASSISTANT]


def test_files_are_listed_once_and_speech_is_read():
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 1}
    painted = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_2"}
    heard = {"content_type": "audio_transcription", "text": "你好", "direction": "in"}
    sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_3", "format": "wav"}
    attached = {"attachments": [{"id": "file-1", "name": "湖.png", "mime_type": "image/png", "size": 1}]}
    shown = {"content": {"content_type": "multimodal_text", "parts": [pointer, "where?"]}, "metadata": attached}
    spoken = {"content": {"content_type": "multimodal_text", "parts": [heard, sound, painted]}}
    nodes = [chatgpt_node("a", None, "user", minutes=0, **shown), chatgpt_node("b", "a", "user", minutes=1, **spoken)]
    first, second = (
        each.message for each in chatgpt.parse_chatgpt(chatgpt_conversation("t", nodes)).conversations[0].messages
    )
    assert (first.content, first.attachments) == ("where?", (Attachment("image", upload_id="file-1", name="湖.png"),))
    assert second.content == "你好"
    assert [(each.type, each.upload_id) for each in second.attachments] == [("audio", "file_3"), ("image", "file_2")]


def test_what_nobody_said_is_left_out_and_its_place_passed_on():
    profile = {"content": {"content_type": "user_editable_context", "user_profile": "x", "user_instructions": "y"}}
    thoughts = {"content": {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}}
    nodes = [
        chatgpt_node("root", None),
        chatgpt_node("profile", "root", "user", minutes=None, **profile),
        chatgpt_node("q", "profile", "user", "q", 1),
        chatgpt_node("thoughts", "q", "assistant", minutes=2, **thoughts),
        chatgpt_node("empty", "thoughts", "assistant", "", 3),
        chatgpt_node("critic", "empty", "critic", "hm", 4),
        chatgpt_node("a", "critic", "assistant", "a", 5),
    ]
    data = chatgpt.parse_chatgpt(chatgpt_conversation("t", nodes))
    assert told(data.conversations[0]) == [("q", None), ("a", 0)]
    assert remarks(data) == {
        chatgpt.INSTRUCTIONS: 1, chatgpt.REASONING: 1, chatgpt.EMPTY: 1, chatgpt.OTHER: 1,
    }  # fmt: skip
    assert data.seen["messages"] == 6


def test_times_are_those_of_the_message_or_of_what_it_follows():
    nodes = [
        chatgpt_node("a", None, "user", "a", None),
        chatgpt_node("b", "a", "assistant", "b", 5),
        chatgpt_node("c", "b", "user", "c", None),
        chatgpt_node("d", "c", "assistant", "d", 7, create_time=1e40),
    ]
    data = chatgpt.parse_chatgpt(chatgpt_conversation("t", nodes))
    minutes = [(each.message.occurred_at - BEGINNING).seconds / 60 for each in data.conversations[0].messages]
    assert minutes == [0, 5, 5, 5]
    assert data.remarks[INVALID_TIME] == 1


def test_what_cannot_be_kept_is_cut_or_cleaned_and_said():
    nodes = [chatgpt_node("a", None, "user", "字" * 200_001, 0), chatgpt_node("b", "a", "assistant", "x\x00y\ud800", 1)]
    conversation = chatgpt_conversation("a strange id / 茶", nodes, title="two\nlines")
    conversation |= {"conversation_id": "a strange id / 茶", "gizmo_id": "g" * 20_000}
    data = chatgpt.parse_chatgpt(conversation)
    long, cleaned = (each.message.content for each in data.conversations[0].messages)
    assert (len(long), cleaned) == (200_000, "x\ufffdy\ufffd")
    assert data.conversations[0].id.startswith("a-strange-id-")
    assert (data.conversations[0].name, data.conversations[0].metadata["chatgpt"]) == (
        "two lines",
        {"id": "a strange id / 茶"},
    )
    assert remarks(data) == {LONG: 1, CLEANED: 1, LARGE: 1}


def test_entries_that_are_no_conversations_are_counted():
    for entry in (None, 5, "x", [], {}, {"mapping": {}}, {"id": "x", "mapping": []}):
        data = chatgpt.parse_chatgpt(entry)
        assert (data.conversations, dict(data.seen), remarks(data)) == (
            [],
            {"conversations": 1},
            {MALFORMED: 1},
        )
    empty = chatgpt.parse_chatgpt(chatgpt_conversation("t", [chatgpt_node("root", None)]))
    assert (empty.conversations, remarks(empty)) == ([], {SILENT: 1})
    odd = {"x": None, "y": {"message": 7}, "z": {"message": {"author": [], "content": "?"}, "parent": 5}}
    assert chatgpt.parse_chatgpt({"id": "t", "mapping": odd}).conversations == []


@st.composite
def trees(draw):
    """A tree as ChatGPT saves it, in any order, with hidden nodes, missing times and parents that are not there."""
    size = draw(st.integers(1, 30))
    nodes = []
    for number in range(size):
        parent = draw(st.integers(-2, number - 1))
        above = None if parent == -1 else "gone" if parent == -2 else f"n{parent}"
        role = draw(st.sampled_from(["user", "assistant", "user", "assistant", "system", ""]))
        minutes = draw(st.none() | st.integers(0, 9))
        nodes.append(chatgpt_node(f"n{number}", above, role, f"says {number}", minutes))
    current = f"n{draw(st.integers(0, size - 1))}"
    return chatgpt_conversation("t", draw(st.permutations(nodes)), current)


@given(trees())
def test_every_message_follows_the_nearest_one_above_it_that_is_kept(conversation):
    data = chatgpt.parse_chatgpt(conversation)
    mapping = conversation["mapping"]
    kept = {key for key, node in mapping.items() if node["message"] and node["message"]["author"]["role"] != "system"}

    def nearest(key):
        key = mapping[key]["parent"]
        while key in mapping and key not in kept:
            key = mapping[key]["parent"]
        return key if key in mapping else None

    messages = data.conversations[0].messages if data.conversations else ()
    assert {each.key: each.parent for each in messages} == {key: nearest(key) for key in kept}
    seen: set[str] = set()
    for each in messages:
        assert each.parent is None or each.parent in seen
        seen.add(each.key)
    current = conversation["current_node"]
    last = current if current in kept else nearest(current)
    if last and not any(nearest(key) == last for key in kept):
        assert messages[-1].key == last


@given(trees(), st.data())
def test_a_circle_of_parents_is_cut_and_nothing_is_lost(conversation, drawn):
    key = drawn.draw(st.sampled_from(sorted(conversation["mapping"])))
    conversation["mapping"][key]["parent"] = drawn.draw(st.sampled_from(sorted(conversation["mapping"])))
    data = chatgpt.parse_chatgpt(conversation)
    messages = data.conversations[0].messages if data.conversations else ()
    assert len(messages) == data.seen["messages"] - data.remarks[chatgpt.HIDDEN]
    places = {each.key: place for place, each in enumerate(messages)}
    assert all(each.parent is None or places[each.parent] < places[each.key] for each in messages)


def test_a_claude_conversation_without_parents_is_a_line():
    conversation = claude_conversation(
        "t", [claude_message("喝茶吗？"), claude_message("好。", "assistant", 1)], title="茶"
    )
    data = claude.parse_claude(conversation)
    found = data.conversations[0]
    assert told(found) == [("喝茶吗？", None), ("好。", 0)]
    assert (found.id, found.name, found.owner) == (name("t"), "茶", {UserField.ACCOUNT: name("account")})
    assert found.messages[1].message.occurred_at.isoformat() == moment(1).replace("Z", "+00:00")
    assert (dict(data.seen), remarks(data)) == ({"conversations": 1, "messages": 2}, {})


def test_a_claude_conversation_with_parents_is_a_tree():
    messages = [
        claude_message("q", parent_message_uuid=ROOT),
        claude_message("first", "assistant", 1, parent_message_uuid=name("q")),
        claude_message("second", "assistant", 2, parent_message_uuid=name("q")),
        claude_message("more", "human", 3, parent_message_uuid=name("first")),
    ]
    assert told(claude.parse_claude(claude_conversation("t", messages)).conversations[0]) == [
        ("q", None), ("first", 0), ("second", 0), ("more", 1),
    ]  # fmt: skip


def test_blocks_pasted_texts_and_files():
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "name": "search", "input": {"q": "tea"}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "leaves"}]},
        {"type": "text", "text": "Leaves."},
        {"type": "token_budget", "remaining": None},
    ]
    pasted = {"file_name": "笔记.txt", "file_size": 3, "file_type": "text/plain", "extracted_content": "龙井"}
    asked = claude_message(
        "read", attachments=[pasted], files=[{"file_name": "湖.png", "file_uuid": "f", "file_kind": "image"}]
    )
    data = claude.parse_claude(claude_conversation("t", [asked, claude_message("a", "assistant", 1, blocks)]))
    first, second = (each.message for each in data.conversations[0].messages)
    assert first.content == "read\n\n[笔记.txt]\n龙井"
    assert first.attachments == (
        Attachment("document", name="笔记.txt"), Attachment("image", upload_id="f", name="湖.png"),
    )  # fmt: skip
    assert second.content == "Let me look.\n\nLeaves."
    assert remarks(data) == {claude.THINKING: 1, claude.TOOLS: 2}


def test_old_messages_have_their_text_beside_the_blocks_and_odd_ones_are_counted():
    messages = [
        claude_message("old", blocks=[]),
        claude_message("old", blocks=[]),
        claude_message("", "assistant", 1, []) | {"uuid": "e"},
        claude_message("who", "robot", 2),
        {"text": "no id"},
        claude_message("last", "human", 3),
    ]
    data = claude.parse_claude(claude_conversation("t", messages))
    assert told(data.conversations[0]) == [("old", None), ("last", 0)]
    assert remarks(data) == {chatgpt.EMPTY: 1, chatgpt.OTHER: 1, MALFORMED: 1, TWICE: 1}
    assert data.seen["messages"] == 6
    assert remarks(claude.parse_claude({"mapping": {}})) == {MALFORMED: 1}


def test_what_claude_wrote_down_is_remembered():
    data = claude.parse_claude(
        {"conversations_memory": "Li drinks oolong.", "project_memories": {"p1": "写书"}, "account_uuid": "acc"}
    )
    assert [(each.key, each.memory.content, each.memory.kind) for each in data.memories] == [
        ("memory:acc", "Li drinks oolong.", Kind.THOUGHT), ("memory:p1", "写书", Kind.THOUGHT),
    ]  # fmt: skip
    assert data.memories[1].memory.metadata == {"claude": {"project": "p1"}}


def test_a_message_that_cannot_be_kept_does_not_break_the_thread():
    messages = [
        claude_message("q"),
        claude_message(
            "a", "assistant", 1, files=[{"file_name": "f", "file_kind": "image", "file_uuid": "u" * 10}] * 70
        ),
        claude_message("z", "human", 2, created_at="0001-01-01T00:00:00Z"),
    ]
    data = claude.parse_claude(claude_conversation("t", messages))
    assert told(data.conversations[0]) == [("q", None), ("a", 0), ("z", 1)]
    assert len(data.conversations[0].messages[1].message.attachments) == 64
    assert remarks(data) == {INVALID_TIME: 1, chatgpt.TOO_MANY_FILES: 6}
    assert REFUSED not in data.remarks


def test_a_block_of_another_type_gives_its_text_or_is_counted():
    blocks = [
        {"type": "voice_note", "title": "note", "text": "spoken words"},
        {"type": "flag", "flag": "x"},
        {"type": "text", "text": "and written ones"},
    ]
    data = claude.parse_claude(claude_conversation("t", [claude_message("a", "assistant", 0, blocks)]))
    assert told(data.conversations[0]) == [("spoken words\n\nand written ones", None)]
    assert remarks(data) == {claude.FOREIGN: 1}


def test_ids_that_cannot_be_stored_still_lead_to_their_parents():
    call = {"content": {"content_type": "code", "text": "print(1)"}, "recipient": "python"}
    nodes = [
        chatgpt_node("a\ud800", None, "user", "a", 0),
        chatgpt_node("b\udfff", "a\ud800", "assistant", minutes=1, **call),
        chatgpt_node("c", "b\udfff", "tool", "1", 2),
    ]
    conversation = chatgpt.parse_chatgpt(
        chatgpt_conversation("t", nodes) | {"conversation_id": "t\ud800", "current_node": "c"}
    ).conversations[0]
    assert [place for _, place in told(conversation)] == [None, 0, 1]
    asked = claude_message("q", uuid="q\ud800", parent_message_uuid=ROOT)
    answered = claude_message("a", "assistant", 1, parent_message_uuid="q\ud800")
    spoken = claude.parse_claude(claude_conversation("t", [asked, answered])).conversations[0]
    assert told(spoken) == [("q", None), ("a", 0)]
    for each in (*conversation.messages, *spoken.messages):
        each.message.external_id.encode()

"""A message is shown the same way wherever it is shown, and counted as it is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.core.conversations.messages import (
    count_images,
    count_tokens,
    memory_text,
    prompt_text,
    to_prompt,
    to_text,
)
from recollect.models.conversations import Attachment, Message, NewMessage, Part, PartType
from recollect.models.memories import Role

URL = "https://example.org/a.png"
TEXT = Part(PartType.TEXT, text="look")
PICTURE = Part(PartType.IMAGE, url=URL)
DARK = Part(PartType.IMAGE)
FILE = Part(PartType.FILE, name="plan.pdf")
CALL = Part(PartType.TOOL_CALL, name="find", text='{"q": 1}', call_id="c1")
RESULT = Part(PartType.TOOL_RESULT, text="42", call_id="c1")
CALLED = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}


def new(role: Role, content: str = "", **more) -> NewMessage:
    return NewMessage(role=role, content=content, **more)


def stored(role: Role, content: str = "", **more) -> Message:
    """Give the message as it comes back: with the content that was made from its parts."""
    message = new(role, content, **more)
    return Message(
        id=UUID(int=1),
        role=role,
        content=memory_text(message),
        name=message.name,
        parts=message.parts,
        attachments=message.attachments,
        parent=None,
        turn=UUID(int=1),
        number=1,
        status=message.status,
        tokens=0,
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        external_id="",
    )


def words(text: str) -> int:
    return len(text.split())


def test_the_content_is_what_is_said():
    assert memory_text(new(Role.USER, "hello", parts=(TEXT,))) == "hello"


def test_parts_say_it_where_there_is_no_content():
    parts = (TEXT, PICTURE, FILE, CALL, RESULT)
    assert memory_text(new(Role.USER, parts=parts)) == 'look\n[image]\n[file plan.pdf]\n[tool call find {"q": 1}]\n42'


def test_what_a_part_lacks_leaves_no_trace():
    parts = (Part(PartType.FILE), Part(PartType.TOOL_CALL, name="now"), Part(PartType.TEXT), Part(PartType.TOOL_RESULT))
    assert memory_text(new(Role.ASSISTANT, parts=parts)) == "[file]\n[tool call now]"


def test_attachments_are_shown_before_what_is_said():
    attachments = (Attachment("image", url=URL), Attachment("document", name="a.txt"), Attachment("audio"))
    shown = "[image]\n[document a.txt]\n[audio]\nhello"
    assert prompt_text(new(Role.USER, "hello", attachments=attachments)) == shown
    assert prompt_text(stored(Role.USER, "hello", attachments=attachments)) == shown
    assert prompt_text(new(Role.USER, attachments=attachments[:1])) == "[image]"


def test_a_message_is_shown_the_same_before_and_after_it_is_stored():
    for parts in ((TEXT, PICTURE), (CALL,), (TEXT, CALL), (RESULT,), (FILE, TEXT)):
        for content in ("", "own words"):
            assert prompt_text(new(Role.USER, content, parts=parts)) == prompt_text(
                stored(Role.USER, content, parts=parts)
            )


def test_a_content_beside_parts_stands_for_their_texts_and_hides_nothing_else():
    message = new(Role.ASSISTANT, "let me see", parts=(TEXT, DARK, FILE, CALL, RESULT))
    assert prompt_text(message) == '[image]\n[file plan.pdf]\nlet me see\n[tool call find {"q": 1}]'


def test_images_count_where_they_can_be_handed_on():
    attachments = (Attachment("image", url=URL), Attachment("image", upload_id="u1"), Attachment("audio", url=URL))
    assert count_images(new(Role.USER, parts=(PICTURE, DARK, FILE), attachments=attachments)) == 2
    assert count_images(stored(Role.USER, parts=(PICTURE,))) == 1
    assert count_images(stored(Role.USER, attachments=(Attachment("Image", url=URL),))) == 1


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM, Role.TOOL])
def test_only_a_user_can_show_images_to_a_model(role):
    message = stored(role, "see", parts=(PICTURE,))
    assert count_images(message) == 0
    assert to_prompt(message, images=True)["content"] == "[image]\nsee"


def test_tokens_are_the_frame_the_text_and_the_name():
    assert count_tokens(new(Role.USER, "one two three"), words, 4, 1) == 7
    assert count_tokens(new(Role.USER, "one two three", name="Ann Lee"), words, 4, 1) == 10
    assert count_tokens(new(Role.USER, "one", attachments=(Attachment("image"),)), words, 4, 1) == 6
    assert count_tokens(new(Role.ASSISTANT, "one", parts=(CALL,)), words, 0, 0) == 6


def test_a_plain_message_is_role_and_content():
    assert to_prompt(stored(Role.USER, "hello"), images=True) == {"role": "user", "content": "hello"}
    named = to_prompt(stored(Role.SYSTEM, "be kind", name="rules"), images=False)
    assert named == {"role": "system", "content": "be kind", "name": "rules"}


def test_a_tool_call_is_handed_on_as_one():
    prompt = to_prompt(stored(Role.ASSISTANT, parts=(CALL,)), images=False)
    assert prompt == {"role": "assistant", "content": None, "tool_calls": [CALLED]}


@pytest.mark.parametrize("parts", [(TEXT, CALL), (CALL, TEXT)])
def test_what_is_said_beside_a_tool_call_stays_text(parts):
    prompt = to_prompt(stored(Role.ASSISTANT, parts=parts), images=False)
    assert prompt == {"role": "assistant", "content": "look", "tool_calls": [CALLED]}
    own = to_prompt(
        stored(Role.ASSISTANT, "let me see", parts=(CALL,), attachments=(Attachment("audio"),)), images=True
    )
    assert own == {"role": "assistant", "content": "[audio]\nlet me see", "tool_calls": [CALLED]}


def test_only_an_assistant_calls_tools():
    prompt = to_prompt(stored(Role.USER, parts=(CALL,)), images=False)
    assert prompt == {"role": "user", "content": '[tool call find {"q": 1}]'}


def test_a_tools_result_names_its_call():
    prompt = to_prompt(stored(Role.TOOL, parts=(RESULT,), name="find"), images=True)
    assert prompt == {"role": "tool", "content": "42", "name": "find", "tool_call_id": "c1"}
    assert to_prompt(stored(Role.TOOL, "42"), images=False)["tool_call_id"] == ""


def test_images_are_handed_on_before_the_text():
    attachments = (Attachment("image", url=URL), Attachment("image", upload_id="u1"), Attachment("audio", name="b.mp3"))
    message = stored(
        Role.USER, parts=(TEXT, Part(PartType.IMAGE, url="https://example.org/b.png")), attachments=attachments
    )
    assert to_prompt(message, images=True)["content"] == [
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "text", "text": "[image]"},
        {"type": "image_url", "image_url": {"url": "https://example.org/b.png"}},
        {"type": "text", "text": "[audio b.mp3]\nlook"},
    ]
    assert to_prompt(message, images=False)["content"] == "[image]\n[image]\n[audio b.mp3]\nlook\n[image]"


def test_an_image_alone_needs_no_text():
    message = stored(Role.USER, parts=(PICTURE,))
    assert to_prompt(message, images=True)["content"] == [{"type": "image_url", "image_url": {"url": URL}}]


def test_an_image_beside_a_content_is_handed_on_once():
    message = stored(Role.USER, "see this", parts=(PICTURE,))
    assert to_prompt(message, images=True)["content"] == [
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "text", "text": "see this"},
    ]


def test_the_text_form_shows_user_and_assistant_behind_their_prefixes():
    messages = [
        stored(Role.SYSTEM, "be kind"),
        stored(Role.USER, "hello", attachments=(Attachment("image", url=URL),)),
        stored(Role.ASSISTANT, parts=(CALL,)),
        stored(Role.TOOL, parts=(RESULT,)),
        stored(Role.ASSISTANT, "it is 42"),
    ]
    assert to_text(messages, ("Human", "AI")) == ('Human: [image]\nhello\nAI: [tool call find {"q": 1}]\nAI: it is 42')
    assert to_text([], ("Human", "AI")) == ""

"""Parse messages in any form, format them for a prompt, and count their tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from recollect.errors import InvalidInputError
from recollect.models.conversations import Attachment, Message, NewMessage, Part, PartType, PromptMessage
from recollect.models.memories import JSON, Role

IMAGE = "[image]"

Utterance: TypeAlias = str | NewMessage | Mapping[str, Any]
"""Anything that can be appended as a message: an object, a mapping or a string."""


def as_messages(given: Utterance | Sequence[Utterance]) -> list[NewMessage]:
    """Convert one message or many to a list; a string is a user message."""
    many = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    return [as_message(each) for each in many]


def as_message(given: Utterance) -> NewMessage:
    """Convert a message from any of its forms; raise an error that lists the forms."""
    try:
        if isinstance(given, str):
            return NewMessage(Role.USER, given)
        if isinstance(given, NewMessage):
            return given if isinstance(given.role, Role) else replace(given, role=Role(given.role))
        fields = dict(given)
        return NewMessage(Role(fields.pop("role")), *(fields.pop(each, "") for each in ("content", "name")), **fields)
    except (KeyError, TypeError, ValueError):
        roles = ", ".join(Role)
        raise InvalidInputError(
            f"a message must be a NewMessage, a string, or a dict with `role` ({roles}), `content` and `name`"
        ) from None


def memory_text(message: NewMessage | Message) -> str:
    """Return the text that is remembered: the content, or else the texts of the parts."""
    return message.content or _join(map(_show_part, message.parts))


def prompt_text(message: NewMessage | Message) -> str:
    """Return a message as prompt text: its attachments, then its text."""
    return _join([*map(_show_attachment, message.attachments), *_show(message)])


def count_images(message: NewMessage | Message) -> int:
    """Count the images that can be passed to a model: in user messages only, and with a URL."""
    return sum(1 for url in _images(message) if url) if message.role is Role.USER else 0


def count_tokens(message: NewMessage | Message, count: Callable[[str], int], frame: int, naming: int) -> int:
    """Count the tokens of a message in a prompt, with images as text."""
    name = naming + count(message.name) if message.name else 0
    return frame + count(prompt_text(message)) + name


def to_prompt(message: Message, *, images: bool) -> PromptMessage:
    """Convert a message to one element of an OpenAI-style `messages` array."""
    prompt: dict[str, JSON] = {"role": message.role.value, "content": prompt_text(message)}
    if message.name:
        prompt["name"] = message.name
    if message.role is Role.TOOL:
        prompt["tool_call_id"] = next((part.call_id for part in message.parts if part.call_id), "")
    elif message.role is Role.ASSISTANT and (calls := _calls(message)):
        prompt["content"] = _other_text(message, PartType.TOOL_CALL) or None
        prompt["tool_calls"] = calls
    elif images and message.role is Role.USER and (urls := _images(message)):
        prompt["content"] = [
            *map(_hand_on, urls),
            *map(_text_part, filter(None, [_other_text(message, PartType.IMAGE)])),
        ]
    return prompt


def to_text(messages: Sequence[Message], prefixes: tuple[str, str]) -> str:
    """Format the messages of user and assistant, each after its prefix."""
    speakers = dict(zip((Role.USER, Role.ASSISTANT), prefixes, strict=True))
    return "\n".join(
        f"{speakers[message.role]}: {prompt_text(message)}" for message in messages if message.role in speakers
    )


def is_own(message: NewMessage | Message) -> bool:
    """Return whether the content was sent, not made from the parts."""
    return bool(message.content) and message.content != _join(map(_show_part, message.parts))


def _show(message: NewMessage | Message, without: PartType | None = None) -> list[str]:
    """List the lines of a message, without the parts of one type."""
    parts = [part for part in message.parts if part.type is not without]
    if not is_own(message):
        return [_show_part(part) for part in parts]
    # A content repeats the texts of parts; other parts are shown and counted in addition.
    files = [_show_part(part) for part in parts if part.type in {PartType.IMAGE, PartType.FILE}]
    return [*files, message.content, *(_show_part(part) for part in parts if part.type is PartType.TOOL_CALL)]


def _other_text(message: Message, handed_on: PartType) -> str:
    """Return the remaining text of a message if the parts of one type are passed as they are."""
    attachments = [
        _show_attachment(each) for each in message.attachments if handed_on is not PartType.IMAGE or not _is_image(each)
    ]
    return _join([*attachments, *_show(message, without=handed_on)])


def _show_part(part: Part) -> str:
    if part.type is PartType.IMAGE:
        return IMAGE
    if part.type is PartType.FILE:
        return _bracket("file", part.name)
    if part.type is PartType.TOOL_CALL:
        return _bracket("tool call", part.name, part.text)
    return part.text


def _show_attachment(attachment: Attachment) -> str:
    return IMAGE if _is_image(attachment) else _bracket(attachment.type, attachment.name)


def _is_image(attachment: Attachment) -> bool:
    return attachment.type.lower() == "image"


def _bracket(*words: str) -> str:
    return f"[{' '.join(filter(None, words))}]"


def _join(lines: Iterable[str]) -> str:
    return "\n".join(filter(None, lines))


def _images(message: NewMessage | Message) -> list[str]:
    """List the URL of every image, attachments first; empty for images without a URL."""
    attached = [each.url for each in message.attachments if _is_image(each)]
    return attached + [part.url for part in message.parts if part.type is PartType.IMAGE]


def _calls(message: Message) -> list[JSON]:
    return [
        {"id": part.call_id, "type": "function", "function": {"name": part.name, "arguments": part.text}}
        for part in message.parts
        if part.type is PartType.TOOL_CALL
    ]


def _hand_on(url: str) -> JSON:
    return {"type": "image_url", "image_url": {"url": url}} if url else _text_part(IMAGE)


def _text_part(text: str) -> JSON:
    return {"type": "text", "text": text}

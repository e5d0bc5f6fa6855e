"""Format segments and known facts as numbered or dated lines that no content can break."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from recollect.core.conversations.messages import memory_text
from recollect.core.text.answers import tidy
from recollect.core.text.names import normalize_name
from recollect.core.text.tags import escape_angle_brackets
from recollect.models.conversations import Message, MessageStatus
from recollect.models.knowledge import Fact, ValidTime
from recollect.models.memories import Role

MIN_LINE, MAX_LINE_LENGTH, MAX_FACT_LENGTH = 60, 4_000, 300
MAX_NAME_WORDS, MAX_NAMES = 4, 50_000
MIN_CHARACTERS, MAX_CHARACTERS = 2, 8
FACTS_SHARE = 4
"""Known facts take at most a quarter of a prompt; the rest is for messages."""
_WORDS = re.compile(r"[^\W_]+(?:['’.&+#-]*[^\W_]+)*[+#]*")
_RUN = re.compile("[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")


def write_transcript(messages: Sequence[Message], names: tuple[str, str], characters: int) -> str:
    """Format messages with numbers and dates, one per line, shortened if the whole is too long.

    `names` are used for the user and the assistant in messages without a name.
    """
    spoken = list_spoken(messages)
    longest = MAX_LINE_LENGTH
    lines = _write_lines(spoken, names, longest)
    while sum(map(len, lines)) + len(lines) > characters and longest > MIN_LINE:
        longest = max(longest // 2, MIN_LINE)
        lines = _write_lines(spoken, names, longest)
    return "\n".join(_keep_ends(lines, characters))


def list_spoken(messages: Sequence[Message]) -> list[Message]:
    """List the messages that have a line in a transcript, in the order of their numbers."""
    return [message for message in messages if message.status is MessageStatus.DONE and memory_text(message).strip()]


def write_facts(facts: Sequence[Fact]) -> str:
    """Format facts as numbered lines from 1 on, with their valid times."""
    return "\n".join(f"{number}. {_write_fact(fact)}" for number, fact in enumerate(facts, 1))


def fit_facts(facts: Sequence[Fact], characters: int, most: int) -> tuple[Fact, ...]:
    """Return the first facts that fit into a prompt."""
    fitting: list[Fact] = []
    room = characters // FACTS_SHARE
    for fact in facts[:most]:
        room -= len(_write_fact(fact)) + len("99. \n")
        if room < 0:
            break
        fitting.append(fact)
    return tuple(fitting)


def find_names(texts: Iterable[str]) -> list[str]:
    """List all possible entity names in texts, normalized: few words, or few characters."""
    found: dict[str, None] = {}
    for text in texts:
        for name in chain(_name_by_words(text), _name_between_characters(text), _name_by_characters(text)):
            found.setdefault(name)
            if len(found) >= MAX_NAMES:
                return list(found)
    return list(found)


def _name_by_words(text: str) -> Iterable[str]:
    words = _WORDS.findall(text)
    for start in range(len(words)):
        for end in range(start + 1, min(start + MAX_NAME_WORDS, len(words)) + 1):
            yield normalize_name(" ".join(words[start:end]))


def _name_between_characters(text: str) -> Iterable[str]:
    """Yield words inside a script without blanks, as in 上司Mark很严肃."""
    pieces = _RUN.split(text)
    return chain.from_iterable(map(_name_by_words, pieces)) if len(pieces) > 1 else ()


def _name_by_characters(text: str) -> Iterable[str]:
    for run in _RUN.findall(text):
        for start in range(len(run)):
            for length in range(MIN_CHARACTERS, min(MAX_CHARACTERS, len(run) - start) + 1):
                yield normalize_name(run[start : start + length])


def _write_lines(spoken: Sequence[Message], names: tuple[str, str], longest: int) -> list[str]:
    return [f"{number}. {_write_line(message, names, longest)}" for number, message in enumerate(spoken, 1)]


def _write_line(message: Message, names: tuple[str, str], longest: int) -> str:
    usual = {Role.USER: names[0], Role.ASSISTANT: names[1]}
    speaker = tidy(message.name or usual.get(message.role, message.role.value), MIN_LINE)
    when = message.occurred_at.strftime("%Y-%m-%d %H:%M %a")
    return escape_angle_brackets(f"[{when}] {speaker} ({message.role.value}): {tidy(memory_text(message), longest)}")


def _keep_ends(lines: list[str], characters: int) -> list[str]:
    """Keep the first and the last lines if even shortened lines are too many."""
    front: list[str] = []
    back: list[str] = []
    room, start, end = characters, 0, len(lines)
    while start < end:
        taken = lines[start] if len(front) <= len(back) else lines[end - 1]
        room -= len(taken) + 1
        if room < 0 and front:
            return [*front, "[…]", *reversed(back)]
        if len(front) <= len(back):
            front.append(taken)
            start += 1
        else:
            back.append(taken)
            end -= 1
    return [*front, *reversed(back)]


def _write_fact(fact: Fact) -> str:
    return escape_angle_brackets(f"{tidy(fact.text, MAX_FACT_LENGTH)}{_write_span(fact.span)}")


def _write_span(span: ValidTime) -> str:
    begun = f"since {span.valid_at:%Y-%m-%d}" if span.valid_at else ""
    over = f"until {span.invalid_at:%Y-%m-%d}" if span.invalid_at else ""
    told = " ".join(filter(None, (begun, over)))
    return f" ({told})" if told else ""

"""Write a segment and known facts as numbered or dated lines that no line can break out of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from recollect.core.conversations.messages import said
from recollect.core.text.answers import tidy
from recollect.core.text.names import normalise_name
from recollect.core.text.tags import defuse_signs
from recollect.models.conversations import Message, MessageStatus
from recollect.models.knowledge import Fact, Span
from recollect.models.memories import Role

SHORTEST_LINE, LONGEST_LINE, LONGEST_FACT = 60, 4_000, 300
LONGEST_NAME_WORDS, MOST_NAMES = 4, 50_000
FEWEST_CHARACTERS, MOST_CHARACTERS = 2, 8
FACTS_SHARE = 4
"""Known facts take at most a quarter of a prompt; the rest is for the messages."""
_WORDS = re.compile(r"[^\W_]+(?:['’.&+#-]*[^\W_]+)*[+#]*")
_RUN = re.compile("[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")


def write_transcript(messages: Sequence[Message], names: tuple[str, str], characters: int) -> str:
    """Write what was said with numbers and dates, one message a line, shorter where all would be too long.

    `names` are how the user and the assistant are called who say no name.
    """
    spoken = list_spoken(messages)
    longest = LONGEST_LINE
    lines = _write_lines(spoken, names, longest)
    while sum(map(len, lines)) + len(lines) > characters and longest > SHORTEST_LINE:
        longest = max(longest // 2, SHORTEST_LINE)
        lines = _write_lines(spoken, names, longest)
    return "\n".join(_leave_out(lines, characters))


def list_spoken(messages: Sequence[Message]) -> list[Message]:
    """List the messages that a transcript has a line for, in the order of their numbers."""
    return [message for message in messages if message.status is MessageStatus.DONE and said(message).strip()]


def write_facts(facts: Sequence[Fact]) -> str:
    """List facts by their numbers, which begin with 1, each with when it is true."""
    return "\n".join(f"{number}. {_write_fact(fact)}" for number, fact in enumerate(facts, 1))


def fit_facts(facts: Sequence[Fact], characters: int, most: int) -> tuple[Fact, ...]:
    """Take as many facts from the front as fit into a prompt."""
    fitting: list[Fact] = []
    room = characters // FACTS_SHARE
    for fact in facts[:most]:
        room -= len(_write_fact(fact)) + len("99. \n")
        if room < 0:
            break
        fitting.append(fact)
    return tuple(fitting)


def find_names(texts: Iterable[str]) -> list[str]:
    """List, normalised, everything in texts that could be the name of an entity: few words, or few characters."""
    found: dict[str, None] = {}
    for text in texts:
        for name in chain(_name_by_words(text), _name_between_characters(text), _name_by_characters(text)):
            found.setdefault(name)
            if len(found) >= MOST_NAMES:
                return list(found)
    return list(found)


def _name_by_words(text: str) -> Iterable[str]:
    words = _WORDS.findall(text)
    for start in range(len(words)):
        for end in range(start + 1, min(start + LONGEST_NAME_WORDS, len(words)) + 1):
            yield normalise_name(" ".join(words[start:end]))


def _name_between_characters(text: str) -> Iterable[str]:
    """Yield words inside a script without blanks, as in 上司Mark很严肃."""
    pieces = _RUN.split(text)
    return chain.from_iterable(map(_name_by_words, pieces)) if len(pieces) > 1 else ()


def _name_by_characters(text: str) -> Iterable[str]:
    for run in _RUN.findall(text):
        for start in range(len(run)):
            for length in range(FEWEST_CHARACTERS, min(MOST_CHARACTERS, len(run) - start) + 1):
                yield normalise_name(run[start : start + length])


def _write_lines(spoken: Sequence[Message], names: tuple[str, str], longest: int) -> list[str]:
    return [f"{number}. {_write_line(message, names, longest)}" for number, message in enumerate(spoken, 1)]


def _write_line(message: Message, names: tuple[str, str], longest: int) -> str:
    usual = {Role.USER: names[0], Role.ASSISTANT: names[1]}
    speaker = tidy(message.name or usual.get(message.role, message.role.value), SHORTEST_LINE)
    when = message.occurred_at.strftime("%Y-%m-%d %H:%M %a")
    return defuse_signs(f"[{when}] {speaker} ({message.role.value}): {tidy(said(message), longest)}")


def _leave_out(lines: list[str], characters: int) -> list[str]:
    """Keep the first and the last lines where even short ones are too many."""
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
    return defuse_signs(f"{tidy(fact.text, LONGEST_FACT)}{_write_span(fact.span)}")


def _write_span(span: Span) -> str:
    begun = f"since {span.valid_at:%Y-%m-%d}" if span.valid_at else ""
    over = f"until {span.invalid_at:%Y-%m-%d}" if span.invalid_at else ""
    told = " ".join(filter(None, (begun, over)))
    return f" ({told})" if told else ""

"""Detect features of a memory's text: questions, times, numbers and instructions."""

from __future__ import annotations

import re
from enum import IntFlag

from recollect.core.text.variants import fold_variants

MAX_CHARACTERS_READ = 400
"""Only this beginning of a memory is checked, because it shows the form of the text."""
QUESTION_MARKS = frozenset("?？")
LAST_READ = 40
"""Characters at the end to check for a question mark, including blanks after it."""
_TIME_WORDS = (
    "yesterday|today|tonight|tomorrow|last|ago|next|week|weeks|weekend|month|months|year|years|day|days|morning|evening"
    "|recently|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|july"
    "|august|september|october|november|december|just|since"
)
_NUMBER_WORDS = "two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|couple|few|several"
_TIMES, _NUMBERS = (frozenset(words.split("|")) for words in (_TIME_WORDS, _NUMBER_WORDS))
_TIME = re.compile(
    rf"\b(?:{_TIME_WORDS}|\d{{4}})\b"
    r"|[昨今明前后][天日晚]|[上下这本]个?[周月]|[去今明前]年|[0-9一二三四五六七八九十]+[年月日号点周天]|早上|上午|中午|下午|晚上|凌晨",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    rf"\b(?:{_NUMBER_WORDS})\b"
    r"|\d|[一二两三四五六七八九十百千万几多]+[个次天年岁位本件张条家种元块斤公里米分钟小时]",
    re.IGNORECASE,
)
_WORD, _DIGIT, _YEAR = re.compile(r"\w+"), re.compile("[0-9]"), re.compile("[0-9]{4}")
_INSTRUCTION = (
    *("always", "never", "prefer", "rather than", "make sure", "from now on", "whenever"),
    *("please include", "please use", "please provide", "please don't", "please do not"),
)
_CHINESE_INSTRUCTION = (
    *("总是", "永远", "从不", "以后都", "每次都", "务必", "请记得", "请不要", "请用", "更喜欢", "偏好"),
)


class TextTraits(IntFlag):
    """The features of a memory's text as stored: one bit each."""

    QUESTION = 1
    TIME = 2
    NUMBER = 4
    INSTRUCTION = 8


def detect_traits(content: str) -> TextTraits:
    """Return the features of a memory's text; computed once, when it is written."""
    beginning = fold_variants(content[:MAX_CHARACTERS_READ])
    return TextTraits(
        TextTraits.QUESTION * is_question(content)
        + TextTraits.TIME * tells_time(beginning)
        + TextTraits.NUMBER * tells_number(beginning)
        + TextTraits.INSTRUCTION * is_instruction(beginning)
    )


def is_question(content: str) -> bool:
    """Return whether a text ends with a question."""
    return content[-LAST_READ:].rstrip(" ")[-1:] in QUESTION_MARKS


def tells_time(content: str) -> bool:
    """Return whether a text contains a time."""
    if not content.isascii():
        return bool(_TIME.search(content))
    # Sets of words: a pattern with this number of words would try all of them at every letter.
    words = _WORD.findall(content.lower())
    return not _TIMES.isdisjoint(words) or (bool(_YEAR.search(content)) and any(map(_YEAR.fullmatch, words)))


def tells_number(content: str) -> bool:
    """Return whether a text contains a number."""
    if not content.isascii():
        return bool(_NUMBER.search(content))
    return bool(_DIGIT.search(content)) or not _NUMBERS.isdisjoint(_WORD.findall(content.lower()))


def is_instruction(content: str) -> bool:
    """Return whether a text contains an instruction for the future."""
    lowered = content.lower()
    said = any(words in lowered for words in _INSTRUCTION)
    return said or (not content.isascii() and any(words in lowered for words in _CHINESE_INSTRUCTION))

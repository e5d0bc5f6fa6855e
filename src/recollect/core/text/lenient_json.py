"""Parse the reliable parts of a JSON text that is cut off, surrounded by prose, or broken in places."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 16
"""Maximum depth; deeper values are skipped."""
MAX_TEXT_LENGTH, MAX_STEPS = 2_000_000, 50_000
"""Limits for the parser: longer answers are not worth the time."""
THOUGHT_ENDS = "</think>"
CODE_BLOCK = re.compile(r"```\w*\s*(\{.*?\})\s*```", re.DOTALL)
OPENING = re.compile(r"\{(?=\s*[\"'}])")
BLANK, GAP = re.compile(r"[\s,]*"), re.compile(r"\s*,")
STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
SINGLE = re.compile(r"'((?:[^'\\]++|\\.)*+)'", re.DOTALL)
BARE = re.compile(r"[^\s,:\[\]{}\"']+")
ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": None}


class Incomplete:
    """Marks a value that is missing or incomplete."""


CUT = Incomplete()


def read_fragments(text: str) -> Any:  # noqa: ANN401 - parsed JSON
    """Return the JSON value in a text; if it is cut off, its complete parts; None if there are none.

    An incomplete object in a list is dropped, because its missing part could change its meaning.
    """
    said = text[:MAX_TEXT_LENGTH].rpartition(THOUGHT_ENDS)[2]
    block = CODE_BLOCK.search(said)
    for candidate in ([block[1]] if block else []) + [said.strip()]:
        whole = _load(candidate)
        if whole is not CUT:
            return whole
    opening = OPENING.search(said)
    if opening is None:
        return None
    found = _Reader(said, opening.start()).read_object(0)
    return found.value


def _load(text: str) -> Any:  # noqa: ANN401 - parsed JSON
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return CUT


@dataclass(slots=True)
class _Found:
    """A value, and whether its end was found."""

    value: Any
    whole: bool = True


@dataclass(slots=True)
class _Reader:
    """Parses a broken text; every step moves forward, so the parser always ends."""

    text: str
    at: int
    steps: int = 0
    decoder: json.JSONDecoder = field(default_factory=lambda: json.JSONDecoder(strict=False))

    def read_object(self, depth: int) -> _Found:
        """Parse an object from its opening brace."""
        self.at += 1
        members: dict[str, Any] = {}
        while (letter := self._next()) not in {"", "}", "]"}:
            key = self._read_key(letter)
            if self._next() == ":":
                self.at += 1
                found = _Found(CUT) if GAP.match(self.text, self.at) else self._read_value(depth + 1)
                if key is not None and _counts(found):
                    members[key] = found.value
        # A bracket that closes an outer value is left for it.
        self.at += letter == "}"
        return _Found(members, letter == "}")

    def read_list(self, depth: int) -> _Found:
        """Parse a list from its opening bracket, without incomplete items."""
        self.at += 1
        items: list[Any] = []
        while (letter := self._next()) not in {"", "]", "}"}:
            before = self.at
            found = self._read_value(depth + 1)
            if found.whole and found.value is not CUT:
                items.append(found.value)
            self.at = max(self.at, before + 1) if letter == ":" else self.at
        self.at += letter == "]"
        return _Found(items, letter == "]")

    def _next(self) -> str:
        """Skip blanks and commas, and return the next character; empty at the end."""
        blank = BLANK.match(self.text, self.at)
        self.steps += 1
        self.at = blank.end() if blank and self.steps < MAX_STEPS else len(self.text)
        return self.text[self.at : self.at + 1]

    def _read_key(self, letter: str) -> str | None:
        found = self._read_value(MAX_DEPTH) if letter != ":" else _Found(CUT)
        return found.value if isinstance(found.value, str) else None

    def _read_value(self, depth: int) -> _Found:
        """Parse the next value: strictly if possible, else in pieces."""
        letter = self._next()
        if letter in {"{", "["}:
            return self._read_nested(letter, depth)
        if letter in {'"', "'"}:
            return self._read_string(STRING if letter == '"' else SINGLE)
        bare = BARE.match(self.text, self.at)
        if bare is None:
            # A stray character: a closing one belongs to an outer value, others are skipped.
            self.at += letter == ":"
            return _Found(CUT, whole=bool(letter))
        self.at = bare.end()
        return _Found(_read_bare(bare[0]), whole=self.at < len(self.text))

    def _read_nested(self, letter: str, depth: int) -> _Found:
        if depth >= MAX_DEPTH:
            self.at += 1
            return _Found(CUT)
        # Each level reads up to the next mistake at most, and the depth is bounded, so the time is bounded.
        try:
            value, self.at = self.decoder.raw_decode(self.text, self.at)
        except (ValueError, RecursionError):
            return self.read_object(depth) if letter == "{" else self.read_list(depth)
        return _Found(value)

    def _read_string(self, pattern: re.Pattern[str]) -> _Found:
        match = pattern.match(self.text, self.at)
        if match is None:
            self.at = len(self.text)
            return _Found(CUT, whole=False)
        self.at = match.end()
        inner = match[1] if pattern is STRING else match[1].replace("\\'", "'").replace('"', '\\"')
        # A backslash without a valid escape means a backslash.
        escaped = ESCAPE.sub(lambda escape: escape[0] if escape[1] else "\\\\", inner)
        return _Found(_load(f'"{escaped}"'))


def _counts(found: _Found) -> bool:
    """Return whether a member is reliable: a cut-off list has only complete items, other values must be whole."""
    return found.value is not CUT and (found.whole or isinstance(found.value, list))


def _read_bare(word: str) -> Any:  # noqa: ANN401 - parsed JSON
    if word.casefold() in WORDS:
        return WORDS[word.casefold()]
    return _load(word)

"""Read the reliable parts of a JSON text that is cut off, wrapped in prose, or broken in places."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 16
"""What is nested deeper is skipped."""
LONGEST_TEXT, MOST_STEPS = 2_000_000, 50_000
"""A longer answer is not worth the time."""
THOUGHT_ENDS = "</think>"
CODE_BLOCK = re.compile(r"```\w*\s*(\{.*?\})\s*```", re.DOTALL)
OPENING = re.compile(r"\{(?=\s*[\"'}])")
BLANK, GAP = re.compile(r"[\s,]*"), re.compile(r"\s*,")
STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
SINGLE = re.compile(r"'((?:[^'\\]++|\\.)*+)'", re.DOTALL)
BARE = re.compile(r"[^\s,:\[\]{}\"']+")
ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": None}


class Cut:
    """Stands for a value that is missing or incomplete."""


CUT = Cut()


def read_fragments(text: str) -> Any:  # noqa: ANN401 - parsed JSON
    """Return the value that a text holds; of what is cut off only what stands complete, and None if nothing does.

    An object in a list that is cut off goes as a whole: what it lacks could be what would have turned its meaning.
    """
    said = text[:LONGEST_TEXT].rpartition(THOUGHT_ENDS)[2]
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
    """A value, and whether its end was seen."""

    value: Any
    whole: bool = True


@dataclass(slots=True)
class _Reader:
    """Reads a broken text; every step moves forward, so it ends."""

    text: str
    at: int
    steps: int = 0
    decoder: json.JSONDecoder = field(default_factory=lambda: json.JSONDecoder(strict=False))

    def read_object(self, depth: int) -> _Found:
        """Read an object whose brace is here."""
        self.at += 1
        members: dict[str, Any] = {}
        while (letter := self._next()) not in {"", "}", "]"}:
            key = self._read_key(letter)
            if self._next() == ":":
                self.at += 1
                found = _Found(CUT) if GAP.match(self.text, self.at) else self._read_value(depth + 1)
                if key is not None and _counts(found):
                    members[key] = found.value
        # A bracket that closes something else is left to it.
        self.at += letter == "}"
        return _Found(members, letter == "}")

    def read_list(self, depth: int) -> _Found:
        """Read a list whose bracket is here, without incomplete items."""
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
        """Skip blanks and commas and return what comes next; empty at the end."""
        blank = BLANK.match(self.text, self.at)
        self.steps += 1
        self.at = blank.end() if blank and self.steps < MOST_STEPS else len(self.text)
        return self.text[self.at : self.at + 1]

    def _read_key(self, letter: str) -> str | None:
        found = self._read_value(DEEPEST) if letter != ":" else _Found(CUT)
        return found.value if isinstance(found.value, str) else None

    def _read_value(self, depth: int) -> _Found:
        """Read the next value: strictly where that works, else piece by piece."""
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
        if depth >= DEEPEST:
            self.at += 1
            return _Found(CUT)
        # Each level reads on to the next mistake at most, and the depth is bounded: so is the time.
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
        # A backslash that escapes nothing stands for itself.
        escaped = ESCAPE.sub(lambda escape: escape[0] if escape[1] else "\\\\", inner)
        return _Found(_load(f'"{escaped}"'))


def _counts(found: _Found) -> bool:
    """Tell whether a member is reliable: a list that is cut off holds only complete items, other values do not."""
    return found.value is not CUT and (found.whole or isinstance(found.value, list))


def _read_bare(word: str) -> Any:  # noqa: ANN401 - parsed JSON
    if word.casefold() in WORDS:
        return WORDS[word.casefold()]
    return _load(word)

"""The measures of everyday questions: each part asks its questions and computes shares, means and one score."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from everyday_set import NUMBERED_LINE, Line, Values, fold, has_mark, is_dated, read_lines

Figures = dict[str, float | int | None]
BUDGET, SMALL_BUDGET = 1_000, 300
FEW_HITS, MANY_HITS = 10, 30
CONTROLS_SHARE, ALL_UPDATES = 10, 50
"""The weight of the controls in the score of `updates`, of the weight of both."""
MIN_SCORE = 0.01
"""The least that a part counts in the harmonic mean."""


@dataclass(frozen=True, slots=True)
class Found:
    """One hit: the IDs of its memory and of duplicates, its text and its relevance."""

    ids: Collection[str]
    text: str
    relevance: float | None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A block of memories: its text, the tokens of each memory by ID, and those of the block."""

    block: str
    memories: Mapping[str, int]
    tokens: int

    @property
    def lines(self) -> list[Line]:
        """The memories in the text."""
        return read_lines(self.block)

    @property
    def size(self) -> int:
        """The number of memories: those with an ID, or those that look like one if they are more."""
        return max(len(self.memories), len(NUMBERED_LINE.findall(self.block)))


class Door(Protocol):
    """A memory that is measured."""

    ids: dict[str, set[str]]
    """The IDs of each memory of the open scope, by its key in the set."""

    def open(self, data: Values, scope: str, size: int) -> None:
        """Store the memories of a scope, and ask about these from now on."""
        ...

    def recall(self, query: str, limit: int) -> Sequence[Found]:
        """Return at most `limit` hits, best first."""
        ...

    def context(self, query: str, budget: int) -> Prompt:
        """Return a block of at most `budget` tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a set, asked at a door, with a note on every answer."""

    name: str
    data: Values
    door: Door
    notes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def scope(self) -> str:
        """The part whose memories are asked about."""
        return find_scope(self.data, self.name)

    @property
    def memories(self) -> dict[str, Values]:
        """The memories of its scope, by key."""
        return {memory["key"]: memory for memory in self.data["parts"][self.scope]["memories"]}

    def list_questions(self, group: str = "questions") -> Sequence[Values]:
        """Return the questions of a group."""
        questions: Sequence[Values] = self.data["parts"][self.name][group]
        return questions

    def note(self, question: Values, **answer: object) -> None:
        """Add a note on the answer to a question."""
        self.notes.append({"id": question["id"], "text": question["text"], **answer})

    def rank(self, key: str, hits: Sequence[Found], *, whole_text: bool = False) -> float:
        """Return the rank of a memory, found by its ID or its mark, or instead of the mark by its whole text."""
        memory, ids = self.memories[key], self.door.ids.get(key, set())

        def matches(hit: Found) -> bool:
            said = fold(memory["text"]) in fold(hit.text) if whole_text else has_mark(memory["mark"], hit.text)
            return said or not ids.isdisjoint(hit.ids)

        return next((float(place) for place, hit in enumerate(hits, 1) if matches(hit)), math.inf)

    def shows(self, key: str, prompt: Prompt) -> bool:
        """Return whether a prompt has a memory, by its ID or its mark."""
        if not self.door.ids.get(key, set()).isdisjoint(prompt.memories):
            return True
        mark = self.memories[key]["mark"]
        return any(has_mark(mark, line.text) for line in prompt.lines)

    def shows_as_current(self, key: str, question: Values, prompt: Prompt) -> bool:
        """Return whether a version that is not asked for is in a prompt without a word on when it is true."""
        memory = self.memories[key]
        later = question["about"] == "past" and key > question["right"]
        marked = (line for line in prompt.lines if has_mark(memory["mark"], line.text))
        return any(not is_dated(line, memory, later=later) for line in marked)


def find_scope(data: Values, part: str) -> str:
    """Return the part whose memories a part asks about: itself, or another one."""
    scope: str = data["parts"][part].get("scope", part)
    return scope


def share(values: Iterable[bool]) -> float | None:
    """Return how often a value is true, from 0 to 1."""
    return mean(map(float, values))


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known, to three digits."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None


def write_rank(rank: float) -> int | None:
    """Return a rank as it is noted."""
    return None if rank == math.inf else int(rank)


def measure_noise(part: Part) -> Figures:
    """Ask questions that no memory helps with."""
    rows = []
    for question in part.list_questions("cues"):
        prompt, hits = part.door.context(question["text"], BUDGET), part.door.recall(question["text"], 1)
        relevance = hits[0].relevance if hits else None
        rows.append((prompt.size, prompt.tokens if prompt.size else 0, relevance))
        part.note(question, lines=prompt.size, relevance=relevance)
    return {
        "cues": len(rows),
        "shown": share(row[0] > 0 for row in rows),
        "lines": mean(row[0] for row in rows),
        "tokens": mean(row[1] for row in rows),
        "relevance": mean(row[2] for row in rows),
    }


def measure_plain(part: Part) -> Figures:
    """Ask questions that one memory answers."""
    rows, memories = [], part.memories
    for question in part.list_questions():
        prompt, hits = part.door.context(question["text"], BUDGET), part.door.recall(question["text"], FEW_HITS)
        rank, shown = part.rank(question["gold"], hits), part.shows(question["gold"], prompt)
        first = hits[0] if hits else Found((), "", None)
        rows.append((memories[question["gold"]]["form"], rank, shown, prompt, first.relevance))
        known = {"rank": write_rank(rank), "prompt": shown, "lines": prompt.size}
        part.note(question, **known, first=first.text if hits else None, relevance=first.relevance)
    return {
        "questions": len(rows),
        "first": share(rank == 1 for _, rank, *_ in rows),
        "five": share(rank <= 5 for _, rank, *_ in rows),
        "prompt": share(shown for _, _, shown, *_ in rows),
        "empty": share(prompt.size == 0 for *_, prompt, _ in rows),
        "lines": mean(prompt.size for *_, prompt, _ in rows),
        "tokens": mean(prompt.tokens for *_, prompt, _ in rows),
        "relevance": mean(relevance for _, rank, *_, relevance in rows if rank == 1),
        **{
            f"prompt_{form}": share(shown for stored, _, shown, *_ in rows if stored == form)
            for form in ("event", "message", "fact")
        },
    }


def measure_dated(part: Part) -> Figures:
    """Ask for one of several versions of a fact, those of the past and those of now."""
    rows = []
    for question in part.list_questions():
        prompt = part.door.context(question["text"], BUDGET)
        right = part.shows(question["right"], prompt)
        wrong = [key for key in question["others"] if part.shows_as_current(key, question, prompt)]
        rows.append((question["about"], right, not wrong))
        part.note(question, about=question["about"], right=right, as_current=wrong)
    return {
        "questions": len(rows),
        "right": share(right for _, right, _ in rows),
        "clean": share(clean for *_, clean in rows),
        "both": share(right and clean for _, right, clean in rows),
        "both_past": share(right and clean for about, right, clean in rows if about == "past"),
        "both_now": share(right and clean for about, right, clean in rows if about == "now"),
    }


def measure_updates(part: Part) -> Figures:
    """Ask questions to which a newer statement is the answer, and controls that need both statements."""
    rows, controls = [], []
    for question in part.list_questions():
        hits, prompt = part.door.recall(question["text"], MANY_HITS), part.door.context(question["text"], SMALL_BUDGET)
        newer = part.rank(question["newer"], hits)
        older = part.rank(question["older"], hits, whole_text=True)
        shown = part.shows(question["newer"], prompt)
        rows.append((newer < older, shown))
        part.note(question, newer=write_rank(newer), older=write_rank(older), prompt=shown)
    for question in part.list_questions("controls"):
        prompt = part.door.context(question["text"], SMALL_BUDGET)
        controls.append(all(part.shows(key, prompt) for key in question["both"]))
        part.note(question, both=controls[-1])
    return {
        "questions": len(rows),
        "above": share(above for above, _ in rows),
        "prompt": share(shown for _, shown in rows),
        "above_and_prompt": share(above and shown for above, shown in rows),
        "controls": share(controls),
    }


def measure_standing(part: Part) -> Figures:
    """Ask questions unrelated to any wish of the user, and questions that one wish matters for."""
    lasting = {
        applies: [key for key, memory in part.memories.items() if memory["applies"] == applies]
        for applies in ("always", "topic")
    }
    rows, topical = [], []
    for question in part.list_questions():
        prompt = part.door.context(question["text"], BUDGET)
        always, topic = ([key for key in keys if part.shows(key, prompt)] for keys in lasting.values())
        known = set[str]().union(*(part.door.ids.get(key, set()) for key in always))
        tokens = sum(tokens for id_, tokens in prompt.memories.items() if id_ in known)
        rows.append((len(always), len(topic), max(0, prompt.size - len(always) - len(topic)), tokens))
        part.note(question, always=len(always), topic=len(topic), lines=prompt.size)
    for question in part.list_questions("topical"):
        topical.append(part.shows(question["gold"], part.door.context(question["text"], BUDGET)))
        part.note(question, shown=topical[-1])
    return {
        "questions": len(rows),
        "always": mean(row[0] / len(lasting["always"]) for row in rows),
        "topic_needless": mean(row[1] / len(lasting["topic"]) for row in rows),
        "other_lines": mean(row[2] for row in rows),
        "tokens": mean(row[3] for row in rows),
        "topic_needed": share(topical),
    }


def measure_people(part: Part) -> Figures:
    """Ask pairs of questions: about the user, and the same about another person."""
    rows = []
    for question in part.list_questions():
        hits, prompt = part.door.recall(question["text"], MANY_HITS), part.door.context(question["text"], BUDGET)
        right, wrong = part.rank(question["right"], hits), part.rank(question["wrong"], hits)
        mine = question["id"].endswith("a")
        rows.append((right < wrong, right == 1, part.shows(question["right"], prompt), mine))
        part.note(question, right=write_rank(right), wrong=write_rank(wrong))
    return {
        "questions": len(rows),
        "above": share(row[0] for row in rows),
        "pairs": share(one[0] and other[0] for one, other in zip(rows[::2], rows[1::2], strict=False)),
        "first": share(row[1] for row in rows),
        "prompt": share(row[2] for row in rows),
        "above_mine": share(row[0] for row in rows if row[3]),
        "above_other": share(row[0] for row in rows if not row[3]),
    }


MEASURES: Mapping[str, Callable[[Part], Figures]] = {
    "noise": measure_noise,
    "plain": measure_plain,
    "dated": measure_dated,
    "updates": measure_updates,
    "standing": measure_standing,
    "people": measure_people,
}
SCORES: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "noise": lambda found: 1 - found["shown"],
    "plain": lambda found: found["prompt"],
    "dated": lambda found: found["both"],
    "updates": lambda found: (
        (found["above_and_prompt"] * (ALL_UPDATES - CONTROLS_SHARE) + found["controls"] * CONTROLS_SHARE) / ALL_UPDATES
    ),
    "standing": lambda found: found["always"] * (1 - found["topic_needless"]),
    "people": lambda found: found["pairs"],
}
"""One number for each part, from 0 to 1."""


def score_parts(found: Mapping[str, Figures]) -> Figures:
    """Return the score of each part and their harmonic mean, which is low as soon as one of them is."""
    scores: dict[str, float] = {name: score(found[name]) for name, score in SCORES.items() if name in found}
    whole = len(scores) / sum(1 / max(score, MIN_SCORE) for score in scores.values())
    return {**{name: round(score, 3) for name, score in scores.items()}, "whole": round(whole, 3)}

"""Read the public question sets that recall is measured by, from ../shared/bench/data."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from opencc_purepy import OpenCC

from recollect.models.memories import Kind

DATA = Path(__file__).resolve().parents[2] / "shared" / "bench" / "data"
FILES: Mapping[str, str] = {
    "locomo": "locomo10.json",
    "locomo-learned": "locomo10.json",
    "beam": "beam_100k.jsonl.gz",
    "madial-en": "madial_en.jsonl.gz",
    "madial-zh": "madial_zh.jsonl.gz",
    "lifebench": "lifebench_zh.jsonl.gz",
    "memdaily": "memdaily_zh.jsonl.gz",
    "madial-zh-cues": "madial_zh.jsonl.gz",
    "madial-zh-memories": "madial_zh.jsonl.gz",
}
SIMPLIFIED = "madial-zh"
TRADITIONAL: Mapping[str, frozenset[str]] = {
    "madial-zh-cues": frozenset({"cues"}),
    "madial-zh-memories": frozenset({"memories"}),
}
"""Which part of a set OpenCC writes in traditional characters, by its phrases too; the other stays simplified."""
CROSSED: Mapping[str, tuple[str, str]] = {
    "madial-zh-en": ("madial-zh", "madial-en"),
    "madial-en-zh": ("madial-en", "madial-zh"),
}
"""The questions of one set, asked of the memories of its translation: Chinese cues on English memories, and back."""
LEARNED = "locomo-learned"
"""LoCoMo with the observations and session summaries of its own file, as a stand-in for what a model would learn."""
DIALOGUES = frozenset({"locomo", LEARNED, "beam"})
"""Sets that are conversations; the others are records of what happened."""
OWNERS: Mapping[str, str] = {
    "fenghaoran": "冯浩然",
    "leimingxuan": "雷明轩",
    "lumingqiang": "陆明强",
    "maxiulan": "马秀兰",
    "songyajing": "宋雅静",
    "sunyuwei": "孙雨薇",
    "yemingxuan": "叶明轩",
    "yinhao": "尹浩",
    "yuxiaowei": "于晓薇",
    "yuxiaowen": "于晓雯",
}
"""Whose phone it is, by the names that the questions of LifeBench call them."""
FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%B-%d-%Y", "%I:%M %p on %d %B, %Y")
LOCOMO_TRAINING = 5
BEGINNING = datetime(2024, 1, 1, tzinfo=UTC)
_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = "adversarial"
"""Questions that cannot be answered; they have evidence but are kept out of every mean."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing to remember."""

    id: str
    session: str
    speaker: str
    content: str
    when: str


@dataclass(frozen=True, slots=True)
class Question:
    """One cue and the turns that answer it."""

    id: str
    text: str
    category: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class LearnedText:
    """A fact or a summary that somebody made of turns."""

    kind: Kind
    content: str
    evidence: tuple[int, ...]
    """The places of these turns in their conversation."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One scope's turns, oldest first, and the questions about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    learned: tuple[LearnedText, ...] = ()


def read_moments(turns: Iterable[Turn]) -> list[datetime]:
    """Read when each turn was; one that does not say was a minute after the one before."""
    moments: list[datetime] = []
    last, said = BEGINNING, ""
    for turn in turns:
        if turn.when and turn.when != said:
            said, last = turn.when, _read_moment(turn.when)
        elif moments:
            last = moments[-1] + timedelta(minutes=1)
        moments.append(last)
    return moments


def _read_moment(when: str) -> datetime:
    when = re.sub(r"(\d+)年(\d+)月(\d+)日 周\w", r"\1-\2-\3", when)
    for pattern in FORMATS:
        try:
            return datetime.strptime(when, pattern).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"no known form of a date: {when}")


def in_training(name: str, number: int) -> bool:
    """Tell whether weights are learned from a set's conversation of this number: from about half of them they are."""
    return number < LOCOMO_TRAINING if FILES.get(name) == FILES["locomo"] else number % 2 == 0


def load(name: str, questions: int = 0, *, adversarial: bool = False) -> list[Conversation]:
    """Load a set; with a number of questions, keep about so many, spread evenly over the set."""
    conversations = list(_cross(*CROSSED[name]) if name in CROSSED else _read(name))
    if not adversarial:
        conversations = [replace(each, questions=tuple(_leave_adversarial(each.questions))) for each in conversations]
    if name in TRADITIONAL:
        conversations = list(_write_traditional(conversations, TRADITIONAL[name]))
    total = sum(len(conversation.questions) for conversation in conversations)
    return conversations if not 0 < questions < total else list(_thin(conversations, total / questions))


def _read(name: str) -> Iterator[Conversation]:
    path = DATA / FILES[name]
    return _read_locomo(path, with_learned=name == LEARNED) if path.suffix == ".json" else _read_lines(path)


def _cross(asked: str, remembered: str) -> Iterator[Conversation]:
    """Pair the sets by their numbers; what answers a question, the set of the memories says."""
    for asking, remembering in zip(_read(asked), _read(remembered), strict=True):
        texts = {question.id.partition("/")[2]: question.text for question in asking.questions}
        known = [question for question in remembering.questions if question.id.partition("/")[2] in texts]
        crossed = tuple(replace(question, text=texts[question.id.partition("/")[2]]) for question in known)
        yield Conversation(remembering.id, remembering.turns, crossed)


def _leave_adversarial(questions: Iterable[Question]) -> Iterator[Question]:
    return (question for question in questions if question.category != ADVERSARIAL)


def _write_traditional(conversations: Iterable[Conversation], parts: frozenset[str]) -> Iterator[Conversation]:
    convert = OpenCC("s2t").convert
    for each in conversations:
        turns, questions = each.turns, each.questions
        if "memories" in parts:
            turns = tuple(replace(turn, content=convert(turn.content), speaker=convert(turn.speaker)) for turn in turns)
        if "cues" in parts:
            questions = tuple(replace(question, text=convert(question.text)) for question in questions)
        yield replace(each, turns=turns, questions=questions)


def _thin(conversations: Iterable[Conversation], step: float) -> Iterator[Conversation]:
    seen = 0
    for conversation in conversations:
        kept = []
        for question in conversation.questions:
            if int(seen / step) != int((seen - 1) / step) or seen == 0:
                kept.append(question)
            seen += 1
        if kept:
            yield replace(conversation, questions=tuple(kept))


def _read_lines(path: Path) -> Iterator[Conversation]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for raw in map(json.loads, lines):
            turns = tuple(Turn(t["id"], str(t["session"]), t["speaker"], t["text"], t["when"]) for t in raw["turns"])
            questions = tuple(
                Question(q["id"], q["text"], q["category"], frozenset(q["gold"])) for q in raw["questions"]
            )
            yield Conversation(raw["id"], turns, questions)


def _read_locomo(path: Path, *, with_learned: bool = False) -> Iterator[Conversation]:
    for sample in json.loads(path.read_text(encoding="utf-8")):
        turns = tuple(_read_turns(sample["conversation"]))
        known = {turn.id for turn in turns}
        questions = []
        for number, raw in enumerate(sample["qa"]):
            gold = _read_evidence(raw.get("evidence", ())) & known
            category = _LOCOMO_CATEGORIES[raw["category"]]
            if gold:
                name = f"{sample['sample_id']}/{number}"
                questions.append(Question(name, raw["question"], category, frozenset(gold)))
        learned = tuple(_read_learned(sample, turns)) if with_learned else ()
        yield Conversation(sample["sample_id"], turns, tuple(questions), learned)


def _read_learned(sample: Mapping[str, Any], turns: Sequence[Turn]) -> Iterator[LearnedText]:
    """Read observations, each with the turns that it names, and summaries, each with all turns of its session."""
    places = {turn.id: place for place, turn in enumerate(turns)}
    for said in sample["observation"].values():
        for text, labels in (each for observed in said.values() for each in observed):
            named = _read_evidence([labels] if isinstance(labels, str) else labels)
            if evidence := tuple(sorted(places[each] for each in named & places.keys())):
                yield LearnedText(Kind.FACT, text, evidence)
    for key, text in sample["session_summary"].items():
        session = key.removeprefix("session_").removesuffix("_summary")
        if evidence := tuple(place for place, turn in enumerate(turns) if turn.session == session):
            yield LearnedText(Kind.SUMMARY, text, evidence)


def _read_turns(raw: Mapping[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(found[1]) for key in raw if (found := re.fullmatch(r"session_(\d+)", key)))
    for number in numbers:
        for turn in raw[f"session_{number}"]:
            caption = turn.get("blip_caption", "")
            content = turn["text"] + (f" [shares an image: {caption}]" if caption else "")
            when = raw[f"session_{number}_date_time"]
            yield Turn(turn["dia_id"], str(number), turn["speaker"], content, when)


def _read_evidence(labels: Iterable[str]) -> set[str]:
    """Read turn ids out of labels, some of them joined or misspelt ("D8:6; D9:17", "D:11:26", "D30:05")."""
    found = (re.findall(r"D:?(\d+):(\d+)", label) for label in labels)
    return {f"D{int(session)}:{int(turn)}" for pairs in found for session, turn in pairs}

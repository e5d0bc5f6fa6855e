"""Cues: whatever is asked, what channels search for is bounded by the length of the text."""

from __future__ import annotations

from collections.abc import Iterator

from attacks.fuzz.edits import to_text
from recollect.core.recall import cues
from recollect.core.recall.checks import check_cue
from recollect.core.recall.cues import MAX_KEYWORD_LENGTH, MAX_KEYWORDS, MAX_QUESTION_LENGTH
from recollect.core.text.checks import is_unstorable
from recollect.core.topics.paths import encode, find_topics, parse_topic, show_topic
from recollect.errors import InvalidInputError
from recollect.models.recall import Cue
from support.memories.date_phrases import NOW, ZONES, read_phrases
from support.models.garbage import COMMANDS, NAMES

WATCHED = "recollect.core.recall.cues recollect.core.recall.checks recollect.core.text recollect.core.topics"
ASKED = (
    *(
        "Who is both in work->meetings and in 生活->饮食?",
        "a->b->c [root] {slices: 3}",
        "What did Ada's friend Zoë say",
    ),
    *("最近谁喜欢喝茶？", "how many times did we meet in １２月", "Ｆｕｌｌ　ｗｉｄｔｈ", "ada likes 阿信 -> tea"),
)
OWN = ("ada", "Ada Li", "阿信", "ß", ".*")


def list_seeds() -> Iterator[bytes]:
    yield from (text.encode("utf-8", "surrogatepass") for text in (*ASKED, *COMMANDS, *NAMES))
    for name in ZONES:
        yield from (text.encode() for text, _ in read_phrases(name)[::5])


def check(data: bytes) -> None:
    text = to_text(data)
    cue = Cue(text=text)
    try:
        check_cue(cue)
    except InvalidInputError:
        assert is_unstorable(text) or not text.strip()
        return
    reading = cues.parse_cue(cue, None, "no embedder", now=NOW, own=OWN)
    assert all(reading.terms)
    # Some characters are folded to several; a pair of characters is a term beside each of them.
    assert sum(map(len, reading.terms)) <= 40 * len(text) + 40
    keywords = reading.facets.keywords
    assert len(keywords) <= MAX_KEYWORDS
    assert all(keyword and len(keyword) <= 20 * len(text) for keyword in keywords)
    assert MAX_KEYWORD_LENGTH < MAX_QUESTION_LENGTH >= len(cues.find_question(text))
    assert sum(map(len, reading.facets.topics)) <= len(text)
    for names in find_topics(reading.facets.topics):
        assert encode(parse_topic(show_topic(names))) == encode(names)
    assert reading == cues.parse_cue(cue, None, "no embedder", now=NOW, own=OWN)


def plant() -> None:
    """Take the whole text for a topic beside those that it names."""
    cues.find_paths = lambda text: [text, *text.split("->")] if "->" in text else []

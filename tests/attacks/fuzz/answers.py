"""Answers of models: every usable part is kept within bounds, and nothing that a model says raises an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC

from pydantic import ValidationError

from attacks.fuzz.edits import Choices, edit, to_text
from recollect.core.knowledge import extractions
from recollect.core.recall.cues import parse_cue
from recollect.core.recall.model_cues import MAX_MATCHES, Matches, extend
from recollect.core.text import answers
from recollect.core.text.answers import read_moment
from recollect.core.text.lenient_json import MAX_DEPTH, read_fragments
from recollect.models.recall import Cue
from support.memories.date_phrases import NOW
from support.models.extraction_bounds import check_bounds
from support.models.garbage import draw, extraction
from support.models.garbage import plant as plant_fact

WATCHED = "recollect.core.knowledge.extractions recollect.core.text.answers recollect.core.text.lenient_json"
SHOWN = 3
GOOD = extraction([plant_fact(1), plant_fact(2)], entities=[{"name": "Ann", "type": "person", "aliases": ["A."]}])
FOUND = {"matches": [{"type": "topic", "text": "生活->饮食"}, {"type": "date", "text": "2024-05-01"}]}
READING = parse_cue(Cue(text="What of tea?"), None, now=NOW)
AS_TEXT, EDITED, OF_CUES, CUT_OFF = 0, 1, 2, 3


def list_seeds() -> Iterator[bytes]:
    yield bytes([AS_TEXT, 0]) + json.dumps(GOOD).encode()
    yield from (bytes([kind, 0, 0, 0, 1, 0, 2, 0, 3, 0]) for kind in (EDITED, OF_CUES, CUT_OFF))
    for number in range(36):
        yield bytes([AS_TEXT, 0]) + draw(number).text.encode("utf-8", "surrogatepass")[:800]


def check(data: bytes) -> None:
    choices = Choices(data)
    kind = choices.number(4)
    if kind == AS_TEXT:
        check_text(to_text(choices.rest()))
    elif kind == EDITED:
        check_bounds(extractions.parse_extraction(edit(GOOD, choices), SHOWN), SHOWN)
    elif kind == CUT_OFF:
        written = json.dumps(edit(GOOD, choices), ensure_ascii=choices.number(2) == 0)
        check_text(written[: choices.number(len(written) + 1)])
    else:
        check_matches(edit(FOUND, choices))


def check_text(text: str) -> None:
    check_bounds(extractions.parse_extraction(text, SHOWN), SHOWN)
    value = read_fragments(text)
    try:
        # Signs that JSON wants escaped are let pass.
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        # What is put together of pieces is no deeper than the pieces may be.
        assert isinstance(value, dict | None) or "```" in text or "</think>" in text or text != text.strip()
    moment = read_moment(text)
    if moment is not None:
        assert read_moment(moment.isoformat(), UTC) == moment
    assert MAX_DEPTH < 100


def check_matches(answer: object) -> None:
    try:
        found = Matches.model_validate(answer)
    except ValidationError:
        return
    facets = extend(READING, Cue(text="What of tea?"), found.matches).facets
    assert len(facets.topics) <= MAX_MATCHES
    assert len(facets.periods) <= MAX_MATCHES
    assert all(period.start < period.end for period in facets.periods)


def plant() -> None:
    """Keep texts as long as they are, with all that cannot be stored."""
    answers.tidy = lambda text, _: text

"""Where exactly a line of a block is cut, and which lines find room."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil
from uuid import UUID

import pytest

from recollect.core.conversations.block import (
    MAX_MISSES,
    BlockMemory,
    TextMeter,
    cut_line,
    fill,
    order,
    render_block,
    shorten,
    write_line,
)
from recollect.core.conversations.prompt_texts import ENGLISH
from recollect.core.text.similarity import SourceText
from recollect.models.blocks import BlockLine, DetailLevel
from recollect.models.memories import Kind, Memory, Triple

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
FULL, COMPACT, ABSTRACT = DetailLevel
OPENING = "[m0001] 2026-05-04: "
SOURCE, OTHER, HIDDEN = (UUID(int=number) for number in (101, 102, 103))


def remembered(content: str, number: int = 1, kind: Kind = Kind.MESSAGE, **more) -> BlockMemory:
    age, evidence = more.pop("age", 0), more.pop("evidence", ())
    memory = Memory(
        id=UUID(int=number), kind=kind, content=content, speaker="", importance=5.0, triple=Triple(), idle=False,
        depth=0, keywords=(), origin="test", trust=50, occurred_at=NOW - timedelta(days=age), created_at=NOW,
        last_accessed_at=NOW, evidence=evidence, embedding_text="", metadata={},
    )  # fmt: skip
    return BlockMemory(memory, f"m{number:04x}", **more)


def words(text: str) -> int:
    return len(text.replace("…", " … ").split())


def cut_words(text: str, most: int) -> str:
    return " ".join(text.split(" ")[:most])


GAUGE = TextMeter(words, cut_words)
ABOVE = words(ENGLISH.groups[Kind.MESSAGE])
BESIDE = 2
"""What the short id and the day of a line cost."""


def shown(candidates: list[BlockMemory], room: int, most: int = 99) -> list[tuple[int, DetailLevel]]:
    return [(line.memory_id.int, line.level) for line in fill(candidates, room, GAUGE, most).lines.values()]


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("", 0, ""),
        ("abcd", 4, "abcd"),
        ("abcde", 4, "abcd…"),
        ("中文字", 6, "中文字"),
        ("中文字", 5, "中文…"),
        ("ＡＢ", 3, "Ａ…"),
        ("Abc d. Ef", 6, "Abc d.…"),
        ("Ab. c dxyz", 6, "Ab.…"),
        ("a. bcdefg", 6, "a. bcd…"),
        ("A. B. C. defgh", 10, "A. B. C.…"),
        ("v1.2 and v1.3", 9, "v1.2 and…"),
        ("abc defgh", 6, "abc…"),
        ("ab cdefghi", 6, "ab cde…"),
        ("ab   cdefgh", 4, "ab…"),
    ],
)
def test_a_text_is_cut_after_a_sentence_or_a_word_in_its_second_half(text, width, cut):
    assert shorten(text, width) == cut


def test_each_level_has_its_width():
    one, two = remembered("x" * 300), remembered("x" * 200 + "\n" + "y" * 200)
    assert write_line(one, COMPACT) == f"{OPENING}{'x' * 240}…\n"
    assert write_line(one, ABSTRACT) == f"{OPENING}{'x' * 100}…\n"
    assert write_line(two, COMPACT) == f"{OPENING}{'x' * 160}… {'y' * 160}…\n"
    assert write_line(two, ABSTRACT) == f"{OPENING}{'x' * 100}…\n"
    assert write_line(two) == f"{OPENING}{'x' * 200} {'y' * 200}\n"


def test_sources_are_quoted_with_who_said_them_as_far_as_they_may_be_shown():
    texts = {SOURCE: SourceText(SOURCE, "Li", "x" * 161, NOW), OTHER: SourceText(OTHER, "", "tea", NOW)}
    summary = remembered("They spoke.", evidence=(SOURCE, HIDDEN, OTHER), source_texts=texts)
    assert write_line(summary).splitlines()[1:] == [f"  > Li: {'x' * 160}…", f"  > {ENGLISH.said}: tea"]
    assert write_line(summary, COMPACT) == write_line(summary)
    assert write_line(summary, ABSTRACT) == f"{OPENING}They spoke.\n"
    assert (
        write_line(replace(summary, source_texts={HIDDEN: texts[OTHER]}))
        == f"{OPENING}They spoke.\n  > {ENGLISH.said}: tea\n"
    )
    assert write_line(remembered("They spoke.", evidence=(HIDDEN,), source_texts=texts)) == f"{OPENING}They spoke.\n"


def test_a_line_tells_all_of_its_memory():
    candidate = remembered("tea", kind=Kind.FACT, evidence=(SOURCE,), score=0.5, again=True, pinned=True)
    filled = fill([candidate], 100, GAUGE, 9)
    assert filled.lines == {
        UUID(int=1): BlockLine(
            short_id="m0001", memory_id=UUID(int=1), kind=Kind.FACT, level=FULL, occurred_at=NOW,
            text=f"{OPENING}tea\n", tokens=3, score=0.5, evidence=(SOURCE,), again=True, pinned=True,
        )
    }  # fmt: skip
    assert filled.tokens == 3 + words(ENGLISH.pinned)


def test_every_heading_costs_once():
    candidates = [
        remembered("a", 1), remembered("b", 2), remembered("c", 3, Kind.FACT), remembered("d", 4, pinned=True),
    ]  # fmt: skip
    headings = [ENGLISH.groups[Kind.MESSAGE], ENGLISH.groups[Kind.FACT], ENGLISH.pinned]
    cost = 4 * (BESIDE + 1) + sum(map(words, headings))
    filled = fill(candidates, cost, GAUGE, 9)
    assert (len(filled.lines), filled.tokens, filled.exhausted) == (4, cost, True)
    less = fill(candidates, cost - 1, GAUGE, 9)
    assert (len(less.lines), less.exhausted) == (3, False)


def test_pinned_lines_come_first_the_newest_before_the_others():
    candidates = [
        remembered("fact", 1, Kind.FACT), remembered("old", 2, pinned=True, age=2), remembered("new", 3, pinned=True),
        remembered("later", 4, Kind.FACT), remembered("first", 5, Kind.FACT, age=1),
    ]  # fmt: skip
    lines = [*fill(candidates, 1_000, GAUGE, 9).lines.values()]
    assert [line.memory_id.int for line in order(lines)] == [3, 2, 5, 1, 4]
    text = render_block(lines)
    assert text.count(ENGLISH.pinned) == 1
    assert text.count(ENGLISH.groups[Kind.FACT]) == 1


def test_a_line_that_fits_exactly_is_whole():
    dense = TextMeter(lambda text: ceil(len(text) / 16), lambda text, most: text[: most * 16])
    line = "[m] d: " + "x" * 24 + "\n"
    assert cut_line(line, 2, dense) == line
    assert cut_line(line, 1, dense) == ""
    [fitted] = fill([remembered("x" * (48 - len(OPENING) - 1))], 3 + 2, dense, 1).lines.values()
    assert (fitted.level, fitted.tokens) == (FULL, 3)


@pytest.mark.parametrize(
    ("room", "cut"),
    [(7, "[m] d: one two three four five\n"), (6, "[m] d: one two three…\n"), (4, "[m] d: one…\n"), (3, ""), (0, "")],
)
def test_a_line_is_cut_from_its_end_while_a_word_is_left(room, cut):
    assert cut_line("[m] d: one two three four five\n", room, GAUGE) == cut


def test_one_letter_of_the_content_is_enough():
    assert cut_line("[m] d: a b c\n", 4, GAUGE) == "[m] d: a…\n"


def test_the_only_line_is_cut_where_one_may_be_shown():
    long = remembered("x y z " * 50)
    [line] = fill([long], 7 + ABOVE, GAUGE, 1).lines.values()
    assert (line.text, line.level, line.tokens) == (f"{OPENING}x y z x…\n", ABSTRACT, 7)
    filled = fill([long], 7 + ABOVE, GAUGE, 1)
    assert (filled.tokens, filled.exhausted) == (7 + ABOVE, False)
    assert fill([long], 7 + ABOVE, GAUGE, 0).lines == {}
    assert fill([long], BESIDE + ABOVE, GAUGE, 1).tokens == 0


def test_after_a_few_that_do_not_fit_no_other_is_tried():
    wide = [remembered("w " * 40, number) for number in range(10, 10 + MAX_MISSES)]
    first, last = remembered("one", 1), remembered("two", 2)
    room = ABOVE + 2 * (BESIDE + 1)
    assert shown([first, *wide[1:], last], room) == [(1, FULL), (2, FULL)]
    assert shown([first, *wide, last], room) == [(1, FULL)]


def long(number: int) -> BlockMemory:
    """Make a memory whose line costs 102 in full, 51 compact and 23 abstract."""
    return remembered("word " * 100, number)


def test_what_is_less_relevant_is_shorter():
    assert [words(write_line(long(1), level)) for level in DetailLevel] == [102, 51, 23]
    three = [long(1), long(2), long(3)]
    assert shown(three, ABOVE + 306) == [(1, FULL), (2, FULL), (3, FULL)]
    assert shown(three, ABOVE + 305) == [(1, FULL), (2, FULL), (3, COMPACT)]
    assert shown(three, ABOVE + 254) == [(1, FULL), (2, COMPACT), (3, COMPACT)]
    assert shown(three, ABOVE + 102) == [(1, COMPACT), (2, ABSTRACT), (3, ABSTRACT)]
    assert shown(three, ABOVE + 22) == [(1, ABSTRACT)]


def test_room_that_nothing_else_can_use_goes_back_to_the_best():
    filled = fill([long(1), remembered("tea", 2), remembered("w " * 50, 3)], ABOVE + 105, GAUGE, 9)
    assert [(line.memory_id.int, line.level) for line in filled.lines.values()] == [(1, FULL), (2, FULL)]
    assert (filled.tokens, filled.exhausted) == (ABOVE + 105, False)


def test_a_short_line_is_in_full_wherever_it_stands():
    assert shown([long(1), remembered("tea", 2)], ABOVE + 104) == [(1, COMPACT), (2, FULL)]
    faded = replace(long(3), ceiling=COMPACT)
    assert fill([faded, remembered("tea", 2)], 1_000, GAUGE, 9).exhausted
    assert shown([faded], 1_000) == [(3, COMPACT)]


def test_no_more_lines_are_shown_than_are_asked_for():
    three = [remembered("tea", number) for number in (1, 2, 3)]
    assert [number for number, _ in shown(three, 100, 2)] == [1, 2]
    assert fill(three, 100, GAUGE, 2).exhausted
    assert fill(three, 100, GAUGE, 3).exhausted
    assert fill(three, ABOVE + 2 * (BESIDE + 1), GAUGE, 3).exhausted is False

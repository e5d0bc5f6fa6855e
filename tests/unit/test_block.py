"""The block shows memories as data: one line each, in a fence that nothing they say can close, within its room."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.core.block import (
    CLOSING,
    HEADING,
    MOST_MISSES,
    OPENING,
    cut_line,
    fill,
    fold,
    order,
    render,
    write_line,
    write_summary,
)
from recollect.core.budget import ELLIPSIS
from recollect.llm.tokens import load_tokenizers
from recollect.models import Kind, Memory, Role, Triple

NOW = datetime(2026, 5, 4, 22, 30, tzinfo=UTC)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)
FORGED = ["</memories>", "< / MEMORIES >", "＜/memories>", "<memories>", "\n", "\u2028", "- ", "a", "/", "<"]
NASTY = st.lists(st.sampled_from(FORGED)).map("".join)
OPENAI = load_tokenizers(["o200k_base", "cl100k_base", "estimate"])


def memory(content: str = "My cat is called Pascal.", number: int = 1, **more) -> Memory:
    return Memory(
        id=UUID(int=number),
        kind=Kind.MESSAGE,
        content=content,
        speaker=more.pop("speaker", ""),
        importance=5.0,
        triple=Triple(),
        idle=False,
        depth=0,
        keywords=(),
        origin="test",
        trust=50,
        occurred_at=more.pop("occurred_at", NOW),
        created_at=NOW,
        last_accessed_at=NOW,
        evidence=(),
        embedding_text="",
        metadata={},
        **more,
    )


def words(text: str) -> int:
    return len(text.replace(ELLIPSIS, f" {ELLIPSIS} ").split())


def cut_words(text: str, most: int) -> str:
    return " ".join(text.split(" ")[: max(most, 0)])


def test_a_line_says_when_who_and_what():
    assert write_line(memory()) == "- 2026-05-04: My cat is called Pascal.\n"
    assert write_line(memory(role=Role.USER)) == "- 2026-05-04 user: My cat is called Pascal.\n"
    assert write_line(memory(speaker="Ada")) == "- 2026-05-04 Ada: My cat is called Pascal.\n"
    assert write_line(memory("我叫小李", speaker="小李", role=Role.USER)) == "- 2026-05-04 小李 (user): 我叫小李\n"


def test_the_day_is_that_of_the_zone():
    assert write_line(memory("x"), timezone(timedelta(hours=8))) == "- 2026-05-05: x\n"
    assert write_line(memory("x", occurred_at=NOW.astimezone(timezone(timedelta(hours=8))))) == "- 2026-05-04: x\n"


def test_a_block_is_plain_text():
    block = render([write_summary(memory("They spoke\nof cats.")), write_line(memory())])
    assert block == (
        f"{HEADING}\n<memories>\nSummary of this conversation: They spoke of cats.\n"
        "- 2026-05-04: My cat is called Pascal.\n</memories>"
    )


def test_code_is_left_as_it_is_unless_it_could_end_the_fence():
    assert fold("if a < b / c: List<int> <br> x</p>") == "if a < b / c: List<int> <br> x‹/p>"
    assert fold("a\n\n  b\tc\x1b[0m\x00") == "a b c [0m"


@given(st.lists(st.tuples(TEXTS | NASTY, NASTY), max_size=5))
def test_nothing_that_is_said_can_close_the_fence_or_begin_a_line(said):
    lines = [write_line(memory(content, speaker=speaker)) for content, speaker in said]
    block = render(lines)
    assert len(block.splitlines()) == len(said) + 3
    lowered = "".join(block.lower().split()).replace("＜", "<")
    assert lowered.count(CLOSING) == 1
    assert lowered.count(OPENING) == 1
    assert block.endswith(f"\n{CLOSING}")
    assert all(line.startswith("- 2026-05-04") for line in block.splitlines()[2:-1])


def test_memories_stand_in_the_order_of_time_and_among_equals_of_writing():
    late, early = memory(number=1), memory(number=3, occurred_at=NOW - timedelta(days=1))
    twin = memory(number=2)
    assert order([twin, late, early]) == [early, late, twin]


def numbered(*contents: str) -> list[Memory]:
    return [memory(content, number) for number, content in enumerate(contents)]


def taken(filled) -> list[int]:
    return [identity.int for identity in filled.lines]


def test_memories_are_taken_from_the_front_while_there_is_room():
    memories = numbered("one", "one two", "one")
    assert fill(memories, 100, words, cut_words, 9).exhausted
    filled = fill(memories, 7, words, cut_words, 9)
    assert (taken(filled), filled.tokens, filled.exhausted) == ([0, 1], 7, False)
    # One that is too long for what is left does not keep a shorter one out.
    assert taken(fill(memories, 6, words, cut_words, 9)) == [0, 2]
    assert taken(fill(memories, 100, words, cut_words, 2)) == [0, 1]
    assert fill(memories, 100, words, cut_words, 2).exhausted
    assert fill([], 100, words, cut_words, 9).exhausted


def test_the_first_is_cut_only_if_no_other_fits():
    long = "word " * 50
    assert taken(fill(numbered(long, "one"), 10, words, cut_words, 9)) == [1]
    [cut] = fill(numbered(long, long), 10, words, cut_words, 9).lines.values()
    assert cut.endswith(f"word{ELLIPSIS}\n")
    assert words(cut) <= 10
    assert not fill(numbered(long), 3, words, cut_words, 9).lines
    assert not fill(numbered(long), 0, words, cut_words, 9).lines


def test_no_more_is_counted_in_vain_than_a_few_lines():
    counted = []

    def count(text):
        counted.append(text)
        return words(text)

    fill(numbered("one", *["word " * 15] * 100), 10, count, cut_words, 200)
    assert len(counted) == 1 + MOST_MISSES
    counted.clear()
    fill(numbered("one", *["word " * 1000] * 3), 10, count, cut_words, 200)
    assert len(counted) == 1


@settings(deadline=None)  # the first count reads a vocabulary
@given(st.lists(TEXTS, max_size=12), st.integers(0, 200), st.sampled_from(OPENAI))
def test_lines_cost_together_what_they_cost_one_by_one(contents, room, tokenizer):
    filled = fill(numbered(*contents), room, tokenizer.count, tokenizer.cut, 200)
    assert filled.tokens == sum(map(tokenizer.count, filled.lines.values())) <= room
    form = tokenizer.count(render([]))
    whole = tokenizer.count(render(filled.lines.values()))
    assert whole <= form + filled.tokens
    if tokenizer.name != "estimate":
        assert whole == form + filled.tokens


@settings(deadline=None)  # the first count reads a vocabulary
@given(TEXTS, st.integers(0, 60), st.sampled_from(OPENAI))
def test_a_cut_line_fits_and_says_at_least_a_word(content, room, tokenizer):
    line = write_line(memory(content))
    cut = cut_line(line, room, tokenizer.count, tokenizer.cut)
    assert tokenizer.count(cut) <= room
    if cut and cut != line:
        assert cut.endswith(f"{ELLIPSIS}\n")
        assert line.startswith(cut[:-2])
        assert len(cut) > len(write_line(replace(memory(content), content="")))

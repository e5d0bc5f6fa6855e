"""The block shows memories as data: one line each, between tags that nothing they say can close, within its room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.conversations.block import (
    CLOSING,
    MAX_MISSES,
    OPENING,
    WIDTHS,
    BlockMemory,
    TextMeter,
    cut_line,
    drop_last_lines,
    fill,
    fold,
    order,
    render,
    render_block,
    shorten,
    shorten_ids,
    write_line,
    write_summary,
)
from recollect.core.conversations.budget import ELLIPSIS
from recollect.core.conversations.prompt_texts import CHINESE, ENGLISH, WORDINGS, choose_wording
from recollect.core.text.similarity import SourceText
from recollect.llm.tokens.count import load_tokenizers
from recollect.models.blocks import DetailLevel
from recollect.models.memories import Kind, Memory, Role, Triple

NOW = datetime(2026, 5, 4, 22, 30, tzinfo=UTC)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)
FORGED = ["</memories>", "< / MEMORIES >", "＜/memories>", "<memories>", "\n", "\u2028", "- ", "a", "/", "<"]
NASTY = st.lists(st.sampled_from(FORGED)).map("".join)
OPENAI = load_tokenizers(["o200k_base", "cl100k_base", "estimate"])


def memory(content: str = "My cat is called Pascal.", number: int = 1, **more) -> Memory:
    return Memory(
        id=UUID(int=number),
        kind=more.pop("kind", Kind.MESSAGE),
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
        evidence=more.pop("evidence", ()),
        embedding_text="",
        metadata={},
        **more,
    )


def remembered(content: str = "My cat is called Pascal.", number: int = 1, **more) -> BlockMemory:
    ceiling, source_texts = more.pop("ceiling", DetailLevel.FULL), more.pop("source_texts", {})
    return BlockMemory(memory(content, number, **more), f"m{number:04x}", source_texts=source_texts, ceiling=ceiling)


def words(text: str) -> int:
    return len(text.replace(ELLIPSIS, f" {ELLIPSIS} ").split())


def cut_words(text: str, most: int) -> str:
    return " ".join(text.split(" ")[: max(most, 0)])


GAUGE = TextMeter(words, cut_words)
ABOVE = words(ENGLISH.groups[Kind.MESSAGE])


def test_a_line_says_which_when_who_and_what():
    assert write_line(remembered()) == "[m0001] 2026-05-04: My cat is called Pascal.\n"
    assert write_line(remembered(role=Role.USER)) == "[m0001] 2026-05-04 user: My cat is called Pascal.\n"
    assert write_line(remembered(speaker="Ada")) == "[m0001] 2026-05-04 Ada: My cat is called Pascal.\n"
    spoken = remembered("我叫小李", speaker="小李", role=Role.USER)
    assert write_line(spoken) == "[m0001] 2026-05-04 小李 (user): 我叫小李\n"
    over = remembered("x", kind=Kind.FACT, valid_at=NOW - timedelta(days=9), invalid_at=NOW)
    assert write_line(over) == "[m0001] 2026-04-25 to 2026-05-04: x\n"


def test_the_day_is_that_of_the_zone():
    east = timezone(timedelta(hours=8))
    assert write_line(remembered("x"), zone=east) == "[m0001] 2026-05-05: x\n"
    assert write_line(remembered("x", occurred_at=NOW.astimezone(east))) == "[m0001] 2026-05-04: x\n"


def test_a_block_is_plain_text_grouped_by_kind_and_then_in_the_order_of_time():
    yesterday = NOW - timedelta(days=1)
    shown = [
        remembered("said", 1),
        remembered("known later", 2, kind=Kind.FACT),
        remembered("known before", 3, kind=Kind.FACT, occurred_at=yesterday),
        remembered("seen", 4, kind=Kind.EVENT),
    ]
    lines = fill(shown, 1_000, GAUGE, 9).lines.values()
    assert render_block(lines, write_summary(memory("They spoke\nof cats."))) == (
        f"{ENGLISH.heading}\n<memories>\nSummary of the conversation so far: They spoke of cats.\n"
        "Facts:\n[m0003] 2026-05-03: known before\n[m0002] 2026-05-04: known later\n"
        "Events:\n[m0004] 2026-05-04: seen\nEarlier messages:\n[m0001] 2026-05-04: said\n</memories>"
    )
    assert not render_block([])
    assert list(ENGLISH.groups) == [Kind.FACT, Kind.SUMMARY, Kind.THOUGHT, Kind.EVENT, Kind.CHAT, Kind.MESSAGE]


def test_code_is_left_as_it_is_unless_it_could_end_the_tags():
    assert fold("if a < b / c: List<int> <br> x</p>") == "if a < b / c: List<int> <br> x‹/p>"
    assert fold("a\n\n  b\tc\x1b[0m\x00") == "a b c [0m"


@given(st.lists(st.tuples(TEXTS | NASTY, NASTY), max_size=5), st.sampled_from(DetailLevel))
def test_nothing_that_is_said_can_close_the_tags_or_begin_a_line(said, level):
    source_texts = {UUID(int=9): SourceText(UUID(int=9), said[0][1], said[0][0], NOW)} if said else {}
    more = {"kind": Kind.SUMMARY, "evidence": (UUID(int=9),), "source_texts": source_texts}
    lines = [write_line(remembered(content, speaker=speaker, **more), level) for content, speaker in said]
    block = render(lines)
    assert len(block.splitlines()) == len(said) * (1 if level is DetailLevel.ABSTRACT else 2) + 3
    lowered = "".join(block.lower().split()).replace("＜", "<")
    assert lowered.count(CLOSING) == 1
    assert lowered.count(OPENING) == 1
    assert block.endswith(f"\n{CLOSING}")
    assert all(line.startswith(("[m0001] 2026-05-04", "  > ")) for line in block.splitlines()[2:-1])


def test_lines_stand_by_kind_then_in_the_order_of_time_and_among_equals_of_writing():
    late, early = remembered(number=1), remembered("b", number=3, occurred_at=NOW - timedelta(days=1))
    twin = remembered("c", number=2)
    lines = fill([twin, late, early], 1_000, GAUGE, 9).lines
    assert [line.memory_id.int for line in order(lines.values())] == [3, 1, 2]


def test_a_long_memory_has_a_compact_and_an_abstract_form():
    long = remembered("One sentence stands here. " * 40)
    full, compact, abstract = (write_line(long, level) for level in DetailLevel)
    assert len(full) > len(compact) > len(abstract)
    assert compact.endswith(f"here.{ELLIPSIS}\n")
    assert abstract.endswith(f"here.{ELLIPSIS}\n")
    short = remembered("One sentence.")
    assert len({write_line(short, level) for level in DetailLevel}) == 1


def test_a_chinese_memory_is_cut_to_what_says_as_much():
    cut = shorten("我们今天去了很远的地方。" * 30, WIDTHS[DetailLevel.ABSTRACT])
    assert cut.endswith(f"。{ELLIPSIS}")
    assert len(cut) <= WIDTHS[DetailLevel.ABSTRACT] // 2 + 1


@given(TEXTS, st.integers(2, 80))
def test_a_text_is_cut_only_where_it_is_too_wide_and_never_longer_than_it_was(text, width):
    cut = shorten(text, width)
    if cut != text:
        assert cut.endswith(ELLIPSIS)
        assert text.startswith(cut[:-1])
        assert len(cut) <= min(width, len(text)) + 1


def test_a_summary_quotes_some_of_what_it_was_made_from():
    sources = tuple(UUID(int=100 + number) for number in range(12))
    source_texts = {each: SourceText(each, "Li", f"word {each.int}", NOW) for each in sources}
    summary = remembered("They spoke.", kind=Kind.SUMMARY, evidence=sources, source_texts=source_texts)
    full, compact, abstract = (write_line(summary, level).splitlines() for level in DetailLevel)
    assert [line.split()[-1] for line in full[1:]] == [
        *("100", "101", "shown)", "104", "105", "106", "107", "shown)", "110", "111")
    ]
    assert compact[1] == "  (4 more not shown)"
    assert compact[2:] == full[4:]
    assert abstract == ["[m0001] 2026-05-04: They spoke."]


def test_a_chat_of_many_lines_is_compact_by_its_beginning_middle_and_end():
    chat = remembered("\n".join(f"Li: word {number}" for number in range(20)), kind=Kind.CHAT)
    assert write_line(chat, DetailLevel.COMPACT) == (
        "[m0001] 2026-05-04: Li: word 0 Li: word 1 (6 more not shown) Li: word 8 Li: word 9 Li: word 10 Li: word 11 "
        "(6 more not shown) Li: word 18 Li: word 19\n"
    )


def test_a_short_id_is_the_shortest_end_of_an_id_that_ends_no_other():
    one, other, third = UUID(int=0xA1234), UUID(int=0xB1234), UUID(int=0xC9999)
    assert shorten_ids([one, other, third]) == {one: "ma1234", other: "mb1234", third: "m9999"}
    # In a conversation a name once given is kept, and no other memory gets it.
    assert shorten_ids([other], {one: "m1234"}) == {one: "m1234", other: "mb1234"}


@given(st.lists(st.uuids() | st.integers(0, 2**20).map(lambda number: UUID(int=number)), max_size=60))
def test_short_ids_are_unique_and_end_their_ids(ids):
    names = shorten_ids(ids)
    assert set(names) == set(ids)
    assert len(set(names.values())) == len(names)
    assert all(each.hex.endswith(name[1:]) and len(name) >= 5 for each, name in names.items())
    assert names == shorten_ids(reversed(ids))


def numbered(*contents: str) -> list[BlockMemory]:
    return [remembered(content, number) for number, content in enumerate(contents)]


def taken(filled) -> list[int]:
    return [identity.int for identity in filled.lines]


def levels(filled) -> list[DetailLevel]:
    return [line.level for line in filled.lines.values()]


def test_memories_are_taken_from_the_front_while_there_is_room():
    memories = numbered("one", "one two", "one")
    assert fill(memories, 100, GAUGE, 9).exhausted
    filled = fill(memories, 7 + ABOVE, GAUGE, 9)
    assert (taken(filled), filled.tokens, filled.exhausted) == ([0, 1], 7 + ABOVE, False)
    # One that is too long for what is left does not keep a shorter one out.
    assert taken(fill(memories, 6 + ABOVE, GAUGE, 9)) == [0, 2]
    assert taken(fill(memories, 100, GAUGE, 2)) == [0, 1]
    assert fill(memories, 100, GAUGE, 2).exhausted
    assert fill([], 100, GAUGE, 9).exhausted
    assert not fill(memories, 100, GAUGE, 0).lines


def test_the_least_relevant_degrade_first():
    long = [remembered("A sentence of six words here. " * 50, number) for number in range(12)]
    assert set(levels(fill(long, 10_000, GAUGE, 99))) == {DetailLevel.FULL}
    shown = levels(fill(long, 560, GAUGE, 99))
    assert shown == sorted(shown, key=list(DetailLevel).index)
    assert len(set(shown)) == 3


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12), st.integers(0, 600))
def test_lines_stay_within_their_room_and_come_out_the_same_each_time(lengths, room):
    memories = [remembered("some words. " * length, number) for number, length in enumerate(lengths)]
    filled = fill(memories, room, GAUGE, 99)
    assert filled.tokens <= room or not filled.lines
    assert filled == fill(memories, room, GAUGE, 99)
    if filled.exhausted:
        assert set(levels(filled)) == {DetailLevel.FULL}
        assert taken(filled) == list(range(len(lengths)))


def test_what_has_faded_is_shown_no_fuller_than_it_may():
    faded = remembered("One sentence stands here. " * 40, ceiling=DetailLevel.ABSTRACT)
    filled = fill([faded], 10_000, GAUGE, 9)
    assert levels(filled) == [DetailLevel.ABSTRACT]
    assert filled.exhausted


def test_the_first_is_cut_only_if_no_other_fits():
    long = "word" * 30
    assert taken(fill(numbered(f"{long} " * 50, "one"), 5 + ABOVE, GAUGE, 9)) == [1]
    [cut] = fill(numbered("x y z " * 50, "x y z " * 50), 7 + ABOVE, GAUGE, 9).lines.values()
    assert cut.text.endswith(f"{ELLIPSIS}\n")
    assert words(cut.text) <= 7
    assert cut.level is DetailLevel.ABSTRACT
    assert not fill(numbered(long), 3, GAUGE, 9).lines
    assert not fill(numbered(long), 0, GAUGE, 9).lines


def test_no_more_is_counted_in_vain_than_a_few_lines():
    counted = []

    def count(text):
        counted.append(text)
        return words(text)

    fill(numbered("one", *["word " * 15] * 100), 10, TextMeter(count, cut_words), 200)
    assert len(set(counted)) <= 2 + MAX_MISSES
    counted.clear()
    fill(numbered("one", *["wordy" * 1000] * 3), 5 + ABOVE, TextMeter(count, cut_words), 200)
    assert len(max(counted, key=len)) < 200


def test_lines_are_left_out_from_the_end_while_they_do_not_fit():
    lines = [*fill(numbered("a", "b", "c"), 100, GAUGE, 9).lines.values()]
    assert drop_last_lines(lines, lambda kept: len(kept) < 3) == lines[:2]
    assert not drop_last_lines(lines, lambda _: False)


@given(st.lists(TEXTS, max_size=12), st.integers(0, 200), st.sampled_from(OPENAI))
def test_lines_cost_together_what_they_cost_one_by_one(contents, room, tokenizer):
    filled = fill(numbered(*contents), room, TextMeter(tokenizer.count, tokenizer.cut), 200)
    above = tokenizer.count(ENGLISH.groups[Kind.MESSAGE]) if filled.lines else 0
    assert filled.tokens == above + sum(line.tokens for line in filled.lines.values()) <= room
    form = tokenizer.count(render([]))
    whole = tokenizer.count(render_block(filled.lines.values())) if filled.lines else form
    assert whole <= form + filled.tokens
    if tokenizer.name != "estimate":
        assert whole == form + filled.tokens


@given(TEXTS, st.integers(0, 60), st.sampled_from(OPENAI))
def test_a_cut_line_fits_and_says_at_least_a_word(content, room, tokenizer):
    line = write_line(remembered(content))
    cut = cut_line(line, room, TextMeter(tokenizer.count, tokenizer.cut))
    assert tokenizer.count(cut) <= room
    if cut and cut != line:
        assert cut.endswith(f"{ELLIPSIS}\n")
        assert line.startswith(cut[:-2])
        assert len(cut) > len(write_line(remembered("")))


def test_every_language_has_all_words():
    for wording in WORDINGS.values():
        assert list(wording.groups) == list(ENGLISH.groups)
        assert wording.summary.endswith((": ", "："))
        assert "{count}" in wording.left_out


@pytest.mark.parametrize(
    ("language", "text", "wording"),
    [
        ("", "能放花生吗？", CHINESE),
        ("", "What must Li not eat?", ENGLISH),
        ("", "Who is 李雷 in this story?", ENGLISH),
        ("", "用 Python 怎么写？", CHINESE),
        ("", "ピーナッツは食べられますか", ENGLISH),
        ("", "東京へ行きますか", ENGLISH),
        ("", "", ENGLISH),
        ("zh", "What must Li not eat?", CHINESE),
        ("en", "能放花生吗？", ENGLISH),
    ],
)
def test_the_language_is_the_agents_or_the_texts(language, text, wording):
    assert choose_wording(language, text) is wording


def test_a_block_in_chinese_has_no_english_around_its_lines():
    past = remembered("x", kind=Kind.FACT, valid_at=NOW, invalid_at=NOW + timedelta(days=9))
    line = write_line(past, DetailLevel.FULL, UTC, CHINESE)
    assert line == "[m0001] 2026-05-04 至 2026-05-13: x\n"
    assert write_summary(memory("他们聊猫。"), CHINESE) == "本次会话至今的摘要：他们聊猫。\n"
    assert render([], CHINESE) == f"{CHINESE.heading}\n<memories>\n</memories>"

"""What says nearly the same is one hit that names the others."""

from __future__ import annotations

from uuid import UUID

from recollect.core.text.similarity import collapse
from recollect.models.recall import FusedCandidate


def ranking(*texts):
    hits = [FusedCandidate(UUID(int=place), 1.0 / place, {}) for place in range(1, len(texts) + 1)]
    return hits, {UUID(int=place): text for place, text in enumerate(texts, 1)}


def collapsed(*texts, limit=10):
    return [(hit.id.int, [each.int for each in others]) for hit, others in collapse(*ranking(*texts), limit)]


def test_the_best_stands_for_those_that_say_the_same():
    said = ("Anna moved to Berlin in May", "I like tea", "Anna moved to Berlin in May!", "anna moved to BERLIN in may.")
    assert collapsed(*said) == [(1, [3, 4]), (2, [])]


def test_one_word_more_of_few_is_another_thing():
    assert collapsed("Anna moved to Berlin", "Anna moved to Bonn", "Anna has moved to Berlin again") == [
        (1, []),
        (2, []),
        (3, []),
    ]


def test_long_texts_may_differ_in_a_word():
    words = " ".join(f"word{number}" for number in range(40))
    assert collapsed(words, f"{words} more") == [(1, [2])]


def test_chinese_is_compared_by_its_characters():
    assert collapsed("张伟在北京的银行工作。", "张伟在北京的银行工作", "张伟在上海的银行工作") == [(1, [2]), (3, [])]


def test_what_is_spared_takes_the_place_of_what_is_not_shown():
    assert collapsed("same", "same", "other", "third", limit=2) == [(1, [2]), (3, [])]
    assert collapsed("one", "two", "two", limit=1) == [(1, [])]


def test_texts_without_words_are_all_different():
    assert collapsed("!!!", "???", "") == [(1, []), (2, []), (3, [])]

"""When a text says what another one does, and by which terms it is looked for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.memories.duplicates import check_if_new, is_known, normalize, search_by
from recollect.core.text.similarity import is_same
from recollect.errors import InvalidInputError
from recollect.models.memories import Kind, NewMemory

WORDS = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


def wording(text, **more):
    return normalize(NewMemory(text, **more))


@pytest.mark.parametrize("same", ["Li likes tea", "LI  LIKES TEA!", "Ｌi likes tea。", "li likes\ntea."])
def test_case_width_spaces_and_marks_at_the_end_do_not_count(same):
    assert is_known(wording(same), wording("Li likes tea."), "same")


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("I like tea, I do", "I do not like tea"),
        ("Call 5551234 at home", "Call 5551235 at home"),
        ("I can't swim", "I can swim"),
        ("他喜欢茶", "他不喜欢茶"),
        ("😀", "😁"),
    ],
)
def test_numbers_and_negations_make_another_statement(new, old):
    assert not is_known(wording(new), wording(old), "near")


def test_kind_and_speaker_count():
    assert not is_known(wording("tea", kind=Kind.THOUGHT), wording("tea"), "same")
    assert not is_known(wording("tea", speaker="Ann"), wording("tea", speaker="Bob"), "same")
    assert is_known(wording("tea", speaker="ANN"), wording("tea", speaker="ann"), "same")


def test_near_is_only_for_who_asks():
    new, old = wording("Li will like the tea"), wording("Li likes tea")
    assert is_known(new, old, "near") and not is_known(new, old, "same")
    with pytest.raises(InvalidInputError):
        check_if_new("alike")


@given(st.sets(st.sampled_from(WORDS), min_size=1), st.sets(st.sampled_from(WORDS)), st.sets(st.sampled_from(WORDS)))
def test_the_search_finds_whatever_is_near(words, more, fewer):
    new, old = wording(" ".join(words)), wording(" ".join((words | more) - fewer))
    search = search_by(new, "near")
    if is_same(new.terms, old.terms):
        assert old.terms & {*search.rare} and len(old.terms & {*search.terms}) >= search.fewest
    assert len(search.rare) == len(new.terms) - math.ceil(0.9 * len(new.terms)) + 1

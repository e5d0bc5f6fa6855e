"""Which keywords a perceived triple asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.core.agents.reflection import read_as_original, read_triple
from recollect.core.text.keywords import keywords_of
from recollect.models.memories import Kind, Triple

TRIPLES = st.builds(Triple, *[st.text(max_size=20)] * 3)


def test_a_triple_asks_for_all_three_of_its_parts_as_memories_are_filed():
    assert read_triple(Triple("the Ville:Oak Hill:Maria Lopez", "Walk", "ＣＡＦＥ")) == (
        "maria lopez",
        "walk",
        "cafe",
    )


def test_what_is_said_twice_or_not_at_all_is_asked_for_once_or_not_at_all():
    assert read_triple(Triple("bed", "is", "Bed")) == ("bed", "is")
    assert read_triple(Triple()) == ()


def test_the_original_finds_nothing_by_capitals_or_places():
    assert read_as_original(Triple("Maria Lopez", "walk", "grocery store")) == ("walk", "grocery store")
    assert read_as_original(Triple("the ville:desk", "is", "空闲")) == ("is", "空闲")
    assert read_as_original(Triple("小镇：炊事区", "在", "")) == ("在",)


@given(TRIPLES)
def test_a_thought_is_found_by_the_triple_it_was_filed_from(triple):
    assert set(keywords_of(triple, Kind.THOUGHT)) == set(read_triple(triple))


@given(TRIPLES)
def test_the_original_never_asks_for_more(triple):
    assert set(read_as_original(triple)) <= set(read_triple(triple))

"""Paths of topics are read, written and encoded without loss, and what is filed under them is rated as documented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text.names import normalize_name
from recollect.core.topics.paths import (
    MAX_LABELS_LENGTH,
    MAX_LEVELS,
    TopicNode,
    check_filing,
    choose_paths,
    decode_label,
    encode,
    encode_label,
    find_topics,
    grow,
    parse_topic,
    read_topic,
    show_topic,
)
from recollect.core.topics.rating import collect, damp_link, rate_recency, update_link
from recollect.errors import InvalidInputError
from recollect.models.topics import LinkStrength, Topic, TopicLink, TopicTree
from support.imports.generative_agents import read_golden
from support.memories.topic_cases import at, links_of, reach_of, references

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
STRIPPED_HERE = {"a {slices: 3}->b": "a->b"}
"""What the original shows beside names and takes for a part of them; here no mark is part of a name."""
WRITTEN = st.text(st.sampled_from("ab cÄß中文😀'\"[]{}:1->.-_\u200b\t"), max_size=40) | st.text(max_size=40)


@pytest.fixture(scope="session")
def golden(shared) -> dict:
    return read_golden(shared, "golden_topic_recall")


def test_every_golden_case_is_recalled_as_it_says(golden):
    limit, tolerance = golden["limits"]["result"], golden["tolerance"]
    for case in golden["cases"]:
        links: list[TopicLink] = []
        for link in links_of(case):
            links = update_link(links, link)
        found = collect(links, case["query"], at(case["now_ms"]), limit)
        if case["expected"] is None:
            assert found is None, case["name"]
            continue
        assert found is not None, case["name"]
        ids = {UUID(int=number): each for number, each in enumerate(references(case), 1)}
        assert [ids[each.id] for each in found] == [each["ref"] for each in case["expected"]], case["name"]
        for each, expected in zip(found, case["expected"], strict=True):
            assert each.score == pytest.approx(expected["score"], abs=tolerance), case["name"]


def test_the_usual_reach_is_kept_steady_as_the_golden_cases_say(golden):
    for case in golden["profile_stabiliser"]:
        out = damp_link(reach_of(case["in"]), case["related_count"], case["message_count"])
        expected = case["out"]
        assert (out.activation, out.diffusion, out.independence) == pytest.approx(
            (expected["activation"], expected["diffusion"], expected["context_independence"])
        )


def test_paths_are_mended_as_the_golden_cases_say(golden):
    for case in golden["fix_topic_path"]:
        assert show_topic(parse_topic(case["in"] or "")) == STRIPPED_HERE.get(case["in"], case["out"])


def test_marks_that_only_appear_when_others_are_gone_are_no_part_of_names_either():
    assert parse_topic("x{a: {b: 1} 2}->-[y]>z") == ("x", "z")
    assert parse_topic(" \u200b -> [root] ") == ()


@given(WRITTEN)
def test_what_is_shown_is_read_as_the_same_path(text):
    names = parse_topic(text)
    assert parse_topic(show_topic(names)) == names
    assert all(normalize_name(name) for name in names)


@given(WRITTEN.map(normalize_name), WRITTEN.map(normalize_name))
def test_labels_tell_names_apart_and_can_be_read_back(one, other):
    assert (encode_label(one) == encode_label(other)) == (normalize_name(one) == normalize_name(other))
    assert decode_label(encode_label(one)) == normalize_name(one)
    assert set(encode_label(one)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")


def test_case_width_and_marks_around_a_name_make_no_other_topic():
    assert encode(("Ｔravel", "日本。")) == encode(("travel", "日本"))
    assert encode(("travel japan",)) != encode(("travel-japan",)) != encode(("travel", "japan"))


@pytest.mark.parametrize(
    "path", ["", "->", "[x]", "a\nb", "a" * 101, "中" * 100 + "->" + "中" * 100 + "->" + "中" * 210]
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidInputError):
        read_topic(path)
    assert find_topics([path]) == []


def test_a_path_has_so_many_levels_and_letters_at_most():
    assert len(read_topic("->".join("abcdefghijklmnop"))) == MAX_LEVELS
    with pytest.raises(InvalidInputError, match="levels"):
        read_topic("->".join("abcdefghijklmnopq"))
    assert len(encode(read_topic("->".join(["中" * 90] * 4)))) <= MAX_LABELS_LENGTH
    with pytest.raises(InvalidInputError, match="too long"):
        read_topic("->".join(["中" * 90] * 5))


def test_filing_is_checked():
    check_filing("a->b", ["c"], LinkStrength())
    for topic, related, reach in (
        ("", ["a"], LinkStrength()),
        ("a", [""], LinkStrength()),
        ("a", ["b"] * 17, LinkStrength()),
        ("a", [], LinkStrength(activation=1.1)),
        ("a", [], LinkStrength(diffusion=float("nan"))),
    ):
        with pytest.raises(InvalidInputError):
            check_filing(topic, related, reach)


def test_a_segment_belongs_to_its_first_path_or_to_its_label():
    assert choose_paths([("Travel", "Japan"), ("travel", "japan"), ("Food",)], "x") == ("Travel->Japan", ("Food",))
    assert choose_paths([], "Berlin trip") == ("Berlin trip", ())
    assert choose_paths([], "") == ("", ())


@pytest.mark.parametrize(("hours", "worth"), [(-48, 0.3), (47.9, 0.3), (48, 0.22), (96, 0.15), (192, 0.08), (744, 0)])
def test_age_is_counted_in_whole_days(hours, worth):
    assert rate_recency(NOW - timedelta(hours=hours), NOW) == worth


def test_descendants_are_looked_at_only_if_asked():
    links = [
        TopicLink("a->b->c", UUID(int=1), NOW),
        TopicLink("a->bc", UUID(int=2), NOW),
        TopicLink("a", UUID(int=3), NOW),
    ]
    assert [each.id.int for each in collect(links, "a->b", NOW, 5) or ()] == [3]
    assert [each.id.int for each in collect(links, "a->b", NOW, 5, descendants=True) or ()] == [1, 3]
    assert [each.id.int for each in collect(links, "A", NOW, 5, descendants=True) or ()] == [3, 1, 2]


def test_a_link_does_not_lead_to_itself():
    [link] = update_link([], TopicLink("a", UUID(int=1), NOW, related=("A", "b", "B ")))
    assert link.related == ("b",)


def test_a_tree_counts_what_lies_below_and_leaves_out_what_is_out_of_sight():
    nodes = [
        TopicNode(("a",), "A", 0, False),
        TopicNode(("a", "b"), "B", 2, True),
        TopicNode(("a", "b", "c"), "C", 1, True),
        TopicNode(("a", "d"), "D", 0, False),
        TopicNode(("e",), "E", 0, True),
    ]
    found = grow(nodes)
    assert found == [
        Topic("A", "A", 0, 3),
        Topic("A->B", "B", 2, 1),
        Topic("A->B->C", "C", 1, 0),
        Topic("E", "E", 0, 0),
    ]
    text = TopicTree(tuple(found)).text
    assert text.splitlines() == [
        "A [root] {memories: 0}",
        "A->B {memories: 2}",
        "A->B->C {memories: 1}",
        "E [root] {memories: 0}",
    ]
    assert [show_topic(parse_topic(line)) for line in text.splitlines()] == [topic.path for topic in found]

"""Where a topic's limits lie exactly, and what each way of finding a link is worth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.topics.paths import (
    TopicNode,
    check_filing,
    choose_paths,
    decode_label,
    encode,
    encode_label,
    find_topics,
    grow,
    parse_topic,
    prefixes,
    read_topic,
)
from recollect.core.topics.rating import (
    TopicMatch,
    collect,
    damp_link,
    make_reach,
    rank,
    rate,
    rate_recency,
    update_link,
)
from recollect.errors import InvalidInputError
from recollect.models.recall import Candidate
from recollect.models.topics import LinkStrength, Topic, TopicLink, TopicSource

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
FLAT = LinkStrength(0.0, 0.0, 0.0)
ONE, TWO, THREE, FOUR = (UUID(int=number) for number in range(1, 5))


def days(count: float) -> datetime:
    return NOW - timedelta(days=count)


def link(path: str, identity: UUID, age: float = 0, **more) -> TopicLink:
    return TopicLink(path, identity, days(age), **more)


@pytest.mark.parametrize(
    "path",
    [
        "a" * 100,
        "->".join(["a" * 100] * 16),
        " " * 1_999 + "a",
        "😀" * 100,
        "->".join(["中" * 100] * 3 + ["中" * 99, "b"]),
    ],
)
def test_the_longest_paths_are_accepted(path):
    read_topic(path)


@pytest.mark.parametrize(
    "path",
    [
        "a" * 101,
        "->".join(["a"] * 17),
        " " * 2_000 + "a",
        "->".join(["中" * 100] * 4),
        "b->a\u0007",
        " [root] ",
    ],
)
def test_longer_paths_are_refused_under_the_name_of_their_field(path):
    with pytest.raises(InvalidInputError, match=r"^path\b"):
        read_topic(path)
    with pytest.raises(InvalidInputError, match=r"^topic\b"):
        read_topic(path, "topic")


def test_paths_that_are_valid_are_found_once_in_their_order():
    assert find_topics(["b", "", "A->c", "a -> C", "B", "->"]) == [("b",), ("A", "c")]


@pytest.mark.parametrize("reach", [FLAT, LinkStrength(1.0, 1.0, 1.0)])
def test_a_memory_has_at_most_sixteen_related_topics_and_a_reach_from_zero_to_one(reach):
    check_filing("a", [f"t{number}" for number in range(16)], reach)
    check_filing("", [], reach)


@pytest.mark.parametrize(
    ("topic", "related", "reach", "field"),
    [
        ("a", [f"t{number}" for number in range(17)], FLAT, "related_topics"),
        ("", ["a"], FLAT, "related_topics"),
        ("a", ["->"], FLAT, "related_topics"),
        ("->", [], FLAT, "topic"),
        ("a", [], replace(FLAT, activation=-0.01), "activation"),
        ("a", [], replace(FLAT, diffusion=1.01), "diffusion"),
        ("a", [], replace(FLAT, independence=2.0), "independence"),
    ],
)
def test_what_a_memory_cannot_be_filed_under_is_refused_by_its_name(topic, related, reach, field):
    with pytest.raises(InvalidInputError, match=rf"^{field}\b"):
        check_filing(topic, related, reach)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Az09", "az09"),
        ("a b", "a-b"),
        ("a-b", "a_002db"),
        ("a_b", "a_005fb"),
        ("a{b", "a_007bb"),
        ("a/b", "a_002fb"),
        ("a:b", "a_003ab"),
        ("中", "_4e2d"),
        ("a\ufffdb", "a_fffdb"),
        ("a😀b", "a__01f600b"),
        ("\U00010000", "__010000"),
    ],
)
def test_a_label_is_the_same_in_every_release_because_the_database_knows_topics_by_it(name, label):
    assert encode_label(name) == label
    assert encode((name, "b")) == f"{label}.b"
    assert decode_label(label) == name.lower()


def test_a_path_lies_below_all_its_beginnings():
    assert prefixes(("a", "b", "c")) == [("a",), ("a", "b"), ("a", "b", "c")]
    assert prefixes(()) == []


def test_a_segment_has_one_topic_and_at_most_sixteen_related_ones():
    paths = [(f"t{number}",) for number in range(18)]
    assert choose_paths(paths, "x") == ("t0", tuple(f"t{number}" for number in range(1, 17)))
    assert choose_paths([("",)], "label") == ("label", ())


def test_a_tree_may_begin_at_a_lower_level_and_tells_of_the_newest():
    nodes = [
        TopicNode(("b",), "B", 1, True),
        TopicNode(("a",), "A", 0, False),
        TopicNode(("a", "c"), "C", 2, True, 0.5, NOW),
        TopicNode(("a", "c", "d"), "D", 3, True),
    ]
    first, second = grow(nodes, 2)
    assert [first, second] == [Topic("A->C", "C", 2, 3), Topic("A->C->D", "D", 3, 0)]
    assert (first.activation, first.newest_at) == (0.5, NOW)
    assert [(topic.path, topic.below) for topic in grow(nodes)] == [("A", 5), ("A->C", 3), ("A->C->D", 0), ("B", 0)]


def test_a_missing_value_of_a_reach_is_the_usual_one_and_others_are_brought_within_zero_and_one():
    assert make_reach() == make_reach(float("nan"), None, float("nan")) == LinkStrength()
    assert make_reach(-1, 2, 0.25) == LinkStrength(0.0, 1.0, 0.25)
    assert make_reach(0.25, -1, 2) == LinkStrength(0.25, 0.0, 1.0)


def test_a_link_that_rests_on_little_reaches_less_far():
    reach = LinkStrength(0.5, 0.9, 0.3)
    assert damp_link(reach, 1, 2) == reach
    assert damp_link(reach, 0, 2) == LinkStrength(0.5, 0.45, 0.3)
    assert damp_link(reach, 1, 1).activation == pytest.approx(0.45)
    assert damp_link(LinkStrength(0.01, 0.2, 0.3), 0, 1) == LinkStrength(0.0, 0.2, 0.3)


@pytest.mark.parametrize(
    ("age", "worth"),
    [(1.99, 0.3), (2, 0.22), (3.99, 0.22), (4, 0.15), (7.99, 0.15), (8, 0.08), (30.9, 0.08), (31, 0.0)],
)
def test_what_an_age_is_worth_changes_after_whole_days(age, worth):
    assert rate_recency(days(age), NOW) == worth


@pytest.mark.parametrize(
    ("source", "flat", "full"),
    [
        (TopicSource.PRIMARY, 1.0, 1.86),
        (TopicSource.DESCENDANT, 0.8, 1.66),
        (TopicSource.RELATED, 0.65, 1.65),
        (TopicSource.PARENT, 0.45, 1.29),
    ],
)
def test_a_link_is_worth_how_it_was_found_and_how_far_it_reaches(source, flat, full):
    assert rate(TopicMatch(ONE, source, days(90), FLAT), NOW) == pytest.approx(flat)
    assert rate(TopicMatch(ONE, source, days(90), LinkStrength(1.0, 1.0, 1.0)), NOW) == pytest.approx(full)
    assert rate(TopicMatch(ONE, source, NOW, FLAT), NOW) == pytest.approx(flat + 0.3)


def test_of_one_memory_the_best_link_counts_and_among_equals_the_newest_then_the_first_written():
    found = [
        TopicMatch(TWO, TopicSource.PARENT, days(90), FLAT),
        TopicMatch(TWO, TopicSource.PRIMARY, days(90), FLAT),
        TopicMatch(THREE, TopicSource.PRIMARY, days(80), FLAT),
        TopicMatch(ONE, TopicSource.PRIMARY, days(90), FLAT),
    ]
    assert rank(found, NOW, 9) == [Candidate(THREE, 1.0), Candidate(ONE, 1.0), Candidate(TWO, 1.0)]
    assert [each.id for each in rank(found, NOW, 1)] == [THREE]


def test_of_a_parent_and_of_a_related_topic_only_the_two_newest_are_looked_at():
    own = link("p->a", UUID(int=9), 0, related=("r",))
    above = [link("p", UUID(int=10 + age), age) for age in range(3)]
    near = [link("r", UUID(int=20 + age), age) for age in range(3)]
    found = {each.id.int for each in collect([own, *above[::-1], *near], "p->a", NOW, 9) or ()}
    assert found == {9, 10, 11, 20, 21}


def test_a_parent_is_the_topic_right_above():
    links = [link("a", ONE), link("a->b", TWO), link("a->b->c", THREE)]
    assert [each.id for each in collect(links, "a->b->c", NOW, 9) or ()] == [THREE, TWO]


def test_a_link_that_does_not_diffuse_leads_to_no_related_topic():
    links = [link("a", ONE, related=("r",), reach=LinkStrength(diffusion=0.0)), link("r", TWO)]
    assert [each.id for each in collect(links, "a", NOW, 9) or ()] == [ONE]
    links[0] = replace(links[0], reach=LinkStrength(diffusion=0.01))
    assert {each.id for each in collect(links, "a", NOW, 9) or ()} == {ONE, TWO}


def test_a_topic_that_is_only_named_is_known_and_any_other_is_not():
    links = [link("a->b", ONE, related=("r->s",))]
    for known in ("a", "r", "r->s"):
        assert collect(links, known, NOW, 9) == []
    assert collect(links, "x", NOW, 9) is None


def test_filing_a_memory_again_replaces_its_link_and_adds_what_is_related():
    links = [link("a", ONE, 5, related=("b", "c")), link("a", TWO, 5), link("x", ONE, 5)]
    assert update_link(links, link("A", ONE, 1, related=("C", "d", "a"))) == [
        link("a", TWO, 5), link("x", ONE, 5), link("A", ONE, 1, related=("b", "c", "d")),
    ]  # fmt: skip


def test_decorations_of_a_tree_are_no_names():
    assert parse_topic("Travel [root] {memories: 3}->  far   East ->->") == ("Travel", "far East")

"""Facts as a graph: nearness, leaders, paths and the names in a cue, computed on values alone."""

from __future__ import annotations

from itertools import permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge import graph
from recollect.core.knowledge.graph import (
    MAX_PIECES,
    FollowedFact,
    find_leaders,
    find_paths,
    is_whole,
    measure_depths,
    rate,
    spot_names,
    spot_spellings,
    spread,
)


def entity(number):
    return UUID(int=number)


def step(number, source, target, hop=1):
    return FollowedFact(UUID(int=1000 + number), hop, entity(source), entity(target))


def to_numbers(path, start):
    return (start, *(each.target.int for each in path))


def test_a_fact_is_as_near_as_its_ends():
    near = spread({entity(0): 1.0}, [step(1, 0, 1, hop=1), step(2, 1, 2, hop=2), step(3, 2, 3, hop=3)])
    ends = ((0, 0), (0, 1), (1, 1), (1, 2), (2, 3))
    rated = [rate(near[entity(one)], near[entity(other)]) for one, other in ends]
    assert rated == [1.0, 0.75, 0.5, 0.375, 0.1875]


def test_a_start_that_counts_less_leads_to_what_is_less_near():
    steps = [step(1, 0, 2), step(2, 1, 2), step(3, 2, 3, hop=2)]
    near = spread({entity(0): 0.4, entity(1): 1.0}, steps)
    assert near == {entity(0): 0.4, entity(1): 1.0, entity(2): 0.5, entity(3): 0.25}


def test_entities_lie_as_deep_as_the_first_hop_that_reaches_them():
    steps = [step(1, 1, 2), step(2, 1, 3), step(3, 2, 3, hop=2), step(4, 3, 4, hop=2)]
    assert measure_depths([entity(1)], steps) == {entity(1): 0, entity(2): 1, entity(3): 1, entity(4): 2}
    assert find_leaders([entity(1)], reversed(steps)) == {entity(2): steps[0], entity(3): steps[1], entity(4): steps[3]}


def test_a_walk_is_whole_unless_a_hop_came_near_its_bounds():
    few = [step(number, 0, number) for number in range(1, 10)]
    assert is_whole([entity(0)], few, beam=100)
    assert is_whole([entity(0)], [], beam=1)
    assert not is_whole([entity(0)], few, beam=9)
    many = [step(number, 0, number) for number in range(1, 21)]
    assert is_whole([entity(0)], many, beam=100)
    assert not is_whole([entity(0), *map(entity, range(100, 109))], many, beam=100)


edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda ends: ends[0] != ends[1]), max_size=14)


def list_connections(pairs, start, end, hops):
    """Every path, found by trying all ways of ordering what lies between."""
    joined = {frozenset(pair) for pair in pairs}
    between = {number for pair in pairs for number in pair} - {start, end}
    return {
        (start, *middle, end)
        for length in range(hops)
        for middle in permutations(sorted(between), length)
        if all(frozenset(pair) in joined for pair in zip((start, *middle), (*middle, end), strict=True))
    }


@given(edges, st.integers(1, 5))
def test_paths_are_all_simple_ones_the_shortest_first(pairs, hops):
    steps = [step(number, *pair) for number, pair in enumerate(pairs)]
    found = [to_numbers(path, 0) for path in find_paths(steps, entity(0), entity(6), hops, 1_000)]
    assert set(found) == list_connections(pairs, 0, 6, hops)
    assert len(found) == len(set(found))
    assert [len(path) for path in found] == sorted(len(path) for path in found)


@given(edges)
def test_there_is_a_way_back_for_every_way(pairs):
    steps = [step(number, *pair) for number, pair in enumerate(pairs)]
    there = {to_numbers(path, 0) for path in find_paths(steps, entity(0), entity(6), 4, 1_000)}
    back = {to_numbers(path, 6)[::-1] for path in find_paths(steps, entity(6), entity(0), 4, 1_000)}
    assert there == back


def test_of_several_facts_between_two_the_newest_stands():
    steps = [step(1, 1, 2), step(9, 2, 1), step(5, 1, 2)]
    assert [[each.memory_id.int for each in path] for path in find_paths(steps, entity(1), entity(2), 3, 9)] == [[1009]]


def test_a_search_for_paths_ends(monkeypatch):
    everyone = [step(100 * one + other, one, other) for one in range(30) for other in range(one)]
    assert len(find_paths(everyone, entity(0), entity(29), 6, 50)) == 50
    monkeypatch.setattr(graph, "MAX_SEARCH_STEPS", 10)
    assert len(find_paths(everyone, entity(0), entity(29), 6, 50)) < 50


def names(text):
    return {each.name for each in spot_names(text)}


def test_names_are_runs_of_words_without_what_stands_around_them():
    assert names("Is Ada's “New York” trip on?") >= {"ada", "new york", "new york” trip", "trip"}
    assert "new york" in names("NEW  YORK!")
    assert names("   ") == set()


def test_names_are_runs_of_characters_where_words_are_not_spaced():
    assert names("李雷在Google工作") >= {"李雷", "google", "工作", "在google"}
    assert "清华大学" in names("他在清华大学读书。")
    assert "서울" in names("서울에서 만나요")


def test_a_name_knows_its_place():
    [whole] = [each for each in spot_names("to New York") if each.name == "new york"]
    [part] = [each for each in spot_names("to New York") if each.name == "york"]
    assert (whole.first, whole.last, part.first, part.last) == (1, 2, 2, 2)


@given(st.text(max_size=400))
def test_any_cue_gives_a_bounded_number_of_names(text):
    found = spot_names(text)
    assert len(found) <= MAX_PIECES * graph.MAX_NAME_LENGTH
    assert all(each.name and 0 <= each.last - each.first < graph.MAX_NAME_LENGTH for each in found)


def test_of_a_long_cue_the_end_counts():
    assert "ada" in names("blah " * 500 + "ada")
    assert "ada" not in names("ada " + "blah " * 500)


def test_spellings_are_long_words_and_pairs_those_with_a_capital_first():
    assert spot_spellings("Where does Ada Lovelance usually work?") == [
        "ada lovelance",
        "lovelance",
        "lovelance usually",
        "usually work",
    ]
    assert spot_spellings("it is on") == []
    assert spot_spellings("李雷最近在做什么") == []


@pytest.mark.parametrize(
    ("starts", "taken", "beam", "whole"),
    [
        (1, 99, 100, True),
        (1, 100, 100, False),
        (1, 4, 5, True),
        (1, 5, 5, False),
        (4, 24, 100, True),
        (4, 25, 100, False),
        (20, 9, 100, True),
        (20, 10, 100, False),
    ],
)
def test_a_hop_may_follow_its_part_of_the_beam_and_always_ten(starts, taken, beam, whole):
    steps = [step(number, 0, 1_000 + number) for number in range(taken)]
    assert is_whole([*map(entity, range(starts))], steps, beam) is whole


def test_every_hop_is_measured_by_those_it_starts_from():
    first = [step(number, 0, number) for number in range(1, 6)]
    second = [step(100 + number, 1, 100 + number, hop=2) for number in range(20)]
    assert is_whole([entity(0)], [*first, *second[:19]], 100) is True
    assert is_whole([entity(0)], [*first, *second], 100) is False


def test_so_many_paths_are_found_and_no_longer_ones_than_asked_for():
    # 0 leads to 9 over one, two or three others.
    ways = [(0, 1), (1, 9), (0, 2), (2, 3), (3, 9), (0, 4), (4, 5), (5, 6), (6, 9)]
    steps = [step(number, *way) for number, way in enumerate(ways)]
    expected = [(0, 1, 9), (0, 2, 3, 9), (0, 4, 5, 6, 9)]
    for hops, limit, found in ((4, 9, 3), (3, 9, 2), (2, 9, 1), (1, 9, 0), (4, 2, 2), (4, 1, 1)):
        paths = find_paths(steps, entity(0), entity(9), hops, limit)
        assert [to_numbers(path, 0) for path in paths] == expected[:found]


def test_of_paths_of_one_length_the_newest_fact_leads():
    steps = [step(1, 0, 1), step(2, 1, 9), step(5, 0, 2), step(3, 2, 9), step(4, 3, 0), step(6, 3, 9)]
    paths = find_paths(steps, entity(0), entity(9), 2, 9)
    assert [to_numbers(path, 0) for path in paths] == [(0, 2, 9), (0, 3, 9), (0, 1, 9)]
    # A fact that is followed against its direction says so.
    assert [(each.source.int, each.target.int, each.memory_id.int) for each in paths[1]] == [(0, 3, 1004), (3, 9, 1006)]


def test_a_name_has_up_to_eight_pieces():
    words = "a b c d e f g h i"
    found = [each.name for each in spot_names(words)]
    assert found[:9] == ["a", "a b", "a b c", "a b c d", "a b c d e", "a b c d e f", "a b c d e f g", words[:15], "b"]
    assert words not in found
    assert found[-1] == "i"


def test_the_last_64_pieces_of_a_cue_are_read():
    text = " ".join(f"w{number}" for number in range(MAX_PIECES + 1))
    found = spot_names(text)
    assert (found[0].name, found[0].first, found[-1].last) == ("w1", 1, MAX_PIECES)
    spelled = " ".join(["Madeleine", *["tea"] * MAX_PIECES])
    assert spot_spellings(spelled) == ["tea tea"]
    assert "madeleine" in spot_spellings(spelled[:-4])


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("tree tulip", ["tree tulip", "tulip"]),
        ("Tree", []),
        ("Tulip", ["tulip"]),
        ("roses Tulip", ["tulip", "roses tulip", "roses"]),
        ("Roses tulip", ["roses", "roses tulip", "tulip"]),
        ("x tulip", ["tulip"]),
        ("tulip the roses", ["roses", "tulip"]),
        ("alpha, gamma! delta? omega", ["alpha gamma", "delta omega", "gamma delta", "alpha"]),
    ],
)
def test_of_words_and_pairs_those_with_capitals_then_the_longest_come_first(text, spelled):
    assert spot_spellings(text) == spelled

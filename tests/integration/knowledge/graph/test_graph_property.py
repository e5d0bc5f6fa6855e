"""A walk in the database finds what its twin finds in memory, on any graph, whichever way one looks and at any time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.core.knowledge.graph import FAN, FollowedFact
from recollect.models.filters import Filter
from recollect.store.knowledge.graph import WalkLimits, walk
from support.measuring.sizes import Sizes
from support.memories.fact_rows import open_facts

DAYS = [datetime(2025, 1, day, tzinfo=UTC) for day in range(1, 6)]
ENTITIES = 8
moments = st.one_of(st.none(), st.sampled_from(DAYS))
facts = st.lists(
    st.tuples(
        st.integers(0, ENTITIES - 1), st.integers(0, ENTITIES - 1), moments, moments, st.sampled_from(DAYS), moments
    ),
    max_size=16,
)
EXAMPLES = Sizes("examples", ci=40, long=400)
quick = settings(max_examples=EXAMPLES.now)


@pytest.fixture
async def rows(mind, owner):
    return await open_facts(mind, owner)


def is_possible(fact):
    _, _, valid_at, invalid_at, created_at, superseded_at = fact
    lasts = valid_at is None or invalid_at is None or valid_at < invalid_at
    return lasts and (superseded_at is None or superseded_at >= created_at)


def write(rows, drawn):
    """Put a graph in the place of the one before; every predicate is another, so that nothing is said twice."""
    for table in ("mentions", "memories", "entities"):
        rows.connection.execute(f"delete from {table}")
    rows.facts.clear()
    rows.entities.clear()
    for number in range(ENTITIES):
        rows.entity(f"e{number}")
    for number, (subject, object_, *times) in enumerate(filter(is_possible, drawn)):
        named = dict(zip(("valid_at", "invalid_at", "created_at", "superseded_at"), times, strict=True))
        rows.fact(f"e{subject}", f"p{number}", f"e{object_}", **named)
    read = "select id, subject_id, object_id, valid_at, invalid_at, created_at, superseded_at from beliefs"
    return rows.connection.execute(read).fetchall()


def is_seen(fact, times):
    _, _, _, valid_at, invalid_at, created_at, superseded_at = fact
    far = datetime.max.replace(tzinfo=UTC)
    as_of, at = times.as_of or far, times.at or times.as_of or datetime.now(UTC)
    believed = created_at <= as_of and (superseded_at is None or superseded_at > as_of)
    return believed and (valid_at is None or valid_at <= at) and (invalid_at is None or invalid_at > at)


def touching(facts, entity, behind, fan):
    """The newest facts of an entity in either direction that lead nowhere that was left behind."""
    for near, far in ((1, 2), (2, 1)):
        ends = [(fact[0], fact[far]) for fact in facts if fact[near] == entity and fact[far] not in behind]
        yield from sorted(ends, reverse=True)[:fan]


def walk_twin(facts, starts, bounds):
    """The same walk as the database's, hop by hop on values."""
    seen = [fact for fact in facts if is_seen(fact, bounds.only)]
    frontier, behind, steps = list(starts), set(), []
    for hop in range(1, bounds.hops + 1):
        if not frontier:
            break
        fan = max(FAN, bounds.beam // len(frontier))
        offered = {}
        for source in sorted(frontier):
            for fact_id, target in touching(seen, source, behind, fan):
                offered.setdefault(fact_id, (source, target))
        taken = [
            FollowedFact(fact_id, hop, *offered[fact_id]) for fact_id in sorted(offered, reverse=True)[: bounds.beam]
        ]
        steps += taken
        behind |= set(frontier)
        frontier = list({step.target for step in taken} - behind)
    return steps


async def follow(mind, starts, bounds):
    return (await walk(mind.access.parts.database, mind.access.scope, starts, bounds))[1].steps


def number(rows, *numbers):
    return [rows.entities[f"e{each}"] for each in numbers]


@pytest.mark.promise("A walk in the graph finds what its pure twin finds, at any time", EXAMPLES)
@quick
@given(
    facts,
    st.sets(st.integers(0, ENTITIES - 1), min_size=1, max_size=3),
    st.integers(1, 3),
    st.sampled_from([1, 2, 4, 500]),
    moments,
    moments,
)
async def test_a_walk_equals_its_twin(mind, rows, drawn, starts, hops, beam, as_of, at):
    stored = write(rows, drawn)
    bounds = WalkLimits(hops, beam, Filter(as_of=as_of, at=at))
    chosen = number(rows, *starts)
    assert await follow(mind, chosen, bounds) == walk_twin(stored, chosen, bounds)


@quick
@given(facts, moments)
async def test_whoever_is_reached_reaches_back(mind, rows, drawn, as_of):
    write(rows, drawn)
    bounds = WalkLimits(3, 500, Filter(as_of=as_of, at=as_of))
    reached = {}
    for entity in rows.entities.values():
        steps = await follow(mind, [entity], bounds)
        reached[entity] = {each.target for each in steps} - {entity}
    assert {(one, other) for one, others in reached.items() for other in others} == {
        (other, one) for one, others in reached.items() for other in others
    }


async def test_an_entity_of_many_facts_gives_each_hop_its_share(mind, rows):
    """More facts than a hop may follow, from more entities than would get all of theirs."""
    drawn = [(number % 3, 3 + number % 5, None, None, DAYS[0], None) for number in range(180)]
    stored = write(rows, drawn)
    for beam in (5, 25, 100, 500):
        for starts in ((0,), (0, 1, 2)):
            bounds = WalkLimits(2, beam, Filter())
            chosen = number(rows, *starts)
            assert await follow(mind, chosen, bounds) == walk_twin(stored, chosen, bounds)


async def test_what_was_believed_stays_so_whatever_is_learned_later(mind, rows):
    stored = write(rows, [(0, 1, DAYS[0], None, DAYS[0], None), (1, 2, DAYS[0], None, DAYS[1], DAYS[3])])
    bounds = WalkLimits(3, 100, Filter(as_of=DAYS[2]))
    before = await follow(mind, number(rows, 0), bounds)
    assert before == walk_twin(stored, number(rows, 0), bounds)
    assert len(before) == 2
    rows.connection.execute("update beliefs set superseded_at = %s where superseded_at is null", [DAYS[4]])
    rows.fact("e0", "learned later", "e5", created_at=DAYS[2] + timedelta(hours=1))
    assert await follow(mind, number(rows, 0), bounds) == before
    assert isinstance(before[0].memory_id, UUID)

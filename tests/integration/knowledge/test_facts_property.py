"""Whatever is stated, in whatever order: the past of belief stands still, and the store does as the pure rules say."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.core.knowledge.facts import believed_at, overlap, valid_at
from recollect.models.knowledge import NewFact, ValidTime
from recollect.settings import Settings
from recollect.wiring import connected
from support.imports.generative_agents import read_golden
from support.measuring.sizes import Sizes
from support.memories.past import versions_of
from support.service.known_numbers import VECTORS

EXAMPLES = Sizes("examples", ci=6, long=400)
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
PLACES = ("Oslo", "Rome", "Bern")
AGENTS = itertools.count(1)


def moment(day):
    return None if day is None else EPOCH + timedelta(days=day)


def day(at):
    return None if at is None else (at - EPOCH).days


DAYS = st.none() | st.integers(0, 30)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(PLACES), DAYS, DAYS, st.booleans(), st.booleans()).filter(
        lambda each: each[1] is None or each[2] is None or each[1] < each[2]
    ),
    min_size=1,
    max_size=7,
)


# Stated, contradicted, told too late, ended, and said again.
VARIED = [
    ("Oslo", 0, None, False, False),
    ("Rome", 10, None, True, False),
    ("Bern", 5, 20, True, False),
    ("Oslo", None, 8, False, True),
    ("Rome", 3, 9, True, False),
    ("Oslo", None, None, True, False),
]


async def all_versions(mind, lineages):
    return [version for lineage in lineages for version in await versions_of(mind.knowledge, lineage)]


async def act(mind, lineages, action):
    place, start, end, replaces, ends = action
    if ends and lineages and end is not None:
        current = (await versions_of(mind.knowledge, lineages[0]))[-1].span
        wider = current.invalid_at is not None and moment(end) > current.invalid_at
        if not wider and (current.valid_at is None or current.valid_at < moment(end)):
            await mind.knowledge.end(lineages[0], moment(end))
        return
    others = tuple(lineages) if replaces else ()
    fact = NewFact("Ann", "lives in", place, valid_at=moment(start), invalid_at=moment(end), replaces=others)
    [stated] = await mind.knowledge.add(fact)
    if stated.id not in lineages:
        lineages.append(stated.id)


async def check_past(mind, seen, lineages):
    """What was read as believed at any moment before is read so still."""
    versions = await all_versions(mind, lineages)
    for as_of, before in seen:
        for at, expected in before.items():
            found = (await mind.knowledge.facts(as_of=as_of, at=at)).facts
            assert [(each.memory_id, each.span) for each in found] == expected
            twin = sorted(valid_at(believed_at(versions, as_of), at), key=lambda each: each.memory_id)
            assert [(each.memory_id, each.span) for each in twin] == expected


@pytest.fixture
def runner():
    with asyncio.Runner() as started:
        yield started


@pytest.mark.promise("What was believed at a moment never changes afterwards", EXAMPLES)
@settings(max_examples=EXAMPLES.now)
@given(actions=ACTIONS)
@example(actions=VARIED)
def test_what_was_believed_at_a_moment_never_changes(addresses, embedder, runner, actions):
    async def live():
        async with connected(Settings(embedder="fake"), addresses, embedder) as recollect:
            mind = await recollect.mind(f"agent-{next(AGENTS)}")
            lineages, seen = [], []
            for action in actions:
                await act(mind, lineages, action)
                versions = await all_versions(mind, lineages)
                now = max(version.superseded_at or version.created_at for version in versions)
                now = max([now, *(version.created_at for version in versions)])
                moments = [EPOCH, moment(15), moment(29) + timedelta(hours=7)]
                read = {
                    at: [(each.memory_id, each.span) for each in (await mind.knowledge.facts(as_of=now, at=at)).facts]
                    for at in moments
                }
                await check_past(mind, seen, lineages)
                seen.append((now, read))
            check_shape(await all_versions(mind, lineages))
            await check_indexes(mind, addresses, lineages)

    runner.run(live())


def check_shape(versions):
    """Versions follow each other without gap or overlap, and what is believed is said once for any moment."""
    lineages = {}
    for version in versions:
        lineages.setdefault(version.id, []).append(version)
    for chain in lineages.values():
        assert [each.version for each in chain] == list(range(1, len(chain) + 1))
        assert all(one.superseded_at == two.created_at for one, two in itertools.pairwise(chain))
        assert chain[-1].superseded_at is None
    current = believed_at(versions)
    for one, two in itertools.combinations(current, 2):
        assert one.object != two.object or not overlap(one.span, two.span)
    for each in current:
        assert each.span.valid_at is None or each.span.invalid_at is None or each.span.valid_at < each.span.invalid_at


async def check_indexes(mind, addresses, lineages):
    """Recall's indexes hold what is believed and not over, and nothing else."""
    now = datetime.now(UTC)
    versions = await all_versions(mind, lineages)
    hot = {each.memory_id for each in believed_at(versions) if not each.span.invalid_at or each.span.invalid_at > now}
    with psycopg.connect(addresses.owner) as owner:
        ids = [each.memory_id for each in versions]
        for table in ("memory_terms", VECTORS):
            found = owner.execute(f"select id from {table} where id = any (%s)", [ids]).fetchall()
            assert {each for (each,) in found} == hot, table


@settings(max_examples=EXAMPLES.now)
@given(
    spans=st.lists(
        st.tuples(st.integers(0, 20), st.none() | st.integers(21, 40)),
        min_size=2,
        max_size=4,
        unique_by=lambda each: each[0],
    ),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_arrival_does_not_matter_where_every_contradiction_is_noticed(
    addresses, embedder, runner, spans, order
):
    async def arrive(recollect, arriving):
        mind = await recollect.mind(f"agent-{next(AGENTS)}")
        lineages = []
        for number, (start, end) in arriving:
            fact = NewFact("Ann", "lives in", f"place {number}", valid_at=moment(start), invalid_at=moment(end))
            [stated] = await mind.knowledge.add(NewFact(**{**vars_of(fact), "replaces": tuple(lineages)}))
            lineages.append(stated.id)
        return {each.text: each.span for each in believed_at(await all_versions(mind, lineages))}

    def vars_of(fact):
        return {name: getattr(fact, name) for name in fact.__dataclass_fields__}

    async def live():
        async with connected(Settings(embedder="fake"), addresses, embedder) as recollect:
            numbered = list(enumerate(spans))
            shuffled = list(numbered)
            order.shuffle(shuffled)
            assert await arrive(recollect, numbered) == await arrive(recollect, shuffled)

    runner.run(live())


async def test_the_golden_cases_through_the_store(mind, recollect, shared):
    for number, case in enumerate(read_golden(shared, "golden_bitemporal")["cases"]):
        mind = await recollect.mind(f"golden-{number}")
        lineages = {}
        for column in case["contradicted_candidates"]:
            fact = NewFact("Ann", "lives in", column["id"], valid_at=moment(column["valid"]))
            lineages[column["id"]] = (await state(mind, fact, unknown=column["valid"] is None)).id
            if column["invalid"] is not None:
                await mind.knowledge.end(lineages[column["id"]], moment(column["invalid"]))
        before = {name: (await versions_of(mind.knowledge, each))[-1] for name, each in lineages.items()}
        new = case["new"]
        fact = NewFact(
            "Ann",
            "lives in",
            "new",
            valid_at=moment(new["valid"]),
            invalid_at=moment(new["invalid"]),
            replaces=tuple(lineages.values()),
        )
        stated = await state(mind, fact, unknown=new["valid"] is None)
        expected = case["expected_new"]
        assert (day(stated.span.valid_at), day(stated.span.invalid_at)) == (expected["valid"], expected["invalid"])
        for column in case["expected_candidates"]:
            last = (await versions_of(mind.knowledge, lineages[column["id"]]))[-1]
            assert last.span == ValidTime(moment(column["valid"]), moment(column["invalid"])), case["name"]
            changed = column["id"] in case["invalidated"]
            assert (last.created_at == stated.created_at) == changed, case["name"]
            assert changed or last == before[column["id"]]


async def state(mind, fact, *, unknown):
    """State a fact; one whose start is to stay unknown is written as the rules give it, past the assumption."""
    if not unknown:
        return (await mind.knowledge.add(fact))[0]
    from recollect.verbs.knowledge import write_facts

    assumed, write_facts.assume_start = write_facts.assume_start, lambda span, _: span
    try:
        return (await mind.knowledge.add(fact))[0]
    finally:
        write_facts.assume_start = assumed

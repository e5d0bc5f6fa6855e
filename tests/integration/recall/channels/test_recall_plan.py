"""What a recall reads follows from its candidates, not from its scope, whether a plan sees the values or not."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from pgvector.psycopg import register_vector
from psycopg import sql

from recollect.channels import stream
from recollect.models.filters import Filter
from recollect.models.memories import Kind, NewMemory
from recollect.store.database.filter import ALL, bind, list_featured
from recollect.store.memories import accesses, embeddings, memories
from recollect.store.recall import features
from recollect.store.recall.columns import IdArray
from recollect.store.service.scopes import locate
from support.database import plans
from support.service.known_numbers import VECTORS

SIZE = 2_000
CANDIDATES, WINNERS, LEARNED = 200, 10, 50


@pytest.fixture
async def scope(recollect, mind, owner):
    """A scope that has been recalled from, among others of which the statistics know."""
    other = await recollect.mind("ada", "other")
    for each, size in ((mind, SIZE), (other, 500)):
        await each.load([NewMemory(f"apple number {number}") for number in range(size)])
    place = await locate(recollect.parts.database, mind.access.scope)
    owner.execute(
        "insert into accesses (scope_id, id, kind, last_accessed_at, access_count) "
        "select scope_id, id, kind, now(), 1 from memories where scope_id = %s order by md5(id::text) limit 500",
        [place.scope_id],
    )
    unit = unit_vector(place).tolist()
    owner.execute(
        f"insert into {VECTORS} (scope_id, id, kind, trust, idle, importance, embedding) "
        "select scope_id, id, kind, trust, idle, importance, %s::vector from memories",
        [str(unit)],
    )
    owner.execute("vacuum analyze")
    return place


def unit_vector(place):
    return np.full(place.space.dimensions, place.space.dimensions**-0.5, dtype=np.float32)


@pytest.fixture(params=plans.MODES)
def service(addresses, mind, request):
    with plans.planning(addresses, mind.access.scope.tenant_id, request.param, nested=True) as connection:
        register_vector(connection)
        yield connection


def draw(owner, scope, count):
    """Take memories from all over the scope."""
    drawn = owner.execute(
        "select id from memories where scope_id = %s order by md5(id::text) limit %s", [scope.scope_id, count]
    )
    return [row[0] for row in drawn]


def looked_at(plan, table):
    return sum(plans.rows_of(node) for node in plans.flatten(plan) if node.get("Relation Name") == table)


@pytest.mark.parametrize("table", ["memory_features", "memory_terms", VECTORS])
async def test_features_of_candidates_are_read_by_their_keys(service, owner, scope, table):
    vector = embeddings.to_vector(scope.space, unit_vector(scope))
    ids = IdArray(np.array([each.bytes for each in draw(owner, scope, CANDIDATES)], dtype="S16"))
    asked = {"scope_id": scope.scope_id, "ids": ids, "distant": ids, "terms": [1, 2], "vector": vector}
    query = {
        "memory_features": features.compose(Filter()),
        "memory_terms": features.TERMS[0],
        VECTORS: features.measure_in(scope.space),
    }[table]
    plan = plans.explain(service, query, asked | bind(Filter()))
    assert looked_at(plan, table) == CANDIDATES


@pytest.mark.parametrize("table", ["memory_features", "memory_terms", VECTORS])
async def test_features_of_evidence_are_read_by_their_keys_too(service, owner, scope, table):
    vector = embeddings.to_vector(scope.space, unit_vector(scope))
    drawn = draw(owner, scope, CANDIDATES + LEARNED)
    owner.execute(
        "insert into evidence (scope_id, memory_id, source_id) select %s, * from unnest(%s::uuid[], %s::uuid[])",
        [scope.scope_id, drawn[:LEARNED], drawn[CANDIDATES:]],
    )
    owner.execute("vacuum analyze evidence")
    ids = IdArray(np.array([each.bytes for each in drawn[:CANDIDATES]], dtype="S16"))
    asked = {"scope_id": scope.scope_id, "ids": ids, "distant": ids, "terms": [1, 2], "vector": vector}
    bounds = {"most_pairs": features.MAX_PAIRS, "most_of_one": features.MAX_EVIDENCE_PER_MEMORY}
    found = plans.explain(service, features.EVIDENCE, asked | bounds)
    assert looked_at(found, "evidence") == LEARNED
    # It notes what it found for its transaction; here each statement is one of its own.
    noted = "{" + ",".join(map(str, drawn[CANDIDATES:])) + "}"
    service.execute("select set_config('recollect.evidence', %s, false)", [noted])
    query = {
        "memory_features": features.compose(Filter(), True),
        "memory_terms": features.TERMS_WITH_EVIDENCE[0],
        VECTORS: features.measure_in(scope.space, True),
    }[table]
    plan = plans.explain(service, query, asked | bind(Filter()))
    assert looked_at(plan, table) == CANDIDATES + LEARNED


async def test_winners_are_read_by_their_keys(service, mind, owner, scope):
    wanted = memories.RowQuery(draw(owner, scope, WINNERS))
    plan = plans.explain(service, wanted.compose(), wanted.bind(mind.access.scope))
    assert (plan["Actual Rows"], looked_at(plan, "memories")) == (WINNERS, WINNERS)


async def test_an_access_is_noted_by_keys(service, owner, scope):
    ids = draw(owner, scope, WINNERS)
    lengths = {"lock": "fold", "fold_at": 32, "longest": 256}
    asked = {"scope_id": scope.scope_id, "ids": ids, "moment": datetime.now(UTC)} | lengths
    plan = plans.explain(service, accesses.RECORD, asked)
    assert looked_at(plan, "memories") == WINNERS


async def test_storing_vectors_reads_memories_by_their_keys(service, owner, scope):
    ids = draw(owner, scope, WINNERS)
    query = sql.SQL(embeddings.QUERIES["store_vectors"]).format(
        vectors=embeddings.vectors_table(scope.space.id),
        type=embeddings.vector_type(scope.space),
        space=sql.Literal(scope.space.id),
    )
    vectors = [embeddings.to_vector(scope.space, unit_vector(scope))] * WINNERS
    plan = plans.explain(service, query, {"scope_id": scope.scope_id, "ids": ids, "embeddings": vectors})
    assert looked_at(plan, "memories") == WINNERS


async def test_what_is_pinned_is_found_through_its_index(service, mind, owner, scope):
    for each in draw(owner, scope, 3):
        await mind.update(each, pinned=True)
    listed = sql.SQL("select {}").format(list_featured(Filter(pinned=True)))
    plan = plans.explain(service, listed, {"scope_id": scope.scope_id})
    assert looked_at(plan, "memory_features") == 3


async def test_the_stream_goes_through_the_accesses_once(service, scope):
    vector = embeddings.to_vector(scope.space, unit_vector(scope))
    weights = {"recency": 1.0, "similarity": 1.0, "importance": 1.0, "decay": 0.99}
    asked = {"scope_id": scope.scope_id, "vector": vector, "mode": "newest", "limit": 10} | weights
    service.execute(stream.QUERIES["plan_once"].replace("true)", "false)"))
    plan = plans.explain(service, stream.write_query("whole", scope.space, ALL), asked | bind(Filter(), [Kind.EVENT]))
    assert looked_at(plan, "accesses") == 500


async def test_nothing_is_asked_of_a_scope_that_holds_nothing_of_the_kind(mind, recollect):
    await mind.remember("Ada eats apples")
    place = await locate(recollect.parts.database, mind.access.scope)
    assert (place.has_keywords, place.has_names, place.has_topics, place.has_evidence) == (False,) * 4
    [receipt] = await mind.remember(NewMemory("Ada eats pears", keywords=("pear",), topic="food"))
    place = await locate(recollect.parts.database, mind.access.scope)
    assert (place.has_keywords, place.has_names, place.has_topics, place.has_evidence) == (True, False, True, False)
    await mind.remember(NewMemory("Ada likes fruit", Kind.THOUGHT, evidence=(receipt.id,)))
    assert (await locate(recollect.parts.database, mind.access.scope)).has_evidence

"""Finding items under a path reads what lies there and hardly any other, however many the scope holds."""

from __future__ import annotations

import pytest

from recollect.models.items import FindItems
from recollect.models.service import Scope
from recollect.store.items.items import compose, name_parameters, narrow
from recollect.store.service.scopes import names
from support.database import plans

ITEMS, HERE = 20_000, 40
FILL = """
    insert into items (scope_id, path, key, value, text, embedding, revision, created_at, updated_at)
    select %(scope)s, 'users' || chr(31) || 'u' || n %% (%(items)s / %(here)s) || chr(31), 'k' || n,
           jsonb_build_object('n', n), '', '[1,0]', 1, now(), now() - n * interval '1 second'
    from generate_series(1, %(items)s) n
"""
FEW_BLOCKS = 4 * HERE
"""Every item lies in a block of its own, as they were put by turns; the rest is the index and the catalog."""
SCOPE = Scope(1, "ada", "li")
ROOM = 1_000_000
HOME = ("users", "u7")


@pytest.fixture
async def filled(mind, owner):
    owner.execute("alter table items set (autovacuum_enabled = off)")
    await mind.items.put(("elsewhere",), "k", {})
    [(number,)] = owner.execute("select id from scopes").fetchall()
    owner.execute(FILL, {"scope": number, "items": ITEMS, "here": HERE})
    return number


@pytest.fixture(params=["without statistics", "analysed"])
def statistics(request, owner, filled):
    if request.param == "analysed":
        owner.execute("analyze")


@pytest.fixture(params=plans.MODES)
def service(addresses, mind, request):
    """A connection of the service's role, bound to the tenant, that plans with the values it sees, or without."""
    with plans.planning(addresses, mind.access.scope.tenant_id, request.param) as connection:
        yield connection


def read(service, query, parameters):
    """Explain a query while it runs: how many rows it gave, how many blocks it read, and which indexes it used."""
    with service.transaction(force_rollback=True):
        plan = plans.explain(service, compose(query, HOME), names(SCOPE) | parameters)
    nodes = plans.flatten(plan)
    used = [node for node in nodes if node.get("Relation Name", node.get("Index Name", "")).startswith("items")]
    return plan["Actual Rows"], plans.blocks_of(plan), {name(node) for node in used}


def name(node):
    return node.get("Index Name", node["Node Type"])


def listing(under):
    asked = narrow(FindItems(under), ROOM)
    bounds = {"first": asked["first"], "beyond": asked["beyond"], "under": None, "suffix": None, "depth": None}
    return bounds | {"closing": "\x1f", "limit": 10, "offset": 0}


@pytest.mark.parametrize("where", [{}, {"n": {"$gt": 100}}])
async def test_what_lies_under_a_path_is_one_range(service, filled, statistics, where):
    rows, blocks, used = read(service, "newest", narrow(FindItems(HOME, where), ROOM))
    assert (rows, used) == (10, {"items_pkey"})
    assert blocks <= FEW_BLOCKS


async def test_own_vectors_are_compared_under_the_path_only(service, filled, statistics):
    own = {"vector": "[0,1]", "dimensions": 2}
    rows, blocks, used = read(service, "own", narrow(FindItems(HOME), ROOM) | own)
    assert (rows, used) == (10, {"items_pkey"})
    assert blocks <= FEW_BLOCKS


async def test_paths_are_listed_from_their_range(service, filled, statistics):
    rows, blocks, used = read(service, "paths", listing(HOME))
    assert (rows, used) == (1, {"items_pkey"})
    assert blocks <= FEW_BLOCKS


@pytest.mark.parametrize("query", ["named", "standing"])
async def test_names_are_looked_up_one_by_one(service, filled, statistics, query):
    asked = name_parameters([(HOME, f"k{n}") for n in range(1, 101)]) | {"vectors": True, "largest": ROOM}
    rows, blocks, used = read(service, query, asked)
    assert (rows, used) == (1, {"items_pkey"})
    assert blocks <= 100 * 10


async def test_what_is_dropped_is_found_by_its_name(service, filled, statistics):
    dropped = name_parameters([(HOME, f"k{n}") for n in range(1, 101)]) | {"scope_id": filled}
    read(service, "drop", dropped)  # the first run on a connection also reads what the catalog says of every function
    _, blocks, _ = read(service, "drop", dropped)
    assert blocks <= 100 * 5, "with the change log, which is written in the same statement"


async def test_a_missing_index_is_noticed(service, owner, filled):
    owner.execute("alter table items drop constraint items_pkey")
    owner.execute("create index by_key on items (scope_id, key)")
    _, blocks, used = read(service, "newest", narrow(FindItems(HOME), ROOM))
    assert "items_pkey" not in used
    assert blocks > FEW_BLOCKS

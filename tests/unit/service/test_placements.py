"""The catalog is compared with its servers, and made again from them: values in, values out."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.service.placements import (
    CLOSED,
    FENCED,
    KnownShard,
    ServerFacts,
    Survey,
    choose_number,
    list_differences,
    plan_repair,
    settle,
)
from recollect.core.service.placements import ServerClaim as Claim
from recollect.errors import ConflictError, WrongServerError
from recollect.models.shards import BucketPlacement, ServerAddresses, ServerIdentity, TenantPlacement

OURS, OTHER = "ours", "other"
NAMES = {1: "north", 2: "south", 3: "west"}
SHARDS = {n: KnownShard(name, ServerAddresses(f"service {name}", f"owner {name}")) for n, name in NAMES.items()}
TENANTS = {7: "acme", 8: "beta"}
WHOLE = (-1, 4095)


def server(number, *claims, **changed):
    """A server of our catalog that knows all others."""
    tenants = {each.tenant_id: TENANTS[each.tenant_id] for each in claims}
    return replace(ServerFacts(ServerIdentity(OURS, number), SHARDS, tenants, claims), **changed)


def survey(servers, placements=(), shards=SHARDS, tenants=TENANTS):
    """Survey a catalog with servers by number; one that is None does not answer."""
    answers = {}
    for number, shard in SHARDS.items():
        facts = servers.get(number, server(number)) or ServerFacts(problem="silent")
        answers[shard.addresses.owner] = facts
        answers[shard.addresses.service] = ServerFacts(facts.identity, problem=facts.problem)
    placed = {}
    for tenant_id, *ranges in placements:
        placed[tenant_id] = TenantPlacement(tenant_id, tuple(BucketPlacement(*each) for each in ranges))
    return Survey(OURS, shards, tenants, placed, answers)


ACME = (7, (*WHOLE, 1, 1))
BETA = (8, (-1, 2047, 1, 1), (2048, 4095, 2, 1))
AGREED = {
    1: server(1, Claim(7, *WHOLE, 1), Claim(8, -1, 2047, 1)),
    2: server(2, Claim(8, 2048, 4095, 1)),
}


def test_a_catalog_that_agrees_with_its_servers_has_no_differences():
    assert list_differences(survey(AGREED, [ACME, BETA])) == []
    plan = plan_repair(survey(AGREED, [ACME, BETA]))
    assert plan.placed == survey(AGREED, [ACME, BETA]).placements
    assert (plan.changed, plan.unplaced) == ([], [])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({2: None}, "south: --owner: silent"),
        ({2: server(2, primary=False)}, "south: --owner: the server there is a replica"),
        ({2: server(1)}, "south: --owner: the server there is server 1 of the catalog ours"),
        ({2: ServerFacts()}, "south: --owner: the server there is one without an identity"),
        ({2: replace(AGREED[2], schema="it is older")}, "south: it is older"),
        ({2: replace(AGREED[2], leftovers=["a slot"])}, "south: a slot"),
        ({2: replace(AGREED[2], known={})}, "south: its list of the shards is not that of the catalog"),
        ({2: replace(AGREED[2], strays=[(8, "", 3)])}, "south: 3 scopes and keys of beta have no placement here"),
        ({2: server(2)}, "south: the catalog places beta (8), buckets 2048 to 4095, generation 1 here, and the server"),
        (
            {2: server(2, Claim(8, 2048, 4095, 2))},
            "south: the server serves beta (8), buckets 2048 to 4095",
        ),
        (
            {2: replace(AGREED[2], claims=[], tenants={8: "gamma"})},
            "south: tenant 8 is gamma here, and beta in the catalog",
        ),
    ],
)
def test_each_difference_is_named_with_what_to_do(changed, expected):
    found = list_differences(survey(AGREED | changed, [ACME, BETA]))
    assert any(f"{each.shard}: {each.found}".startswith(expected) for each in found), found
    assert all(each.advice and not each.harmless for each in found)


def test_suspended_tenants_and_closed_rows_are_only_information():
    suspended = server(1, Claim(7, *WHOLE, 1, FENCED, 5), Claim(8, -1, 2047, 1), strays=[(7, CLOSED, 2)])
    found = list_differences(survey(AGREED | {1: suspended}, [ACME, BETA]))
    assert [each.harmless for each in found] == [True, True]
    assert "5 memories are awaited" in found[0].found


def test_a_shard_that_only_servers_know_is_named():
    older = {number: SHARDS[number] for number in (1, 2)}
    found = list_differences(survey(AGREED, [ACME, BETA], shards=older))
    assert "west" in {each.shard for each in found}


def test_a_lost_catalog_is_made_again():
    plan = plan_repair(survey(AGREED, shards={}, tenants={}))
    assert (plan.shards, plan.tenants) == (SHARDS, TENANTS)
    assert plan.placed == survey({}, [ACME, BETA]).placements


def test_the_highest_generation_wins_and_the_others_are_closed():
    servers = {
        1: server(1, Claim(7, *WHOLE, 3)),
        2: server(2, Claim(7, 0, 9, 4)),
        3: server(3, Claim(7, *WHOLE, 2)),
    }
    plan = plan_repair(survey(servers, [ACME]))
    expected = [(-1, -1, 1, 3), (0, 9, 2, 4), (10, 4095, 1, 3)]
    assert plan.placed[7].placements == tuple(BucketPlacement(*each) for each in expected)
    assert dict(plan.changed) == {
        1: [Claim(7, -1, -1, 3), Claim(7, 0, 9, 3, CLOSED), Claim(7, 10, 4095, 3)],
        3: [Claim(7, *WHOLE, 2, CLOSED)],
    }


@pytest.mark.parametrize("generation", [3, 4])
def test_a_claim_that_awaits_rows_wins_only_where_no_other_is_whole(generation):
    awaiting = Claim(7, *WHOLE, generation, "fenced", 5)
    servers = {1: server(1, Claim(7, *WHOLE, 3, "fenced")), 2: server(2, awaiting), 3: server(3)}
    plan = plan_repair(survey(servers, [ACME]))
    assert plan.placed[7].placements == (BucketPlacement(*WHOLE, 1, 3),)
    assert dict(plan.changed) == {2: [replace(awaiting, state=CLOSED)]}
    for claims in ((Claim(7, *WHOLE, 3, CLOSED),), (Claim(7, -1, 9, 2, "fenced"), Claim(7, 10, 4095, 2, CLOSED))):
        plan = plan_repair(survey(servers | {1: server(1, *claims)}, [ACME]))
        assert plan.placed[7].placements == (BucketPlacement(*WHOLE, 2, generation),)


REFUSED = [
    (
        {2: server(2, Claim(7, *WHOLE, 1))},
        "acme: servers 1 and 2 serve the buckets -1 to 4095 under one generation, 1",
    ),
    (
        {1: server(1, Claim(7, 0, 4095, 1), Claim(8, -1, 2047, 1))},
        "acme: no server serves the buckets -1 to -1",
    ),
    (
        {1: server(1, Claim(7, *WHOLE, 1, CLOSED), Claim(8, -1, 2047, 1))},
        "acme: no server serves",
    ),
    ({3: None}, "west: --owner: silent"),
    ({3: server(3, primary=False)}, "west: --owner: the server there is a replica"),
    ({3: server(3, tenants={7: "delta"})}, "tenant 7 is acme, tenant 7 is delta"),
    ({3: server(3, tenants={9: "acme"})}, "tenant 7 is acme, tenant 9 is acme"),
]


@pytest.mark.parametrize(("changed", "reason"), REFUSED)
def test_what_contradicts_itself_is_refused_and_named(changed, reason):
    with pytest.raises(ConflictError, match=re.escape(reason)):
        plan_repair(survey(AGREED | changed, [ACME, BETA]))


def test_all_reasons_are_named_at_once():
    with pytest.raises(ConflictError, match=r"west.*; no server knows a shard east"):
        plan_repair(survey(AGREED | {3: None}), ["east"])


def test_tenants_with_a_claim_on_a_lost_server_get_no_place():
    lost = AGREED | {2: None}
    plan = plan_repair(survey(lost, [ACME, BETA]), ["south"])
    assert ([*plan.placed], plan.unplaced) == ([7], ["beta"])
    plan = plan_repair(survey(lost, shards={}, tenants={}), ["south"])
    assert ([*plan.placed], plan.unplaced, plan.left_out) == ([7], ["beta"], {2})
    closed = {1: server(1, Claim(7, *WHOLE, 1, CLOSED)), 2: None}
    assert plan_repair(survey(closed, shards={}, tenants={}), ["south"]).unplaced == ["acme"]


def test_an_address_that_leads_elsewhere_is_replaced_by_one_that_a_server_knows():
    swapped = SHARDS | {
        1: KnownShard("north", SHARDS[2].addresses),
        2: KnownShard("south", SHARDS[1].addresses),
    }
    plan = plan_repair(survey(AGREED, [ACME, BETA], shards=swapped))
    assert plan.shards == SHARDS


def test_a_server_of_another_catalog_is_no_part_of_it():
    foreign = server(3, Claim(7, *WHOLE, 9), identity=ServerIdentity(OTHER, 3))
    with pytest.raises(ConflictError, match="west: --owner: the server there is server 3 of the catalog other"):
        plan_repair(survey(AGREED | {3: foreign}, [ACME, BETA]))


EDGES = st.tuples(st.integers(-1, 5), st.integers(-1, 5)).map(sorted)
CLAIMS = st.lists(st.tuples(st.integers(1, 3), EDGES, st.integers(1, 4)), max_size=5)


@given(CLAIMS)
def test_each_bucket_is_served_once_and_by_the_highest_generation(drawn):
    claims = [
        (1, Claim(7, *WHOLE, 1)),
        *((number, Claim(7, *edges, generation)) for number, edges, generation in drawn),
    ]
    settled = settle(7, claims)
    spans = [(each.first_bucket, each.last_bucket) for each in settled.placed.placements]
    for bucket in range(-1, 6):
        here = [each for _, each in claims if each.first_bucket <= bucket <= each.last_bucket]
        highest = max(each.generation for each in here)
        serving = [each for each in settled.placed.placements if each.first_bucket <= bucket <= each.last_bucket]
        tied = sum(each.generation == highest for each in here) > 1
        assert [each.generation for each in serving] == ([] if tied else [highest])
    assert spans == sorted(spans)


@pytest.mark.parametrize(
    ("name", "entrant", "known", "expected"),
    [
        ("east", ServerFacts(), {}, 3),
        ("east", ServerFacts(), {5: "gone"}, 6),
        ("north", ServerFacts(ServerIdentity(OURS, 1)), {}, 1),
        ("east", ServerFacts(ServerIdentity(OURS, 4), {4: KnownShard("east", SHARDS[1].addresses)}), {}, 4),
        ("north", ServerFacts(), {}, "empty"),
        ("gone", ServerFacts(), {5: "gone"}, "empty"),
        ("east", ServerFacts(tenants={1: "one"}), {}, "tenants that the catalog"),
        ("north", ServerFacts(ServerIdentity(OURS, 2)), {}, "is the shard south"),
        ("east", ServerFacts(ServerIdentity(OURS, 2)), {}, "is the shard south"),
        ("north", ServerFacts(ServerIdentity(OTHER, 1)), {}, "server 1 of the catalog other"),
        ("east", ServerFacts(ServerIdentity(OURS, 4)), {}, "--repair"),
        ("east", ServerFacts(ServerIdentity(OURS, 4), {4: SHARDS[1]}), {}, "--repair"),
    ],
)
def test_a_server_is_numbered_once(name, entrant, known, expected):
    shards = {1: "north", 2: "south"}
    if isinstance(expected, int):
        assert choose_number(name, OURS, shards, entrant, known) == expected
    else:
        with pytest.raises((WrongServerError, ConflictError), match=expected):
            choose_number(name, OURS, shards, entrant, known)

"""Clients without a valid key that ask as fast as they can: a tenant's client and a balancer are still served."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from conftest import new_key
from support.callers.strangers import FLOODS, Trial, try_flood
from support.measuring import sizes
from support.measuring.sizes import Sizes
from support.programs.command_line import settings_of
from support.programs.ports import free_port
from support.programs.programs import Program

CLIENTS = Sizes("clients", ci=16, long=64)
PROBES = Sizes("probes", ci=1, long=100)
SHARE = {"fast": 0.3, "ci": 0.3, "long": 0.5}
"""The recalls of a tenant's one client during a flood, as a share of what it gets alone; on a quiet machine half."""
ASKED = ("malformed keys", "one wrong key", "well-formed keys", "no key", "/metrics", "/health/ready", "/openapi.json?")


@contextmanager
def serving_alone(addresses, **settings):
    """Run `recollect serve` in a process of its own."""
    port = free_port()
    server = Program("serve", settings=settings_of(addresses, port=str(port), **settings))
    try:
        server.wait_until_ready()
        yield port
    finally:
        server.stop()


@pytest.mark.promise(
    "While clients without a key ask as fast as they can, a tenant's client gets half of its recalls, and probes 200",
    CLIENTS,
    PROBES,
    part="clients",
)
async def test_a_flood_without_keys_takes_at_most_half_from_a_tenant(recollect, addresses, seed, figure):
    await (await recollect.mind("ada")).remember("Ann waters the plants")
    _, secret = await new_key(recollect)
    long, makers = sizes.CHOSEN == "long", tuple(FLOODS[name] for name in ASKED)
    rounds, seconds = (3, 5.0) if long else (3, 0.8)
    # In CI, a probe may take its time: the machine may be busy. In a campaign, it is that of Kubernetes.
    patience = 3.0 if long else 60.0
    trials = [*((maker,) for maker in makers), makers] if long else [makers]
    tried = []
    with serving_alone(addresses) as port:
        for trial in trials:
            named = "all of them" if len(trial) > 1 else ASKED[makers.index(*trial)]
            tried.append(
                (named, await try_flood(port, secret, Trial(trial, CLIENTS.now, rounds, seconds, patience), seed))
            )
            figure(f"{named}: {tried[-1][1].tell()}")
    assert {named: found.share for named, found in tried if found.share < SHARE[sizes.CHOSEN]} == {}
    for named, found in tried:
        assert set(found.refused) == {200}, f"{named}: the tenant is never refused"
        assert set(found.probes) == {200}, named
        assert set(found.strangers) <= {200, 401}, named
    assert sum(found.probes[200] for _, found in tried) >= PROBES.now

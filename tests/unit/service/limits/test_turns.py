"""Tenants take turns: one that asks much leaves places to another, and none waits for all that another has asked."""

from __future__ import annotations

import random

import pytest

from recollect.doors.http.server.capacity import BURST_SECONDS, EARLY_SECONDS, WAIT_SECONDS, Capacity
from recollect.doors.http.server.fair_queue import ASKING_SECONDS, MAX_WAITING_REQUESTS, FairQueue, Requester
from support.measuring.sizes import Sizes

MOST = 4
ROUNDS = Sizes("requests", ci=5_000, long=200_000)


class Server:
    """A capacity whose requests are known by their tenants, in the order in which they began."""

    def __init__(self):
        self.capacity, self.begun, self.clock, self.connections = Capacity(), [], 0.0, 0
        self.capacity.sample_cpu(0.0, -1.0)
        self.capacity.sample_cpu(0.0, 0.0)  # with time to spare

    def ask(self, tenant, connection=None, now=None):
        self.connections += 1
        requester = Requester(connection or self.connections, tenant)
        waiting = self.capacity.enter(
            requester, MOST, self.clock if now is None else now, lambda: self.begun.append(tenant)
        )
        if waiting is None:
            self.begun.append(tenant)
        return waiting

    def answer(self, tenant, now=None):
        self.capacity.release(tenant, self.clock if now is None else now)

    def served(self, *tenants):
        return [self.capacity.turns._served[tenant] for tenant in tenants]


@pytest.fixture
def loaded():
    """A server whose places one tenant has taken, and which many more of its requests wait for."""
    server = Server()
    for _ in range(MOST + 20):
        server.ask("loud")
    assert server.served("loud") == [MOST]
    server.begun.clear()
    return server


@pytest.mark.promise("A tenant's request is served before those that another tenant has more of")
def test_the_next_place_is_the_other_tenants(loaded):
    loaded.ask("quiet")
    loaded.answer("loud")
    assert loaded.begun == ["quiet"]


def test_a_tenant_has_at_most_half_of_the_places_while_another_asks(loaded):
    loaded.ask("quiet")
    for _ in range(MOST):
        loaded.answer("loud")
    assert loaded.served("loud", "quiet") == [MOST // 2, 1]
    assert loaded.ask("quiet") is None, "a place was left free"


def test_a_busy_process_serves_as_many_of_each(loaded):
    loaded.capacity.sample_cpu(10.0, 1.0)
    loaded.ask("quiet")
    for _ in range(MOST):
        loaded.answer("loud")
    assert loaded.served("loud", "quiet") == [1, 1]
    assert loaded.ask("quiet") is None
    loaded.answer("loud")
    assert loaded.served("loud", "quiet") == [MOST // 2, 2]


def test_a_tenant_alone_has_all_places_again(loaded):
    loaded.ask("quiet")
    loaded.answer("loud")
    loaded.answer("quiet")
    later = ASKING_SECONDS + 0.1
    loaded.answer("loud", now=later)
    assert loaded.served("loud", "quiet") == [MOST, 0]


def test_tenants_that_wait_take_turns(loaded):
    for tenant in ("b", "c", "b", "c"):
        loaded.ask(tenant)
    for tenant in ("loud", "loud", "loud", "loud"):
        loaded.answer(tenant)
    assert loaded.begun == ["b", "c", "loud", "b"]


def test_who_is_not_the_load_waits_for_its_turn(loaded):
    loaded.capacity.sample_cpu(10.0, 1.0)
    loaded.capacity.refuse(next(loaded.capacity.turns.waiting), MOST, 0.0)
    assert loaded.ask("loud", now=2.0).until == 2.0 + WAIT_SECONDS
    assert loaded.ask("quiet", now=2.0).until == 2.0 + BURST_SECONDS


def test_a_full_queue_of_one_tenant_has_room_for_another():
    server = Server()
    for _ in range(MOST + MAX_WAITING_REQUESTS):
        server.ask("loud")
    assert server.ask("loud").until == server.clock
    assert server.ask("quiet").until > server.clock


def test_a_retry_before_its_time_is_held_back(loaded):
    told = loaded.ask("loud", connection="impatient")
    seconds = loaded.capacity.refuse(told, MOST, 0.0)
    assert loaded.capacity.time_left(told.requester, 0.2) == pytest.approx(seconds - 0.2)
    assert loaded.capacity.time_left(told.requester, seconds - EARLY_SECONDS / 2) == 0.0
    assert loaded.capacity.time_left(Requester("another"), 0.2) == 0.0


@pytest.mark.promise(
    "While tenants ask, none has more than half of the places for longer than its requests take", ROUNDS
)
def test_no_order_of_requests_breaks_the_turns():
    chance, server = random.Random(17), Server()
    tenants, running = ["a", "b", "c"], []
    for _ in range(ROUNDS.now):
        server.clock += chance.random() / 100
        before = dict(zip(tenants, server.served(*tenants), strict=True))
        if running and chance.random() < 0.5:
            server.begun.clear()
            server.answer(done := running.pop(chance.randrange(len(running))))
            before[done] -= 1
        else:
            server.begun.clear()
            server.ask(chance.choices(tenants, [20, 1, 1])[0])
        others = {each.requester.tenant for each in server.capacity.turns.waiting}
        for tenant in server.begun:
            assert before[tenant] < MOST // 2 or not others - {tenant}
        running += server.begun
        assert len(running) == server.capacity.active <= MOST


@pytest.mark.promise("The test of turns notices a queue that serves whoever came first")
def test_without_turns_the_oracle_notices(monkeypatch):
    monkeypatch.setattr(FairQueue, "release", serve_the_first)
    with pytest.raises(AssertionError):
        test_no_order_of_requests_breaks_the_turns()


def serve_the_first(turns, tenant, _now):
    """Serve whoever has waited longest, of whichever tenant."""
    turns.active -= 1
    turns._served[tenant] -= 1
    first = min(turns.waiting, key=lambda each: each.requester.connection, default=None)
    if first is not None:
        turns.drop(first)
        turns._serve(first.requester.tenant)
        first.begin()

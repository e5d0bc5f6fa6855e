"""A process serves so many requests at a time; others wait for their turn, and are told when to retry if it is late."""

from __future__ import annotations

import heapq
import itertools
import random

import pytest

from recollect.doors.http.server.capacity import (
    BURST_SECONDS,
    IDLE_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    REFUSALS_BEFORE_BACKOFF,
    WAIT_SECONDS,
    Capacity,
)
from recollect.doors.http.server.fair_queue import MAX_WAITING_REQUESTS, Requester

MOST = 6


def busy():
    """A capacity of a process that works all the time."""
    capacity = Capacity()
    capacity.sample_cpu(0.0, -1.0)
    capacity.sample_cpu(1.0, 0.0)
    return capacity


class Queue:
    """A capacity with requests that are known by their clients, and a list of those whose turn has come."""

    def __init__(self):
        self.capacity, self.begun = busy(), []

    def enter(self, client, now=0.0, tenant="one", **more):
        return self.capacity.enter(Requester(client, tenant), MOST, now, lambda: self.begun.append(client), **more)

    def leave(self, now, tenant="one"):
        self.capacity.release(tenant, now)

    def refuse(self, waiting, now):
        return self.capacity.refuse(waiting, MOST, now)


@pytest.fixture
def full():
    queue = Queue()
    assert [queue.enter(("served", client)) for client in range(MOST)] == [None] * MOST
    return queue


def test_requests_wait_for_their_turn_in_the_order_in_which_they_came(full):
    for name in "abc":
        assert full.enter(name).until == BURST_SECONDS
    full.leave(0.1)
    full.leave(0.2)
    assert (full.begun, full.capacity.active) == (["a", "b"], MOST)


def test_a_free_place_is_taken_at_once(full):
    full.leave(0.1)
    assert full.capacity.active == MOST - 1
    assert full.enter("next", 0.1) is None


def test_who_has_gone_is_not_waited_for(full):
    gone = full.enter("gone")
    full.enter("here")
    full.capacity.drop(gone)
    full.capacity.drop(gone)
    full.leave(0.1)
    assert full.begun == ["here"]


def test_the_queue_is_bounded(full):
    assert {full.enter(number).until for number in range(MAX_WAITING_REQUESTS)} == {BURST_SECONDS}
    assert full.enter("one too many").until == 0.0


def test_a_queue_that_lasts_grows_no_longer(full):
    full.enter("a", 0.0)
    assert full.enter("b", BURST_SECONDS / 2).until == BURST_SECONDS * 1.5
    assert full.enter("c", BURST_SECONDS * 2).until == BURST_SECONDS * 2 + WAIT_SECONDS
    assert full.enter("cannot retry", BURST_SECONDS * 2, patience=5.0).until == BURST_SECONDS * 2 + 5.0


def test_after_a_refusal_requests_wait_briefly_for_a_while(full):
    full.refuse(full.enter("a"), 1.0)
    assert full.enter("b", 2.0).until == 2.0 + WAIT_SECONDS
    assert full.enter("c", 2.0 + IDLE_SECONDS).until == pytest.approx(2.0 + IDLE_SECONDS + WAIT_SECONDS)
    while full.capacity.active:
        full.leave(20.0)
    for client in range(MOST):
        assert full.enter(("served", client), 30.0) is None
    assert full.enter("d", 30.0).until == 30.0 + BURST_SECONDS


def test_a_process_with_time_to_spare_lets_requests_wait(full):
    full.refuse(full.enter("a"), 0.0)
    full.capacity.sample_cpu(2.0, 1.0)
    assert full.enter("b", 2.0).until == 2.0 + WAIT_SECONDS
    full.capacity.sample_cpu(2.1, 2.0)
    assert full.enter("c", 2.0).until == 2.0 + BURST_SECONDS
    full.capacity.sample_cpu(2.2, 2.1)
    assert full.capacity.share == pytest.approx(0.1), "too soon to look again"


def test_retries_go_before_clients_that_were_just_answered(full):
    assert full.refuse(full.enter("told"), 0.0) == 1
    for other in range(3):
        full.enter(("other", other), 0.9)
    full.enter("told", 1.0)
    full.leave(1.1)
    assert full.begun == ["told"]


def test_with_each_refusal_a_client_waits_longer(full):
    waits, moment = [], 0.0
    full.refuse(full.enter("other"), 0.0)
    for _ in range(REFUSALS_BEFORE_BACKOFF + 2):
        waiting = full.enter("patient", moment)
        waits.append(round(waiting.until - moment, 6))
        moment += full.refuse(waiting, moment)
    assert waits == pytest.approx([WAIT_SECONDS, WAIT_SECONDS * 2, WAIT_SECONDS * 3, BURST_SECONDS])


def test_a_retry_that_comes_much_too_late_is_a_new_request(full):
    full.refuse(full.enter("told"), 0.0)
    assert full.enter("told", 60.0).refusals == 0


def refuse_all(capacity, moments):
    """Refuse a client at each of these moments; return when the retries are due."""
    clients = [capacity.enter(Requester(("refused", n)), 0, moment, lambda: None) for n, moment in enumerate(moments)]
    return [moment + capacity.refuse(client, MOST, moment) for client, moment in zip(clients, moments, strict=True)]


def test_clients_refused_together_do_not_retry_together():
    due = refuse_all(Capacity(), [0.0] * (MAX_RETRY_AFTER_SECONDS * MOST // 2))
    assert {moment: due.count(moment) for moment in due} == dict.fromkeys(
        range(1, MAX_RETRY_AFTER_SECONDS + 1), MOST // 2
    )


def test_the_wait_is_as_short_as_the_rate_of_answers_allows():
    slow, fast = Capacity(), Capacity()
    for _ in range(2_000):
        fast.enter(Requester("x"), 10**6, 0.0, lambda: None)
        fast.release(None, 0.0)
    moments = [number / 50 for number in range(50)]
    waits = [
        [due - moment for due, moment in zip(refuse_all(each, moments), moments, strict=True)] for each in (slow, fast)
    ]
    assert max(waits[0]) > max(waits[1])
    assert round(max(waits[1])) == 1


class Simulation:
    """Clients that ask again as soon as they are answered, or when they are told to; one processor serves them all."""

    def __init__(self, clients, work):
        self.chance, self.capacity, self.numbers, self.work = random.Random(4), busy(), itertools.count(), work
        self.clock, self.events, self.left, self.asked = 0.0, [], {}, {}
        self.answered, self.in_a_row, self.most_in_a_row = [], dict.fromkeys(range(clients), 0), 0
        for client in range(clients):
            self.plan(self.chance.random() / 20, self.ask, client)

    def plan(self, moment, step, *arguments):
        heapq.heappush(self.events, (moment, next(self.numbers), step, arguments))

    def run(self, seconds):
        while True:
            moment = self.events[0][0] if self.events else seconds
            first = min(self.left, key=self.left.get) if self.left else None
            done = self.clock + max(self.left[first], 0) * len(self.left) if self.left else seconds
            if min(moment, done) >= seconds:
                return self
            self.advance(min(moment, done))
            if done <= moment:
                self.answer(first)
            else:
                _, _, step, arguments = heapq.heappop(self.events)
                step(*arguments)

    def advance(self, moment):
        for client in self.left:
            self.left[client] -= (moment - self.clock) / len(self.left)
        self.clock = moment

    def ask(self, client):
        self.asked[client] = self.clock
        waiting = self.capacity.enter(Requester(client), MOST, self.clock, lambda: self.begin(client))
        if waiting is None:
            self.begin(client)
        else:
            self.plan(waiting.until, self.give_up, client, waiting)

    def begin(self, client):
        self.in_a_row[client] = 0
        self.left[client] = self.work * self.chance.uniform(0.7, 1.3)

    def give_up(self, client, waiting):
        if waiting not in self.capacity.turns.waiting:
            return
        seconds = self.capacity.refuse(waiting, MOST, self.clock)
        self.in_a_row[client] += 1
        self.most_in_a_row = max(self.most_in_a_row, self.in_a_row[client])
        self.plan(self.clock + seconds + self.chance.random() / 100, self.ask, client)

    def answer(self, client):
        del self.left[client]
        self.answered.append((self.clock, self.clock - self.asked[client]))
        self.capacity.release(None, self.clock)
        self.plan(self.clock + self.chance.uniform(0.001, 0.005), self.ask, client)

    def times(self, after=0.0):
        return sorted(taken for moment, taken in self.answered if moment > after)


@pytest.mark.promise("Beyond what a process can serve, clients are told when to retry, and are served in turn")
@pytest.mark.parametrize(
    ("work", "waiting"), [(0.01, 3 * WAIT_SECONDS), (0.03, 5 * WAIT_SECONDS), (0.1, BURST_SECONDS)]
)
def test_sixty_four_clients_get_as_much_as_eight_and_none_starves(work, waiting):
    alone, few, many = (Simulation(clients, work).run(60.0) for clients in (1, 8, 64))
    assert len(many.answered) >= 0.9 * len(few.answered)
    assert many.most_in_a_row <= 5
    # One processor and no waiting for a database: nothing is slower under load than this.
    times = many.times(after=BURST_SECONDS * 2)
    assert times[int(len(times) * 0.99)] <= 1.2 * MOST * alone.times()[len(alone.answered) // 2] + waiting

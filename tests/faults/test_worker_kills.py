"""Workers die or sleep past their lease: every job is done once, none is lost, each scope keeps its order."""

from __future__ import annotations

import random
import signal
import time
from contextlib import contextmanager
from threading import Timer

import pytest

from sizes import Sizes
from trail_worker import CONCURRENCY
from trails import DEFER, OUT_OF_ORDER, RUNNING, TWICE, UNDONE, ask, end_worker, lay_trail, start_worker

JOBS = Sizes("jobs", ci=60, long=2_000)
KILLS = Sizes("killed workers", ci=2, long=200)
SCOPES, WORKERS, WAIT_SECONDS = 16, 2, 60
THOUGHT = (2.0, 2.0)
"""How long a job lasts that is to be stopped before it writes: its clock runs on while its worker is stopped."""
LONG_JOBS = (1.0, 2.0)
"""How long jobs last at first: long enough that both workers are seen at work, however slow the machine is."""


@pytest.fixture
def trail(owner):
    """A table in which every effect leaves a row."""
    lay_trail(owner)
    return owner


def start(addresses, guard="guarded", pauses=(0.0, 0.2)):
    return start_worker(addresses.service, guard, pauses)


def wait_for_word(worker, word):
    """Wait until a worker says a word; one that has died says nothing more, and one that hangs is killed."""
    guard = Timer(WAIT_SECONDS, worker.kill)
    guard.start()
    assert f"{word}\n" in iter(worker.stdout.readline, ""), f"the worker never said {word!r}"
    guard.cancel()


@contextmanager
def ended(workers):
    """See that no worker outlives its test."""
    try:
        yield
    finally:
        for worker in workers:
            end_worker(worker)


def wait_until(condition, seconds=WAIT_SECONDS):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass in time"
        time.sleep(0.05)


def stop_amid_jobs(workers, owner):
    """Stop all workers at a moment at which each of them has a job: there are more than one alone may run."""
    while True:
        wait_until(lambda: ask(owner, RUNNING) > CONCURRENCY)
        for worker in workers:
            worker.send_signal(signal.SIGSTOP)
        # What was sent before may still be on its way.
        time.sleep(0.1)
        if ask(owner, RUNNING) > CONCURRENCY:
            return
        resume(workers)


def resume(workers):
    for worker in workers:
        worker.send_signal(signal.SIGCONT)


def replace_killed(workers, addresses):
    """Kill a worker, whatever it is doing, and start another."""
    victim = random.randrange(len(workers))
    end_worker(workers[victim])
    workers[victim] = start(addresses)


@pytest.mark.slow
@pytest.mark.promise("Every job is done once, none is lost and each scope keeps its order, whoever dies", JOBS, KILLS)
def test_every_job_is_done_once_and_in_order_while_workers_are_killed(trail, addresses, figure):
    jobs, kills = JOBS.now, KILLS.now
    workers = [start(addresses, pauses=LONG_JOBS) for _ in range(WORKERS)]
    with ended(workers):
        wait_until(lambda: ask(trail, "select count(*) from procrastinate_workers") == WORKERS)
        trail.execute(DEFER, [SCOPES, 1, jobs])
        stop_amid_jobs(workers, trail)
        replace_killed(workers, addresses)
        resume(workers)
        for killed in range(1, kills):
            left = jobs * (1 - killed / kills)
            wait_until(lambda left=left: ask(trail, UNDONE) <= left)
            time.sleep(random.uniform(0, 0.4))
            replace_killed(workers, addresses)
        wait_until(lambda: ask(trail, UNDONE) == 0, WAIT_SECONDS + jobs)
    resumed = ask(trail, "select count(*) from ended where attempts > 0")
    twice, unordered = ask(trail, TWICE), ask(trail, OUT_OF_ORDER)
    figure(f"{resumed} jobs taken over, {twice} done twice, {unordered} out of order")
    assert ask(trail, "select count(*) from trail") == jobs
    assert (twice, unordered) == (0, 0)
    assert ask(trail, "select count(*) from ended") == jobs
    assert ask(trail, "select count(*) from job_effects") == 0
    assert resumed > 0


def sleep_past_the_lease(owner, addresses, guard):
    """Stop a worker in the middle of a job until another has done it, then let it go on; count the effects."""
    owner.execute(DEFER, [1, 1, 1])
    sleeper = start(addresses, guard, THOUGHT)
    workers = [sleeper]
    with ended(workers):
        wait_until(lambda: ask(owner, RUNNING))
        sleeper.send_signal(signal.SIGSTOP)
        assert ask(owner, "select count(*) from trail") == 0
        workers.append(start(addresses, guard, (0.0, 0.1)))
        wait_until(lambda: ask(owner, UNDONE) == 0)
        sleeper.send_signal(signal.SIGCONT)
        wait_for_word(sleeper, "tried")
        assert sleeper.poll() is None
    return ask(owner, "select count(*) from trail")


@pytest.mark.slow
@pytest.mark.promise("A worker that slept past its lease writes nothing when it goes on")
def test_a_worker_that_slept_past_its_lease_writes_nothing(trail, addresses):
    assert sleep_past_the_lease(trail, addresses, "guarded") == 1
    assert ask(trail, UNDONE) == 0


@pytest.mark.slow
def test_without_the_guard_it_would_write_a_second_time(trail, addresses):
    assert sleep_past_the_lease(trail, addresses, "open") == 2

"""Workers die or sleep past their lease: every job is done once, none is lost, each scope keeps its order.

RECOLLECT_ROUNDS sets how much: 20 jobs and 2 killed workers a round, 5 rounds unless told.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROUNDS = int(os.environ.get("RECOLLECT_ROUNDS", "5"))
JOBS, KILLS, SCOPES, WORKERS = 20 * ROUNDS, 2 * ROUNDS, 8, 2
SCRIPT = Path(__file__).with_name("trail_worker.py")
DEFER = """select procrastinate_defer_jobs_v1(array_agg(row(
        'trail', 'trail', 0, 'trail:' || scope_id, null,
        jsonb_build_object('scope_id', scope_id, 'number', number), null
    )::procrastinate_job_to_defer_v1 order by number))
    from (select number, (1::bigint << 40) + 1 + number %% %s as scope_id from generate_series(1, %s) number) wanted"""
TWICE = "select count(*) - count(distinct (scope_id, number)) from trail"
OUT_OF_ORDER = """select count(*) from (
        select number < lag(number) over (partition by scope_id order by id) as back from trail
    ) steps where back"""
UNDONE = "select count(*) from procrastinate_jobs where task_name = 'trail' and status <> 'succeeded'"


@pytest.fixture
def trail(owner):
    """A table in which every effect leaves a row, whoever leaves it."""
    owner.execute("create table trail (id bigserial primary key, scope_id bigint, number integer)")
    owner.execute("grant insert on trail to recollect_service")
    owner.execute("grant usage on sequence trail_id_seq to recollect_service")
    owner.execute("insert into tenants (name) values ('default')")
    owner.execute("delete from procrastinate_jobs")
    return owner


def ask(owner, statement):
    return owner.execute(statement).fetchone()[0]


def start(addresses, guard="fenced", pause=0.2):
    command = [sys.executable, str(SCRIPT), addresses.service, guard, str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@contextmanager
def ended(workers):
    """See that no worker outlives its test."""
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            worker.stdout.close()


def wait_until(condition, seconds):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass in time"
        time.sleep(0.05)


def replace_killed(workers, addresses):
    """Kill a worker, whatever it is doing, and start another."""
    victim = random.randrange(len(workers))
    workers[victim].kill()
    workers[victim].wait()
    workers[victim].stdout.close()
    workers[victim] = start(addresses)


@pytest.mark.slow
def test_every_job_is_done_once_and_in_order_while_workers_are_killed(trail, addresses):
    trail.execute(DEFER, [SCOPES, JOBS])
    workers = [start(addresses) for _ in range(WORKERS)]
    began = time.monotonic()
    with ended(workers):
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for killed in range(KILLS):
            left = JOBS * (1 - killed / KILLS)
            wait_until(lambda left=left: ask(trail, UNDONE) <= left, 60)
            time.sleep(random.uniform(0, 0.4))
            replace_killed(workers, addresses)
        wait_until(lambda: ask(trail, UNDONE) == 0, 60 + JOBS)
    resumed = ask(trail, "select count(*) from procrastinate_jobs where task_name = 'trail' and attempts > 1")
    print(f"{JOBS} jobs, {KILLS} workers killed, {resumed} jobs taken over, {time.monotonic() - began:.0f} s")
    assert ask(trail, "select count(*) from trail") == JOBS
    assert (ask(trail, TWICE), ask(trail, OUT_OF_ORDER)) == (0, 0)
    assert ask(trail, "select count(*) from job_effects") == JOBS
    assert resumed > 0


def sleep_past_the_lease(owner, addresses, guard):
    """Stop a worker in the middle of a job until another has done it, then let it go on; count the effects."""
    owner.execute(DEFER, [1, 1])
    sleeper = start(addresses, guard, 3.0)
    workers = [sleeper]
    with ended(workers):
        running = "select count(*) from procrastinate_jobs where task_name = 'trail' and status = 'doing'"
        wait_until(lambda: ask(owner, running), 20)
        sleeper.send_signal(signal.SIGSTOP)
        assert ask(owner, "select count(*) from trail") == 0
        workers.append(start(addresses, guard, 0.1))
        wait_until(lambda: ask(owner, UNDONE) == 0, 20)
        sleeper.send_signal(signal.SIGCONT)
        time.sleep(4)
        assert sleeper.poll() is None
    return ask(owner, "select count(*) from trail")


@pytest.mark.slow
def test_a_worker_that_slept_past_its_lease_writes_nothing(trail, addresses):
    assert sleep_past_the_lease(trail, addresses, "fenced") == 1
    assert ask(trail, "select status::text from procrastinate_jobs where task_name = 'trail'") == "succeeded"


@pytest.mark.slow
def test_without_the_fence_it_would_write_a_second_time(trail, addresses):
    assert sleep_past_the_lease(trail, addresses, "open") == 2

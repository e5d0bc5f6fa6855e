"""Workers die or sleep past their lease: every job is done once, none is lost, each scope keeps its order."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from sizes import Sizes
from trail_worker import CONCURRENCY

JOBS = Sizes("jobs", ci=60, long=2_000)
KILLS = Sizes("killed workers", ci=2, long=200)
SCOPES, WORKERS, WAIT_SECONDS = 16, 2, 60
THOUGHT = (2.0, 2.0)
"""How long a job lasts that is to be stopped before it writes: its clock runs on while its worker is stopped."""
LONG_JOBS = (1.0, 2.0)
"""How long jobs last at first: long enough that both workers are seen at work, however slow the machine is."""
SCRIPT = Path(__file__).parents[1] / "support" / "trail_worker.py"
DEFER = """select procrastinate_defer_jobs_v1(array_agg(row(
        'trail', 'trail', 0, 'trail:' || scope_id, null,
        jsonb_build_object('scope_id', scope_id, 'number', number), null
    )::procrastinate_job_to_defer_v1 order by number))
    from (select number, (1::bigint << 40) + 1 + number %% %s as scope_id from generate_series(1, %s) number) wanted"""
TWICE = "select count(*) - count(distinct (scope_id, number)) from trail"
OUT_OF_ORDER = """select count(*) from (
        select number < lag(number) over (partition by scope_id order by id) as back from trail
    ) steps where back"""
RUNNING = "select count(*) from procrastinate_jobs where task_name = 'trail' and status = 'doing'"
UNDONE = "select count(*) from procrastinate_jobs where task_name = 'trail'"


@pytest.fixture
def trail(owner):
    """A table in which every effect leaves a row, whoever leaves it."""
    owner.execute("create table trail (id bigserial primary key, scope_id bigint, number integer)")
    owner.execute("grant insert on trail to recollect_service")
    owner.execute("grant usage on sequence trail_id_seq to recollect_service")
    # A job that is done is gone: what it was is kept here.
    owner.execute("create table ended (attempts integer)")
    owner.execute(
        "create function keep_ended() returns trigger language plpgsql security definer as $$ begin "
        "if old.task_name = 'trail' then insert into public.ended values (old.attempts); end if; return old; end $$"
    )
    owner.execute(
        "create trigger keep_ended after delete on procrastinate_jobs for each row execute function keep_ended()"
    )
    owner.execute("insert into tenants (name) values ('default')")
    owner.execute("delete from procrastinate_jobs")
    return owner


def ask(owner, statement):
    return owner.execute(statement).fetchone()[0]


def start(addresses, guard="guarded", pauses=(0.0, 0.2)):
    command = [sys.executable, str(SCRIPT), addresses.service, guard, *map(str, pauses)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


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
            worker.kill()
            worker.wait()
            worker.stdout.close()


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
    workers[victim].kill()
    workers[victim].wait()
    workers[victim].stdout.close()
    workers[victim] = start(addresses)


@pytest.mark.slow
@pytest.mark.promise("Every job is done once, none is lost and each scope keeps its order, whoever dies", JOBS, KILLS)
def test_every_job_is_done_once_and_in_order_while_workers_are_killed(trail, addresses, figure):
    jobs, kills = JOBS.now, KILLS.now
    workers = [start(addresses, pauses=LONG_JOBS) for _ in range(WORKERS)]
    with ended(workers):
        wait_until(lambda: ask(trail, "select count(*) from procrastinate_workers") == WORKERS)
        trail.execute(DEFER, [SCOPES, jobs])
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
    owner.execute(DEFER, [1, 1])
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

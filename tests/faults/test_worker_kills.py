"""Workers die or sleep past their lease: every job is done once, none is lost, each scope keeps its order."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import time
from contextlib import contextmanager
from threading import Lock, Timer

import pytest

from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from support.callers.trail_worker import CONCURRENCY
from support.callers.trails import DEFER, OUT_OF_ORDER, RUNNING, TWICE, UNDONE, ask, end_worker, lay_trail, start_worker
from support.measuring.sizes import Sizes
from support.models.scripted_chat import chatting
from support.models.scripted_extractions import entity, fact

JOBS = Sizes("jobs of each sort, and a kill for every ten", ci=20, long=2_000)
SCOPES, WORKERS, WAIT_SECONDS = 16, 2, 300
JOBS_OF_A_KILL = 10
MOST_CALLS = 1.3
"""Calls of a model for each segment: what a worker was asking when it was killed is asked again, and nothing else."""
THOUGHT = (2.0, 2.0)
"""How long a job lasts that is to be stopped before it writes: its clock runs on while its worker is stopped."""
JOB_SECONDS = (0.3, 0.9)
"""How long others last: long enough that both workers are seen at work."""
UNLEARNED = """select count(*) from segments where state <> 'enriched' or 1 <> (
        select count(*) from extractions where segment_id = segments.id and applied_at is not null)"""
WORKING = "select count(*) from procrastinate_workers"
NEWEST = "select max(id) from procrastinate_workers"
FACTS = "select count(*) from beliefs where subject_id is not null"


@pytest.fixture
def trail(owner):
    """A table in which every effect leaves a row."""
    lay_trail(owner)
    return owner


def start(addresses, guard="guarded", pauses=JOB_SECONDS, chat_url=""):
    return start_worker(addresses.service, guard, pauses, chat_url=chat_url)


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


def wait_until_done(owner):
    """Wait until no job is left, as long as they become fewer: after a campaign thousands may wait."""
    while left := ask(owner, UNDONE):
        wait_until(lambda left=left: ask(owner, UNDONE) < left)


def stop_amid_jobs(workers, owner):
    """Stop all workers while each of them has a job, as more run than one alone may; or when no job is left."""
    while True:
        wait_until(lambda: ask(owner, RUNNING) > CONCURRENCY or not ask(owner, UNDONE))
        for worker in workers:
            worker.send_signal(signal.SIGSTOP)
        # What was sent before may still be on its way.
        time.sleep(0.1)
        if ask(owner, RUNNING) > CONCURRENCY or not ask(owner, UNDONE):
            return
        resume(workers)


def resume(workers):
    for worker in workers:
        worker.send_signal(signal.SIGCONT)


def replace_killed(workers, victim, addresses, chat_url):
    """Kill a worker, whatever it is doing, and start another."""
    end_worker(workers[victim])
    workers[victim] = start(addresses, chat_url=chat_url)


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
@pytest.mark.promise("A worker that slept past its lease writes nothing when it goes on", part="jobs")
def test_a_worker_that_slept_past_its_lease_writes_nothing(trail, addresses):
    assert sleep_past_the_lease(trail, addresses, "guarded") == 1
    assert ask(trail, UNDONE) == 0


@pytest.mark.slow
@pytest.mark.promise("The test of workers that sleep notices one that ignores its lease", part="jobs")
def test_without_the_guard_it_would_write_a_second_time(trail, addresses):
    assert sleep_past_the_lease(trail, addresses, "open") == 2


class Model:
    """What a chat model says of a segment; it counts how often it is asked, and takes its time."""

    def __init__(self, seed):
        self.calls, self._chance, self._lock = 0, random.Random(seed), Lock()

    def __call__(self, shape, prompt):
        with self._lock:
            self.calls += 1
            pause = self._chance.uniform(*JOB_SECONDS)
        time.sleep(pause)
        word = re.findall(r"word-\d+", prompt)[-1]
        parts = {"summary": "They talk.", "label": "Talk", "paths": [], "importance": 7, "keywords": []}
        return parts | {"entities": [entity("Ann"), entity(word, "thing")], "facts": [fact("Ann", "likes", word)]}


async def talk(recollect, first, count):
    """Say something in so many scopes, each of which has a topic that is over."""
    for number in range(first, first + count):
        conversation = (await recollect.mind(f"agent-{number}")).conversation("talk")
        await conversation.append([NewMessage(Role.USER, f"Ann likes word-{number}.")])
        await conversation.update(close_segment=True)


@pytest.mark.slow
@pytest.mark.promise(
    "Every job is done once, none is lost, each scope keeps its order, and a model is asked 1.3 times for one at most, "
    "whoever dies",
    JOBS,
    part="jobs",
)
async def test_every_job_is_done_once_and_in_order_while_workers_are_killed(
    trail, addresses, recollect, rounds, seed, figure
):
    chance, model, jobs = random.Random(seed), Model(seed), 0
    with chatting(answering=model) as url:
        workers = [start(addresses, chat_url=url) for _ in range(WORKERS)]
        with ended(workers):
            await asyncio.to_thread(wait_until, lambda: ask(trail, WORKING) == WORKERS)
            for number in rounds(JOBS, by=JOBS_OF_A_KILL):
                newest = ask(trail, NEWEST)
                trail.execute(DEFER, [SCOPES, number + 1, number + JOBS_OF_A_KILL])
                await talk(recollect, number, JOBS_OF_A_KILL)
                await asyncio.to_thread(stop_amid_jobs, workers, trail)
                replace_killed(workers, chance.randrange(WORKERS), addresses, url)
                resume(workers)
                jobs += JOBS_OF_A_KILL
                # The next kill finds both at work again.
                await asyncio.to_thread(wait_until, lambda newest=newest: ask(trail, NEWEST) > newest)
            await asyncio.to_thread(wait_until_done, trail)
    resumed = ask(trail, "select count(*) from ended where attempts > 0")
    twice, unordered = ask(trail, TWICE), ask(trail, OUT_OF_ORDER)
    figure(f"{resumed} jobs taken over, {twice} done twice, {unordered} out of order")
    figure(f"{model.calls / jobs:.2f} calls of the model for each segment")
    assert ask(trail, "select count(*) from trail") == jobs
    assert (twice, unordered) == (0, 0)
    assert ask(trail, "select count(*) from job_effects") == 0
    assert (ask(trail, "select count(*) from segments"), ask(trail, UNLEARNED), ask(trail, FACTS)) == (jobs, 0, jobs)
    assert resumed > 0
    assert jobs <= model.calls <= MOST_CALLS * jobs

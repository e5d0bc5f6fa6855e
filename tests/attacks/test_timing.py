"""How long an answer takes does not tell an id of others from one that nobody has."""

from __future__ import annotations

import random
import time
from uuid import uuid4

import numpy as np
import pytest

from conftest import http_client, new_key
from support.measuring import sizes
from support.measuring.sizes import Sizes

PAIRS = Sizes("pairs", ci=100, long=2_000)
RESAMPLED = 1_000
MINE = {"agent": "ada", "user": "li"}


def compare(refused: list[float], unknown: list[float], again: list[float], seed: int) -> tuple[float, float, float]:
    """Give how much later refused ids are answered, by medians, and the 95 % interval of unknown against unknown."""
    drawn = np.random.default_rng(seed)

    def medians(times: list[float]) -> np.ndarray:
        return np.median(drawn.choice(np.array(times), (RESAMPLED, len(times))), axis=1)

    low, high = np.percentile(medians(again) - medians(unknown), (2.5, 97.5))
    return float(np.median(refused) - np.median(unknown)), float(low), float(high)


def ask_memory(http, identity):
    return http.get(f"/v1/memories/{identity}", params=MINE)


def ask_forget(http, identity):
    return http.post("/v1/forget", json=MINE | {"ids": [str(identity)], "dry_run": True})


ASKED = {"read": (ask_memory, "others", "li"), "forget": (ask_forget, "default", "wu")}
"""What is asked with the ids of another tenant, and of another user."""


@pytest.mark.promise("The time of an answer does not tell a refused id from an unknown one", PAIRS, part="timing")
@pytest.mark.parametrize("name", ASKED)
async def test_the_time_of_an_answer_tells_nothing(recollect, mind, rounds, seed, figure, name):
    """By chance alone one sample of twenty lies outside: repeat a failure with another seed before you believe it.

    A round is a whole sample, because a few pairs say nothing.
    """
    ask, tenant, user = ASKED[name]
    theirs = await recollect.mind("ada", user, tenant=tenant)
    ids = [receipt.id for receipt in await theirs.remember([f"a secret {place}" for place in range(50)])]
    await mind.remember([f"mine {place}" for place in range(50)])
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as http:
        for identity in ids[:10]:
            await ask(http, identity)
        for _ in rounds(PAIRS, by=PAIRS.now):
            times = await measure(http, ask, ids, random.Random(seed))
    later, low, high = compare(times["refused"], times["unknown"], times["again"], seed)
    figure(f"{name}: {later * 1e6:+.0f} µs, interval {low * 1e6:+.0f} to {high * 1e6:+.0f} µs")
    if sizes.CHOSEN == "long":
        assert low <= later <= high


async def measure(http, ask, ids, chance) -> dict[str, list[float]]:
    """Ask for refused and unknown ids in turn, each time in another order, and take the time of each answer."""
    times: dict[str, list[float]] = {"refused": [], "unknown": [], "again": []}
    for _ in range(PAIRS.now):
        for kind in chance.sample(list(times), len(times)):
            identity = chance.choice(ids) if kind == "refused" else make_like(chance.choice(ids))
            started = time.perf_counter()
            answer = await ask(http, identity)
            times[kind].append(time.perf_counter() - started)
            assert answer.status_code in {200, 404}
            assert str(identity) not in answer.text
    return times


def make_like(identity):
    """Make an id that nobody has, of the same time as another."""
    return type(identity)(bytes=identity.bytes[:6] + uuid4().bytes[6:])


@pytest.mark.promise("The test of timing notices a difference of a twentieth", part="timing")
def test_a_difference_is_noticed(seed):
    drawn = np.random.default_rng(seed)
    unknown, again, refused = (list(drawn.lognormal(-6, 0.2, 2_000)) for _ in range(3))
    later, low, high = compare(refused, unknown, again, seed)
    assert low <= later <= high
    later, low, high = compare([each * 1.05 for each in refused], unknown, again, seed)
    assert later > high

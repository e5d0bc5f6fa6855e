"""The breaker opens, waits, probes and closes, with time given by the test."""

from recollect.llm.endpoint import Breaker, State


def opened(failures: int = 3, seconds: float = 10.0) -> Breaker:
    breaker = Breaker(failures, seconds)
    for _ in range(failures):
        breaker.fail(now=100.0)
    return breaker


def test_a_new_breaker_allows_every_call():
    breaker = Breaker()
    assert breaker.state(0.0) is State.CLOSED
    assert breaker.allow(0.0)
    assert breaker.allow(0.0)
    assert breaker.wait(0.0) == 0.0


def test_it_opens_at_the_limit_and_not_before():
    breaker = Breaker(failures=3)
    breaker.fail(1.0)
    breaker.fail(1.0)
    assert breaker.allow(1.0)
    breaker.fail(1.0)
    assert breaker.state(1.0) is State.OPEN
    assert not breaker.allow(1.0)


def test_only_failures_in_a_row_count():
    breaker = Breaker(failures=2)
    for _ in range(5):
        breaker.fail(1.0)
        breaker.succeed()
    assert breaker.state(1.0) is State.CLOSED


def test_it_says_how_long_to_wait():
    breaker = opened(seconds=10.0)
    assert breaker.wait(104.0) == 6.0
    assert breaker.wait(110.0) == 0.0


def test_after_the_wait_one_call_may_probe():
    breaker = opened()
    assert not breaker.allow(109.9)
    assert breaker.state(110.0) is State.HALF_OPEN
    assert breaker.allow(110.0)
    assert not breaker.allow(110.0)


def test_a_good_probe_closes():
    breaker = opened()
    assert breaker.allow(110.0)
    breaker.succeed()
    assert breaker.state(110.0) is State.CLOSED
    assert breaker.allow(110.0)


def test_a_failed_probe_opens_at_once_for_the_whole_time():
    breaker = opened(failures=3)
    assert breaker.allow(112.0)
    breaker.fail(113.0)
    assert not breaker.allow(122.9)
    assert breaker.allow(123.0)


def test_a_probe_without_a_verdict_lets_another_probe():
    breaker = opened()
    assert breaker.allow(110.0)
    breaker.release()
    assert breaker.allow(110.0)


def test_late_failures_do_not_prolong_the_wait():
    breaker = opened()
    breaker.fail(105.0)
    assert breaker.allow(110.0)


def test_the_count_begins_again_after_recovery():
    breaker = opened(failures=3)
    breaker.allow(110.0)
    breaker.succeed()
    breaker.fail(111.0)
    breaker.fail(111.0)
    assert breaker.allow(111.0)

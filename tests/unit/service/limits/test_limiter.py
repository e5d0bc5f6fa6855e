"""What a key or a tenant may ask of a process: so many requests and bytes, and so many streams."""

from __future__ import annotations

import pytest

from recollect.doors.http.server.limits import MAX_BUCKETS, Limiter, largest_body
from recollect.models.service import CountedLimits, Limits

KEY = "key 1"


def counted(name=KEY, **limits):
    return (CountedLimits(name, Limits(**limits)),)


def test_what_has_no_limit_is_admitted():
    limiter = Limiter()
    assert {limiter.admit((), 0.0) for _ in range(100)} == {0.0}
    assert {limiter.admit(counted(largest_body=5), 0.0) for _ in range(100)} == {0.0}


def test_requests_come_back_with_time():
    limiter, limits = Limiter(), counted(requests_per_second=2.0, burst=3)
    assert [limiter.admit(limits, 0.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert limiter.admit(limits, 0.25) == 0.25, "what was refused is not counted"
    assert limiter.admit(limits, 0.5) == 0.0
    assert [limiter.admit(limits, 60.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5], "no more than the burst is saved"


def test_without_a_burst_a_second_may_come_at_once():
    limiter = Limiter()
    waits = [limiter.admit(counted(requests_per_second=2.5), 0.0) for _ in range(4)]
    assert waits[:3] == [0.0] * 3
    assert waits[3] == pytest.approx(0.4)


def test_a_rate_below_one_a_second():
    limiter, limits = Limiter(), counted(requests_per_second=0.1)
    assert [limiter.admit(limits, 0.0), limiter.admit(limits, 4.0)] == [0.0, pytest.approx(6.0)]


def test_bytes_are_paid_back_before_more_come():
    limiter, limits = Limiter(), counted(bytes_per_minute=600)
    assert limiter.admit(limits, 0.0) == 0.0
    limiter.charge(limits, 700, 0.0)
    assert limiter.admit(limits, 0.0) == pytest.approx(10.0)
    assert limiter.admit(limits, 10.0) == 0.0


def test_the_narrower_limit_counts_and_the_other_is_left_alone():
    limiter = Limiter()
    both = (*counted(requests_per_second=10.0), *counted("tenant 7", requests_per_second=1.0))
    assert [limiter.admit(both, 0.0), limiter.admit(both, 0.0)] == [0.0, 1.0]
    own = counted(requests_per_second=10.0)
    assert [limiter.admit(own, 0.0) for _ in range(10)] == [0.0] * 9 + [pytest.approx(0.1)]


def test_keys_are_counted_apart():
    limiter = Limiter()
    assert limiter.admit(counted("key 1", requests_per_second=1.0), 0.0) == 0.0
    assert limiter.admit(counted("key 2", requests_per_second=1.0), 0.0) == 0.0


def test_who_was_told_to_wait_is_known_until_then():
    limiter, limits = Limiter(), counted(requests_per_second=1.0)
    assert limiter.time_left(limits, 0.0) == 0.0
    limiter.record_wait(limits, 3, 0.0)
    assert limiter.time_left(limits, 1.0) == 2.0
    assert limiter.time_left(limits, 4.0) == 0.0
    assert limiter.time_left(counted("another", requests_per_second=1.0), 1.0) == 0.0


def test_streams_are_counted_while_they_are_open():
    limiter, limits = Limiter(), counted(change_streams=2)
    assert [limiter.open_stream(limits) for _ in range(3)] == [True, True, False]
    limiter.close_stream(limits)
    assert limiter.open_stream(limits)


def test_the_smallest_body_counts():
    assert largest_body((*counted(largest_body=5), *counted("tenant", largest_body=3), *counted("free"))) == 3
    assert largest_body(counted()) is None


def test_what_is_counted_is_bounded():
    limiter = Limiter()
    for number in range(MAX_BUCKETS + 10):
        limiter.admit(counted(f"key {number}", requests_per_second=1.0), 0.0)
    assert len(limiter._buckets) == MAX_BUCKETS

"""Numbers of scopes come out the same on every server, today and later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.service.numbers import bucket_of, number_scope, tenant_of


@pytest.mark.parametrize(
    ("agent", "user", "bucket"),
    [
        ("ada", "", 2696),
        ("ada", "li", 1085),
        ("li", "ada", 2635),
        ("adal", "i", 2660),
        ("caf\xe9", "", 1061),
        ("cafe\u0301", "", 1061),
    ],
)
def test_a_bucket_follows_from_the_names(agent, user, bucket):
    assert bucket_of(agent, user) == bucket


@given(st.integers(1, 2**23 - 1), st.text(max_size=20), st.text(max_size=20), st.integers(1, 2**28 - 1))
def test_a_number_fits_a_bigint_and_is_ordered_by_tenant_and_bucket(tenant_id, agent, user, number):
    bucket = bucket_of(agent, user)
    scope_id = number_scope(tenant_id, bucket, number)
    assert 0 < scope_id < 2**63
    assert tenant_of(scope_id) == tenant_id
    assert number_scope(tenant_id, bucket, 0) < scope_id < number_scope(tenant_id, bucket, 0) + 2**28


@pytest.mark.parametrize("parts", [(2**23, 0, 1), (1, 4096, 1), (1, 0, 2**28), (-1, 0, 1)])
def test_no_part_reaches_into_another(parts):
    with pytest.raises(ValueError, match="no scope"):
        number_scope(*parts)

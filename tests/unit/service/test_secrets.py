"""Secrets of keys say whose they are, and notice a slip of the hand."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.core.service.secrets import tenant_of_secret, write_secret

LETTERS = string.ascii_letters + string.digits + "-_"
tenants = st.integers(1, 2**23 - 1)
entropy = st.binary(min_size=32, max_size=32)


def test_a_secret_is_written_the_same_for_ever():
    secret = "rec_AAABAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh_XZLXH"
    assert write_secret(1, bytes(range(32))) == secret
    assert tenant_of_secret(secret) == 1


@given(tenants, entropy)
def test_the_tenant_is_read_from_the_secret(tenant_id, random):
    secret = write_secret(tenant_id, random)
    assert len(secret) == 56
    assert tenant_of_secret(secret) == tenant_id


@given(tenants, entropy, st.integers(0, 51), st.sampled_from(LETTERS))
def test_one_wrong_character_is_noticed(tenant_id, random, place, letter):
    secret = write_secret(tenant_id, random)
    wrong = secret[: 4 + place] + letter + secret[5 + place :]
    assume(wrong != secret)
    assert tenant_of_secret(wrong) is None


@given(tenants, entropy, st.integers(0, 50))
def test_two_swapped_characters_are_noticed(tenant_id, random, place):
    secret = write_secret(tenant_id, random)
    first, second = secret[4 + place], secret[5 + place]
    assume(first != second)
    assert tenant_of_secret(secret[: 4 + place] + second + first + secret[6 + place :]) is None


@pytest.mark.parametrize("shown", ["", "rec_", "rec_wrong", "sk-1234", "rec_" + "é" * 52, "rec_" + "A" * 52, "\udcff"])
def test_what_no_key_looks_like_is_noticed(shown):
    assert tenant_of_secret(shown) is None


def test_a_secret_with_something_around_it_is_none():
    secret = write_secret(7, bytes(32))
    for shown in (secret[:-1], secret + "A", secret + "\n", " " + secret, secret.upper()):
        assert tenant_of_secret(shown) is None

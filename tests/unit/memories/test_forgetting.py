"""Forgetting: the scores of the golden file, boundaries that do not depend on floats, and reasons in words."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.memories.fading import (
    FadingMemory,
    Policy,
    check_rules,
    complete_rules,
    decide,
    judge,
    policy_by,
    rarity,
    score_age,
    score_event,
    score_working,
)
from recollect.errors import InvalidInputError
from recollect.models.agents import Profile
from recollect.models.memories import FadeReason, FadingRules, Kind
from support.imports.generative_agents import read_golden

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)


@pytest.fixture
def golden(shared) -> dict:
    return read_golden(shared, "golden_forgetting")


def remembered(days: float = 0, **changes: object) -> FadingMemory:
    then = NOW - timedelta(days=days)
    return replace(FadingMemory(Kind.MESSAGE, 5.0, then, then), **changes)


def test_every_working_score_is_the_golden_one(golden):
    rows = golden["working_memory"]
    assert len(rows) == 13
    for row in rows:
        score = score_working(row["importance"], row["days_since_access"], row["access_count"])
        assert score == pytest.approx(row["score"], abs=1e-9)
        memory = remembered(row["days_since_access"], importance=row["importance"] * 10)
        verdict = decide(replace(memory, access_count=row["access_count"]), NOW)
        assert (verdict.score, verdict.forget) == (score, row["forget"]), row


def test_every_event_score_is_the_golden_one(golden):
    rows = golden["event_triplet"]
    assert len(rows) == 11
    for row in rows:
        score = score_event(row["days_since_access"], row["access_count"])
        assert score == pytest.approx(row["score"], abs=1e-9)
        memory = remembered(row["days_since_access"], kind=Kind.EVENT, access_count=row["access_count"])
        verdict = decide(memory, NOW)
        assert (verdict.score, verdict.forget) == (score, row["forget"]), row


def test_the_numbers_of_the_policy_are_the_golden_ones(golden):
    policy = Policy()
    assert golden["threshold"] == f"forget when score > {policy.threshold} (strict)"
    assert f"now-{policy.fact_days:g} days" in golden["fact_memory"]
    assert f"importance >= {policy.protected_importance / 10}" in golden["fact_memory"]


@pytest.mark.parametrize("threshold", [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85])
def test_a_score_that_is_exactly_the_threshold_is_kept_and_anything_above_is_not(threshold):
    # 0.5 (1 - i/10) + 0.3 d/30 + 0.2 = t for d = 100 t - 70 + 5 i: at 0.6, for one, the sum of floats lies above it.
    policy, tried = Policy(threshold=threshold), 0
    for tenths in range(10, 90):
        days = round(100 * threshold) - 70 + tenths / 2
        if 0 <= days < 30:
            kept = decide(remembered(days, importance=tenths / 10), NOW, policy)
            assert (kept.score, kept.forget, kept.grounds) == (threshold, False, FadeReason.KEPT)
            gone = decide(remembered(days + 0.001, importance=tenths / 10), NOW, policy)
            assert (gone.forget, gone.grounds) == (True, FadeReason.DECAYED)
            tried += 1
    assert tried >= 20


def test_an_event_is_kept_for_exactly_fifteen_days():
    assert not decide(remembered(15, kind=Kind.EVENT), NOW).forget
    assert decide(remembered(15.001, kind=Kind.EVENT), NOW).forget


def test_facts_go_by_their_age_alone():
    fact = remembered(90, kind=Kind.FACT)
    assert not decide(fact, NOW).forget
    late = decide(fact, NOW + INSTANT)
    assert (late.forget, late.grounds) == (True, FadeReason.AGED)
    assert decide(replace(fact, last_accessed_at=NOW, access_count=99), NOW + INSTANT).forget
    assert not decide(remembered(9_999, kind=Kind.FACT), NOW, Policy(fact_days=0)).forget


@pytest.mark.parametrize("kind", list(Kind))
def test_what_is_protected_is_never_forgotten_and_what_is_nearly_so_is(kind):
    verdict = decide(remembered(9_999, kind=kind, importance=9.0), NOW)
    assert (verdict.forget, verdict.grounds) == (False, FadeReason.PROTECTED)
    policy = Policy(threshold=0.5)
    assert decide(remembered(9_999, kind=kind, importance=8.99), NOW, policy).forget


def test_expiry_is_the_callers_word_and_comes_first():
    memory = remembered(0, importance=10.0, expires_at=NOW)
    assert decide(memory, NOW).grounds is FadeReason.EXPIRED
    assert decide(memory, NOW).forget
    assert not decide(memory, NOW - INSTANT).forget


def test_never_and_once_accessed_weigh_the_same_and_more_weighs_less():
    assert rarity(-1) == rarity(0) == rarity(1) == 1.0
    assert rarity(2) > rarity(3) > rarity(1_000_000) > 0


def test_an_access_to_come_counts_as_one_just_now():
    assert decide(remembered(-5), NOW).score == decide(remembered(0), NOW).score


def test_reasons_say_what_was_weighed():
    assert decide(remembered(30), NOW).reason == (
        "Score 0.75 is above 0.7: importance 5, 0 accesses, the last 30.0 days ago."
    )
    assert decide(remembered(3, kind=Kind.EVENT, access_count=1), NOW).reason == (
        "Score 0.46 is not above 0.7: 1 access, the last 3.0 days ago."
    )
    assert decide(remembered(100, kind=Kind.FACT), NOW).reason == "It is 100.0 days old, older than 90."
    assert decide(remembered(9, importance=9.5), NOW).reason == "Importance 9.5 is at least 9: it is protected."
    expired = decide(remembered(expires_at=NOW), NOW)
    assert expired.reason == "It expired at 2026-06-01T12:00:00+00:00."


@given(st.sampled_from(Kind), st.floats(1, 10), st.floats(0, 3_000), st.floats(0, 500), st.integers(0, 10_000))
def test_waiting_never_saves_and_a_verdict_always_has_its_reason(kind, importance, days, more, accesses):
    memory = remembered(days, kind=kind, importance=importance, access_count=accesses)
    now, later = decide(memory, NOW), decide(memory, NOW + timedelta(days=more))
    assert later.score >= now.score
    assert later.forget >= now.forget
    assert now.reason.endswith(".")
    assert now.forget == (now.grounds in {FadeReason.DECAYED, FadeReason.AGED, FadeReason.EXPIRED})


def test_the_table_of_scores_on_the_page_is_what_the_formulas_give():
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "forgetting.md").read_text(encoding="utf-8")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line]
    [head] = [row for row in table if row[:2] == ["memory", "0"]]
    rows = [row for row in table if re.match(r"(event|thought of)\b.*\baccesses$", row[0])]
    assert len(rows) == 4
    for name, *shown in rows:
        accesses = int(re.findall(r"(\d+) accesses", name)[0])
        importance = re.findall(r"importance (\d+)", name)
        for days, cell in zip(head[1:], shown, strict=True):
            kind, weight = (Kind.THOUGHT, float(importance[0])) if importance else (Kind.EVENT, 5.0)
            verdict = decide(remembered(float(days), kind=kind, importance=weight, access_count=accesses), NOW)
            assert cell == (f"**{verdict.score:.3f}**" if verdict.forget else f"{verdict.score:.3f}"), (name, days)


def test_a_call_speaks_before_the_profile_and_the_profile_before_the_service():
    profile = Profile(fading_days=10, fading_threshold=0.5)
    assert complete_rules(FadingRules(), Profile(), 0) == FadingRules(0, 0.7, 0)
    assert complete_rules(FadingRules(), profile, 30) == FadingRules(10, 0.5, 0)
    assert complete_rules(FadingRules(days=0, fact_days=90), profile, 30) == FadingRules(0, 0.5, 90)
    assert policy_by(FadingRules(0, 0.7, 90)) is None
    assert policy_by(FadingRules(10, 0.5, 90)) == Policy(threshold=0.5, decay_days=10, fact_days=90)


def test_without_a_policy_only_expiry_lets_anything_fade():
    old = remembered(9_999, importance=1.0)
    assert judge(old, NOW, None) == replace(
        decide(old, NOW), forget=False, grounds=FadeReason.KEPT, reason="Nothing fades here by itself."
    )
    assert judge(replace(old, expires_at=NOW), NOW, None).grounds is FadeReason.EXPIRED
    assert judge(old, NOW, Policy()).grounds is FadeReason.DECAYED


def test_what_belongs_to_a_conversation_goes_with_it_unless_it_expires():
    held = remembered(9_999, importance=1.0, held=True)
    assert (decide(held, NOW).forget, decide(held, NOW).grounds) == (False, FadeReason.HELD)
    assert decide(replace(held, expires_at=NOW), NOW).grounds is FadeReason.EXPIRED
    assert "conversation" in decide(held, NOW).reason
    assert judge(held, NOW, None).grounds is FadeReason.HELD


@pytest.mark.parametrize(("field", "most"), [("days", 36_500), ("fact_days", 36_500), ("threshold", 1)])
def test_rules_of_fading_have_their_bounds(field, most):
    for within in (None, 0, most / 2, most):
        check_rules(FadingRules(**{field: within}))
    for beyond in (-0.001, most + 0.001, float("nan")):
        with pytest.raises(InvalidInputError, match=field):
            check_rules(FadingRules(**{field: beyond}))


@pytest.mark.parametrize(
    ("importance", "days", "accesses", "score"),
    [(0.5, 0, 0, 0.45), (0.5, 15, 1, 0.6), (0.1, 30, 0, 0.95), (0.1, 60, 0, 0.95), (1.0, 0, 1, 0.2), (0.0, -3, 0, 0.7)],
)
def test_a_message_fades_by_importance_time_and_rarity(importance, days, accesses, score):
    assert score_working(importance, days, accesses) == score


@pytest.mark.parametrize(("days", "accesses", "score"), [(0, 0, 0.4), (15, 1, 0.7), (30, 0, 1.0), (90, 0, 1.0)])
def test_an_event_fades_by_time_and_rarity(days, accesses, score):
    assert score_event(days, accesses) == score


def test_every_further_access_counts_by_its_logarithm():
    assert rarity(2) == pytest.approx(1 / (1 + log(2)))
    assert score_event(0, 10) == pytest.approx(0.4 / (1 + log(10)), abs=1e-9)


def test_the_age_of_a_fact_is_a_share_of_its_days():
    fact = remembered(45, kind=Kind.FACT)
    assert score_age(fact, NOW) == decide(fact, NOW).score == 0.5
    assert score_age(fact, NOW, Policy(fact_days=15)) == 3.0
    assert score_age(fact, NOW, Policy(fact_days=0.5)) == 90.0
    assert score_age(fact, NOW, Policy(fact_days=0)) == 0.0
    assert decide(fact, NOW, Policy(fact_days=0)).grounds is FadeReason.KEPT
    assert decide(fact, NOW).reason == "It is 45.0 days old, not older than 90."
    assert decide(fact, NOW, Policy(fact_days=0.5)).forget


def test_what_is_asked_for_in_part_is_completed_as_usual():
    assert policy_by(FadingRules(days=0.5)) == Policy(decay_days=0.5, fact_days=0)
    assert policy_by(FadingRules()) is None
    assert complete_rules(FadingRules(threshold=0.1), Profile(fading_fact_days=7), 30) == FadingRules(30, 0.1, 7)


def test_negative_accesses_are_told_as_none():
    assert "0 accesses, the last 0.0 days ago" in decide(remembered(-5, access_count=-1), NOW).reason
    assert "2 accesses" in decide(remembered(1, access_count=2), NOW).reason

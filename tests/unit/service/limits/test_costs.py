"""Prices are read as configured, calls are computed by them, and a tenant's own limit goes before the usual one."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from procrastinate.jobs import Job

from recollect.core.service.costs import Price, add_sums, choose_limit, price_of, read_prices
from recollect.errors import BudgetError, SetupError, UnavailableError
from recollect.jobs.worker import MAX_WAIT_SECONDS, SPREAD_SECONDS, RetryPolicy
from recollect.models.service import CostRow


def test_prices_are_read_by_model():
    text = " qwen3-8b=0.05/0.4, ollama/llama3:8b=0/0\nodd=name=1e-1/2 "
    expected = {"qwen3-8b": Price(0.05, 0.4), "ollama/llama3:8b": Price(0, 0), "odd=name": Price(0.1, 2)}
    assert read_prices(text) == expected
    assert read_prices("") == {}


@pytest.mark.parametrize(
    "text", ["qwen", "qwen=", "=1/2", "qwen=1", "qwen=1/", "qwen=a/b", "qwen=-1/2", "qwen=nan/1", "q=1/inf"]
)
def test_a_price_that_is_none_is_refused_with_an_example(text):
    with pytest.raises(SetupError, match=r"RECOLLECT_CHAT_PRICES.*qwen3-8b=0\.05/0\.40"):
        read_prices(text)


def test_a_call_is_priced_by_the_million():
    prices = {"small": Price(0.5, 2)}
    assert price_of(prices, "small", 1_000_000, 500_000) == pytest.approx(1.5)
    assert price_of(prices, "small", 0, 0) == 0
    assert price_of(prices, "large", 1, 1) is None


@pytest.mark.parametrize(
    ("usual", "own", "limit"), [(0, None, None), (0, 0, None), (9, None, 9), (9, 0, None), (9, 4, 4), (0, 4, 4)]
)
def test_a_tenants_own_limit_goes_before_the_usual_one(usual, own, limit):
    assert choose_limit(usual, own) == limit


SUM = CostRow(
    day=date(2026, 3, 2), step="extract", model="small", calls=10, failed=2, partial=1, prompt_tokens=300,
    completion_tokens=40, price=0.5, milliseconds=900,
)  # fmt: skip


def test_sums_of_one_day_step_and_model_on_several_servers_are_one():
    other = replace(SUM, calls=5, failed=1, partial=3, prompt_tokens=7, completion_tokens=8, price=0.25, milliseconds=9)
    assert add_sums([[SUM], [other]]) == [
        replace(
            SUM, calls=15, failed=3, partial=4, prompt_tokens=307, completion_tokens=48, price=0.75, milliseconds=909
        )
    ]


@pytest.mark.parametrize(
    ("one", "other", "price"), [(None, None, None), (None, 0.5, 0.5), (0.5, None, 0.5), (0.0, None, 0.0)]
)
def test_a_sum_has_a_price_if_a_part_of_it_has_one(one, other, price):
    [added] = add_sums([[replace(SUM, price=one)], [replace(SUM, price=other)]])
    assert added.price == price


def test_sums_are_in_the_order_of_days_the_latest_first_then_of_steps_and_models():
    earlier = replace(SUM, day=date(2026, 3, 1))
    ask, large = replace(SUM, step="ask", model="z"), replace(SUM, model="large")
    assert add_sums([[SUM, earlier], [ask, large]]) == [ask, large, SUM, earlier]
    assert add_sums([[earlier, SUM]]) == [earlier, SUM]
    assert add_sums([]) == []


def job(attempts):
    return Job(id=1, queue="enrich", lock="enrich:1", queueing_lock=None, task_name="enrich", attempts=attempts)


@pytest.mark.parametrize("attempts", [0, 3, 1000])
def test_a_job_without_a_budget_waits_for_the_day_and_not_all_at_once(attempts):
    random.seed(attempts)
    until = datetime.now(UTC) + timedelta(hours=5)
    error = BudgetError("All 9 tokens of today are used up.", until=until)
    chosen = {RetryPolicy().get_retry_decision(exception=error, job=job(attempts)).retry_at for _ in range(50)}
    assert len(chosen) > 40
    assert all(until <= moment <= until + timedelta(seconds=SPREAD_SECONDS) for moment in chosen)


def test_what_is_away_is_still_tried_soon():
    decision = RetryPolicy().get_retry_decision(exception=UnavailableError("away"), job=job(1000))
    assert decision.retry_at <= datetime.now(UTC) + timedelta(seconds=MAX_WAIT_SECONDS)

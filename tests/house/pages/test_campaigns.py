"""A campaign ends by its size or its minutes, and its record adds up over runs of the same sources."""

from __future__ import annotations

import dataclasses

import pytest

from support.measuring import campaigns
from support.measuring.campaigns import Campaign, Run
from support.measuring.sizes import EXAMPLES

KILLED = dataclasses.replace(EXAMPLES, unit="kills", ci=5, long=300)
RUN = Run("tests/a.py::test_b", "kills", "0123abcd", "same", "2026-01-02", "2 cores", 7, 1.5, "passed", {"kills": 200})


def changed(**values):
    return dataclasses.replace(RUN, **values)


@pytest.fixture
def campaign(monkeypatch):
    monkeypatch.setattr(campaigns, "name_sources", lambda test: "same")
    made = Campaign(30)
    made.tests, made.earlier = ["one", "two", RUN.test], []
    return made


def test_a_line_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "campaigns.jsonl"
    path.write_text(campaigns.write_line(RUN) * 2)
    assert campaigns.read_record(path) == [RUN, RUN]
    assert campaigns.read_record(tmp_path / "absent") == []


def test_sizes_add_up_over_runs_of_the_same_sources():
    runs = [changed(sources="older"), RUN, changed(test="another"), changed(done={"kills": 50, "writes": 9})]
    last = campaigns.last_runs(runs, RUN.test)
    assert campaigns.add_up(last) == {"kills": 250, "writes": 9}
    assert "250 kills, 9 writes" in campaigns.show_runs(last)


def test_what_failed_is_shown_whatever_came_after_it():
    runs = [changed(outcome="failed", figures=["lost 1"]), changed(figures=["lost 0"])]
    assert campaigns.show_runs(runs).startswith("failed: 400 kills. lost 1.")


def test_the_cases_of_a_test_are_one():
    assert campaigns.name_test("tests/a.py::TestC::test_b[one]") == campaigns.name_test("tests/a.py::test_b")


def test_a_run_takes_up_where_the_last_one_ended(campaign):
    assert campaign.left(RUN.test, KILLED) == 300
    campaign.earlier = [RUN, changed(sources="older"), changed(test="another")]
    assert campaign.left(RUN.test, KILLED) == 100
    campaign.earlier = [RUN, RUN]
    assert campaign.left(RUN.test, KILLED) == 300


def test_tests_share_the_minutes(campaign):
    assert [round((campaign.ends(test) - campaign.began) / 60) for test in campaign.tests] == [10, 20, 30]
    assert Campaign(600).seconds == 60 * 60


def test_rounds_count_those_that_ended(rounds, request):
    for number in rounds(KILLED, by=2):
        if number == 4:
            break
    assert ("done", '{"kills": 4}') in request.node.user_properties


def test_a_seed_may_be_given_to_repeat_a_run(monkeypatch, request):
    monkeypatch.setenv("RECOLLECT_SEED", "12345")
    assert request.getfixturevalue("seed") == 12345
    assert ("seed", 12345) in request.node.user_properties

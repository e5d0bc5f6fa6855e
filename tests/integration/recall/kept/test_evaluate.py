"""Recall measured by questions of one's own: in the process, on a server, and by the command line."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import pytest

from conftest import new_key
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import InvalidInputError
from recollect.mind.recall import compare_evaluations, evaluate, fit_relevance
from recollect.models import Cue, EvaluationQuestion
from support.programs import command_line
from support.programs.command_line import settings_of
from support.service.serving import serving

FRUIT = ["Ann bought green apples at the market", "Bo grows tall pear trees", "Cy cooks plum jam in August"]
FILLER = [f"The weather station reported value {number}" for number in range(40)]
NOWHERE = "Dee sells lemons"


def ask(cue, *expected, category=""):
    return EvaluationQuestion(cue, tuple(map(str, expected)), category)


async def fill(mind):
    return [receipt.id for receipt in await mind.remember([*FRUIT, *FILLER])]


async def test_ids_and_contents_are_found_and_what_is_not_there_is_named(mind):
    apples, *_ = await fill(mind)
    questions = [
        ask("who bought green apples", apples, category="fruit"),
        ask("plum jam", FRUIT[2], category="fruit"),
        ask("weather station", FRUIT[1]),
        ask("green apples", apples, NOWHERE, uuid4()),
    ]
    found = await evaluate(mind, questions)
    assert (found.overall.questions, found.categories["fruit"].quality.recall_5) == (4, 1.0)
    by_cue = {each.question.cue: each for each in found.results}
    assert found.results[0].question.cue == "weather station"
    assert by_cue["weather station"].unknown == ()
    assert "weather station" in by_cue["weather station"].above[0].content
    assert len(by_cue["green apples"].unknown) == 2
    assert by_cue["green apples"].quality.recall_10 == pytest.approx(1 / 3)
    assert by_cue["plum jam"].places == {FRUIT[2]: 1}
    assert list(by_cue["plum jam"].within.values()) == [1.0] * 5
    assert found.methods["text"] == {"exact": 4}
    assert found.tokenizer != "estimate"


async def test_nothing_is_stored_and_no_hit_counts_as_accessed(mind, owner):
    await fill(mind)

    def count():
        sums = (
            "select (select count(*) from access_log), (select count(*) from accesses), (select count(*) from recalls)"
        )
        return owner.execute(sums).fetchone()

    before = count()
    await evaluate(mind, [ask("green apples", FRUIT[0])], like=Cue(keep=True))
    assert count() == before


async def test_weights_change_the_answer_and_the_difference_is_paired(mind):
    await fill(mind)
    questions = [ask("green apples", FRUIT[0]), ask("pear trees", FRUIT[1])]
    usual = await evaluate(mind, questions)
    assert usual == await evaluate(mind, questions)
    other = await evaluate(mind, questions, like=Cue(channels=("recent",)))
    difference = compare_evaluations(other, usual)
    assert (difference.questions, difference.ndcg_10.mean < 0) == (2, True)


@pytest.mark.parametrize("wrong", [[], [ask(" ", "x")], [ask("x")], [ask("x", "y", " ")]])
async def test_questions_that_cannot_be_measured_are_refused(mind, wrong):
    with pytest.raises(InvalidInputError):
        await evaluate(mind, wrong)


async def test_a_server_is_measured_the_same(recollect, mind):
    await fill(mind)
    questions = [ask("green apples", FRUIT[0]), ask("plum", NOWHERE)]
    here = await evaluate(mind, questions)
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        there = await evaluate(await client.mind("ada", "li"), questions)
    assert there.tokenizer == "estimate"
    assert [each.quality for each in there.results] == [each.quality for each in here.results]
    assert [each.unknown for each in there.results] == [each.unknown for each in here.results]


NAMES = ("Ann", "Bo", "Cy", "Dee", "Eve", "Flo", "Gus", "Hal", "Ida", "Jon")
THINGS = ("apples", "pears", "plums", "lemons", "figs")


async def fill_talk(mind):
    said = [f"{name} bought {thing} on market day" for name in NAMES for thing in THINGS]
    await mind.remember(said)
    asked = [
        ask(f"What did {name} do with {thing}?", f"{name} bought {thing} on market day")
        for name in NAMES[:4]
        for thing in THINGS
    ]
    return [*asked, *(ask(f"Does {name} own a boat?") for name in NAMES)]


async def test_relevance_is_fitted_to_half_and_tried_on_the_rest(mind, owner):
    questions = await fill_talk(mind)
    [fit] = await fit_relevance(mind, questions)
    assert (fit.script, fit.with_vector, fit.questions) == ("words", True, (15, 15))
    # Here the right memory is always the first: a table of one's own knows that, the one in use cannot.
    assert fit.after[0] < fit.before[0]
    assert (fit.better, fit.loss.high < 0) == (True, True)
    assert fit == (await fit_relevance(mind, questions))[0]
    assert owner.execute("select count(*) from recalls").fetchone() == (0,)


async def test_too_few_questions_fit_nothing(recollect, mind):
    await fill(mind)
    assert await fit_relevance(mind, [ask("green apples", FRUIT[0])]) == []
    empty = await recollect.mind("nobody")
    assert await fit_relevance(empty, [ask("green apples", FRUIT[0])]) == []


async def test_questions_that_expect_nothing_are_left_out_of_the_means(mind):
    await fill(mind)
    found = await evaluate(mind, [ask("green apples", FRUIT[0]), ask("who owns a boat")])
    assert (found.overall.questions, found.overall.quality.recall_5) == (1, 1.0)


def write(path, *lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


async def test_the_command_prints_a_table_of_80_columns_and_writes_reports(mind, addresses, tmp_path):
    apples, *_ = await fill(mind)
    questions = write(
        tmp_path / "questions.jsonl",
        {"cue": "green apples", "expected": [str(apples)], "category": "a category with a long name"},
        {"cue": "weather station", "expected": FRUIT[1], "now": "2026-05-04T12:00:00Z"},
    )
    settings = settings_of(addresses) | {"COLUMNS": "80"}
    words = ("mind", "evaluate", questions, "--agent", "ada", "--user", "li")
    report, data = tmp_path / "report.md", tmp_path / "report.json"
    said = await asyncio.to_thread(
        command_line.run, *words, "--report", str(report), "--json", str(data), settings=settings
    )
    assert max(map(len, said.splitlines())) <= 80
    assert ("R@10" in said, "4,000" in said, "…  │" not in said) == (True, True, True)
    assert "1 questions found nothing they expect" in said
    assert "first instead: The weather station" in said
    text = report.read_text(encoding="utf-8")
    assert "| all | 2 | 0.500 |" in text
    assert "### weather station" in text
    assert "- above it" in text
    again = await asyncio.to_thread(command_line.run, *words, "--compare", str(data), settings=settings)
    assert "R@10: +0.000 [+0.000, +0.000]" in again
    fitted = await asyncio.to_thread(command_line.run, *words, "--fit", settings=settings)
    assert "Too few questions to fit relevance" in fitted
    worse = (*words, "--compare", str(data), "--channel", "recent")
    assert "nDCG@10: -" in await asyncio.to_thread(command_line.run, *worse, settings=settings)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"cue": "x"}, "line 1: expected Field required"),
        ({"cue": "x", "expected": "y", "sort": "z"}, "line 1: sort Extra inputs are not permitted"),
    ],
)
async def test_a_line_that_is_wrong_is_named(addresses, tmp_path, line, told):
    path = write(tmp_path / "questions.jsonl", line)
    words = ("mind", "evaluate", path, "--agent", "ada")
    said = await asyncio.to_thread(command_line.run, *words, settings=settings_of(addresses), fails=True)
    assert told in said


async def test_a_file_that_is_no_evaluation_is_refused(addresses, tmp_path):
    path = write(tmp_path / "questions.jsonl", {"cue": "x", "expected": "y"})
    words = ("mind", "evaluate", path, "--agent", "ada", "--compare", path)
    said = await asyncio.to_thread(command_line.run, *words, settings=settings_of(addresses), fails=True)
    assert "is not a file written by --json" in said

"""The page of promises lists what the marks of the tests say, each promise once."""

from __future__ import annotations

import ast
from itertools import chain

import pytest

from support.measuring import promises

PLANTED = """
KILLS = Sizes("kills", ci=5, long=1_000)
raise SystemExit

@pytest.mark.promise("Nothing is " "lost", KILLS, part="kills")
async def test_losses(): ...

@pytest.mark.promise("Nothing is doubled")
def test_doubles(): ...
"""


def test_the_page_is_what_the_marks_say():
    page = promises.PAGE.read_text(encoding="utf-8")
    assert page == promises.write_page(), "run `make docs`"


def test_every_promise_is_one_sentence_and_said_once():
    said = [each.sentence for path in promises.TESTS.rglob("test_*.py") for each in promises.read_promises(path)]
    assert len(said) > 20
    assert len(said) == len({*said})
    assert [sentence for sentence in said if sentence.endswith(".") or "|" in sentence] == []


def test_a_mark_is_read_without_running_anything(tmp_path):
    (tmp_path / "test_planted.py").write_text(PLANTED)
    found = [line.split(" | ") for line in promises.write_page(tmp_path).splitlines()[-2:]]
    assert [cells[0] for cells in found] == ["| Nothing is lost", "| Nothing is doubled"]
    assert [cells[2] for cells in found] == ["kills", "other"]
    assert [cells[3] for cells in found] == ["5 kills", promises.UNCHANGED]
    assert [cells[4] for cells in found] == ["1,000 kills", promises.UNCHANGED]
    assert [cells[5] for cells in found] == ["not run yet |"] * 2


def test_a_mark_that_names_no_size_is_refused(tmp_path):
    (tmp_path / "test_planted.py").write_text(PLANTED.replace("KILLS =", "DEATHS ="))
    with pytest.raises(AssertionError, match="no `KILLS = Sizes"):
        promises.write_page(tmp_path)


def test_every_size_belongs_to_a_promise():
    for path in promises.TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "= Sizes(" in text and path.name != "test_promises.py":
            tree = ast.parse(text)
            decorators = chain.from_iterable(getattr(node, "decorator_list", ()) for node in tree.body)
            marks = filter(promises.is_promise, decorators)
            named = {ast.unparse(size) for mark in marks for size in mark.args[1:]}
            assert {*promises.read_sizes(tree)} <= named, path

"""Texts of concurrent callers are run together, and a single one is not held up."""

from __future__ import annotations

import asyncio

import pytest

from recollect.llm.local.batches import Batches


class Runs:
    """A model that takes its time: a run ends when it is told to."""

    def __init__(self, most=4):
        self.runs, self.endings = [], []
        self.batches = Batches(self.run, len, most)

    async def run(self, items):
        self.runs.append(list(items))
        ending = asyncio.get_running_loop().create_future()
        self.endings.append(ending)
        await ending
        return [item.upper() for item in items]

    async def ask(self, *items):
        task = asyncio.create_task(self.batches.submit_items(items))
        await self.idle()
        return task

    async def end(self, number, problem=None):
        if problem:
            self.endings[number].set_exception(problem)
        else:
            self.endings[number].set_result(None)
        await self.idle()

    @staticmethod
    async def idle():
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_single_caller_is_run_at_once_and_alone():
    model = Runs()
    asked = await model.ask("a")
    assert model.runs == [["a"]]
    await model.end(0)
    assert await asked == ["A"]


async def test_what_comes_meanwhile_is_run_together():
    model = Runs()
    callers = [await model.ask(letter) for letter in "abcdef"]
    assert model.runs == [["a"]]
    await model.end(0)
    assert model.runs[1] == ["b", "c", "d", "e"]
    await model.end(1)
    await model.end(2)
    assert [await each for each in callers] == [[letter] for letter in "ABCDEF"]
    assert model.runs[2] == ["f"]


async def test_only_what_is_alike_is_run_together_and_answers_keep_their_order():
    model = Runs()
    first = await model.ask("x")
    mixed = await model.ask("aaa", "b", "ccc", "d")
    await model.end(0)
    assert model.runs[1] == ["aaa", "ccc"]
    await model.end(1)
    assert model.runs[2] == ["b", "d"]
    await model.end(2)
    assert await first == ["X"]
    assert await mixed == ["AAA", "B", "CCC", "D"]


async def test_nobody_waits_behind_the_whole_list_of_another():
    model = Runs(most=2)
    long = await model.ask(*"abcdefghij")
    assert model.runs == [["a", "b"]]
    short = await model.ask("z")
    await model.end(0)
    assert "z" in model.runs[1]
    await model.end(1)
    assert await short == ["Z"]
    long.cancel()


async def test_what_nobody_waits_for_is_not_run():
    model = Runs()
    first, gone, kept = await model.ask("a"), await model.ask("b"), await model.ask("c")
    gone.cancel()
    await model.idle()
    await model.end(0)
    assert model.runs[1] == ["c"]
    await model.end(1)
    assert (await first, await kept) == (["A"], ["C"])


async def test_a_run_that_fails_fails_for_its_callers_alone():
    model = Runs()
    first, second = await model.ask("a"), await model.ask("b")
    await model.end(0, RuntimeError("no"))
    with pytest.raises(RuntimeError):
        await first
    await model.end(1)
    assert await second == ["B"]


async def test_nothing_is_asked_of_nobody():
    assert await Runs().batches.submit_items([]) == []

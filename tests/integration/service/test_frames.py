"""How many functions of ours a call passes on one server, which has no optional part to recover from."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import recollect
from recollect.store.database.driver import AbandonableConnection

PACKAGE = Path(recollect.__file__).parent
MAX_BEFORE_VERB, MAX_TO_SQL = 4, 10


class Reached(Exception):  # noqa: N818 - it is no error
    """Raised in the driver, with the frames of ours that lead to it."""

    def __init__(self, frames: list[str]) -> None:
        super().__init__(" > ".join(frames))
        self.frames = frames


@pytest.fixture
def stopped(monkeypatch):
    """Stop each statement in the driver."""

    async def execute(*_arguments, **_named):
        frames, frame = [], inspect.currentframe().f_back
        while frame is not None and frame.f_code.co_filename != __file__:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                frames.append(f"{path.relative_to(PACKAGE).with_suffix('').as_posix()}.{frame.f_code.co_name}")
            frame = frame.f_back
        raise Reached(frames[::-1])

    monkeypatch.setattr(AbandonableConnection, "execute", execute)


CALLS = {
    "recall": lambda mind: mind.recall("apples"),
    "remember": lambda mind: mind.remember("Li likes apples."),
    "list": lambda mind: mind.list(),
    "topics": lambda mind: mind.topics.tree(),
    "append": lambda mind: mind.conversation("c").append("Hello."),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_passes_few_functions_of_ours(mind, stopped, name):
    with pytest.raises(Reached) as reached:
        await CALLS[name](mind)
    frames = reached.value.frames
    verb = next(
        place
        for place, frame in enumerate(frames)
        if frame.startswith(("verbs/", "store/")) and not frame.endswith("recovery.recover")
    )
    assert verb <= MAX_BEFORE_VERB, reached.value
    assert len(frames) <= MAX_TO_SQL, reached.value
    assert not [frame for frame in frames if "shards" in frame or "cold" in frame]

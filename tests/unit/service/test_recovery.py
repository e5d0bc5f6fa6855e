"""The one loop that repeats a call: what it repeats, how often, and what it never repeats."""

from __future__ import annotations

import pytest

from recollect.errors import ScopeMovedError, ScopeRestoringError, UnavailableError
from recollect.store.database.calls import COMMITS
from recollect.verbs.recovery import Recovery, recover

TENANT = 7


class Part:
    """An optional part that notes which errors it was asked to recover from."""

    def __init__(self, error: type[Exception], attempts: int) -> None:
        self.met: list[tuple[int, Exception]] = []
        self.recovery = Recovery(error, self.refresh, (0.0,) * attempts)

    async def refresh(self, tenant_id: int, met: Exception) -> None:
        self.met.append((tenant_id, met))


class Call:
    """A call that fails with each error in turn, and then answers."""

    def __init__(self, *errors: Exception, commits: bool = False) -> None:
        self.errors, self.commits, self.times = list(errors), commits, 0

    async def __call__(self) -> str:
        self.times += 1
        if self.commits and (known := COMMITS.get()):
            known.any = True
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


@pytest.fixture
def moves():
    return Part(ScopeMovedError, 3)


@pytest.fixture
def restores():
    return Part(ScopeRestoringError, 1)


async def test_without_optional_parts_nothing_is_repeated():
    call = Call(ScopeMovedError("moved"))
    with pytest.raises(ScopeMovedError):
        await recover((), TENANT, call)
    assert call.times == 1


async def test_each_error_is_given_to_its_part(moves, restores):
    met = ScopeMovedError("moved"), ScopeRestoringError(scope_id=9)
    assert await recover([moves.recovery, restores.recovery], TENANT, Call(*met)) == "answer"
    assert moves.met == [(TENANT, met[0])]
    assert restores.met == [(TENANT, met[1])]


async def test_other_errors_are_raised_at_once(moves):
    call = Call(UnavailableError("down"))
    with pytest.raises(UnavailableError):
        await recover([moves.recovery], TENANT, call)
    assert (call.times, moves.met) == (1, [])


async def test_a_call_is_repeated_as_often_as_its_part_says(moves, restores):
    call = Call(*(ScopeMovedError(str(number)) for number in range(9)))
    with pytest.raises(ScopeMovedError, match="3"):
        await recover([moves.recovery, restores.recovery], TENANT, call)
    assert call.times == 4


async def test_a_call_that_has_committed_a_part_is_never_repeated(moves):
    call = Call(ScopeMovedError("moved"), commits=True)
    with pytest.raises(ScopeMovedError):
        await recover([moves.recovery], TENANT, call)
    assert call.times == 1
    assert len(moves.met) == 1, "a caller who tries again finds the new place"


async def test_a_commit_of_a_later_attempt_counts(moves):
    call, again = Call(ScopeMovedError("moved")), Call(ScopeMovedError("again"), commits=True)
    with pytest.raises(ScopeMovedError, match="again"):
        await recover([moves.recovery], TENANT, call, again)
    assert (call.times, again.times) == (1, 1)


async def test_later_attempts_begin_where_the_data_is_now(moves):
    call, again = Call(ScopeMovedError("moved")), Call()
    assert await recover([moves.recovery], TENANT, call, again) == "answer"
    assert (call.times, again.times) == (1, 1)


async def test_what_cannot_be_repeated_is_refreshed_for_the_next_call(restores):
    call = Call(ScopeRestoringError(scope_id=9))
    with pytest.raises(ScopeRestoringError):
        await recover([restores.recovery], TENANT, call, repeats=False)
    assert (call.times, len(restores.met)) == (1, 1)

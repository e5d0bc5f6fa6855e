"""Roles that read the views by SQL, for tests: each goes when its test is over, because roles belong to the server."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from recollect.mind.service import Recollect
from recollect.models.service import NewReader

NUMBERS = itertools.count(1)


@pytest.fixture
async def readers(recollect: Recollect) -> AsyncIterator[Callable[..., Awaitable[NewReader]]]:
    """Make readers that go when the test is over."""
    made = []

    async def make(tenant: str = "default") -> NewReader:
        new = await recollect.operator.readers.create(f"reader_{next(NUMBERS)}", tenant)
        made.append(new.reader.name)
        return new

    yield make
    for reader in await recollect.operator.readers.list():
        if reader.name in made:
            await recollect.operator.readers.drop(reader.name)


def connect(new: NewReader, **options: Any) -> psycopg.Connection[DictRow]:
    """Log in as a reader."""
    return psycopg.connect(new.dsn, autocommit=True, row_factory=dict_row, **options)

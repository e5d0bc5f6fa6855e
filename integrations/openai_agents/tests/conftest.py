"""A real server, told by the environment; nothing else is asked over a network."""

from __future__ import annotations

import os
from uuid import uuid4

import pytest
from agents import set_tracing_disabled
from hypothesis import HealthCheck, settings

from recollect.client import Client

set_tracing_disabled(disabled=True)

usual = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
for name, examples in {"fast": 4, "ci": 10, "long": 100}.items():
    settings.register_profile(name, usual, max_examples=examples, derandomize=name != "long")
settings.load_profile(os.environ.get("RECOLLECT_TESTS", "ci"))


@pytest.fixture(scope="session")
async def client():
    if "RECOLLECT_URL" not in os.environ:
        pytest.skip("RECOLLECT_URL names no server")
    async with Client(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"], timeout_seconds=60) as client:
        yield client


@pytest.fixture
async def mind(client):
    return await client.mind("agents", f"u-{uuid4().hex}")

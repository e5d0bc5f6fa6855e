"""Fixtures of tests that move tenants: two servers whose logs can be followed, and a Recollect over both."""

from __future__ import annotations

import pytest

from conftest import PATIENT
from recollect.llm.fake import FakeEmbedder
from recollect.settings import Settings
from recollect.wiring import connected
from shards import NAMES, lay_out_servers, started


@pytest.fixture(scope="module")
def servers():
    """Two servers of their own, each with a log that can be followed."""
    with started(*NAMES[:2]) as running:
        yield running


@pytest.fixture
async def layout(servers):
    layout = await lay_out_servers(servers)
    yield layout
    layout.drop()


@pytest.fixture
async def many(layout, tmp_path):
    settings = Settings(embedder="fake", map_file=tmp_path / "map.json", **PATIENT)
    async with connected(settings, layout.addresses, FakeEmbedder()) as running:
        yield running

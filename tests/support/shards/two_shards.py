"""Fixtures of tests with several servers: two shards with a catalog, and a Recollect that goes by it."""

from __future__ import annotations

import pytest

from conftest import PATIENT
from recollect.wiring import connected
from support.service.made_settings import make_settings
from support.shards.shards import lay_out


@pytest.fixture
async def layout(cluster, clones):
    return await lay_out(cluster, clones)


@pytest.fixture
async def many(layout, embedder, tmp_path):
    settings = make_settings(embedder="fake", shards__map_file=tmp_path / "map.json", **PATIENT)
    async with connected(settings, layout.addresses, embedder) as running:
        yield running

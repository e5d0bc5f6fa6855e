"""Fixtures of the engines: each server is started once per run, when a test first asks for it."""

from __future__ import annotations

import os

import pytest

from support.engines import objects
from support.engines.java import ADVICE, can_run
from support.engines.servers import running


def require_java() -> None:
    """Skip with a sentence where there is no JDK; in CI that is a failure."""
    if not can_run():
        assert os.environ.get("CI") != "true", ADVICE
        pytest.skip(ADVICE)


@pytest.fixture(scope="session")
def search_server(tmp_path_factory):
    """A whole OpenSearch node with k-NN."""
    require_java()
    with running("search", tmp_path_factory.mktemp("search")) as server:
        yield server


@pytest.fixture(scope="session")
def graph_server(tmp_path_factory):
    """A whole Neo4j server."""
    require_java()
    with running("graph", tmp_path_factory.mktemp("graph")) as server:
        yield server


@pytest.fixture(scope="session")
def object_server(tmp_path_factory):
    """A whole S3 server."""
    if objects.build() is None:
        assert os.environ.get("CI") != "true", objects.ADVICE
        pytest.skip(objects.ADVICE)
    with objects.serving_objects(tmp_path_factory.mktemp("s3")) as server:
        yield server

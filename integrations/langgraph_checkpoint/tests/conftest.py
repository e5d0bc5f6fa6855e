"""What all tests need: a connection to a real server, in a scope of its own for every test."""

from __future__ import annotations

import os
from uuid import uuid4

import pytest
from recollect_langchain import Connection


def pytest_collection_modifyitems(items):
    if "RECOLLECT_URL" not in os.environ:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="RECOLLECT_URL names no server"))


@pytest.fixture
def open_connection():
    """Give connections to one fresh scope, as the holder of one key or of the other tenant's."""
    user, opened = uuid4().hex, []

    def connect(key="RECOLLECT_KEY"):
        opened.append(Connection(os.environ["RECOLLECT_URL"], os.environ[key], "langgraph", user))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(open_connection):
    return open_connection()

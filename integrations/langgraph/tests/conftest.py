"""What all tests need: a connection to a real server, in a scope of its own for every test."""

from __future__ import annotations

import os
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from langgraph.store.postgres import PostgresStore
from recollect_langchain import Connection

usual = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
for name, examples in {"fast": 3, "ci": 5, "long": 100}.items():
    settings.register_profile(name, usual, max_examples=examples, derandomize=name != "long")
settings.load_profile(os.environ.get("RECOLLECT_TESTS", "ci"))


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


@pytest.fixture
def open_oracle():
    """Give LangGraph's own store on PostgreSQL, empty."""
    opened = []

    def start(index=None):
        opened.append(PostgresStore.from_conn_string(os.environ["RECOLLECT_DATABASE_URL"], index=index))
        store = opened[-1].__enter__()
        store.setup()
        store.conn.execute("truncate store cascade")
        return store

    yield start
    for each in reversed(opened):
        each.__exit__(None, None, None)

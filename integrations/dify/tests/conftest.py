"""What the tests stand on: a server that is there already, and the plugin as Dify starts it."""

from __future__ import annotations

import os

import pytest
from daemon import Daemon, Dify, Workbench

from recollect.sync import connect


@pytest.fixture(scope="session")
def credentials():
    if not os.environ.get("RECOLLECT_URL"):
        pytest.skip("RECOLLECT_URL and RECOLLECT_KEY name no server")
    return {"url": os.environ["RECOLLECT_URL"], "key": os.environ["RECOLLECT_KEY"]}


@pytest.fixture(scope="session")
def daemon():
    """The plugin, started once as Dify's daemon starts it."""
    started = Daemon()
    yield started
    started.close()


@pytest.fixture(scope="session")
def workbench():
    """The plugin's modules, imported once."""
    opened = Workbench()
    yield opened
    opened.close()


@pytest.fixture
def dify(daemon, credentials):
    """A new app, user and conversation in Dify."""
    return Dify(daemon, credentials)


@pytest.fixture
def memory(credentials):
    """The server, seen without the plugin."""
    with connect(**credentials) as connected:
        yield connected

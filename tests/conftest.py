"""One real PostgreSQL for every process that runs tests, one freshly cloned database for every test that asks."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from recollect import wiring
from recollect.core.recall import relevance
from recollect.doors.cli import terminal
from recollect.doors.http import key_check
from recollect.doors.http.app import create_app
from recollect.doors.http.server.keys import KeyChecks
from recollect.doors.http.server.limits import Limiter
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses
from recollect.models.recall import Script as RecallScript
from recollect.models.service import Right
from recollect.settings import Settings
from recollect.store.database.migrate import list_migrations
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from support.database.clones import Clones
from support.measuring.sizes import load_profile
from support.models.fake_chat import FakeChatModel
from support.models.scripted_extractions import Script
from support.programs.folders import MEMORY, find_memory, open_folder
from support.service.made_settings import make_settings
from support.service.served import serving

pytest_plugins = [
    "support.measuring.campaigns",
    "support.engines.fixtures",
    "support.measuring.promises",
    "support.service.reader_roles",
    "timings",
]
load_profile()
# Wherever the tests run, who names no time zone asks in this one.
os.environ["TZ"] = "UTC"
# A console keeps the width that it was made with; the workers of pytest-xdist name one, and so may a terminal.
terminal.out._width = terminal.err._width = None
# A busy machine may take its time to say that it is ready, too.
wiring.READY_SECONDS = 30.0
# Tests look at once at the effect of a change; copies are tested with their usual age.
key_check.COPY_SECONDS = 0.0
# The fake's vectors are near where words are shared; what they say of relevance is taken from the local model.
relevance.WITH_VECTOR = {**relevance.WITH_VECTOR, FakeEmbedder().model: {RecallScript.WORDS: relevance.ENGLISH}}
TEMPLATE = "template_of_tests"
QUICK = {
    "fsync": "off", "synchronous_commit": "on", "full_page_writes": "off", "shared_buffers": "128MB",
    "max_wal_size": "256MB",
}  # fmt: skip
# A busy machine may take its time; what a short time does is tested with a short time.
PATIENT = {
    "request_timeout_seconds": 60,
    "recall__channel_timeout_seconds": 30,
    "embedding__wait_timeout_seconds": 30,
    "postgres__max_requests": 64,
}
IDLE: list[FastAPI] = []
SHARED = Path(__file__).parents[2] / "shared"


def pytest_addoption(parser):
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the files in another order")


def pytest_collection_modifyitems(config, items):
    seed = config.getoption("--shuffle")
    if seed is not None:
        files = sorted({item.path for item in items})
        random.Random(seed).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))


@pytest.fixture(scope="session")
def cluster():
    with open_folder("tests", find_memory()) as folder, Cluster(folder / "postgres", settings=QUICK) as started:
        yield started


def addresses_of(cluster: Cluster, database: str) -> Addresses:
    return Addresses(cluster.dsn(database, "recollect_service"), cluster.dsn(database))


def copy_migrations(folder: Path, last: int | None = None) -> None:
    """Put our migrations into a folder, for a test that adds one to them; all but the last few if asked."""
    for step in list_migrations()[:last]:
        (folder / f"{step.name}.sql").write_text(step.text, encoding="utf-8")


def execute(cluster: Cluster, statement: str) -> None:
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session")
def template(cluster):
    """A database with the newest schema and one embedding space, to be cloned."""
    execute(cluster, f"create database {TEMPLATE}")
    # A thread of its own: the session's event loop may be running already.
    with asyncio.Runner() as runner:
        runner.run(prepare(addresses_of(cluster, TEMPLATE), FakeEmbedder()))
    return TEMPLATE


@pytest.fixture(scope="session")
def clones(cluster, template):
    stock = Clones(cluster.dsn(), template, in_memory=MEMORY in cluster.data.parents)
    yield stock
    stock.close()


@pytest.fixture
def addresses(cluster, clones):
    """The addresses of a database that this test alone uses."""
    name = clones.take()
    yield addresses_of(cluster, name)
    clones.drop(name)


@pytest.fixture
def owner(addresses):
    """A connection of the role that owns the tables (a superuser here: it sees everything)."""
    with psycopg.connect(addresses.owner, autocommit=True) as connection:
        yield connection


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture(scope="session")
def outside(cluster):
    """What a program outside needs to know to reach a server in a process of its own: variables of its environment."""
    # A loaded machine may take its time, and nothing here is about an answer without a vector or a channel.
    with serving(cluster, **{name: str(value) for name, value in PATIENT.items()}) as environment:
        yield environment


@pytest.fixture
async def recollect(addresses, embedder):
    """A running Recollect on a database of its own, with the deterministic embedder."""
    async with connected(make_settings(embedder="fake", **PATIENT), addresses, embedder) as running:
        yield running


@pytest.fixture
def script():
    """What the chat model of `running` says: extractions one after the other, and matches of names."""
    return Script()


@pytest.fixture
async def running(addresses, embedder, script):
    """A Recollect that learns what the script says."""
    async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(script)) as recollect:
        yield recollect


@pytest.fixture
async def mind(recollect):
    return await recollect.mind("ada", "li")


@contextmanager
def application(recollect):
    """Lend an application: the framework builds routes when they are first asked for, which costs more than a test."""
    app = IDLE.pop() if IDLE else create_app()
    app.state.recollect, app.state.keys, app.state.limiter = recollect, KeyChecks(), Limiter()
    try:
        yield app
    finally:
        IDLE.append(app)


@asynccontextmanager
async def http_client(recollect, secret):
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    with application(recollect) as app:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            yield client


async def new_key(recollect, tenant="default", rights=tuple(Right), trust=50):
    key, secret = await recollect.create_key(await recollect.operator.act_for(tenant), "test", rights, trust)
    return key, secret


@pytest.fixture
async def http(recollect):
    """An HTTP client with every right in the tenant `default`."""
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as client:
        yield client


@pytest.fixture(scope="session")
def shared():
    """The folder with data from elsewhere; tests that need it are skipped without it."""
    if not SHARED.is_dir():
        pytest.skip("the shared data are not beside this checkout")
    return SHARED

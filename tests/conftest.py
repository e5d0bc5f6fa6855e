"""One real PostgreSQL for the whole run, one freshly cloned database for every test that asks."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from folders import open_folder
from recollect.doors.http.app import create_app
from recollect.llm.fake import FakeEmbedder
from recollect.models import Right
from recollect.settings import Settings
from recollect.store.cluster import Cluster
from recollect.wiring import Addresses, connected, prepare
from served import serving

TEMPLATE = "template_of_tests"
QUICK = {"fsync": "off", "synchronous_commit": "on", "full_page_writes": "off", "shared_buffers": "128MB"}
NUMBERS = itertools.count(1)
SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def cluster():
    with open_folder("tests") as folder, Cluster(folder / "postgres", settings=QUICK) as started:
        yield started


def addresses_of(cluster: Cluster, database: str) -> Addresses:
    return Addresses(cluster.dsn(database, "recollect_service"), cluster.dsn(database))


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


@pytest.fixture
def addresses(cluster, template):
    """The addresses of a database that this test alone uses."""
    name = f"test_{next(NUMBERS)}"
    execute(cluster, f"create database {name} template {template}")
    yield addresses_of(cluster, name)
    execute(cluster, f"drop database {name} with (force)")


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
    # A loaded machine may take its time over a vector, and nothing here is about going on without one.
    with serving(cluster, embed_wait_seconds="8") as environment:
        yield environment


@pytest.fixture
async def recollect(addresses, embedder):
    """A running Recollect on a database of its own, with the deterministic embedder."""
    async with connected(Settings(embedder="fake"), addresses, embedder) as running:
        yield running


@pytest.fixture
async def mind(recollect):
    return await recollect.mind("ada", "li")


@asynccontextmanager
async def http_client(recollect, secret):
    app = create_app(recollect=recollect)
    app.state.recollect = recollect
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
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

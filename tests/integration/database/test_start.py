"""How the long-lived processes start and end: a taken port, a database that is late or lost, a worker that fails."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import signal
import socket
import subprocess
import threading

import psycopg
import pytest
from rich.console import Console

from conftest import QUICK
from recollect.doors.cli import server
from recollect.errors import RecollectError, SetupError
from recollect.jobs.lease import GuardedJobManager
from recollect.llm.fake import FakeEmbedder
from recollect.mind.service import Addresses, Recollect
from recollect.settings import Settings
from recollect.store.database.connect_errors import OWNER_VARIABLE, find_refusal, reach
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from support.programs import command_line
from support.programs.folders import open_folder
from support.programs.ports import free_port
from support.programs.programs import COMMAND, plain_environment
from support.programs.waiting import WAIT_SECONDS, until


@pytest.fixture(scope="module")
def own():
    """A server that this module alone starts and stops, with a database and a password for the service's role."""
    with open_folder("start") as folder, Cluster(folder / "postgres", port=free_port(), settings=QUICK) as started:
        with asyncio.Runner() as runner:
            runner.run(prepare(Addresses("", started.dsn()), FakeEmbedder()))
        yield started


def service_dsn(cluster, password="right", **names):
    chosen = {"host": "127.0.0.1", "port": cluster.port, "dbname": "postgres", "user": "recollect_service"} | names
    return " ".join(f"{name}={value}" for name, value in (chosen | {"password": password}).items())


@pytest.fixture
def late(own):
    """The addresses of the database on the server that may be stopped."""
    with psycopg.connect(own.dsn(), autocommit=True) as owner:
        owner.execute("alter role recollect_service password 'right'")
        dsn = own.dsn()
    yield Addresses(service_dsn(own), dsn)
    own.start()


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_taken_port_ends_the_start_before_anything_is_started(command, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        settings = {"RECOLLECT_PORT": port, "RECOLLECT_DATA_DIR": str(tmp_path / "data")}
        ended = command_line.call(command, settings=settings)
    assert ended.code == 1
    assert ended.said.splitlines()[-1] == (
        f"setup: 127.0.0.1:{port} is already in use. Check with `recollect doctor`, or choose another --port."
    )
    assert not (tmp_path / "data").exists(), "PostgreSQL was started"


async def test_of_two_that_start_at_once_the_second_says_that_the_port_is_taken(recollect):
    settings = Settings(port=free_port())
    with server.bound_sockets(settings) as first, server.bound_sockets(settings) as second:
        first[0].listen()
        with pytest.raises(SetupError, match="is already in use"):
            await server.listen(server.build_server(settings, recollect), second, settings)


def test_an_address_that_is_not_ours_is_named():
    ended = command_line.call("serve", settings={"RECOLLECT_HOST": "192.0.2.1", "RECOLLECT_PORT": "0"})
    assert ended.code == 1
    assert "Cannot listen on 192.0.2.1:0" in ended.said
    assert "--host" in ended.said


async def test_a_worker_ends_even_if_its_start_misses_the_cancellation(recollect, monkeypatch):
    """As `asyncio.wait_for` of Python 3.11 does, if what it waits for comes at the same moment."""
    begun, register = asyncio.Event(), GuardedJobManager.register_worker

    async def miss(manager):
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await register(manager)

    monkeypatch.setattr(GuardedJobManager, "register_worker", miss)
    worker = asyncio.create_task(recollect.work())
    await begun.wait()
    worker.cancel()
    done, _ = await asyncio.wait([worker], timeout=WAIT_SECONDS)
    assert done, "the worker goes on"
    assert worker.cancelled()


async def test_a_worker_cancelled_at_any_moment_leaves_no_connection(recollect, owner):
    for turns in range(0, 60, 3):
        worker = asyncio.create_task(recollect.work())
        for _ in range(turns):
            await asyncio.sleep(0)
        worker.cancel()
        await asyncio.wait([worker], timeout=WAIT_SECONDS)
        assert worker.cancelled()
    count = "select count(*) from pg_stat_activity where datname = current_database() and usename = 'recollect_service'"
    pool = recollect.parts.database
    # Those of the pool, and the one that tells whether we are ready.
    await until(lambda: owner.execute(count).fetchone()[0] <= pool.statistics()["pool_size"] + 1)


async def test_up_ends_with_a_message_when_its_worker_fails(addresses, monkeypatch, caplog):
    async def fail(_recollect):
        raise ZeroDivisionError("canary")

    monkeypatch.setattr(Recollect, "work", fail)
    settings = Settings(database_url=addresses.service, owner_database_url=addresses.owner, embedder="none", port=0)
    with pytest.raises(RecollectError, match=r"the worker failed .*ZeroDivisionError"):
        await server.up(settings, "default", Console(file=io.StringIO()))
    assert '"event": "worker_failed", "error": "ZeroDivisionError"' in caplog.text
    assert "canary" not in caplog.text


@pytest.mark.promise("A service that starts before its database waits for it")
async def test_a_database_that_is_late_is_waited_for(own, late, caplog):
    caplog.set_level(logging.WARNING)

    async def open_and_ask():
        async with connected(Settings(embedder="none"), late, None, wait_seconds=600) as recollect:
            await recollect.ready()

    await asyncio.to_thread(own.stop)
    opening = asyncio.create_task(open_and_ask())
    await until(lambda: opening.done() or "waiting_for_database" in caplog.text)
    assert not opening.done()
    await asyncio.to_thread(own.start)
    await opening
    assert caplog.text.count("waiting_for_database") == 1


async def test_a_command_does_not_wait(own, late):
    await asyncio.to_thread(own.stop)
    with pytest.raises(SetupError, match=f"does not answer at 127.0.0.1:{own.port}.*RECOLLECT_DATABASE_URL"):
        async with connected(Settings(embedder="none"), late, None):
            pass


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"password": "wrong"}, "refuses the role recollect_service or its password"),
        ({"user": "nobody_known"}, "role nobody_known"),
        ({"dbname": "nowhere"}, "has no database nowhere"),
        ({"sslmode": "require"}, "does not offer TLS: turn it on .*, or take sslmode out of RECOLLECT_DATABASE_URL"),
    ],
)
async def test_what_waiting_cannot_mend_ends_at_once(own, late, changed, said):
    # A test that waited would run into the limit of the suite.
    with pytest.raises(SetupError, match=said) as caught:
        await reach(service_dsn(own, **changed), wait_seconds=36_000)
    assert "wrong" not in str(caught.value)


async def test_an_unknown_role_a_wrong_host_and_a_broken_dsn_are_told_apart(cluster):
    with pytest.raises(SetupError, match="has no role stranger"):
        await reach(cluster.dsn("postgres", "stranger"))
    with pytest.raises(SetupError, match=f"host name in nowhere.invalid:5432 cannot be resolved.*{OWNER_VARIABLE}"):
        await reach("host=nowhere.invalid", OWNER_VARIABLE)
    with pytest.raises(SetupError, match="RECOLLECT_DATABASE_URL is not a valid DSN"):
        await reach("postgresql//recollect")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('FATAL:  no pg_hba.conf entry for host "h", user "u", database "d", no encryption', "add sslmode=require"),
        ('root certificate file "/root.crt" does not exist', "name its CA by sslrootcert in RECOLLECT_DATABASE_URL"),
        ("SSL error: certificate verify failed", "name its CA by sslrootcert"),
        ('server certificate for "a" does not match host name "h"', "the host as the certificate does"),
        ("connection timeout expired", "open the firewall"),
    ],
)
def test_other_refusals_of_libpq_say_what_to_do(text, said):
    refusal, names = find_refusal(text, "host=h user=u dbname=d password=hidden")
    sentence = refusal.sentence.format(variable="RECOLLECT_DATABASE_URL", **names)
    assert said in sentence
    assert "h:5432" in sentence
    assert "hidden" not in sentence


async def test_another_program_on_the_port_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = other.accept()
                    with connection:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(SetupError, match=f"The server at 127.0.0.1:{port} is not PostgreSQL"):
            await reach(f"host=127.0.0.1 port={port} user=u", wait_seconds=36_000)
        other.shutdown(socket.SHUT_RDWR)


@pytest.mark.promise("A lost database leaves no traceback in the log of a worker")
def test_a_lost_database_leaves_no_traceback_in_the_log(own, late):
    settings = command_line.settings_of(late)
    environment = plain_environment() | settings
    with subprocess.Popen([COMMAND, "worker"], env=environment, stderr=subprocess.PIPE, text=True, cwd="/") as worker:
        watchdog = threading.Timer(4 * WAIT_SECONDS, worker.kill)
        watchdog.start()
        try:
            wait_for_worker(own, worker)
            own.kill()
            lines = []
            while sum("worker_restarted" in line for line in lines) < 3:
                lines.append(worker.stderr.readline())
                assert lines[-1], lines
        finally:
            watchdog.cancel()
            worker.send_signal(signal.SIGTERM)
            lines += worker.stderr.read().splitlines()
    assert worker.returncode == 0
    events = [json.loads(line) for line in lines]
    assert {event["event"] for event in events} == {"server_ready", "worker_restarted", "library_log"}
    logged = [event for event in events if event["event"] == "library_log"]
    said = [(event["logger"], event["place"], event.get("error")) for event in logged]
    assert len(said) < 30, said


def wait_for_worker(own, worker):
    """Return when a worker has registered itself."""
    with psycopg.connect(own.dsn(), autocommit=True) as owner:
        while not owner.execute("select count(*) from procrastinate_workers").fetchone()[0]:
            assert worker.poll() is None
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(0.1)

"""The embedded PostgreSQL: real servers, started, shared, killed and refused."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from recollect.errors import SetupError
from recollect.store.embedded import account as accounts
from recollect.store.embedded.account import choose_account, find_programs
from recollect.store.embedded.cluster import Cluster
from support.programs.ports import free_port

SOURCE = Path(__file__).parents[3] / "src"
SMALL = {"shared_buffers": "16MB", "max_connections": "20"}
as_root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be shut out by changing owners")

USER_OF_A_CLUSTER = """
import os, signal, sys
from pathlib import Path
from recollect.store.embedded.cluster import Cluster
cluster = Cluster(Path(sys.argv[1]), settings={"shared_buffers": "16MB", "max_connections": "20"}).start()
print("ready", flush=True)
if sys.stdin.readline().strip() == "die":
    os.kill(os.getpid(), signal.SIGKILL)
cluster.stop()
"""


@pytest.fixture(scope="module")
def ground():
    # pytest's own tmp_path lies below a folder that only its owner can enter.
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def permissions(*folders):
    """Who may do what, in these folders' parents up to the root."""
    states = {parent: parent.stat() for folder in folders for parent in folder.parents}
    return {parent: (state.st_mode, state.st_uid, state.st_gid) for parent, state in states.items()}


@pytest.fixture(scope="module")
def permissions_before(ground):
    return permissions(ground / "any", find_programs())


@pytest.fixture(scope="module")
def made(ground, permissions_before):
    cluster = Cluster(ground / "made", settings=SMALL)
    with cluster, psycopg.connect(cluster.dsn()) as connection:
        connection.execute("create table kept (word text)")
        connection.execute("insert into kept values ('before')")
    return cluster.data


@pytest.fixture
def data(ground, made, request):
    """A copy of a stopped cluster, quicker than a new one."""
    folder = ground / request.node.name
    subprocess.run(["/bin/cp", "-a", made, folder], check=True)
    yield folder
    Cluster(folder).kill()
    shutil.rmtree(folder)


def words(cluster):
    with psycopg.connect(cluster.dsn()) as connection:
        return {row[0] for row in connection.execute("select word from kept")}


def add(cluster, word):
    with psycopg.connect(cluster.dsn()) as connection:
        connection.execute("insert into kept values (%s)", [word])


def postmaster_pid(data):
    return int((data / "postgres" / "postmaster.pid").read_text().split()[0])


def running(data):
    return Cluster(data)._server.processes()


@contextmanager
def other_process(data, *, python=sys.executable, prefix=()):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), *site_packages()])}
    child = subprocess.Popen(
        [*prefix, python, "-c", USER_OF_A_CLUSTER, str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd="/",
    )
    try:
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.communicate("")


def site_packages():
    return [path for path in sys.path if path.endswith("site-packages")]


def test_a_restart_keeps_what_was_written(data):
    with Cluster(data, settings=SMALL) as cluster:
        add(cluster, "after")
    assert not running(data)
    with Cluster(data, settings=SMALL) as cluster:
        assert words(cluster) == {"before", "after"}


def test_without_a_port_only_a_private_socket_listens(data):
    with Cluster(data, settings=SMALL) as cluster, psycopg.connect(cluster.dsn()) as connection:
        folder = Path(connection.info.host)
        assert connection.execute("show listen_addresses").fetchone() == ("",)
        assert connection.execute("show data_checksums").fetchone() == ("on",)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == choose_account().uid
    assert not folder.exists()


def test_with_a_port_a_password_is_needed(data):
    port = free_port()
    with Cluster(data, port=port, settings=SMALL) as cluster:
        assert words(cluster) == {"before"}
        assert f"port={port}" in cluster.dsn()
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres")
    assert stat.S_IMODE((data / "password").stat().st_mode) == 0o600


def test_the_last_process_out_stops_the_server(data):
    cluster = Cluster(data, settings=SMALL).start()
    with other_process(data) as other:
        first = postmaster_pid(data)
        cluster.stop()
        assert first in running(data)
        other.communicate("\n")
        assert not running(data)


def test_a_fork_does_not_stop_what_its_parent_uses(data):
    with Cluster(data, settings=SMALL) as cluster:
        child = os.fork()
        if child == 0:
            cluster.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert words(cluster) == {"before"}


def test_two_processes_may_start_at_once(data):
    with other_process(data), other_process(data), Cluster(data, settings=SMALL) as cluster:
        assert words(cluster) == {"before"}
    assert not running(data)


def test_the_next_start_adopts_what_a_killed_process_left(data):
    with other_process(data) as other:
        left = postmaster_pid(data)
        other.communicate("die\n")
        assert other.returncode == -signal.SIGKILL
    assert left in running(data)
    with Cluster(data, settings=SMALL) as cluster:
        assert postmaster_pid(data) == left
        assert words(cluster) == {"before"}
    assert not running(data)


@pytest.mark.promise("The embedded server recovers what was committed when it is killed")
def test_a_killed_server_recovers_what_was_committed(data):
    with Cluster(data, settings=SMALL) as cluster:
        add(cluster, "committed")
        cluster.kill()
        assert not running(data)
        cluster.start()
        assert words(cluster) == {"before", "committed"}


def test_a_recycled_pid_does_not_pass_for_the_server(data):
    with Cluster(data, settings=SMALL) as cluster:
        cluster.kill()
        lines = (data / "postgres" / "postmaster.pid").read_text().splitlines()
        stranger = choose_account().launch("/bin/sleep", "60", log=subprocess.DEVNULL)
        try:
            # The socket has a lock of its own, which names the same process.
            for lock in (data / "postgres" / "postmaster.pid", cluster._sockets.path / ".s.PGSQL.5432.lock"):
                assert lock.exists()
                cluster._account.replace_file(lock, "\n".join([str(stranger.pid), *lines[1:], ""]))
            cluster.start(timeout=30)
            assert words(cluster) == {"before"}
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()


def test_another_clusters_server_is_not_taken_for_ours(data, made):
    with Cluster(made, settings=SMALL) as other:
        foreign = postmaster_pid(made)
        with Cluster(data, settings=SMALL) as cluster:
            cluster.kill()
            pid_file = Path("postgres") / "postmaster.pid"
            cluster._account.replace_file(data / pid_file, (made / pid_file).read_text())
            cluster.start(timeout=30)
            assert foreign not in running(data)
            assert running(data)
            assert cluster.dsn() != other.dsn()


@as_root_only
def test_a_socket_in_somebody_elses_folder_is_not_believed(data):
    with Cluster(data, settings=SMALL) as cluster:
        assert cluster._server.answers()
        os.chown(cluster._sockets.path, 12345, 12345)
        assert not cluster._server.answers()
        os.chown(cluster._sockets.path, cluster._account.uid, cluster._account.gid)


def test_an_initdb_cut_short_is_begun_again(ground):
    data = ground / "cut"
    (data / "postgres.part").mkdir(parents=True)
    (data / "turn.lock").touch()
    with Cluster(data, settings=SMALL) as cluster, psycopg.connect(cluster.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_no_parent_changes_its_permissions(data, permissions_before):
    with Cluster(data, settings=SMALL) as cluster:
        assert permissions(data, cluster._sockets.path, find_programs()) == permissions_before
    assert permissions(data, find_programs()) == permissions_before
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


@as_root_only
def test_programs_in_a_closed_folder_are_copied(data, ground, monkeypatch):
    closed = ground / "closed"
    package = find_programs().parents[1]
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, closed / folder.name)
    closed.chmod(0o700)
    monkeypatch.syspath_prepend(closed)
    for _ in range(2):
        with Cluster(data, settings=SMALL) as cluster:
            assert words(cluster) == {"before"}
            program = Path(f"/proc/{postmaster_pid(data)}/exe").readlink()
            assert program.is_relative_to(data)
    assert len(list(data.glob("programs-*"))) == 1
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@as_root_only
def test_a_closed_parent_of_the_data_is_named(ground):
    closed = ground / "private"
    closed.mkdir(mode=0o700)
    with pytest.raises(SetupError, match=f"{closed} is closed to"):
        Cluster(closed / "below" / "data", settings=SMALL).start()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@as_root_only
def test_a_socket_folder_of_somebody_else_is_refused(data):
    cluster = Cluster(data, settings=SMALL)
    cluster._sockets.path.mkdir()
    os.chown(cluster._sockets.path, 12345, 12345)
    try:
        with pytest.raises(SetupError, match="is not owned by"):
            cluster.start()
    finally:
        cluster._sockets.path.rmdir()


def test_a_folder_with_other_files_is_left_alone(ground):
    folder = ground / "letters"
    folder.mkdir(mode=0o755)
    (folder / "letter.txt").write_text("dear")
    with pytest.raises(SetupError, match="contains other files"):
        Cluster(folder).start()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_server_that_cannot_start_shows_its_log(data):
    with pytest.raises(SetupError, match="max_connections"):
        Cluster(data, settings={**SMALL, "max_connections": "many"}).start()
    assert not running(data)


def test_a_port_in_use_is_reported(data):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError, match="Address already in use"):
            Cluster(data, port=taken.getsockname()[1], settings=SMALL).start()


def test_a_port_is_not_forced_on_other_users(data):
    with Cluster(data, settings=SMALL) as first:
        with pytest.raises(SetupError, match="stop its other users"):
            Cluster(data, port=free_port(), settings=SMALL).start()
        assert words(first) == {"before"}


def test_content_does_not_reach_the_log(data):
    with (
        Cluster(data, settings=SMALL) as cluster,
        psycopg.connect(cluster.dsn(), autocommit=True) as connection,
    ):
        connection.execute("create unique index on kept (word)")
        connection.execute("insert into kept values ('whispered')")
        for statement in (
            "insert into kept values ('whispered')",
            "select 'whispered'::int",
            "do $$ begin raise warning 'whispered'; end $$",
        ):
            try:
                connection.execute(statement)
            except psycopg.Error as error:
                assert "whispered" in str(error)
    assert "ready to accept connections" in (data / "server.log").read_text()
    assert "whispered" not in (data / "server.log").read_text()


def test_a_missing_wheel_says_how_to_install_it(ground, monkeypatch):
    monkeypatch.setattr(accounts, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"pip install 'recollect-memory\[embedded\]'"):
        Cluster(ground / "nothing").start()


def test_settings_that_the_cluster_owns_are_refused(ground):
    with pytest.raises(SetupError, match="listen_addresses"):
        Cluster(ground / "open", settings={"listen_addresses": "*"})


@as_root_only
def test_an_unprivileged_user_runs_its_own(ground):
    prefix = ["/usr/bin/setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]
    data = ground / "mine"
    data.mkdir()
    shutil.chown(data, "nobody", "nogroup")
    python = python_for(prefix)
    with other_process(data, python=python, prefix=prefix) as other:
        pid = postmaster_pid(data)
        assert Path(f"/proc/{pid}").stat().st_uid == data.stat().st_uid
        other.communicate("\n")
        assert other.returncode == 0
        # Whoever adopted it may not have collected it yet; a process that has ended runs no program.
        assert not Path(f"/proc/{pid}/exe").exists()


def python_for(prefix):
    """An interpreter of our version that the other user can run and that finds our packages."""
    environment = {"PYTHONPATH": os.pathsep.join([str(SOURCE), *site_packages()])}
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        probe = [*prefix, python, "-c", "import psycopg, recollect.store.embedded.cluster"]
        if subprocess.run(probe, env=environment, cwd="/", capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip("no interpreter here that an unprivileged user can run with our packages")

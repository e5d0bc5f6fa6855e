"""The page on backups: its commands run in their order, on an embedded server, and do what the page says."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from recollect.store.embedded.account import choose_account, reachable_programs
from recollect.store.embedded.cluster import Cluster
from support.programs.command_line import call
from support.programs.folders import find_memory, open_folder
from support.programs.waiting import until

HOWTO = Path(__file__).parents[3] / "docs" / "howto"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BY_HAND = re.compile(r"^```(?:ini|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = "2026-11-18 03:00:00+00"
PLACE = "/srv/backups"


def commands(page):
    lines = [line for block in BLOCK.findall((HOWTO / page).read_text(encoding="utf-8")) for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


def by_hand(page):
    """Give what the page does with PostgreSQL's own programs: the settings, the copy, the restore."""
    return BY_HAND.findall((HOWTO / page).read_text(encoding="utf-8"))


@pytest.fixture
def folder():
    with open_folder("howto", find_memory()) as made:
        yield made


def run(settings, *words):
    ended = call(*words, settings=settings, typed="y\n")
    assert ended.code == 0, ended.said
    return ended.stdout


def test_the_pages_have_the_same_commands():
    assert commands("backup.md") == commands("backup.zh.md")
    assert by_hand("backup.md") == by_hand("backup.zh.md")


def test_the_commands_of_the_page(folder):
    settings = {"RECOLLECT_DATA_DIR": str(folder / "data"), "RECOLLECT_EMBEDDER": "fake"}
    make, restore, export, replay = commands("backup.md")
    assert make[0] == "FILE=$(recollect" and make[4:] == [f"{PLACE})"]
    for user in ("li", "mo"):
        run(settings, "remember", "--agent", "ada", "--user", user, f"{user} drinks tea")
    backup = run(settings, *make[1:4], str(folder / "backups")).strip()
    run(settings, "forget", "--user", "li", "--all-agents")
    told = run(settings, *(backup if word == "$FILE" else word for word in restore[1:]))
    assert "1 erasures are newer than the backup; 1 of them had something to erase in it" in told
    assert f"The old server is in {folder}/data/postgres.replaced-" in told
    assert "nothing found" in run(settings, "recall", "--agent", "ada", "--user", "li", "tea")
    assert "mo drinks tea" in run(settings, "recall", "--agent", "ada", "--user", "mo", "tea")
    assert export[0] == "export" and export[1].startswith("RECOLLECT_OPERATIONS__ERASURE_LOG=s3://")
    assert "0 erasures are newer" in run(settings, *replay[1:]), "all were applied when the incarnation began"
    assert "mo drinks tea" in run(settings, "recall", "--agent", "ada", "--user", "mo", "tea")


class Host:
    """The machine of the page: its folder /srv, and the account that runs PostgreSQL."""

    def __init__(self, folder):
        self.folder = folder
        self.account = choose_account()
        self.programs = reachable_programs(self.account, folder)
        for name in ("srv/wal", "sockets"):
            (folder / name).mkdir(parents=True)
            self.account.claim(folder / name)
        self.account.claim(folder / "srv")

    def place(self, text):
        return text.replace("/srv", str(self.folder / "srv"))

    def run(self, script, url=""):
        """Run a block of the page; the server that it starts has a socket of its own."""
        script = self.place(script).replace("pg_ctl", f"pg_ctl -o '-k {self.folder}/sockets -p 5432'")
        lines = f"set -eu; export PATH={self.programs}:$PATH SUPERUSER_URL={shlex.quote(url)}\n{script}"
        done = self.account.run("bash", "-c", lines)
        assert done.returncode == 0, done.stdout


async def test_a_moment_is_recovered_and_what_was_erased_since_is_erased_again(folder):
    host = Host(folder)
    archiving, copying, restoring = by_hand("backup.md")
    archived = dict(line.split(" = ", 1) for line in host.place(archiving).splitlines())
    log = {"RECOLLECT_OPERATIONS__ERASURE_LOG": str(folder / "erasures"), "RECOLLECT_EMBEDDER": "fake"}
    with Cluster(folder / "data", settings={name: value.strip("'") for name, value in archived.items()}) as cluster:
        settings = {**dsns(cluster.dsn), **log}
        run(settings, "admin", "migrate")
        for user in ("li", "mo"):
            run(settings, "remember", "--agent", "ada", "--user", user, f"{user} drinks tea")
        host.run(copying, cluster.dsn())
        moment = datetime.now(UTC)
        run(settings, "remember", "--agent", "ada", "--user", "mo", "mo drinks coffee")
        run(settings, "forget", "--user", "li", "--all-agents")
        with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
            owner.execute("select pg_switch_wal()")
    try:
        host.run(restoring.replace(SHOWN, f"{moment:%F %T.%f}+00"))
        address = f"host={folder}/sockets port=5432 user={{user}} dbname={{database}}"
        settings = {**dsns(lambda database="postgres", user="postgres": address.format(**locals())), **log}
        await until(lambda: promoted(settings["RECOLLECT_OWNER_DATABASE_URL"]))
        replay = commands("backup.md")[-1]
        told = run(settings, *(f"{moment:%FT%T}" if word.startswith("2026") else word for word in replay[1:]))
        assert "1 of them had something to erase" in told
        assert "nothing found" in run(settings, "recall", "--agent", "ada", "--user", "li", "drinks")
        found = run(settings, "recall", "--agent", "ada", "--user", "mo", "drinks")
        assert ("tea" in found, "coffee" in found) == (True, False)
    finally:
        host.run("pg_ctl -D /srv/restored -m immediate stop")


def dsns(write):
    return {"RECOLLECT_DATABASE_URL": write("postgres", "recollect_service"), "RECOLLECT_OWNER_DATABASE_URL": write()}


def promoted(dsn):
    with psycopg.connect(dsn) as connection:
        return not connection.execute("select pg_is_in_recovery()").fetchone()[0]

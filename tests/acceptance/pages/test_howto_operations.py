"""The pages for operators: their commands run in their order on a real server, and the pages stay short."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
import yaml

from recollect.mind.service import Addresses
from recollect.store.embedded.account import find_programs
from recollect.store.embedded.cluster import Cluster
from support.models.embedding_server import DIMENSIONS, MODEL, serving
from support.programs.command_line import call, settings_of
from support.programs.folders import find_memory, open_folder
from support.programs.programs import COMMAND, plain_environment

ROOT = Path(__file__).parents[3]
HOWTO = ROOT / "docs" / "howto"
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
WORDS = {
    "deploy.md": 900, "runbooks.md": 900, "backup.md": 500, "sizing.md": 400, "observe.md": 300, "change-model.md": 250,
    "upgrade.md": 250,
}  # fmt: skip


def blocks(page: str) -> list[str]:
    return BLOCK.findall((HOWTO / page).read_text(encoding="utf-8"))


def commands(page: str) -> list[list[str]]:
    """Give the commands of ours on a page, in their order."""
    lines = [line.strip() for block in blocks(page) for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("recollect ")]


def run(settings, *words):
    ended = call(*words, settings=settings)
    assert ended.code == 0, (words, ended.said)
    return ended.stdout


@pytest.fixture(scope="module")
def server():
    """A server of its own, because roles are those of a whole server, with the database as the page makes it."""
    with (
        open_folder("operations", find_memory()) as folder,
        Cluster(folder / "data", settings={"fsync": "off"}) as made,
    ):
        place = psycopg.conninfo.conninfo_to_dict(made.dsn())
        [block] = [block for block in blocks("deploy.md") if block.startswith("createdb")]
        host = f"{quote(str(place['host']), safe='')}:{place['port']}"
        script = block.replace("deploy/roles.sql", str(ROOT / "deploy" / "roles.sql"))
        script = script.replace("=...", "=secret").replace(":...@db.example", f":secret@{host}")
        path = f"{find_programs()}:{Path(COMMAND).parent}:{os.environ['PATH']}"
        reached = {"PATH": path, "PGHOST": str(place["host"]), "PGPORT": str(place["port"]), "PGUSER": "postgres"}
        environment = plain_environment() | reached | {"RECOLLECT_EMBEDDER": "fake"}
        done = subprocess.run(
            ["bash", "-euc", script], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].startswith("rec_")
        addresses = Addresses(made.dsn("recollect", "recollect_service"), made.dsn("recollect", "recollect_owner"))
        yield settings_of(addresses), made.dsn("recollect")


def test_limits_are_set_as_the_page_on_deploying_says(server):
    settings, superuser = server
    with psycopg.connect(superuser) as connection:
        key = str(connection.execute("select id from api_keys").fetchone()[0])
    run(settings, "admin", "keys", "create", "of-shop", "--tenant", "shop")
    _, _, tenants, keys = commands("deploy.md")
    assert "50" in run(settings, *tenants)
    run(settings, *(key if re.fullmatch(r"[0-9a-f-]{36}", word) else word for word in keys))
    assert "5000000" in re.sub(r"\D", "", run(settings, "admin", "keys", "list"))


@pytest.mark.parametrize("page", ["upgrade.md", "runbooks.md"])
def test_the_commands_of_a_page_run(server, page):
    settings, _ = server
    asked = commands(page)
    assert asked
    for words in asked:
        run(settings, *words)


def test_the_model_is_changed_as_the_page_says(server):
    settings, superuser = server
    run(settings, "remember", "--agent", "ada", "Ada drinks tea.")
    before = number_of_active(superuser)
    exports = " ".join(line for block in blocks("change-model.md") for line in block.splitlines() if "export " in line)
    with serving() as embedder:
        meant = {"URL": embedder.url, "MODEL": MODEL, "DIMENSIONS": str(DIMENSIONS)}
        named = dict(word.split("=") for word in shlex.split(exports) if "=" in word)
        chosen = {name: meant.get(name.rpartition("_")[2], value) for name, value in named.items()}
        listed, change, index, drop = commands("change-model.md")
        run(settings, *listed)
        settings |= chosen | {"RECOLLECT_EMBEDDING__WAIT_TIMEOUT_SECONDS": "30"}
        run(settings, *change)
        assert number_of_active(superuser) != before
        run(settings, *index)
        run(settings, *drop[:-1], str(before))
        assert "vector" in run(settings, "recall", "--agent", "ada", "a hot drink")


def number_of_active(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        [number] = connection.execute("select id from embedding_spaces where state = 'active'").fetchone()
        return number


def test_the_page_makes_the_secrets_that_the_manifests_read():
    made = {*re.findall(r"create (?:secret generic|configmap) (\S+)", "".join(blocks("deploy.md")))}
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "deploy" / "kubernetes").glob("*/*.yaml")]
    read = {*re.findall(r"(?:secret|secretRef|configMap): \{name: ([\w-]+)\}", "".join(files))}
    assert made == read


def test_the_page_upgrades_the_job_of_the_manifests():
    job = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "base" / "migrate.yaml").read_text(encoding="utf-8"))
    last = blocks("upgrade.md")[-1]
    assert {*re.findall(r"job[ /](\S+)", last)} == {job["metadata"]["name"]}
    assert job["metadata"]["labels"]["app.kubernetes.io/component"] in last


def test_the_scrape_job_is_the_one_that_the_alerts_name():
    page = (HOWTO / "observe.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    alerts = (ROOT / shown["rule_files"][0]).read_text(encoding="utf-8")
    assert {*re.findall(r'job="(\w+)"', alerts)} == {scraped["job_name"] for scraped in shown["scrape_configs"]}


@pytest.mark.parametrize("page", WORDS)
def test_the_page_is_short(page):
    assert len((HOWTO / page).read_text(encoding="utf-8").split()) <= WORDS[page]

"""What the documentation says is so: its programs run, its links lead somewhere, its references are complete."""

from __future__ import annotations

import configparser
import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import psycopg
import pytest
import yaml
from pydantic import SecretStr, TypeAdapter

import recollect
from recollect import errors, models, sync
from recollect.client import Client
from recollect.doors.cli.main import HELP, load_command
from recollect.doors.http.app import create_app
from recollect.doors.http.bodies.conversations import AppendBody, ContextBody, HistoryBody
from recollect.doors.http.bodies.memories import RecallBody, RememberBody
from recollect.doors.imports.jsonl import ExportLine
from recollect.doors.mcp.tools import TOOLS
from recollect.llm.build import has_minilm
from recollect.llm.fake import FakeEmbedder
from recollect.mind.mind import OPERATIONS
from recollect.mind.service import Addresses
from recollect.models.conversations import Attachment, Part, PurgeReceipt, TokenUsage
from recollect.settings import Settings, list_settings, to_variable
from recollect.store.embedded.account import find_programs
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare
from support.models.scripted_chat import chatting
from support.models.scripted_extractions import entity, fact
from support.programs.folders import find_memory, open_folder
from support.programs.programs import plain_environment
from support.service.reader_roles import connect

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorial").glob("*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
SHORT_ID = re.compile(r"\[m[0-9a-f]{4,}\]")
CODE_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FACTS = [fact("Li", "lives in", "Oslo"), fact("Li", "works for", "Acme"), fact("Bo", "lives in", "Bergen")]
COMMANDS = {name: load_command(name) for name in HELP}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return [text for _, found, text in CODE_BLOCK.findall(read(name)) if found == language]


def rows(name: str) -> list[list[str]]:
    """Give the cells of every table row on a page."""
    lines = [line for line in read(name).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def folder():
    """A folder that the embedded server's account can enter, unlike those below pytest's own."""
    with open_folder("docs", find_memory()) as made:
        yield made


def run_program(name, folder, settings=None, more=""):
    """Run the blocks of a page as one program, and some lines more."""
    environment = plain_environment()
    environment |= {
        "RECOLLECT_DATA_DIR": str(folder / "data"),
        "RECOLLECT_EMBEDDER": "local" if has_minilm() else "fake",
        "RECOLLECT_EMBEDDING__WAIT_TIMEOUT_SECONDS": "30",
        "PYTHONIOENCODING": "utf-8",
    } | (settings or {})
    program = folder / "program.py"
    program.write_text("\n".join([*blocks(name, "python"), more]), encoding="utf-8")
    command = [sys.executable, str(program)]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "README.zh.md", "docs/explanation/conversations.md", "docs/explanation/graph.md"),
        *("docs/explanation/facts.md", "docs/howto/time-travel.md", "docs/explanation/explain.md"),
        *("docs/explanation/items.md", "docs/explanation/topics.md"),
        *sorted(f"docs/tutorial/{page.name}" for page in TUTORIALS if not page.name.startswith("facts.")),
    ],
)
def test_programs_run_and_print_what_the_page_shows(name, folder):
    done = run_program(name, folder)
    assert done.returncode == 0, done.stderr.decode()
    shown = "".join(blocks(name, "text"))
    if shown and has_minilm():
        # A block says on which day something happened, and by which id; the page was written on another, of another.
        assert mask(done.stdout.decode()) == mask(shown)


LEARNING = """
    conversation.append("Friday at seven, and Bo brings the rice.")
    conversation.update(close_segment=True)
    memory.wait()
    print(*(fact.text for fact in mind.knowledge.facts().facts))
"""


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_first_program_learns_facts_with_a_chat_model(name, folder):
    facts = [fact("Li", "cooks with", "Bo")]
    extraction = {"summary": "They cook.", "entities": [entity("Li"), entity("Bo")], "facts": facts}
    with chatting(answering=lambda *_: extraction) as url:
        settings = {"RECOLLECT_CHAT_URL": url, "RECOLLECT_CHAT_MODEL": "scripted"}
        done = run_program(name, folder, settings, more=LEARNING)
    assert done.stdout.decode().endswith("\nLi cooks with Bo.\n"), done.stderr.decode()


@pytest.mark.parametrize("name", ["docs/tutorial/facts.md", "docs/tutorial/facts.zh.md"])
def test_the_tutorial_of_facts_prints_what_it_shows(name, folder):
    """A script speaks for the model: none that is small enough for a test finds facts."""

    def answer(shape, prompt):
        if "Matches" in shape:
            return {"matches": []}
        known = re.search(r"^(\d+)\D.*Li lives in Oslo", prompt, re.MULTILINE)
        facts = [fact("Li", "lives in", "Lisbon", replaces=[int(known[1])])] if known else FACTS
        names = {each[end]: entity(each[end]) for each in facts for end in ("subject", "object")}
        return {"summary": "Li tells of a move.", "entities": list(names.values()), "facts": facts}

    with chatting(answering=answer) as url:
        done = run_program(name, folder, {"RECOLLECT_CHAT_URL": url, "RECOLLECT_CHAT_MODEL": "scripted"})
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == "".join(blocks(name, "text"))


def mask(printed: str) -> str:
    """Leave out what differs from run to run."""
    return SHORT_ID.sub("[id]", DAY.sub("day", printed))


def test_the_quick_start_fits_ten_lines():
    code = [line for line in blocks("README.md", "python")[0].splitlines() if line.strip()]
    assert len(code) <= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = [link for link in links_of(page) if not leads_somewhere(page, link)]
    assert broken == []


def links_of(page: Path) -> list[str]:
    prose = CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(prose) if not link.startswith(("http://", "https://"))]


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or ROOT not in target.parents:
        return False
    return not anchor or anchor in anchors(target)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_broken_link_or_anchor_is_noticed():
    page = DOCS / "README.md"
    assert leads_somewhere(page, "reference/http.md#post-v1memories")
    assert not leads_somewhere(page, "reference/http.md#post-v9memories")
    assert not leads_somewhere(page, "reference/missing.md")


def test_http_reference_names_every_operation_and_no_other():
    described = re.findall(r"^### (GET|POST|PUT|PATCH|DELETE) (\S+)\n\nOperation `(\w+)`", read_http(), re.MULTILINE)
    offered = [
        (method.upper(), path, operation["operationId"])
        for path, methods in create_app().openapi()["paths"].items()
        for method, operation in methods.items()
    ]
    assert sorted(described) == sorted(offered)


def test_http_reference_names_the_right_that_each_operation_takes():
    page = read_http()
    for operation, _ in OPERATIONS.values():
        right = operation.right if "`" in operation.right else f"`{operation.right}`"
        asked = re.escape(f"### {operation.method} {operation.path}\n\n")
        assert re.search(rf"{asked}Operation `\w+`, right {re.escape(right)}\.", page), operation.key


def test_commands_and_tools_of_the_list_are_there():
    assert {operation.command for operation, _ in OPERATIONS.values()} - {""} <= HELP.keys()
    assert {operation.tool for operation, _ in OPERATIONS.values()} - {""} == TOOLS.keys()


def read_http() -> str:
    return read("docs/reference/http.md")


def test_http_reference_shows_bodies_that_are_accepted():
    shown = [json.loads(text) for text in blocks("docs/reference/http.md", "json")]
    remember, receipts, recall, recollection, context, made, append, appended, history = shown
    for body, value in (
        *((RememberBody, remember), (RecallBody, recall)),
        *((ContextBody, context), (AppendBody, append), (HistoryBody, history)),
    ):
        body.model_validate(value)
    TypeAdapter(list[models.Receipt]).validate_python(receipts["memories"])
    TypeAdapter(list[recollect.models.MessageReceipt]).validate_python(appended["messages"])
    answer = TypeAdapter(recollect.RecallResult).validate_python(recollection)
    fields = {field.name for field in dataclasses.fields(recollect.Memory)}
    assert set(recollection["hits"][0]["memory"]) == fields
    [hit] = answer.hits
    shares = (*(part.share for part in hit.channels.values()), *hit.preferences.values())
    assert hit.score == pytest.approx(sum(shares))
    prompt = TypeAdapter(recollect.Context).validate_python(made)
    assert set(made) == {field.name for field in dataclasses.fields(recollect.Context)}
    assert prompt.messages[1]["content"] == prompt.block
    parts = dataclasses.asdict(prompt.spending)
    assert parts.pop("total") == sum(parts.values()) - parts["budget"]


def test_http_reference_names_every_code_and_status():
    from recollect.doors.http import problems

    listed = {(cells[0], cells[1].strip("`")) for cells in rows("docs/reference/http.md")}
    raised = {(str(status), error.code) for error, status in problems.STATUS.items()}
    assert raised - listed == set()


def test_cli_reference_names_every_command_and_option():
    parts = re.split(r"^### recollect (.+)$", read("docs/reference/cli.md"), flags=re.MULTILINE)[1:]
    described = dict(zip(parts[::2], parts[1::2], strict=True))
    offered = commands_of(COMMANDS)
    assert set(described) == set(offered)
    missing = [(name, option) for name in offered for option in offered[name] if option not in described[name]]
    assert missing == []


def test_the_help_says_of_every_command_what_the_command_says_itself():
    assert {name: command.help.split("\n\n")[0] for name, command in COMMANDS.items()} == HELP


def commands_of(commands, prefix="") -> dict[str, list[str]]:
    """List commands with their own options; --tenant is explained once for all."""
    found: dict[str, list[str]] = {}
    for name, command in commands.items():
        if hasattr(command, "commands"):
            found |= {prefix + name: []} if command.invoke_without_command else {}
            found |= commands_of(command.commands, f"{prefix}{name} ")
        else:
            told = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
            options = [option for parameter in told for option in parameter.opts if option.startswith("--")]
            found[prefix + name] = [option for option in options if option not in {"--tenant", "--help"}]
    return found


def test_python_reference_names_everything_public():
    page = read("docs/reference/python.md")
    names = [f"`{name}" for name in recollect.__all__ if name not in {"open", "connect"}]
    names += ["recollect.open(", "recollect.connect(", *(f"sync.{name}(" for name in ("open", "using"))]
    owners = (recollect.Mind, recollect.Conversation, recollect.Recollect, Client)
    methods = [name for owner in owners for name in methods_of(owner)]
    names += [f"`{name}" for name in methods]
    values = (recollect.NewMemory, models.Cue, models.Receipt, recollect.Hit, recollect.RecallResult)
    values += (recollect.NewMessage, recollect.Message, models.HistoryOptions, models.History, recollect.Context)
    values += (
        models.ConversationInfo,
        models.BudgetShares,
        models.Profile,
        TokenUsage,
        PurgeReceipt,
        Part,
        Attachment,
    )
    names += [f"`{field.name}`" for value in values for field in dataclasses.fields(value)]
    names += [f"`{kind.name}`" for kinds in (models.Kind, models.Role) for kind in kinds]
    assert [name for name in names if name not in page] == []
    assert callable(sync.open)
    assert callable(sync.using)


def methods_of(owner: type) -> list[str]:
    plain = [name for name, _ in inspect.getmembers(owner, inspect.isfunction)]
    properties = [name for name, _ in inspect.getmembers(owner, lambda member: isinstance(member, property))]
    return [name for name in [*plain, *properties] if not name.startswith("_")]


def test_python_reference_names_every_error():
    raised = {(kind.__name__, kind.code) for kind in errors.RecollectError.__subclasses__()}
    listed = {
        (cells[0].strip("`"), cells[1].strip("`")) for cells in rows("docs/reference/python.md") if len(cells) > 1
    }
    assert raised - listed == set()


def test_python_reference_compiles():
    for text in blocks("docs/reference/python.md", "python"):
        compile(text, "python.md", "exec")


def test_sql_reference_names_every_table_and_no_other(owner):
    found = owner.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
    tables = {re.sub(r"^vectors_\d+$", "vectors_<id>", name) for (name,) in found}
    listed = {name for cells in rows("docs/reference/sql.md") for name in re.findall(r"`([a-z_<>]+)`", cells[0])}
    assert listed == tables


def test_sql_reference_runs(owner):
    for text in blocks("docs/reference/sql.md", "sql"):
        owner.execute(text)


def test_defaults_on_the_configuration_page_are_the_real_ones():
    listed = {cells[0].strip("`"): cells[1].strip("`") for cells in rows("docs/howto/configure.md") if len(cells) == 3}
    real = {to_variable(name): shown(field.default) for name, field in list_settings().items()}
    wrong = {name: value for name, value in real.items() if value is not None and listed.get(name) != value}
    assert wrong == {}
    assert {name for name in listed if name.startswith("RECOLLECT_")} == set(real)


def shown(default: object) -> str | None:
    """Write a default as the page does; what depends on the machine is described in words there."""
    if default is None:
        return None
    plain = default.get_secret_value() if isinstance(default, SecretStr) else default
    if isinstance(plain, bool):
        return str(plain).lower()
    return "empty" if plain == "" else f"{plain:g}" if isinstance(plain, float) else str(plain)


def test_import_page_shows_lines_that_are_accepted():
    lines = [
        ExportLine.model_validate_json(line) for line in blocks("docs/howto/import-export.md", "json")[0].splitlines()
    ]
    assert lines[1].evidence == [lines[0].id]


def read_layers(contract: str) -> dict[str, int]:
    """Return the layer of each name in a contract of the import walls; the lowest layer is 0."""
    walls = configparser.ConfigParser(interpolation=None)
    walls.read_string(read(".importlinter"))
    layers = walls[f"importlinter:contract:{contract}"]["layers"].split("\n")[::-1]
    return {name: place for place, layer in enumerate(layers) for name in re.findall(r"\w+", layer)}


def test_the_architecture_shows_the_orders_of_the_import_walls():
    shown = blocks("ARCHITECTURE.md", "text")
    for block, contract in zip(shown, ("layers", "rooms"), strict=True):
        layers = read_layers(contract)
        places = [layers[name] for name in re.findall(r"\w+", block)]
        assert places == sorted(places, reverse=contract == "layers")
    assert {*re.findall(r"\w+", shown[0])} == {*read_layers("layers")}


@pytest.mark.parametrize("record", sorted((DOCS / "adr").glob("0*.md")), ids=lambda record: record.stem)
def test_decisions_are_one_page_with_three_parts(record):
    text = record.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert re.match(
        rf"# {record.name[:4]}: .+\n\nRoom: ({'|'.join({*read_layers('rooms'), 'house', 'models'})})\.\n", text
    )
    assert len(text.splitlines()) <= 60
    for successor in re.findall(r"^Superseded\s+by\s+\[\d+\]\((\S+)\)", text, re.MULTILINE):
        named = re.findall(r"Supersedes\s+\[\d+\]\((\S+)\)", (DOCS / "adr" / successor).read_text(encoding="utf-8"))
        assert record.name in named


def test_only_marked_tables_of_figures_wait_to_be_filled():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if page.name == "figures.md":
            text = re.sub(r"<!-- figures -->\n\n(\|.*\n)+", "", text)
        assert "TO-BE-FILLED" not in text, page.name


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(read("deploy/compose.yaml"))["services"]


def test_compose_runs_the_four_parts_in_order(services):
    assert set(services) == {"db", "migrate", "api", "worker"}
    assert services["db"]["image"] == "pgvector/pgvector:pg18"
    assert services["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    commands = commands_of(COMMANDS)
    for name in ("migrate", "api", "worker"):
        assert " ".join(services[name]["command"]) in commands
        assert (ROOT / services[name]["build"]["dockerfile"]).is_file()
    for name in ("api", "worker"):
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    mounted = [volume.split(":")[0] for volume in services["db"]["volumes"] if volume.startswith("./")]
    assert mounted
    assert all((ROOT / "deploy" / name).is_file() for name in mounted)


def test_compose_gives_each_part_its_own_role_and_known_settings(services):
    known = set(map(to_variable, list_settings()))
    for name in ("migrate", "api", "worker"):
        environment = services[name]["environment"]
        assert set(environment) <= known
        assert "//recollect_service:" in environment["RECOLLECT_DATABASE_URL"]
        assert ("RECOLLECT_OWNER_DATABASE_URL" in environment) == (name == "migrate")
    embedders = [
        {key: value for key, value in services[name]["environment"].items() if "EMBEDDER" in key}
        for name in ("migrate", "api", "worker")
    ]
    assert embedders[0] == embedders[1] == embedders[2]
    assert all(address.startswith("127.0.0.1:") for address in services["api"]["ports"])
    health = services["api"]["environment"]["RECOLLECT_OPERATIONS__HEALTH_PORT"]
    assert f"127.0.0.1:{health}:{health}" in services["api"]["ports"]


def test_the_image_checks_the_port_that_serves_health(monkeypatch):
    """The check of the image asks the port that its environment names, or that of the API."""
    [check] = re.findall(r"^    CMD (\[.*\])$", read("deploy/Dockerfile"), re.MULTILINE)
    python, option, program = json.loads(check)
    assert (python, option) == ("python", "-c")
    asked = []
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: asked.append(url))
    for value in (None, "0", "7078"):
        monkeypatch.delenv("RECOLLECT_OPERATIONS__HEALTH_PORT", raising=False)
        if value is not None:
            monkeypatch.setenv("RECOLLECT_OPERATIONS__HEALTH_PORT", value)
        exec(program, {})
    assert [re.search(r":(\d+)/health/ready", url)[1] for url in asked] == ["7077", "7077", "7078"]


def test_unit_starts_commands_that_exist():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(read("deploy/recollect.service"))
    assert unit["Service"]["ExecStart"].endswith("/recollect %i")
    named = re.findall(r"recollect@(\w+)", read("docs/howto/deploy.md"))
    assert {name for name in named if name != "service"} == {"serve", "worker"}
    assert {"serve", "worker"} <= set(commands_of(COMMANDS))


async def test_roles_file_lets_an_owner_without_superuser_rights_run_it_all(folder):
    """The way the deployment page describes: roles by a superuser, the rest by owner and service."""
    with Cluster(folder / "data", settings={"fsync": "off"}) as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as superuser:
            superuser.execute("create database recollect")
        give_roles(cluster.dsn("recollect"))
        addresses = Addresses(
            cluster.dsn("recollect", "recollect_service"), cluster.dsn("recollect", "recollect_owner")
        )
        embedder = FakeEmbedder()
        await prepare(addresses, embedder)
        async with connected(Settings(embedder="fake"), addresses, embedder) as running:
            mind = await running.mind("ada", "li")
            receipt = (await mind.remember("Li is allergic to peanuts."))[0]
            assert await running.operator.spaces.index_large_scopes(1)
            found = await mind.recall("allergic")
            assert [hit.memory.id for hit in found.hits] == [receipt.id]
            assert (found.methods["vector"], found.methods["text"]) == ("approximate", "exact")
            assert await mind.forget([receipt.id]) == [receipt.id]
            with connect(await running.operator.readers.create("reader_of_the_page", "default")) as reader:
                assert reader.execute("show temp_file_limit").fetchone() == {"temp_file_limit": "1GB"}
                for refused in ("select pg_advisory_lock(1)", "select lo_create(0)"):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        reader.execute(refused)


def give_roles(dsn: str) -> None:
    passwords = {"RECOLLECT_OWNER_PASSWORD": "it's", "RECOLLECT_SERVICE_PASSWORD": "secret"}
    psql = find_programs() / "psql"
    command = [str(psql), "-d", dsn, "-f", str(ROOT / "deploy" / "roles.sql")]
    done = subprocess.run(command, env=os.environ | passwords, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

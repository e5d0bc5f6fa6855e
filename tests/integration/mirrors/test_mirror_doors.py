"""Operators look after mirrors by the command line, with TLS, users and keys; who has none needs none of it."""

from __future__ import annotations

import base64
import ssl
import subprocess
import sys

import pytest

from recollect.errors import MirrorError, SetupError
from recollect.models.memories import NewMemory
from recollect.settings import Settings
from recollect.store.mirrors.build import build_mirrors
from support.engines.engine_proxy import EngineProxy
from support.engines.mirrored import mirrored, search_settings
from support.programs.command_line import call, settings_of
from support.service.made_settings import make_settings

NAME = "opensearch"
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('opensearchpy', 'neo4j', 'aiohttp'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name.split('.')[0])
sys.meta_path.insert(0, Absent())
import recollect.wiring, recollect.doors.cli.operators.mirrors
from recollect.settings import Settings
from recollect.store.mirrors.build import build_mirrors
assert build_mirrors(Settings()) == {}
for given in ({'opensearch': {'url': 'http://x'}}, {'neo4j': {'url': 'bolt://x'}}):
    try:
        build_mirrors(Settings(**given))
    except Exception as problem:
        print(type(problem).__name__, problem)
"""


def test_without_the_extras_everything_else_works():
    ended = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == [
        "SetupError opensearchpy is not installed; run: pip install 'recollect-memory[opensearch]'",
        "SetupError neo4j is not installed; run: pip install 'recollect-memory[neo4j]'",
    ]


@pytest.mark.parametrize("engine", ["opensearch", "neo4j"])
def test_a_user_and_a_key_exclude_each_other(engine):
    given = {"url": "bolt://x", "user": "u", "key": "k"}
    with pytest.raises(SetupError, match=f"RECOLLECT_{engine.upper()}__KEY or RECOLLECT_{engine.upper()}__USER"):
        build_mirrors(Settings(**{engine: given}))


def test_a_certificate_authority_of_neo4j_goes_with_a_plain_address(tmp_path):
    with pytest.raises(SetupError, match="bolt:// or neo4j://"):
        build_mirrors(make_settings(neo4j__url="bolt+s://x", neo4j__ca=tmp_path / "ca.pem"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of this machine, with its key, which is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return folder


def context_of(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


@pytest.mark.engines
@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"opensearch__user": "ann", "opensearch__password": "s3cret"}, b"Basic " + base64.b64encode(b"ann:s3cret")),
        ({"opensearch__key": "a-key"}, b"ApiKey a-key"),
    ],
)
async def test_opensearch_over_tls_with_a_user_or_a_key(addresses, embedder, search_server, certificate, given, sent):
    async with EngineProxy(search_server.port, tls=context_of(certificate)) as proxy:
        settings = search_settings(f"https://127.0.0.1:{proxy.port}", **given)
        async with mirrored(addresses, embedder, **settings) as recollect:
            with pytest.raises(MirrorError, match="ClientConnectorCertificateError"):
                await recollect.operator.mirrors.build(NAME, lambda _: None)
        async with mirrored(addresses, embedder, **settings, opensearch__ca=certificate / "ca.pem") as recollect:
            mind = await recollect.mind("ada", "li")
            await mind.remember("Li walks along the harbour.")
            [made] = await recollect.operator.mirrors.build(NAME, lambda _: None)
            assert (made.state, made.answers) == ("ready", True)
        assert proxy.headers and all(b"authorization: " + sent in lowered(each) for each in proxy.headers)


def lowered(head):
    """The head of a request with the names of its fields in small letters."""
    lines = (line.partition(b": ") for line in head.split(b"\r\n"))
    return b"\r\n".join(name.lower() + colon + value for name, colon, value in lines)


@pytest.mark.engines
async def test_neo4j_over_tls_with_a_user(addresses, embedder, graph_server, certificate):
    async with EngineProxy(graph_server.port, http=False, tls=context_of(certificate)) as proxy:
        settings = {"neo4j__url": f"bolt://127.0.0.1:{proxy.port}", "neo4j__user": "ann", "neo4j__password": "s3cret"}
        async with mirrored(addresses, embedder, **settings, mirrors__timeout_seconds=3) as recollect:
            with pytest.raises(MirrorError):
                await recollect.operator.mirrors.build("neo4j", lambda _: None)
        async with mirrored(addresses, embedder, **settings, neo4j__ca=certificate / "ca.pem") as recollect:
            [made] = await recollect.operator.mirrors.build("neo4j", lambda _: None)
            assert made.answers


@pytest.mark.engines
async def test_the_command_line_looks_after_a_mirror(recollect, addresses, search_server, owner):
    mind = await recollect.mind("ada", "li")
    await mind.remember([NewMemory("Li walks along the harbour."), NewMemory("Bo brings the rice.")])
    given = {name: str(value) for name, value in search_settings(search_server.url).items()}
    environment = settings_of(addresses, **given)

    def run(*words):
        return call("admin", "mirror", *words, settings=environment)

    assert "set RECOLLECT_NEO4J__URL" in run("build", "neo4j").said
    built = run("build", NAME)
    assert built.code == 0 and "opensearch answers from generation 1: 1 scopes, 0 behind." in built.stdout
    assert "conflict" in run("build", NAME).said
    await mind.remember("More.")
    shown = run("status").stdout
    assert "ready" in shown and "yes" in shown and "opensearch" in shown
    assert "1 scopes compared: 0 missing, 0 changed, 0 extra." in run("verify", NAME).stdout
    # Behind the log's back.
    for statement in ("disable trigger user", "enable trigger user"):
        owner.execute(f"alter table memories {statement}")
        owner.execute("delete from memories where content = 'More.'")
    found = run("verify", NAME)
    assert found.code == 1 and "0 missing, 0 changed, 1 extra." in found.stdout
    assert "1 extra, mended." in run("verify", NAME, "--mend").stdout
    assert "generation 2" in run("rebuild", NAME).stdout
    assert "0 missing, 0 changed, 0 extra." in run("verify", NAME).stdout
    assert "dropped" in run("drop", NAME, "--yes").stdout
    assert run("drop", NAME, "--yes").code == 1


@pytest.mark.engines
async def test_the_lag_is_a_metric(addresses, embedder, search_server, owner):
    from conftest import http_client

    async with mirrored(addresses, embedder, **search_settings(search_server.url)) as recollect:
        mind = await recollect.mind("ada", "li")
        await mind.remember("one")
        await recollect.operator.mirrors.build(NAME, lambda _: None)
        await mind.remember("two")
        owner.execute("update changes set at = at - interval '100 seconds'")
        async with http_client(recollect, "") as client:
            shown = (await client.get("/metrics")).text.splitlines()
        [lag] = [
            line for line in shown if line.startswith('recollect_mirror_lag_seconds{mirror="opensearch",shard=""}')
        ]
        assert float(lag.split()[-1]) > 99
        assert 'recollect_mirror_scopes_behind{mirror="opensearch",shard=""} 1.0' in shown

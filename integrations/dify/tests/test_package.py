"""The plugin as it is declared, and the package as Dify's daemon would install it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from daemon import PLUGIN, Daemon, Dify
from pack import MAX_BYTES, pack

TOOLS = ["remember", "append", "recall", "history", "context", "associate", "forget"]
SCOPE = {"agent", "user", "conversation", "embedding_model"}
LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
CHINESE = re.compile("[\u4e00-\u9fff]")


def declared(name):
    return yaml.safe_load((PLUGIN / name).read_text(encoding="utf-8"))


def walk(value):
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from walk(each)
    elif isinstance(value, list):
        for each in value:
            yield from walk(each)


def test_the_sdk_accepts_the_declarations(workbench):
    """Its own static check: manifest, provider, tools, and the classes behind them."""
    program = (
        "from dify_plugin import DifyPluginEnv; "
        "from dify_plugin.core.plugin_registration import PluginRegistration; r = PluginRegistration(DifyPluginEnv()); "
        "made = [r.configuration.name, str(r.configuration.version), "
        "[[t.identity.name for t in p.tools] for p in r.tools_configuration], [f.filename for f in r.files]]"
    )
    version = importlib.metadata.version("recollect-memory")
    assert workbench.run(program) == ["recollect", version, [TOOLS], ["icon.svg"]]


def test_the_daemon_would_accept_the_declarations():
    """What its Go validators demand beyond the SDK, and what we demand of ourselves."""
    manifest, provider = declared("manifest.yaml"), declared("provider/recollect.yaml")
    assert re.fullmatch(r"[a-z0-9_-]{1,64}", manifest["author"])
    assert (PLUGIN / manifest["privacy"]).is_file()
    assert (PLUGIN / "_assets" / manifest["icon"]).read_text(encoding="utf-8").startswith("<svg")
    assert manifest["resource"]["permission"] == {"model": {"enabled": True, "text_embedding": True}}
    assert {name: each["type"] for name, each in provider["credentials_for_provider"].items()} == {
        "url": "text-input",
        "key": "secret-input",
    }
    everything = [manifest, provider, *(declared(f"tools/{name}.yaml") for name in TOOLS)]
    for words in (each for each in walk(everything) if "en_US" in each):
        assert words["en_US"] and words["zh_Hans"]
        assert not CHINESE.search(words["en_US"])
        assert CHINESE.search(words["zh_Hans"]) or words["zh_Hans"] == words["en_US"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_model_is_told_what_it_may_fill_in_and_never_the_scope(tool):
    data = declared(f"tools/{tool}.yaml")
    parameters = {each["name"]: each for each in data["parameters"]}
    assert parameters.keys() >= {"agent", "user"}
    for name, each in parameters.items():
        assert (each["form"] == "llm") == ("llm_description" in each), name
        assert each["form"] == "form" or name not in SCOPE, name
    assert {"text", "json", "files"}.isdisjoint(data["output_schema"]["properties"])  # which are Dify's own
    if "embedding_model" in parameters:
        assert parameters["embedding_model"]["scope"] == "text-embedding"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return pack(tmp_path_factory.mktemp("first"))


def test_a_package_is_the_same_bytes_each_time(package, tmp_path):
    assert pack(tmp_path).read_bytes() == package.read_bytes()
    assert package.name == f"recollect-{importlib.metadata.version('recollect-memory')}.difypkg"


def test_a_package_holds_what_is_needed_and_nothing_else(package):
    with zipfile.ZipFile(package) as archive:
        names, size = archive.namelist(), sum(each.file_size for each in archive.infolist())
        requirements = archive.read("requirements.txt").decode()
    (wheel,) = (name for name in names if name.startswith("wheels/"))
    tools = [f"tools/{name}{suffix}" for name in TOOLS for suffix in (".py", ".yaml")]
    beside = ["PRIVACY.md", "README.md", "_assets/icon.svg", "main.py", "manifest.yaml", "memory_tool.py"]
    providers = ["provider/recollect.py", "provider/recollect.yaml"]
    assert names == sorted([*tools, *beside, *providers, "requirements.txt", wheel])
    assert f"./{wheel}\n" in requirements
    assert size < MAX_BYTES


@pytest.mark.slow
def test_the_unpacked_package_runs_from_its_own_requirements(package, credentials, tmp_path):
    """As the daemon does it: unpack, make an environment there, install the requirements, start `main`."""
    folder = tmp_path / "plugin"
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
    uv = shutil.which("uv")
    for command in (["venv", ".venv", "--python", sys.executable], ["pip", "install", "-r", "requirements.txt"]):
        environment = os.environ | {"VIRTUAL_ENV": str(folder / ".venv")}
        subprocess.run([uv, "--quiet", *command], cwd=folder, env=environment, check=True)
    lend_bytecode(folder / ".venv")
    daemon = Daemon(folder, str(folder / ".venv" / "bin" / "python"))
    try:
        dify = Dify(daemon, credentials)
        assert dify.validate().result == {"result": True}
        dify.use("remember", content="Li drinks oolong tea")
        (hit,) = dify.use("recall", cue="What does Li drink?").variables["hits"]
        assert hit["content"] == "Li drinks oolong tea"
    finally:
        daemon.close()


def lend_bytecode(environment):
    """Copy what was compiled here to an environment whose sources are the same; Python itself compares them."""
    ours, theirs = (Path(place) / LIBRARY for place in (sys.prefix, environment))
    for compiled in ours.rglob("__pycache__"):
        target = theirs / compiled.relative_to(ours)
        if target.parent.is_dir():
            shutil.copytree(compiled, target, dirs_exist_ok=True)

"""MCP is an extra of its own: without it, everything else works, and an error names it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import httpx
import pytest

from conftest import new_key
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.errors import SetupError
from support.programs import command_line
from support.service.mcp_doors import listening

ADVICE = "run: pip install 'recollect-memory[mcp]'"


@pytest.fixture(params=[("mcp", "mcp_types"), ("mcp_types",)], ids=["none", "version 1 of mcp"])
def _without_the_extra(request, monkeypatch):
    for name in request.param:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("recollect.doors.mcp.")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("_without_the_extra")
async def test_the_server_serves_everything_else(recollect):
    _, secret = await new_key(recollect)
    async with listening(recollect) as url, Client(url, secret) as client:
        mind = await client.mind("ada", "li")
        await mind.remember("Li drinks tea")
        assert [hit.memory.content for hit in (await mind.recall("tea")).hits] == ["Li drinks tea"]
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {secret}"}) as http:
            assert (await http.post(f"{url}/mcp", json={})).status_code == 404


@pytest.mark.usefixtures("_without_the_extra")
async def test_a_setting_that_needs_it_is_refused(recollect):
    configured = replace(
        recollect, settings=recollect.settings.model_copy(update={"mcp_allowed_hosts": "memory.example"})
    )
    with pytest.raises(SetupError, match="mcp_types is not installed") as refused:
        create_app(recollect=configured)
    assert ADVICE in str(refused.value)


@pytest.mark.usefixtures("_without_the_extra")
def test_the_command_names_it_and_the_doctor_misses_nothing(tmp_path):
    settings = {"RECOLLECT_DATA_DIR": str(tmp_path / "data")}
    assert ADVICE in " ".join(command_line.run("mcp", settings=settings, fails=True).split())
    found = {each["check"]: each for each in json.loads(command_line.run("doctor", "--json", settings=settings))}
    assert found["extra server"]["state"] == "ok"
    assert "mcp" not in json.dumps([*found.values()])

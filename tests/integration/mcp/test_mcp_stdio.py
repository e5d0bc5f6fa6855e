"""The MCP door over standard input and output: a real process, and nothing on its output but the protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from support.programs.command_line import settings_of
from support.programs.folders import open_folder
from support.programs.programs import COMMAND
from support.service.mcp_doors import bound_key, listening, over_stdio

GREETING = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
SECRET = "the vault opens with 4711"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_process_of_its_own(addresses, owner, mode, tmp_path):
    log = tmp_path / "log"
    options = ("--agent", "ada", "--user", "li")
    async with over_stdio(*options, mode=mode, log=log, **settings_of(addresses, embedder="none")) as client:
        assert len((await client.list_tools()).tools) == 7
        stored = (await client.call_tool("remember", {"content": SECRET})).structured_content
        found = (await client.call_tool("recall", {"text": "the vault"})).structured_content
        assert [hit["id"] for hit in found["hits"]] == [stored["id"]]
        bad = await client.call_tool("recall", {"text": SECRET, "limit": 500})
        assert (bad.is_error, "limit" in bad.content[0].text) == (True, True)
        other = await client.call_tool("recall", {"text": "x", "agent": "bob"})
        assert (other.is_error, other.content[0].text[:24]) == (True, "agent and user are fixed")
        assert (await client.read_resource("memory://topics")).contents[0].text
        filled = await client.get_prompt("with_memory", {"question": "the vault?"})
        assert SECRET in filled.messages[0].content.text
    assert owner.execute('select agent, "user" from scopes').fetchall() == [("ada", "li")]
    assert "4711" not in log.read_text()


async def test_in_front_of_a_server(recollect):
    """A key that is bound needs no names at all: not in the command, not in the calls."""
    environment = {"RECOLLECT_KEY": await bound_key(recollect), "RECOLLECT_DATABASE_URL": "host=/nowhere"}
    async with listening(recollect) as url, over_stdio("--url", url, **environment) as client:
        stored = (await client.call_tool("remember", {"content": "Li drinks tea"})).structured_content
        found = (await client.call_tool("recall", {"text": "tea"})).structured_content
        assert [hit["id"] for hit in found["hits"]] == [stored["id"]]
        told = (await client.call_tool("context", {"text": "tea"})).structured_content
        assert told["memory_ids"] == [stored["id"]]
        assert (await client.call_tool("associate", {"subject": "tea"})).structured_content
        other = await client.call_tool("recall", {"text": "x", "agent": "bob"})
        assert (other.is_error, "is bound" in other.content[0].text) == (True, True)
        gone = (await client.call_tool("forget", {"ids": [stored["id"]]})).structured_content
        assert gone == {"forgotten": [stored["id"]]}
    assert (await (await recollect.mind("ada", "li")).list()).memories == ()


def test_nothing_but_the_protocol_on_standard_output(addresses):
    lines = [json.dumps(GREETING), "no json at all", "{}", '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}']
    process = subprocess.Popen(
        [COMMAND, "mcp", "--agent", "ada"],
        env=os.environ | settings_of(addresses, embedder="none"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    answers = []
    while not any("result" in answer and answer["id"] == 1 for answer in answers):
        answers.append(json.loads(process.stdout.readline()))
    process.stdin.close()
    answers += [json.loads(line) for line in process.stdout]
    assert process.wait(timeout=60) == 0
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert [answer["id"] for answer in answers if "result" in answer] == [0, 1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--url", "http://127.0.0.1:1"], "Set RECOLLECT_KEY"),
        (["--user", "li"], "--user requires --agent"),
    ],
)
def test_what_is_missing_is_said_at_once(options, told):
    environment = {name: value for name, value in os.environ.items() if name != "RECOLLECT_KEY"}
    ran = subprocess.run(
        [COMMAND, "mcp", *options], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert told in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_what_it_started(number):
    """Clients kill the servers they start; the database of this process must not outlive it."""
    with open_folder("stdio") as folder:
        environment = os.environ | {"RECOLLECT_DATA_DIR": str(folder / "data"), "RECOLLECT_EMBEDDER": "none"}
        process = subprocess.Popen(
            [COMMAND, "mcp", "--agent", "ada"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        process.stdin.write(json.dumps(GREETING).encode() + b"\n")
        process.stdin.flush()
        assert b"serverInfo" in process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=30) == 0
        assert not [*folder.rglob("postmaster.pid")]

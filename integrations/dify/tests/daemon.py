"""Plays the part of Dify's plugin daemon: starts the plugin as its local runtime does, and speaks JSON lines with it.

The protocol was read in dify-plugin 0.10.2 (`core/server`) and in dify-plugin-daemon (`internal/core/local_runtime`).
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLUGIN = Path(__file__).parents[1]
WAIT_SECONDS = 60
PRICES = dict.fromkeys(("unit_price", "price_unit", "total_price"), "0")


def embedding(*vectors: list[float]) -> dict[str, Any]:
    """Write vectors as Dify answers a plugin that asks for them."""
    usage = {"tokens": 1, "total_tokens": 1, "currency": "USD", "latency": 0.0} | PRICES
    return {"model": "text-embedding-3-small", "embeddings": list(vectors), "usage": usage}


@dataclass
class Reply:
    """What came of one call: text and variables, or the error; and what the plugin asked of Dify meanwhile."""

    text: str = ""
    variables: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    result: dict[str, Any] = field(default_factory=dict)
    invoked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def problem(self) -> str:
        assert self.error is not None, self
        return self.error["message"]


class Daemon:
    """A plugin's process, and the two pipes to it."""

    def __init__(self, folder: Path = PLUGIN, python: str = sys.executable) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "VIRTUAL_ENV"))}
        environment = kept | {"INSTALL_METHOD": "local", "PYTHONUNBUFFERED": "1"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [python, "-m", "main"], cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        self.answers: dict[str, queue.Queue[dict[str, Any] | None]] = {}
        self.lines: list[str] = []
        self.complaints: list[str] = []
        self.writing = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=lambda: self.complaints.extend(self.process.stderr or ()), daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            if not line.strip():
                continue
            self.lines.append(line.strip())
            message = json.loads(line)
            if message.get("event") == "session":
                self.answers[message["session_id"]].put(message["data"])
        for waiting in self.answers.values():
            waiting.put(None)

    def send(self, event: str, session: str, data: dict[str, Any], **ids: str) -> None:
        with self.writing:
            self.process.stdin.write(json.dumps({"session_id": session, "event": event, "data": data} | ids) + "\n")
            self.process.stdin.flush()

    def start(self, data: dict[str, Any], **ids: str) -> str:
        """Send a request; what it is answered can be collected by what is returned."""
        session = uuid.uuid4().hex
        self.answers[session] = queue.Queue()
        self.send("request", session, data, **ids)
        return session

    def collect(self, session: str, answer: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Reply:
        """Wait for the end of an answer; what the plugin asks of Dify is answered by a function."""
        reply = Reply()
        while (data := self.answers[session].get(timeout=WAIT_SECONDS)) is not None:
            if data["type"] == "end":
                return reply
            if data["type"] == "error":
                reply.error = data["data"]
            elif data["type"] == "invoke":
                reply.invoked.append(data["data"])
                self._answer_back(session, data["data"], answer)
            else:
                self._take(reply, data["data"])
        raise AssertionError("the plugin ended: " + "".join(self.complaints))

    def _take(self, reply: Reply, data: dict[str, Any]) -> None:
        message = data.get("message", {})
        if data.get("type") == "text":
            reply.text += message["text"]
        elif data.get("type") == "variable":
            assert message["stream"] is False
            reply.variables[message["variable_name"]] = message["variable_value"]
        else:
            reply.result |= data

    def _answer_back(self, session: str, asked: dict[str, Any], answer: Any) -> None:
        named = {"backwards_request_id": asked["backwards_request_id"]}
        try:
            said = {"event": "response", "message": "", "data": answer(asked["request"])}
        except Exception as problem:
            said = {"event": "error", "message": str(problem), "data": None}
        self.send("backwards_response", session, named | said)
        self.send("backwards_response", session, named | {"event": "end", "message": "", "data": None})

    def call(self, data: dict[str, Any], answer: Any = None, **ids: str) -> Reply:
        return self.collect(self.start(data, **ids), answer)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(timeout=30)


class Workbench:
    """A process for programs on the plugin's own modules: the SDK patches whoever imports it, and loads slowly."""

    LOOP = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    program, given = json.loads(line)\n"
        "    names = {'given': given}\n"
        "    exec(program, names)\n"
        "    print(json.dumps(names['made']), flush=True)\n"
    )

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.LOOP], cwd=PLUGIN, stdin=pipe, stdout=pipe, text=True
        )

    def run(self, program: str, given: Any = None) -> Any:
        """Run a program that reads `given` and leaves `made`; the SDK may print before."""
        self.process.stdin.write(json.dumps([program, given]) + "\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith("["):
            assert line, "the program failed; what it said is on the standard error output"
        return json.loads(line)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=30)


@dataclass
class Dify:
    """An app in Dify that uses the plugin: its ids, and the authorization of its workspace."""

    daemon: Daemon
    credentials: dict[str, str]
    app: str = field(default_factory=lambda: str(uuid.uuid4()))
    user: str = field(default_factory=lambda: str(uuid.uuid4()))
    conversation: str = field(default_factory=lambda: str(uuid.uuid4()))
    message: str = ""

    def request(self, tool: str, parameters: dict[str, Any]) -> dict[str, Any]:
        asked = {"type": "tool", "action": "invoke_tool", "provider": "recollect", "tool": tool}
        asked |= {"credentials": self.credentials, "credential_type": "api-key", "user_id": self.user}
        return asked | {"tool_parameters": parameters}

    def ids(self) -> dict[str, str]:
        named = {"app_id": self.app, "conversation_id": self.conversation, "message_id": self.message}
        return {name: value for name, value in named.items() if value}

    def use(self, tool: str, answer: Any = None, **parameters: Any) -> Reply:
        return self.daemon.call(self.request(tool, parameters), answer, **self.ids())

    def validate(self, **credentials: str) -> Reply:
        data = {"type": "tool", "action": "validate_tool_credentials", "provider": "recollect", "user_id": self.user}
        return self.daemon.call(data | {"credentials": self.credentials | credentials})

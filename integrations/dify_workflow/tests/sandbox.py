"""Stands in for Dify's sandbox: the same wire contract on a free port, each program in a Python of its own.

It keeps nothing away from anything, which is all that the real one is for; only these tests' own programs run in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "dify-sandbox"


class Sandbox(BaseHTTPRequestHandler):
    """Answers POST /v1/sandbox/run."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/v1/sandbox/run" or self.headers["X-Api-Key"] != KEY or asked["language"] != "python3":
            self.answer(401, {"code": -401, "message": "not allowed", "data": None})
            return
        program = f"{asked['preload']}\n{asked['code']}"
        command = [sys.executable, "-I", "-S", "-"]
        ran = subprocess.run(command, input=program, capture_output=True, text=True, timeout=30, check=False)
        data = {"stdout": ran.stdout, "error": ran.stderr if ran.returncode else ""}
        self.answer(200, {"code": 0, "message": "success", "data": data})

    def answer(self, status: int, value: object) -> None:
        written = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def log_message(self, *arguments: object) -> None:
        """Stay silent."""


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a free port of this machine; give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

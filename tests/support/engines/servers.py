"""Start a real server of another engine on a free port, kill it, start it again, and stop it by its pid."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.engines.java import build, find_java
from support.programs.ports import free_port

START_SECONDS = 120
STOP_SECONDS = 30
HEAP = "-Xmx512m"
OPENED = ("java.base/java.nio", "java.base/java.lang", "java.base/sun.nio.ch")
"""Packages of Java that Neo4j reaches into."""
OPTIONS = {
    "search": ["-Dlog4j2.disable.jmx=true", "--add-modules=jdk.incubator.vector"],
    "graph": [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED],
}
START = {"search": "server.StartSearch", "graph": "server.StartGraph"}


@dataclass(slots=True)
class EngineServer:
    """One server of an engine, and where it keeps its data."""

    engine: str
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"{'http' if self.engine == 'search' else 'bolt'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until its port is open; what it says goes to a log in its folder."""
        built, home = build(self.engine), find_java()
        assert home is not None
        among = os.pathsep.join([str(built / "classes"), f"{built / 'jars'}/*", f"{built / 'plugins'}/*"])
        command = [str(home / "bin" / "java"), HEAP, "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED"]
        command += [*OPTIONS[self.engine], "-cp", among, START[self.engine], str(self.folder / "data"), str(self.port)]
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.wait()

    def wait(self) -> None:
        """Wait until it takes connections."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.engine} ended: {self.read_log()}")
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"{self.engine} did not start in {START_SECONDS} s: {self.read_log()}")

    def read_log(self) -> str:
        """Return the end of what it said."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """End it in order."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None


@contextmanager
def running(engine: str, folder: Path) -> Iterator[EngineServer]:
    """Run a server of an engine in a folder."""
    server = EngineServer(engine, folder)
    try:
        server.start()
        yield server
    finally:
        # Nobody needs what it would write at its end.
        server.kill()

"""Prometheus as Debian ships it: a server that scrapes Recollect and evaluates rules, and the tool that tests rules."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from support.programs.debian import find_program
from support.programs.folders import open_folder
from support.programs.ports import free_port

WAIT_SECONDS = 300
"""No test is about this limit; it only ends one that would wait for ever."""


def find_promtool(folder: Path) -> list[str]:
    """Give the command of the tool, which is in the package of the server."""
    *before, server = find_program("prometheus", ("prometheus",), folder)
    return [*before, str(Path(server).with_name("promtool"))]


@dataclass(frozen=True, slots=True)
class Scraping:
    """A Prometheus that runs."""

    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        """Ask its API; an expression that it does not understand raises."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=30, trust_env=False)
        assert answer.is_success, answer.text
        return answer.json()["data"]

    def firing(self) -> set[str]:
        """Name the alerts that fire now."""
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def wait_for(self, *alerts: str, cause: Callable[[], None] = lambda: None) -> None:
        """Cause something again and again; return when each of these alerts has fired, if not all at the same time."""
        until = time.monotonic() + WAIT_SECONDS
        missing = {*alerts}
        while missing := missing - self.firing():
            assert time.monotonic() < until, f"{missing} did not fire"
            cause()
            time.sleep(0.2)

    def wait_for_quiet(self) -> None:
        """Return when no alert fires: a slow start may be one, until the first scrapes are over."""
        until = time.monotonic() + WAIT_SECONDS
        while fires := self.firing():
            assert time.monotonic() < until, f"{fires} still fire"
            time.sleep(0.2)


@contextmanager
def scraping(target: str, rules: dict[str, Any], job: str = "recollect") -> Iterator[Scraping]:
    """Scrape an address each second, and evaluate rules as often."""
    with open_folder("prometheus") as folder:
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
        each_second = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        static = [{"targets": [target.removeprefix("http://")]}]
        scraped = {"job_name": job, "static_configs": static}
        settings = {"global": each_second, "rule_files": ["rules.yaml"], "scrape_configs": [scraped]}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        port = free_port()
        command = [
            *find_program("prometheus", ("prometheus",), folder),
            f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            started = Scraping(f"http://127.0.0.1:{port}")
            wait_until_ready(started.url, process)
            yield started
        finally:
            process.terminate()
            process.wait(60)


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return when the server is ready."""
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{url}/-/ready", timeout=5, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"Prometheus did not come up (exit code {process.poll()})")

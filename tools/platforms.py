"""List the platforms that Recollect installs on: by the wheels of the lock file, and by installations that were run.

uv run python tools/platforms.py                       # write the tables of docs/reference/platforms.md again
uv run python tools/platforms.py run python3.13        # install our wheels for a Python, and run the README's program
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "platforms.md"
PROJECT, EXTRA = "recollect-memory", "all"
OURS = {PROJECT, "recollect-minilm"}
"""Pure Python, built by `make release`."""
PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
GLIBC = 36
"""Debian 12 has glibc 2.36."""
RUN = {"Linux x86-64": ("3.11", "3.12", "3.13")}
"""On which platforms and Pythons `run` has printed what the README shows."""
Package = dict[str, Any]


def manylinux(machine: str) -> list[str]:
    """List the names of Linux with that glibc or an older one."""
    older = [f"manylinux{name}_{machine}" for name in ("2014", "2010", "1")]
    return [*(f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC, 4, -1)), *older, f"linux_{machine}"]


PLATFORMS: Mapping[str, tuple[str, str, list[str]]] = {
    "Linux x86-64": ("linux", "x86_64", manylinux("x86_64")),
    "Linux aarch64": ("linux", "aarch64", manylinux("aarch64")),
    "macOS arm64": ("darwin", "arm64", [*mac_platforms((14, 0), "arm64")]),
    "macOS x86-64": ("darwin", "x86_64", [*mac_platforms((14, 0), "x86_64")]),
    "Windows x86-64": ("win32", "AMD64", ["win_amd64"]),
}
"""What markers call a platform, and what names of wheels call it."""


def read_lock() -> list[Package]:
    """Read the packages of the lock file."""
    packages: list[Package] = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    return packages


def needed(packages: list[Package], environment: Mapping[str, str]) -> Iterator[Package]:
    """Yield each package that the extra installs in an environment."""
    seen: set[tuple[str, str]] = set()
    waiting: list[tuple[str, str, str]] = [(PROJECT, "", EXTRA)]
    while waiting:
        name, version, extra = waiting.pop()
        for package in packages:
            fits = package["name"] == name and version in {"", package["version"]}
            if not fits or (name, extra) in seen:
                continue
            seen.add((name, extra))
            if not extra:
                yield package
            listed = (
                package.get("optional-dependencies", {}).get(extra, []) if extra else package.get("dependencies", [])
            )
            for each in listed:
                if "marker" not in each or Marker(each["marker"]).evaluate(dict(environment)):
                    asked = (each["name"], each.get("version", ""))
                    waiting += [(*asked, part) for part in ("", *each.get("extra", []))]


def has_wheel(package: Package, tags: set[Tag]) -> bool:
    """Return whether one of a package's wheels fits."""
    names = [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", [])]
    return any(parse_wheel_filename(name)[3] & tags for name in names)


def find_missing(packages: list[Package], platform: str, python: tuple[int, int]) -> list[str]:
    """Name the packages without a wheel for a platform and a Python."""
    system, machine, names = PLATFORMS[platform]
    dotted = ".".join(map(str, python))
    environment = {
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system],
        "os_name": "nt" if system == "win32" else "posix",
        "python_version": dotted,
        "python_full_version": f"{dotted}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    interpreter = f"cp{python[0]}{python[1]}"
    tags = {*cpython_tags(python, platforms=names), *compatible_tags(python, interpreter, names)}
    others = [each for each in needed(packages, environment) if each["name"] not in OURS]
    return sorted(each["name"] for each in others if not has_wheel(each, tags))


def write_table(packages: list[Package]) -> str:
    """Write the table of the page."""
    lines = ["| platform | run with Python | wheels for Python | without a wheel |", "|---|---|---|---|"]
    for platform in PLATFORMS:
        missing = {python: find_missing(packages, platform, python) for python in PYTHONS}
        whole = ", ".join(f"{major}.{minor}" for (major, minor), lacks in missing.items() if not lacks)
        lacking = sorted({f"`{name}`" for lacks in missing.values() for name in lacks})
        cells = (platform, ", ".join(RUN.get(platform, ())) or "no", whole or "none", ", ".join(lacking))
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def replace_table(page: str, table: str) -> str:
    """Put the table in the place of the one on the page."""
    return re.sub(r"(^\|.*\n)+", lambda _: table, page, count=1, flags=re.MULTILINE)


def run_first_recall(python: str) -> None:
    """Install our wheels with everything they need for a Python, and run the program of the README."""
    import release

    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        release.build_wheels(folder / "wheels")
        subprocess.run(["uv", "venv", "--python", python, folder / "venv"], check=True)
        inside = folder / "venv" / "bin" / "python"
        command = ["uv", "pip", "install", "--python", inside, "--find-links", folder / "wheels", f"{PROJECT}[{EXTRA}]"]
        subprocess.run(command, check=True)
        (folder / "program.py").write_text("\n".join(blocks), encoding="utf-8")
        # A busy machine may take its time.
        waits = ("REQUEST", "RECALL__CHANNEL", "EMBEDDING__WAIT")
        patient = {f"RECOLLECT_{name}_TIMEOUT_SECONDS": "120" for name in waits}
        environment = {"PATH": "/usr/bin:/bin", "HOME": place, "RECOLLECT_DATA_DIR": str(folder / "data")} | patient
        subprocess.run([inside, folder / "program.py"], env=environment, cwd=folder, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run_first_recall(sys.argv[2])
    else:
        PAGE.write_text(replace_table(PAGE.read_text("utf-8"), write_table(read_lock())), encoding="utf-8")

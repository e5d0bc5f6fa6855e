"""Check that Recollect installs alongside other packages, and that none of them gets an older version than alone.

python tools/resolve.py                     # the install line of every integration, and all FRAMEWORKS
python tools/resolve.py crewai langgraph    # some of them

It prints a table and exits with 1 if a package resolves to an older version or not at all, unless
docs/howto/alongside.md names the conflict and a line that works. That page also names the frameworks that need an older
version of `mcp` than our extra `mcp`. Nothing is installed: `uv pip compile` resolves.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
CONFLICTS = ROOT / "docs" / "howto" / "alongside.md"
OURS = "recollect-memory[server,embedded,local]"
FRAMEWORKS = (
    *("crewai", "strands-agents", "google-adk", "agent-framework-core", "llama-index-core", "autogen-agentchat"),
    *(
        "haystack-ai",
        "agno",
        "langchain",
        "langgraph",
        "langmem",
        "pydantic-ai",
        "openai-agents",
        "anthropic",
        "openai",
    ),
    *("litellm", "mem0ai", "graphiti-core", "chromadb", "semantic-kernel", "smolagents", "dspy", "instructor"),
    *("fastmcp", "hermes-agent"),
)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
OUR_MCP = Requirement(EXTRAS["mcp"][0]).specifier
"""The versions of the package `mcp` with which our extra of that name works."""
PYTHON = "3.12"
AT_ONCE = 4
INSTALL = re.compile(r"^(?:\$ )?pip install (.+)$", re.MULTILINE)
ROW = re.compile(r"^\| `([\w.-]+)` \|.*\| `pip install ([^`]+)` \|$", re.MULTILINE)
Versions = Mapping[str, str]
Resolver = Callable[[Sequence[str]], Versions]


@dataclass(frozen=True, slots=True)
class Case:
    """Requirements of others, and the line that installs Recollect together with them."""

    name: str
    alone: tuple[str, ...]
    together: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The versions of the others in each case; None if nothing resolves."""

    case: Case
    alone: Versions
    together: Versions
    remark: str
    failed: bool


def read_project(folder: Path) -> dict[str, object]:
    """Read the metadata of a project."""
    project: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def find_integrations(root: Path = ROOT) -> dict[str, Path]:
    """Return the folders of the integrations that are packages, by the names of the packages."""
    folders = sorted(path.parent for path in root.glob("integrations/*/pyproject.toml"))
    packaged = [each for each in folders if "build-system" in (each / "pyproject.toml").read_text(encoding="utf-8")]
    return {str(read_project(each)["name"]): each for each in packaged}


def read_lines(page: str) -> list[tuple[str, ...]]:
    """Return the requirements of each `pip install` line of a page."""
    return [tuple(shlex.split(line, comments=True)) for line in INSTALL.findall(page)]


def find_pages(root: Path = ROOT) -> Iterator[Case]:
    """Yield the install lines of all pages that install an integration, with the packages that it integrates."""
    integrations = find_integrations(root)
    for path in sorted([*root.glob("docs/howto/*.md"), *root.glob("integrations/*/README.md")]):
        if path.name.endswith(".zh.md"):  # has the same commands
            continue
        for line in read_lines(path.read_text(encoding="utf-8")):
            named = [name for name in line if name in integrations]
            needed = {each for name in named for each in read_project(integrations[name])["dependencies"]}
            others = sorted(each for each in needed if not each.startswith("recollect-"))
            if named:
                yield Case(str(path.relative_to(root)), tuple(others), line)


def read_conflicts(page: str) -> dict[str, tuple[str, ...]]:
    """Return the packages that a page names as conflicts, each with the requirements of the line that works."""
    return {name: tuple(shlex.split(line)) for name, line in ROW.findall(page)}


def build(target: Path, root: Path = ROOT) -> None:
    """Build wheels of our projects without their content: only the metadata is needed to resolve."""
    hatchling = [
        "uvx",
        "--quiet",
        "--with",
        "editables",
        "hatchling",
        "build",
        "-t",
        "wheel:editable",
        "-d",
        str(target),
    ]
    for folder in (root, root / "packages" / "minilm", *find_integrations(root).values()):
        subprocess.run(hatchling, cwd=folder, check=True, capture_output=True)


def resolve(wanted: Sequence[str], links: Path, *options: str) -> Versions:
    """Return the versions that would be installed; none if there is no solution."""
    command = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--python-version", PYTHON]
    command += ["--python", sys.executable]  # otherwise uv looks for that version everywhere
    # In the folder of the wheels: the settings of this checkout do not count.
    ran = subprocess.run(
        [*command, "--find-links", str(links), *options, "-"],
        input="\n".join(wanted),
        cwd=links,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode and "No solution found" not in ran.stderr:
        raise SystemExit(f"uv failed for {' '.join(wanted)}:\n{ran.stderr[-2000:]}")
    return dict(line.split("==") for line in ran.stdout.splitlines() if "==" in line)


def names_of(requirements: Sequence[str]) -> list[str]:
    """Return the names of packages, as uv prints them."""
    return [re.sub(r"[-_.]+", "-", Requirement(each).name).lower() for each in requirements]


def find_older(names: Sequence[str], alone: Versions, together: Versions) -> list[str]:
    """Return the packages that are older together than alone, or missing."""
    return [name for name in names if name not in together or Version(together[name].split()[0]) < Version(alone[name])]


def find_conflict(case: Case, alone: Versions, together: Versions) -> str:
    """Return what conflicts; nothing for most packages."""
    if older := find_older(names_of(case.alone), alone, together):
        return f"older or missing: {', '.join(older)}"
    old = alone.get("mcp", "") if case.name in FRAMEWORKS else ""
    return f"needs mcp {old}" if old and Version(old) not in OUR_MCP else ""


def judge(case: Case, conflicts: Mapping[str, tuple[str, ...]], resolver: Resolver) -> Result:
    """Resolve one case, and the line that works if there is a known conflict."""
    names, alone, together = names_of(case.alone), resolver(case.alone), resolver(case.together)
    shown = {name: alone.get(name, "none") for name in names}
    beside = {name: together.get(name, "none") for name in names}
    if "none" in shown.values():
        return Result(case, shown, beside, "does not resolve alone", failed=True)
    found, known = find_conflict(case, alone, together), conflicts.get(case.name)
    if known is None:
        return Result(case, shown, beside, found, failed=bool(found))
    if not found:
        return Result(case, shown, beside, f"no conflict: remove it from {CONFLICTS.name}", failed=True)
    broken = bool(find_older(names, alone, resolver(known)))
    return Result(
        case, shown, beside, f"{found}; {'does not work' if broken else 'works'}: {shlex.join(known)}", broken
    )


def print_table(results: Sequence[Result]) -> None:
    """Print the results as a table."""
    rows = [("requirement", "package", "alone", "together", "remark")]
    for each in results:
        rows += [(each.case.name, name, each.alone[name], each.together[name], each.remark) for name in each.alone]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> int:
    """Resolve everything, or the named cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args().names
    cases = [*find_pages(), *(Case(name, (name,), (OURS, name)) for name in FRAMEWORKS)]
    conflicts = read_conflicts(CONFLICTS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as threads:
        build(Path(folder))
        resolver = partial(resolve, links=Path(folder))
        chosen = [case for case in cases if not asked or case.name in asked]
        results = list(threads.map(lambda case: judge(case, conflicts, resolver), chosen))
    print_table(results)
    return int(any(each.failed for each in results))


if __name__ == "__main__":
    sys.exit(main())

"""The integrations as separate projects: their folders, the Python that they need, and their environments."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.programs.programs import plain_environment

ROOT = Path(__file__).parents[1]
PROJECTS = sorted(path.parent.name for path in ROOT.glob("integrations/*/pyproject.toml"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect" / "integrations"
# The environments run the sources of one checkout, so each checkout has its own.
ENVIRONMENTS = CACHE / hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]
OWNER = "checkout"
"""The file next to the environments that names their checkout."""
AT_ONCE = 2


def wanted(name: str) -> str:
    """Read which Python a project wants."""
    return (ROOT / "integrations" / name / ".python-version").read_text(encoding="utf-8").strip()


def find_python(name: str) -> str | None:
    """Find an interpreter of the version that a project wants."""
    version = wanted(name)
    standing = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python"), reverse=True)
    named = shutil.which(f"python{version}")
    for candidate in [*map(str, standing), *([named] if named else [])]:
        asked = subprocess.run([candidate, "-V"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.startswith(f"Python {version}"):
            return candidate
    return None


def project_environment(name: str) -> dict[str, str]:
    """Return the environment to run a project in: its own packages, away from the checkout and from ours."""
    apart = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}
    inherited = {key: value for key, value in plain_environment().items() if key not in apart}
    size = {"RECOLLECT_TESTS": os.environ.get("RECOLLECT_TESTS", "ci")}
    return inherited | size | {"UV_PROJECT_ENVIRONMENT": str(ENVIRONMENTS / name), "DO_NOT_TRACK": "1"}


def in_project(name: str, *command: str) -> list[str]:
    """Return the command that runs a Python program in a project's own environment, which `make setup` installed."""
    python = ENVIRONMENTS / name / "bin" / "python"
    if not python.exists() and find_python(name) is None:
        import pytest

        pytest.skip(f"there is no Python {wanted(name)} on this machine")
    assert python.exists(), f"the environment of {name} is missing: run `make setup`"
    return [str(python), *command]


def install(name: str) -> None:
    """Install one project's environment, as locked."""
    python = find_python(name)
    print(f"{name}: {python or f'left out, there is no Python {wanted(name)}'}", flush=True)
    if python is not None:
        command = ["uv", "sync", "--quiet", "--project", f"integrations/{name}", "--frozen", "--python", python]
        subprocess.run(command, cwd=ROOT, env=project_environment(name), check=True)


def remove_orphans() -> None:
    """Remove the environments of checkouts that are gone."""
    for owner in CACHE.glob(f"*/{OWNER}"):
        if not Path(owner.read_text(encoding="utf-8")).is_dir():
            shutil.rmtree(owner.parent, ignore_errors=True)


def main() -> None:
    """Install every project's environment."""
    remove_orphans()
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    (ENVIRONMENTS / OWNER).write_text(str(ROOT), encoding="utf-8")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(install, PROJECTS))


if __name__ == "__main__":
    main()

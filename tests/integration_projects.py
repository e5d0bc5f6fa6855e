"""The integrations as projects of their own: where they lie, which Python they want, what runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = sorted(path.parent.name for path in ROOT.glob("integrations/*/pyproject.toml"))


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
    """Give the environment to run a project in: its own packages, away from the checkout and from ours."""
    place = ROOT / ".cache" / "integrations" / name
    apart = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}
    inherited = {key: value for key, value in os.environ.items() if key not in apart}
    inherited = {key: value for key, value in inherited.items() if not key.startswith("RECOLLECT_")}
    return inherited | {"UV_PROJECT_ENVIRONMENT": str(place), "DO_NOT_TRACK": "1"}


def in_project(name: str, *command: str) -> list[str]:
    """Say how to run a command in a project's own environment."""
    python = find_python(name)
    if python is None:
        import pytest

        pytest.skip(f"there is no Python {wanted(name)} on this machine")
    return ["uv", "run", "--project", f"integrations/{name}", "--frozen", "--python", python, *command]


def main() -> None:
    """Install every project's environment, as locked."""
    for number, name in enumerate(PROJECTS, start=1):
        python = find_python(name)
        print(
            f"[{number}/{len(PROJECTS)}] {name}: {python or f'left out, there is no Python {wanted(name)}'}", flush=True
        )
        if python is not None:
            command = ["uv", "sync", "--quiet", "--project", f"integrations/{name}", "--frozen", "--python", python]
            subprocess.run(command, cwd=ROOT, env=project_environment(name), check=True)


if __name__ == "__main__":
    main()

"""Every integration, by its own tests, with the real framework and a real server."""

from __future__ import annotations

import subprocess

import pytest

from integration_projects import PROJECTS, ROOT, in_project, project_environment

pytestmark = pytest.mark.slow
LONGEST_SECONDS = 900


@pytest.mark.parametrize("name", PROJECTS)
def test_an_integration_passes_its_own_tests(name, outside):
    ran = subprocess.run(
        in_project(name, "-m", "pytest", f"integrations/{name}/tests", "-q", "-p", "no:cacheprovider"),
        cwd=ROOT,
        env=project_environment(name) | outside,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    print(ran.stdout[-6000:], ran.stderr[-3000:], sep="\n")
    assert ran.returncode == 0
    assert " passed" in ran.stdout

"""Every integration, by its own tests, with the real framework and a real server."""

from __future__ import annotations

import subprocess

import pytest

from integration_projects import PROJECTS, ROOT, in_project, project_environment
from support.measuring.sizes import Sizes

pytestmark = pytest.mark.slow
LONGEST_SECONDS = 3_600
EXAMPLES = Sizes("or more examples of each comparison", ci=5, long=100)
"""The projects know them by RECOLLECT_TESTS: their environments hold nothing of ours."""


@pytest.mark.promise("Integrations do as the frameworks' own stores do, on a real server", EXAMPLES)
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
    said = f"{ran.stdout[-6000:]}\n{ran.stderr[-3000:]}"
    assert ran.returncode == 0, said
    assert " passed" in ran.stdout, said

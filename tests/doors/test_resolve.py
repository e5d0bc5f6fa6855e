"""What `make resolve` finds out: packages that get older next to ours, and conflicts that a page names."""

from __future__ import annotations

import shutil
import zipfile
from functools import partial
from pathlib import Path

import pytest

import resolve

pytestmark = pytest.mark.skipif(shutil.which("uv") is None, reason="uv resolves")
PAGE = "| `neighbor` | needs an old protocol | `pip install {}` |\n"
WORKS, FAILS = ("ours", "neighbor"), ("ours[protocol]", "neighbor")


def write_wheel(folder: Path, name: str, version: str, *needed: str) -> None:
    """Write a wheel that contains metadata alone."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Provides-Extra: protocol"]
    lines += [f"Requires-Dist: {each}" for each in needed]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        wheel.writestr(f"{name}-{version}.dist-info/RECORD", "")


@pytest.fixture
def resolver(tmp_path):
    """Resolve without a network, from packages of which one needs an old version of what ours needs a new one of."""
    for version in ("1.0", "2.0"):
        write_wheel(tmp_path, "protocol", version)
    write_wheel(tmp_path, "neighbor", "1.0")
    write_wheel(tmp_path, "neighbor", "2.0", "protocol<2")
    write_wheel(tmp_path, "ours", "0.1", 'protocol>=2; extra == "protocol"')
    return lambda wanted: resolve.resolve(wanted, tmp_path, "--no-index")


@pytest.mark.parametrize(
    ("together", "known", "failed", "remark"),
    [
        (WORKS, None, False, ""),
        (FAILS, None, True, "older or missing: neighbor"),
        (("ours[protocol]", "neighbor>=2"), None, True, "older or missing: neighbor"),
        (FAILS, "ours neighbor", False, "older or missing: neighbor; works: ours neighbor"),
        (
            FAILS,
            "'ours[protocol]' neighbor",
            True,
            "older or missing: neighbor; does not work: 'ours[protocol]' neighbor",
        ),
        (WORKS, "ours neighbor", True, "no conflict: remove it from alongside.md"),
    ],
)
def test_an_older_version_fails_unless_the_page_names_a_line_that_works(resolver, together, known, failed, remark):
    conflicts = resolve.read_conflicts(PAGE.format(known)) if known else {}
    result = resolve.judge(resolve.Case("neighbor", ("neighbor",), together), conflicts, resolver)
    assert (result.failed, result.remark, result.alone) == (failed, remark, {"neighbor": "2.0"})


def test_a_framework_that_needs_an_older_mcp_has_to_be_named():
    case = resolve.Case("crewai", ("crewai",), (resolve.OURS, "crewai"))
    found = resolve.judge(case, {}, lambda _: {"crewai": "1.15.30", "mcp": "1.30.0"})
    assert (found.failed, found.remark) == (True, "needs mcp 1.30.0")


def test_every_install_line_of_an_integration_is_tried():
    found = {case.name: case for case in resolve.find_pages()}
    assert found["docs/howto/crewai.md"].together == ("recollect-memory[server,embedded,local]", "recollect-crewai")
    assert found["docs/howto/crewai.md"].alone == ("crewai>=1.15,<1.16",)
    named = {word for case in found.values() for word in case.together}
    assert {*resolve.find_integrations()} <= named


@pytest.mark.parametrize("language", ["", ".zh"])
def test_the_page_names_frameworks_that_are_tried(language):
    known = resolve.read_conflicts(resolve.CONFLICTS.with_suffix(f"{language}.md").read_text(encoding="utf-8"))
    assert {"crewai", "strands-agents"} <= {*known} <= {*resolve.FRAMEWORKS}


def test_the_real_lines_of_the_page_of_crewai_resolve(tmp_path):
    resolve.build(tmp_path)
    [case] = [case for case in resolve.find_pages() if case.name == "docs/howto/crewai.md"]
    result = resolve.judge(case, {}, partial(resolve.resolve, links=tmp_path))
    assert (result.failed, result.remark) == (False, "")

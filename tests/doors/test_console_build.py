"""The console is built the same each time, weighs little, and is in every wheel and sdist; without Node it is said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import console
from support.programs.node import need_node, run_script

ROOT = Path(__file__).parents[2]
PAGES = "recollect/doors/http/pages"
SOURCES = ("console/src", "console/tests", "console/build", "clients/typescript/src", "clients/typescript/tests")
WRITTEN = {".ts", ".tsx", ".mjs", ".css"}
FUNCTION = re.compile(r"^(?:export )?(?:default )?(?:async )?function.*?^\}$", re.MULTILINE | re.DOTALL)
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Older versions of Python know no filters."""
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".cache", "node_modules", "__pycache__", "pages", "dist", "bench")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The console, built into a folder of its own."""
    need_node("console")
    folder = tmp_path_factory.mktemp("console") / "pages"
    console.build_into(folder)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources, as a clone has them: nothing is built yet."""
    need_node("console")
    copy = tmp_path_factory.mktemp("checkout") / "recollect"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    (copy / "console" / "node_modules").symlink_to(ROOT / "console" / "node_modules")
    return copy


def build(source: Path, out: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["uv", "build", *options, "--out-dir", str(out), str(source)]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def pages_in(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist() if name.startswith(f"{PAGES}/")}


def test_a_lock_may_only_gain_optional_packages():
    def lock(**packages):
        return json.dumps({"packages": packages}).encode()

    vite = {"version": "8.1.0"}
    assert console.find_changed(lock(vite=vite), lock(vite=vite, wasm={"version": "2.0.0", "optional": True})) == []
    assert console.find_changed(lock(vite=vite), lock(vite=vite, left={"version": "1.0.0"})) == ["left"]
    assert console.find_changed(lock(vite=vite), lock(vite={"version": "8.2.0"})) == ["vite"]
    assert console.find_changed(lock(vite=vite), lock()) == ["vite"]


def test_the_screens_are_right():
    need_node("console")
    run_script("console", "unit")


def test_files_and_functions_end_somewhere():
    sources = [path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in WRITTEN]
    assert len(sources) > 80
    for path in sources:
        text = path.read_text(encoding="utf-8")
        if path.name == "schema.d.ts":
            continue
        assert text.count("\n") <= 300, path
        for function in FUNCTION.findall(text):
            assert function.count("\n") <= 60, f"{path}: {function.splitlines()[0]}"


def test_two_builds_are_identical(built, tmp_path):
    console.build_into(tmp_path / "other")
    assert console.differences(built, tmp_path / "other") == []


def test_a_difference_is_found(built, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(built, copy)
    with (copy / "index.html").open("a", encoding="utf-8") as page:
        page.write(" ")
    (copy / "assets" / "more.js").write_text("", encoding="utf-8")
    assert console.differences(built, copy) == ["assets/more.js", "index.html"]


def test_it_weighs_little(built):
    first, everything = console.sizes(built)
    assert 10_000 < first <= console.FIRST_LOAD_BYTES
    assert first < everything <= console.ALL_BYTES


def test_it_carries_the_licences_of_what_it_ships(built):
    notices = (built / "assets" / "licenses.txt").read_text(encoding="utf-8")
    for name in ("react-dom", "@tanstack/react-query", "sigma", "graphology", "wouter"):
        assert f"{name} " in notices
    assert "GPL" not in notices


def test_a_wheel_of_a_clone_carries_it(checkout, built, tmp_path):
    made = build(checkout, tmp_path, "--wheel")
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    expected = {f"{PAGES}/{path.relative_to(built).as_posix()}" for path in built.rglob("*") if path.is_file()}
    assert set(pages_in(wheel)) == expected


def test_an_sdist_carries_it_and_needs_no_node(checkout, tmp_path):
    made = build(checkout, tmp_path, "--sdist")
    assert made.returncode == 0, made.stderr
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        file.extractall(tmp_path / "unpacked", **SAFELY)
    (source,) = (tmp_path / "unpacked").iterdir()
    assert not (source / "console").exists()
    again = build(source, tmp_path, "--wheel", PATH=path_without_node())
    assert again.returncode == 0, again.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert f"{PAGES}/index.html" in pages_in(wheel)


def test_without_node_a_wheel_lacks_it_and_says_so_but_a_release_fails(checkout, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare, ignore=LEFT_OUT)
    made = build(bare, tmp_path, "--wheel", PATH=path_without_node())
    assert made.returncode == 0, made.stderr
    assert "without the console" in made.stdout + made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert pages_in(wheel) == {}
    refused = build(bare, tmp_path, "--wheel", PATH=path_without_node(), CONSOLE_REQUIRED="1")
    assert refused.returncode != 0
    assert "A release carries the console" in refused.stdout + refused.stderr


def test_an_editable_install_builds_nothing(checkout, tmp_path):
    target = tmp_path / "site"
    command = ["uv", "pip", "install", "--no-deps", "--target", str(target), "--editable", str(checkout)]
    shutil.rmtree(checkout / "src" / PAGES, ignore_errors=True)
    subprocess.run(command, check=True, capture_output=True)
    assert not (checkout / "src" / PAGES).exists()


def path_without_node() -> str:
    """The folders of programs, but those that hold a Node."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(each for each in folders if not (Path(each) / "node").exists())

"""A release: what is built, what it installs by its hashes, and what the image would run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

import release
from support.programs import wheels

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def steps(stage: int) -> list[str]:
    """Give the commands of a stage of the image."""
    text = re.split(r"^FROM .*$", DOCKERFILE, flags=re.MULTILINE)[stage + 1]
    return [line.removeprefix("RUN ") for line in text.replace("\\\n", " ").splitlines() if line.startswith("RUN ")]


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The context of the image, unpacked."""
    built, unpacked = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("context")
    shutil.copytree(wheels.build_once(tmp_path_factory), built, dirs_exist_ok=True)
    release.pack_context(built)
    with tarfile.open(built / release.CONTEXT) as archive:
        archive.extractall(unpacked, filter="data")
    return unpacked


def run_step(step: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the image in a folder that stands for its root, with this machine's Python."""
    moved = re.sub(r"(?<![\w.])/(opt|dist|requirements)", rf"{root}/\1", step).replace(
        "python -m", f"{sys.executable} -m"
    )
    return subprocess.run(["bash", "-c", moved], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_steps_of_the_image_give_a_program_that_starts(context):
    for step in steps(0):
        ran = run_step(step, context)
        assert ran.returncode == 0, (step, ran.stderr[-2000:])
    program = context / "opt" / "recollect" / "bin" / "recollect"
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    assert "serve" in said


def test_one_wrong_digit_of_a_hash_is_refused(context, tmp_path):
    lines = (context / "requirements.txt").read_text(encoding="utf-8")
    entry = re.search(r"^annotated-types==.*?(?=^\w)", lines, re.MULTILINE | re.DOTALL)[0]
    wrong = re.sub(r"(?<=sha256:)\w", lambda digit: "0" if digit[0] != "0" else "1", entry)
    venv.create(tmp_path / "venv", with_pip=True)
    pip = [tmp_path / "venv" / "bin" / "pip", "download", "--no-deps", "--require-hashes", "--dest", tmp_path]
    ended = {}
    for name, text in (("right", entry), ("wrong", wrong)):
        (tmp_path / name).write_text(text)
        ended[name] = subprocess.run([*pip, "-r", tmp_path / name], capture_output=True, text=True, check=False)
    assert [each.returncode == 0 for each in ended.values()] == [True, False]
    assert "DO NOT MATCH THE HASHES" in ended["wrong"].stderr


def test_everything_in_the_image_has_a_hash(context):
    requirements = (context / "requirements.txt").read_text(encoding="utf-8")
    named = re.findall(r"^([\w.-]+)==", requirements, re.MULTILINE)
    assert {"fastapi", "onnxruntime", "obstore", "rjieba"} <= {*named}
    entries = re.split(r"^(?=\w)", requirements, flags=re.MULTILINE)[1:]
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert not {"pytest", "mypy", "onnx"} & {*named}


def test_the_image_runs_as_nobody_special_and_is_looked_after():
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001$", final, re.MULTILINE)
    assert "HEALTHCHECK" in final
    assert "COPY --from=packages /opt/recollect /opt/recollect" in final
    assert "pip" not in final


def lint(text: str) -> subprocess.CompletedProcess[str]:
    """Run hadolint on the text of a Dockerfile; notes of the level `info` do not count."""
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [hadolint, "--no-color", "--failure-threshold", "warning", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_the_linter_accepts_the_image_and_refuses_a_worse_one():
    found = lint(DOCKERFILE)
    assert found.returncode == 0, found.stdout
    for planted, rule in (("FROM python:latest\n", "DL3007"), ("RUN cd /opt && ls | wc\n", "DL4006")):
        refused = lint(DOCKERFILE + planted)
        assert refused.returncode != 0
        assert rule in refused.stdout


def test_notes_are_the_section_of_the_version():
    changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.2.0] - 2026-01-02\n\n- old\n"
    assert release.write_notes(changelog, "0.2.0") == "# Recollect 0.2.0\n\n- old\n"
    assert release.write_notes(changelog, "0.3.0") == "# Recollect 0.3.0\n\n- new\n"


def test_builds_that_differ_are_told_apart(tmp_path):
    for name, content in (("one", "same"), ("two", "same"), ("three", "other")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(content)
        (tmp_path / name / release.SUMS).write_text(release.write_sums(tmp_path / name))
    assert release.compare(tmp_path / "one", tmp_path / "two") == []
    assert len(release.compare(tmp_path / "one", tmp_path / "three")) == 2

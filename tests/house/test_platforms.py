"""The page of platforms says what the lock file has wheels for."""

from __future__ import annotations

import copy

import platforms


def test_the_page_is_what_the_lock_file_says():
    page = platforms.PAGE.read_text(encoding="utf-8")
    assert platforms.replace_table(page, platforms.write_table(platforms.read_lock())) == page


def test_a_package_without_a_wheel_is_named():
    packages = copy.deepcopy(platforms.read_lock())
    assert platforms.find_missing(packages, "Linux aarch64", (3, 13)) == []
    [planted] = [package for package in packages if package["name"] == "pydantic-core"]
    planted["wheels"] = [wheel for wheel in planted["wheels"] if "aarch64" not in wheel["url"]]
    assert platforms.find_missing(packages, "Linux aarch64", (3, 13)) == ["pydantic-core"]
    assert platforms.find_missing(packages, "Linux x86-64", (3, 13)) == []


def test_what_was_run_has_wheels():
    for platform, pythons in platforms.RUN.items():
        for python in pythons:
            major, minor = map(int, python.split("."))
            assert platforms.find_missing(platforms.read_lock(), platform, (major, minor)) == []

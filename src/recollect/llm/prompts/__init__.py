"""Prompts are Markdown files in this folder with placeholders; inserted values are never parsed."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path
from string import Template

FOLDER = Path(__file__).parent


def fill_prompt(name: str, **places: str | int) -> str:
    """Fill a prompt's placeholders; a missing value is an error."""
    return load_prompt(name).substitute(places)


@cache
def load_prompt(name: str) -> Template:
    """Load a prompt, cached."""
    return Template((FOLDER / f"{name}.md").read_text(encoding="utf-8").strip())


@cache
def version_of(name: str) -> str:
    """Return a prompt's name with a hash of its text: a changed text is a new version."""
    return f"{name}@{blake2b(load_prompt(name).template.encode(), digest_size=4).hexdigest()}"

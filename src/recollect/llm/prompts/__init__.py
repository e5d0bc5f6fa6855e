"""Prompts are Markdown files in this folder; their places are filled, and what is filled in is never parsed."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path
from string import Template

FOLDER = Path(__file__).parent


def fill_prompt(name: str, **places: str | int) -> str:
    """Fill a prompt's places; a place without a value is an error."""
    return load_prompt(name).substitute(places)


@cache
def load_prompt(name: str) -> Template:
    """Read a prompt, once."""
    return Template((FOLDER / f"{name}.md").read_text(encoding="utf-8").strip())


@cache
def version_of(name: str) -> str:
    """Return a prompt's name with a hash of its text: a changed text is another version."""
    return f"{name}@{blake2b(load_prompt(name).template.encode(), digest_size=4).hexdigest()}"

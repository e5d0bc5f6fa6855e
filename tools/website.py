"""Build the site from docs/ in English and Chinese, strictly: `python tools/website.py [folder]`, by default dist/site.

The pages are copied so that x.zh.md becomes x.md of the Chinese site, and links are written for their new place. A
file outside the docs has no page: such a link becomes plain text.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pages

ROOT, DOCS = pages.ROOT, pages.ROOT / "docs"
THEME = ROOT / "tools" / "theme"
MERMAID = ROOT / "console/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
PROJECT = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "GOVERNANCE", "SECURITY", "CODE_OF_CONDUCT")
SECTIONS = {
    "tutorial": {"en": "Tutorials", "zh": "教程"},
    "howto": {"en": "How-to guides", "zh": "操作指南"},
    "reference": {"en": "Reference", "zh": "参考"},
    "explanation": {"en": "Explanations", "zh": "原理"},
    "adr": {"en": "Decisions", "zh": "决策"},
    "project": {"en": "Project", "zh": "项目"},
}
HOME = {"en": "Home", "zh": "首页"}
DESCRIPTION = {"en": "The memory of AI agents on PostgreSQL", "zh": "建在 PostgreSQL 上的 AI 智能体记忆"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\A<!--.*?-->\n", re.DOTALL)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)

Place = tuple[str, str]
"""The language of a page, and its path below the home of that language."""
FRONT: dict[Path, Place] = {ROOT / "README.md": ("en", "index.md"), ROOT / "README.zh.md": ("zh", "index.md")}
"""Pages of the repository that are the home of the site in each language."""


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist" / "site").resolve()
    build(target)
    print(f"{target}/index.html")


def build(target: Path) -> None:
    """Build both languages; raise where a link or an anchor leads nowhere."""
    if not MERMAID.exists():
        raise SystemExit("The site draws with a package of the console: run `make console` first.")
    shutil.rmtree(target, ignore_errors=True)
    places = find_places()
    for language, folder in (("en", target), ("zh", target / "zh")):
        with tempfile.TemporaryDirectory() as scratch:
            stage(Path(scratch), language, places)
            command = [sys.executable, "-m", "zensical", "build", "--strict"]
            environment = os.environ | {"NO_COLOR": "1"}
            done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"{done.stdout}\n{done.stderr}")
            shutil.copytree(Path(scratch) / "site", folder)


def find_places() -> dict[Path, Place]:
    """Return the place of each page on the site."""
    places: dict[Path, Place] = {}
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix().replace("README", "index")
        places[page] = ("zh", name.replace(".zh.md", ".md")) if name.endswith(".zh.md") else ("en", name)
    places |= {ROOT / f"{name}.md": ("en", f"project/{name.lower()}.md") for name in PROJECT}
    return places | FRONT


def stage(scratch: Path, language: str, places: dict[Path, Place]) -> None:
    """Write everything that the site of one language is built from."""
    content = scratch / "pages"
    shutil.copytree(DOCS, content, ignore=shutil.ignore_patterns("*.md"))
    shutil.copytree(THEME / "partials", scratch / "theme" / "partials")
    (content / "assets").mkdir()
    shutil.copy(THEME / "site.css", content / "assets")
    shutil.copy(MERMAID, content / "assets" / "mermaid.js")
    titles: dict[str, str] = {}
    for page, (spoken, name) in places.items():
        if spoken == language and page not in FRONT:
            text = page.read_text(encoding="utf-8")
            titles[name] = find_title(text)
            (content / name).parent.mkdir(parents=True, exist_ok=True)
            (content / name).write_text(write_page(page, text, places), encoding="utf-8")
    template = string.Template((THEME / "zensical.toml").read_text(encoding="utf-8"))
    homes = {name: quote(lead((language, "index.md"), (name, "index.md"))) for name in HOME}
    values = {"language": quote(language), "description": quote(DESCRIPTION[language])}
    filled = template.substitute(homes | values, nav=write_nav(titles, language))
    (scratch / "zensical.toml").write_text(filled, encoding="utf-8")


def write_page(page: Path, text: str, places: dict[Path, Place]) -> str:
    """Return a page with links to pages of the site, and the address of its other language."""
    parts = FENCE.split(COMMENT.sub("", text))
    linked = [part if number % 2 else relink(page, part, places) for number, part in enumerate(parts)]
    language, name = places[page]
    other = ("zh" if language == "en" else "en", name)
    known = other if other in places.values() else (other[0], "index.md")
    return f"---\nother: {quote(lead(places[page], known))}\n---\n\n{''.join(linked)}"


def relink(page: Path, prose: str, places: dict[Path, Place]) -> str:
    """Rewrite the links of some prose."""
    return LINK.sub(lambda found: write_link(page, found, places), prose)


def write_link(page: Path, found: re.Match[str], places: dict[Path, Place]) -> str:
    picture, text, link = found.groups()
    path, _, anchor = link.partition("#")
    if link.startswith(("http://", "https://", "#")):
        return found[0]
    target = (page.parent / path).resolve()
    text = relink(page, text, places)
    if target in places:
        here, there = places[page], places[target]
        mark = f"#{anchor}" if anchor and target not in FRONT else ""
        if here[0] == there[0]:
            return f"{picture}[{text}]({relate(here[1], there[1])}{mark})"
        return f'<a href="{lead(here, there)}{mark}">{text}</a>'
    if target.is_relative_to(DOCS) and target.is_file():
        return f"{picture}[{text}]({relate(places[page][1], target.relative_to(DOCS).as_posix())})"
    return text


def relate(here: str, there: str) -> str:
    return os.path.relpath(there, Path(here).parent)


def lead(here: Place, there: Place) -> str:
    """Return the address of a built page, seen from another."""
    built = [f"{'zh/' if language == 'zh' else ''}{name.removesuffix('.md')}.html" for language, name in (here, there)]
    return relate(*built)


def write_nav(titles: dict[str, str], language: str) -> str:
    """List the pages by section, as an array of TOML."""
    entries = [f"{{ {quote(HOME[language])} = {quote('index.md')} }}"]
    for folder, named in SECTIONS.items():
        chosen = sorted(
            (name for name in titles if name.startswith(f"{folder}/")), key=lambda name: order(name, titles)
        )
        chosen += ["glossary.md"] if folder == "reference" and "glossary.md" in titles else []
        if chosen:
            entries.append(f"{{ {quote(named[language])} = [{', '.join(list_entries(chosen, titles))}] }}")
    return f"[{', '.join(entries)}]"


def order(name: str, titles: dict[str, str]) -> tuple[bool, str]:
    """Put the page of a folder first; decisions stand by number, all others by title."""
    return (not name.endswith("/index.md"), name if name.startswith("adr/") else titles[name].lower())


def list_entries(names: Sequence[str], titles: dict[str, str]) -> Iterator[str]:
    return (f"{{ {quote(titles[name])} = {quote(name)} }}" for name in names)


def find_title(text: str) -> str:
    return TITLE.findall(text)[0].replace("`", "")


def quote(text: str) -> str:
    """Write a string of TOML, or of YAML."""
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    main()

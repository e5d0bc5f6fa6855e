"""The site is built without a warning; its links lead somewhere, its search finds, and it asks no other host."""

from __future__ import annotations

import functools
import os
import re
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

import pages
import website
from support.programs.node import need_chromium, need_node, run_script

TAG = re.compile(r"<(a|script|img|iframe|link|source)\s([^>]*)>")
ATTRIBUTE = re.compile(r"([\w:-]+)=\"?([^\"\s>]*)")
ANCHOR = re.compile(r"\s(?:id|name)=\"?([^\"\s>]+)")
FOREIGN = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
FETCHED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    need_node("console")
    folder = tmp_path_factory.mktemp("website") / "site"
    website.build(folder)
    return folder


@pytest.fixture(scope="module")
def tags(site):
    """Every tag of every page that names an address, with its attributes."""
    return {page: read_tags(page.read_text(encoding="utf-8")) for page in sorted(site.rglob("*.html"))}


def read_tags(text):
    return [(tag, dict(ATTRIBUTE.findall(attributes))) for tag, attributes in TAG.findall(text)]


def test_every_page_of_the_docs_is_there(tags, site):
    built = {page.relative_to(site).as_posix() for page in tags}
    wanted = {website.lead(("en", "index.md"), place) for place in website.find_places().values()}
    assert len(wanted) > 100
    assert wanted <= built


def test_links_and_anchors_lead_somewhere(tags, site):
    anchors = {str(page): {*ANCHOR.findall(page.read_text(encoding="utf-8"))} for page in tags}
    links = {
        (page, found["href"])
        for page, each in tags.items()
        for tag, found in each
        if tag == "a" and found.get("href") and page.name != "404.html"
    }
    assert len(links) > 1000
    assert sorted((page.name, href) for page, href in links if not leads(page, href, anchors)) == []


@pytest.mark.parametrize("home", ["index.html", "zh/index.html"])
def test_every_page_can_be_reached_from_the_home(home, tags, site):
    reached: set[Path] = set()
    waiting = [site / home]
    while waiting:
        page = waiting.pop()
        if page in tags and page not in reached:
            reached.add(page)
            hrefs = [found["href"].partition("#")[0] for tag, found in tags[page] if tag == "a" and "href" in found]
            waiting += [Path(os.path.normpath(page.parent / unquote(href))) for href in hrefs if href]
    lost = {page.relative_to(site).as_posix() for page in tags.keys() - reached} - {"404.html", "zh/404.html"}
    assert lost == set()


def leads(page: Path, href: str, anchors: dict[str, set[str]]) -> bool:
    path, _, anchor = unquote(href).partition("#")
    if FOREIGN.match(href) or href.startswith("mailto:"):
        return True
    target = os.path.normpath(page.parent / path) if path else str(page)
    if target not in anchors:
        return Path(target).is_file()
    return not anchor or anchor in anchors[target]


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    (tmp_path / "picture.svg").touch()
    anchors = {str(tmp_path / "page.html"): {"here"}, str(tmp_path / "other.html"): {"there"}}
    asked = ("#here", "other.html#there", "picture.svg", "https://example.org", "#there", "other.html#here", "no.html")
    assert [leads(tmp_path / "page.html", href, anchors) for href in asked] == [True] * 4 + [False] * 3


def test_nothing_is_fetched_from_other_hosts(tags, site):
    asked = [
        (page.name, found[FETCHED[tag]])
        for page, each in tags.items()
        for tag, found in each
        if tag in FETCHED and FOREIGN.match(found.get(FETCHED[tag], "")) and found.get("rel") != "canonical"
    ]
    assert asked == []
    styles = "\n".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^\"')]+", styles) == []


def test_a_page_leads_to_its_other_language(tags, site):
    pairs = [page for page in pages.to_translate() if pages.chinese(page).exists() and page.parent != pages.ROOT]
    assert pairs
    for page in pairs:
        name = page.relative_to(website.DOCS).as_posix().replace("README", "index").replace(".md", ".html")
        for here, there in ((site / name, site / "zh" / name), (site / "zh" / name, site / name)):
            switches = [found["href"] for tag, found in tags[here] if tag == "a" and "hreflang" in found]
            assert [(here.parent / href).resolve() for href in switches] == [there], name


@pytest.mark.parametrize("broken", ["[there](README.md#nothing)", "[there][1]\n\n[1]: missing.md"])
def test_a_broken_link_fails_the_build(broken, tmp_path, monkeypatch):
    need_node("console")
    home = tmp_path / "docs" / "README.md"
    home.parent.mkdir()
    home.write_text(f"# Home\n\n{broken}\n", encoding="utf-8")
    monkeypatch.setattr(website, "DOCS", home.parent)
    monkeypatch.setattr(website, "find_places", lambda: {home: ("en", "index.md")})
    with pytest.raises(SystemExit, match="does not exist"):
        website.build(tmp_path / "site")


@pytest.mark.slow
def test_a_browser_finds_in_both_languages_and_asks_no_other_host(site):
    need_chromium()
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        home = f"http://127.0.0.1:{server.server_port}"
        run_script("console", "site", SITE=home, CHROMIUM=shutil.which("chromium") or "")
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""

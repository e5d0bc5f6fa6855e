"""A real browser walks through the console of a real server: all screens and acts, light and dark, both languages."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import httpx
import pytest
from PIL import Image

import console
from support.models.scripted_chat import chatting
from support.models.scripted_extractions import entity, fact
from support.programs.folders import open_folder
from support.programs.node import need_chromium, need_node, run_script
from support.programs.programs import plain_environment
from support.service.console_scopes import fill, fill_hostile, fill_others
from support.service.served import running_up, serving

MOST_BYTES = 100_000
"""What a picture in the documentation may weigh."""
KEYS = {
    "READ_KEY": {"rights": ["read"]},
    "BOUND_KEY": {"rights": ["read", "write"], "agent": "ada", "user": "li"},
    "ADMIN_KEY": {"rights": ["admin"]},
}


@pytest.fixture
def walked(cluster):
    """A server with the console, seeded scopes, and keys of different rights."""
    need_node("console")
    need_chromium()
    console.build()
    with serving(
        cluster,
        request_timeout_seconds="60",
        recall__channel_timeout_seconds="30",
        embedding__wait_timeout_seconds="30",
    ) as outside:
        url, key = outside["RECOLLECT_URL"], outside["RECOLLECT_KEY"]
        fill_hostile(url, key)
        fill_others(url, key)
        fill(url, key, agent="kay")
        fill(url, key)
        headers = {"Authorization": f"Bearer {key}"}
        made = {
            name: httpx.post(f"{url}/v1/keys", json={"name": name.lower(), **wanted}, headers=headers, trust_env=False)
            for name, wanted in KEYS.items()
        }
        yield outside | {name: answer.raise_for_status().json()["secret"] for name, answer in made.items()}


@pytest.fixture
def started():
    """`recollect up`, as it is started first, with a chat model that says what a script says: its link and its key."""
    with chatting(answering=answer) as chat, open_folder("up") as folder:
        settings = {"data_dir": str(folder / "data"), "port": "0", "chat_url": chat, "chat_model": "scripted"}
        environment = {f"RECOLLECT_{name.upper()}": value for name, value in settings.items()}
        with running_up(plain_environment() | environment) as greeting:
            link = re.search(r"http://\S+/console#link=\S+", greeting)
            key = re.search(r"rec_[\w-]+", greeting)
            assert link and key, greeting
            yield {"UP_LINK": link[0], "UP_KEY": key[0]}


def answer(shape: str, prompt: str) -> object:
    """Answer a turn, or say what is learned from it."""
    if shape == "AssistantReply":
        return {"text": "Mind the wasps by the shed."}
    learned = fact("Wasps", "live by", "the shed") | {"text": "Wasps live by the shed."}
    named = [entity("Wasps", "thing"), entity("the shed", "place")] if "wasps" in prompt else []
    parts = {"summary": "They talk of the garden.", "label": "Garden", "paths": [], "importance": 5, "keywords": []}
    return parts | {"entities": named, "facts": [learned] if named else []}


@pytest.mark.slow
def test_a_browser_walks_through_it(walked, started, tmp_path):
    """Set SHOTS=docs/howto/images to take the pictures of the page on the console anew."""
    shots = Path(os.environ.get("SHOTS") or tmp_path / "shots").resolve()
    run_script("console", "e2e", **walked, **started, CHROMIUM=shutil.which("chromium") or "", SHOTS=str(shots))
    pictures = sorted(shots.glob("console-*.png"))
    assert len(pictures) >= 7
    for picture in pictures:
        shrink(picture)
        assert picture.stat().st_size <= MOST_BYTES, picture.name


def shrink(picture: Path) -> None:
    """Store a picture with as many colours as a page needs."""
    with Image.open(picture) as image:
        reduced = image.convert("RGB").quantize(192, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(picture, optimize=True)

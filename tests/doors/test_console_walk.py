"""A real browser walks through the console of a real server: all screens and acts, light and dark, both languages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import httpx
import pytest
from PIL import Image

import console
from console_scopes import fill, fill_hostile, fill_others
from node import need_chromium, need_node, run_script
from served import serving

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
    with serving(cluster, deadline_seconds="60", channel_seconds="30", embed_wait_seconds="30") as outside:
        url, key = outside["RECOLLECT_URL"], outside["RECOLLECT_KEY"]
        fill_hostile(url, key)
        fill_others(url, key)
        fill(url, key)
        headers = {"Authorization": f"Bearer {key}"}
        made = {
            name: httpx.post(f"{url}/v1/keys", json={"name": name.lower(), **wanted}, headers=headers, trust_env=False)
            for name, wanted in KEYS.items()
        }
        yield outside | {name: answer.raise_for_status().json()["secret"] for name, answer in made.items()}


@pytest.mark.slow
def test_a_browser_walks_through_it(walked, tmp_path):
    """Set SHOTS=docs/howto/images to take the pictures of the page on the console anew."""
    shots = Path(os.environ.get("SHOTS") or tmp_path / "shots").resolve()
    run_script("console", "e2e", **walked, CHROMIUM=shutil.which("chromium") or "", SHOTS=str(shots))
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

"""The page on prompts tells the truth: its program prints about the figures that it shows.

The IDs in a prompt are random and differ in tokens, so the last memory fits in some runs and not in others.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from recollect.core.conversations.prompt_texts import ENGLISH
from support.programs.folders import find_memory, open_folder
from support.programs.programs import plain_environment

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "context.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_program_prints_what_the_page_shows():
    [program], [block, shown] = blocks("python"), blocks("text")
    assert block.startswith(f"{ENGLISH.heading}\n<memories>\n")
    found, expected = figures(run(program)), figures(shown)
    assert len(found) == len(expected) == 2
    for (turns, hits, fits), (shown_turns, shown_hits, _) in zip(found, expected, strict=True):
        assert abs(turns - shown_turns) <= shown_turns / 4
        assert abs(hits - shown_hits) <= max(1, shown_hits / 4)
        assert fits
    (turns, hits, _), (turns_of_many, hits_of_many, _) = found
    assert turns > turns_of_many
    assert hits < hits_of_many


def figures(printed: str) -> list[tuple[int, int, bool]]:
    rows = re.findall(r"^(\d+) turns, (\d+) memories, (True|False)$", printed, re.MULTILINE)
    return [(int(turns), int(hits), fits == "True") for turns, hits, fits in rows]


def run(program: str) -> str:
    plain = plain_environment()
    with open_folder("context-page", find_memory()) as folder:
        environment = plain | {"RECOLLECT_DATA_DIR": str(folder / "data"), "RECOLLECT_EMBEDDER": "none"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stdout

"""The page on prompts tells the truth: its program prints the figures that it shows."""

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
    assert run(program) == shown


def run(program: str) -> str:
    plain = plain_environment()
    with open_folder("context-page", find_memory()) as folder:
        environment = plain | {"RECOLLECT_DATA_DIR": str(folder / "data"), "RECOLLECT_EMBEDDER": "none"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stdout

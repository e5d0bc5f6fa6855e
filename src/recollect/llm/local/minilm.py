"""The local embedding model all-MiniLM-L6-v2, from the graph in the package `recollect-minilm`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.core.text.terms import script_of
from recollect.errors import SetupError
from recollect.llm.embedder import MINILM
from recollect.llm.local.encoder import Encoder, EncoderTraits, open_session
from recollect.llm.local.wordpiece import WordPiece
from recollect.loading import find_data, install_hint
from recollect.models.recall import Script

DIMENSIONS = 384
ROOM = 256
"""Maximum number of tokens in the model's training; further text is not embedded."""
PACKAGE = "recollect_minilm"
GRAPH, VOCABULARY = "model.onnx", "vocab.txt"
REPAIR = "run: pip install --force-reinstall recollect-minilm"


def load_minilm(threads: int = 0) -> Encoder:
    """Open the model, which reads English words; it was not trained on other scripts."""
    return Encoder(*open_minilm(threads), EncoderTraits(MINILM, DIMENSIONS, reads_words))


def open_minilm(threads: int) -> tuple[Any, WordPiece]:
    """Open the session and the tokenizer of the local embedders."""
    graph, vocabulary = find_file(GRAPH), find_file(VOCABULARY)
    session = open_session(graph, threads, "local", REPAIR)
    return session, WordPiece(vocabulary.read_text(encoding="utf-8").splitlines(), ROOM)


def reads_words(text: str) -> bool:
    """Return whether a text is written in words with spaces."""
    return script_of(text) is Script.WORDS


def find_file(name: str) -> Path:
    """Return a file of the model's package, without importing the package."""
    path = find_data(PACKAGE, name)
    if path is None:
        raise SetupError(f"{name} of recollect-minilm is missing; {install_hint('local')}")
    return path

"""The local embedding model: all-MiniLM-L6-v2, from the graph that `recollect-minilm` carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.core.text.terms import script_of
from recollect.errors import SetupError
from recollect.llm.embedder import MINILM
from recollect.llm.local.encoder import Encoder, EncoderTraits, open_session
from recollect.llm.local.wordpiece import WordPiece
from recollect.loading import advise, find_data
from recollect.models.recall import Script

DIMENSIONS = 384
ROOM = 256
"""Tokens that the model was trained to read; what follows them in a text is not embedded."""
PACKAGE = "recollect_minilm"
GRAPH, VOCABULARY = "model.onnx", "vocab.txt"
REPAIR = "run: pip install --force-reinstall recollect-minilm"


def load_minilm(threads: int = 0) -> Encoder:
    """Open the model, which reads English words; it did not learn other scripts."""
    return Encoder(*open_minilm(threads), EncoderTraits(MINILM, DIMENSIONS, reads_words))


def open_minilm(threads: int) -> tuple[Any, WordPiece]:
    """Open the session and the tokens that the local embedders are made of."""
    graph, vocabulary = find_file(GRAPH), find_file(VOCABULARY)
    session = open_session(graph, threads, "local", REPAIR)
    return session, WordPiece(vocabulary.read_text(encoding="utf-8").splitlines(), ROOM)


def reads_words(text: str) -> bool:
    """Tell whether a text is written with words."""
    return script_of(text) is Script.WORDS


def find_file(name: str) -> Path:
    """Return a file of the package that carries the model, without importing it."""
    path = find_data(PACKAGE, name)
    if path is None:
        raise SetupError(f"{name} of recollect-minilm is missing; {advise('local')}")
    return path

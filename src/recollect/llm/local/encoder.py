"""A BERT or XLM-RoBERTa encoder in ONNX that runs in this process: texts to unit vectors, in fair batches.

Products are computed in float32. 8-bit integers embed twice as many texts per second, but change vectors: with the
usual scaling per tensor, texts of one batch affect each other (cosine 0.99 between batches). Scaling per token avoids
that, but short texts only reach 0.97 to the exact vector, and cues are short. Float32 gives the published vectors in
any batch and on any machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderError, SetupError
from recollect.llm.embedder import check_vectors
from recollect.llm.local.batches import Batches
from recollect.loading import load

ROWS = 8
"""Texts per run: more are not faster, and a short cue waits for only a few such runs."""
SHORT, STEP = 16, 32
"""Texts up to SHORT tokens run together, longer ones in classes of STEP tokens, so that little padding is computed."""
QUICK_CHARACTERS = 1000
"""Texts up to this total length are tokenized directly: passing them to a thread would take longer."""
STATES, VECTORS = 3, 2
"""Number of axes of an output: texts, tokens and numbers, or texts and numbers."""


class Pooling(StrEnum):
    """How the token states of a text are combined to one vector."""

    MEAN = "mean"
    CLS = "cls"
    """The state of the first token."""


class Pieces(Protocol):
    """Converts a text to token IDs."""

    def encode(self, text: str) -> list[int]:
        """Return the token IDs of the text's beginning."""
        ...


@dataclass(frozen=True, slots=True)
class EncoderTraits:
    """The properties of an encoder, except its graph and its tokens."""

    model: str
    """The name of the embedding space."""
    dimensions: int
    reads: Callable[[str], bool]
    pooling: Pooling = Pooling.MEAN
    """Not used if the graph itself returns one vector per text."""
    padding: int = 0
    """The token ID for padding."""
    cue_prefix: str = ""
    memory_prefix: str = ""
    quick_characters: int = QUICK_CHARACTERS


class Encoder:
    """Embeds texts in this process; texts of concurrent callers run together."""

    def __init__(self, session: Any, tokens: Pieces, traits: EncoderTraits) -> None:  # noqa: ANN401 - onnxruntime has no types
        self.model, self.dimensions = traits.model, traits.dimensions
        self._session, self._tokens, self._traits = session, tokens, traits
        self._inputs = [each.name for each in session.get_inputs()]
        self._output = choose_output([(each.name, len(each.shape)) for each in session.get_outputs()])
        # One worker: there is one run at a time, and it does not block the event loop's own threads.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recollect-encoder")
        self._batches: Batches[list[int], NDArray[np.float32]] = Batches(self._infer_apart, length_class, ROWS)
        self._closed = False

    def reads(self, text: str) -> bool:
        """Return whether the model can read a text."""
        return self._traits.reads(text)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per memory; cancelling stops the work after the current run."""
        return await self._embed([self._traits.memory_prefix + text for text in texts])

    async def embed_cues(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per cue."""
        return await self._embed([self._traits.cue_prefix + text for text in texts])

    async def close(self) -> None:
        """Stop the worker; a current run is completed."""
        self._closed = True
        self._worker.shutdown(wait=False)

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        quick = sum(map(len, texts)) <= self._traits.quick_characters
        ids = self._encode(texts) if quick else await self._run(self._encode, texts)
        vectors = np.array(await self._batches.submit_items(ids), dtype=np.float32)
        return check_vectors(vectors, len(texts), self.dimensions)

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
        tokens = np.full((len(ids), max(map(len, ids))), self._traits.padding, dtype=np.int64)
        mask = np.zeros_like(tokens)
        for row, sequence in enumerate(ids):
            tokens[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        output: NDArray[np.float32] = self._session.run([self._output], {name: given[name] for name in self._inputs})[0]
        return output if output.ndim == VECTORS else pool(output, mask, self._traits.pooling)


def choose_output(outputs: Sequence[tuple[str, int]]) -> str:
    """Return the output to read: the states of all tokens, else the only output with a vector per text."""
    states = [name for name, axes in outputs if axes == STATES]
    vectors = [name for name, axes in outputs if axes == VECTORS]
    if not states and len(vectors) != 1:
        raise SetupError(f"The graph has no output of token states, only {', '.join(name for name, _ in outputs)}.")
    return (states or vectors)[0]


def pool(states: NDArray[np.float32], mask: NDArray[np.int64], pooling: Pooling) -> NDArray[np.float32]:
    """Combine token states to one vector per text; padding does not count."""
    if pooling is Pooling.CLS:
        return states[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    mean: NDArray[np.float32] = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def length_class(ids: Sequence[int]) -> int:
    """Return the length class of a text: texts of one class run together."""
    return SHORT if len(ids) <= SHORT else -(-len(ids) // STEP) * STEP


def open_session(graph: Path, threads: int, extra: str, advice: str) -> Any:  # noqa: ANN401 - onnxruntime has no types
    """Open a graph; 0 threads = half the processors, at most 4. `advice` is for errors about damaged files."""
    onnxruntime = load("onnxruntime", extra)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or max(1, min(4, (os.cpu_count() or 1) // 2))
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Every batch has another width: memory plans would accumulate, and spinning threads waste time.
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime raises many kinds of error for a damaged file.
        raise SetupError(f"Cannot read {graph}; {advice}") from error

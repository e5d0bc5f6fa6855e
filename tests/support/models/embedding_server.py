"""A real OpenAI-compatible embedding server for tests: llama.cpp serving MiniLM in a process of its own.

`with serving() as server:` yields one that runs; `server.url` ends in /v1, `server.kill()` is an outage
and `server.start()` brings it back on the same port. As a script it is the server itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

import model_files
from model_files import SHAPE, VOCABULARY_SHA256, WEIGHTS_SHA256, find_weights, read_weights
from recollect.llm.local.gloss.dictionary import default_cache
from support.programs.ports import free_port

MODEL, DIMENSIONS = "minilm", SHAPE.hidden
FILE_VERSION = 1
WINDOW = 512
"""Tokens that BERT has positions for; llama.cpp answers 500 to a longer text."""
SPECIAL = frozenset({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
TENSORS = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
LAYER_TENSORS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


class EmbeddingServer:
    """One server process on a fixed port, to be killed and started again at will."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Say how the process is started."""
        return [sys.executable, __file__, str(convert_weights()), str(self.port)]

    def start(self, timeout_seconds: float = 60.0) -> None:
        """Start the process and return when it answers."""
        folders = (Path(__file__).parents[2], Path(model_files.__file__).parent)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
        # The pipe is the child's lifeline: when this process dies, it closes and the server ends.
        self._process = subprocess.Popen(
            self.command(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        until = time.monotonic() + timeout_seconds
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended with {self._process.returncode}")
            if time.monotonic() > until:
                self.kill()
                raise RuntimeError("the server did not come up")
            time.sleep(0.05)

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None

    def restart(self) -> None:
        """Kill the process and start another on the same port."""
        self.kill()
        self.start()

    def _answers(self) -> bool:
        try:
            health = httpx.get(f"http://127.0.0.1:{self.port}/health", timeout=2, trust_env=False)
        except httpx.HTTPError:
            return False
        return health.status_code == 200


@contextmanager
def serving(port: int | None = None) -> Iterator[EmbeddingServer]:
    """Run a server for the length of the block."""
    server = EmbeddingServer(port)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def embedding_server() -> Iterator[EmbeddingServer]:
    with serving() as server:
        yield server


def convert_weights() -> Path:
    """Return MiniLM as a GGUF file, converted once and kept in the cache."""
    target = default_cache() / f"minilm-{WEIGHTS_SHA256[:12]}-{VOCABULARY_SHA256[:4]}-v{FILE_VERSION}.gguf"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        _write_gguf(find_weights(), unfinished)
        unfinished.replace(target)
    return target


def _write_gguf(folder: Path, path: Path) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, "bert")
    writer.add_name(MODEL)
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(SHAPE.hidden)
    writer.add_feed_forward_length(4 * SHAPE.hidden)
    writer.add_block_count(SHAPE.layers)
    writer.add_head_count(SHAPE.heads)
    writer.add_layer_norm_eps(SHAPE.epsilon)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    _add_vocabulary(writer, (folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    weights = read_weights(folder)
    for name, tensor in weights.items():
        if (target := _rename(name)) is not None:
            writer.add_tensor(target, np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer, vocabulary: list[str]) -> None:
    import gguf

    def respell(token: str) -> str:
        # llama.cpp marks beginnings of words where BERT marks what continues them.
        if token in SPECIAL:
            return token
        return token[2:] if token.startswith("##") else "\u2581" + token

    kinds = [gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL for token in vocabulary]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([respell(token) for token in vocabulary])
    writer.add_token_types(kinds)
    writer.add_token_type_count(2)
    place = {token: vocabulary.index(token) for token in SPECIAL}
    writer.add_bos_token_id(place["[CLS]"])
    writer.add_eos_token_id(place["[SEP]"])
    writer.add_sep_token_id(place["[SEP]"])
    writer.add_pad_token_id(place["[PAD]"])
    writer.add_unk_token_id(place["[UNK]"])
    writer.add_mask_token_id(place["[MASK]"])


def _rename(name: str) -> str | None:
    """Return llama.cpp's name of a tensor, or None for one that it does not use."""
    stem, _, suffix = name.rpartition(".")
    if stem in TENSORS:
        return f"{TENSORS[stem]}.{suffix}"
    parts = stem.split(".", 3)
    if parts[:2] == ["encoder", "layer"] and parts[3] in LAYER_TENSORS:
        return f"blk.{parts[2]}.{LAYER_TENSORS[parts[3]]}.{suffix}"
    return None


def _serve(path: str, port: int) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.embedding = True
    parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = WINDOW
    parameters.n_parallel = 1
    # More threads wait for each other in spin loops, which is far slower on a busy machine.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    sys.stdin.buffer.read()
    del server
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))

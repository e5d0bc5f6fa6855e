"""Read the minds that Generative Agents saved: folders of nodes, vectors, keyword strengths and scratch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

THREE = ("isabella_rodriguez", "klaus_mueller", "maria_lopez")
ZH = (
    *("abigail_chen", "arthur_burton", "ayesha_khan", "carlos_gomez", "carmen_ortiz", "eddy_lin", "francisco_lopez"),
    *("giorgio_rossi", "jane_moreno", "klaus_mueller", "mei_lin", "tamara_taylor", "wolfgang_schulz"),
)
MINDS = (
    *(f"ga_july1_step_3_{step}/{name}" for step in (1, 12, 20) for name in THREE),
    *(f"ga_zh_25_1/{name}" for name in ZH),
)
"""All that were saved, by folder."""


@dataclass(frozen=True, slots=True)
class SavedMind:
    """One folder as it was read."""

    folder: Path
    nodes: list[dict[str, Any]]
    """node_1 to node_n: the first is at index 0."""
    vectors: dict[str, NDArray[np.float32]]
    """By `embedding_key`; empty where the folder has none."""
    strengths: dict[str, dict[str, int]]
    scratch: dict[str, Any]


def read_mind(shared: Path, name: str) -> SavedMind:
    folder = shared / "data" / name
    nodes = read_json(folder / "nodes.json")
    return SavedMind(
        folder=folder,
        nodes=[nodes[f"node_{number}"] for number in range(1, len(nodes) + 1)],
        vectors=read_vectors(folder),
        strengths=read_json(folder / "kw_strength.json"),
        scratch=read_json(folder / "scratch.json"),
    )


def read_vectors(folder: Path) -> dict[str, NDArray[np.float32]]:
    if not (folder / "embeddings.f32.npy").exists():
        return {}
    return dict(zip(read_json(folder / "embedding_keys.json"), np.load(folder / "embeddings.f32.npy"), strict=True))


def read_golden(shared: Path, name: str) -> dict[str, Any]:
    return read_json(shared / "golden" / f"{name}.json")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))

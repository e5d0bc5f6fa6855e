"""A small folder as Generative Agents saves one, with everything in it that is hard to carry."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

FIELDS = (
    *("node_count", "type_count", "type", "depth", "created", "expiration", "subject", "predicate", "object"),
    *("description", "embedding_key", "poignancy", "keywords", "filling"),
)
ADDRESS = "the Ville:cafe:counter:coffee machine"
DEEPER = ["node_5", "node_1", "node_4"]
LINES = [["Ann", "Did you sleep well?"], ["Bo", "Not at all，不好。"]]
ROWS = [
    (1, "event", 0, "08:00:00", None, ADDRESS, "is", "idle", "machine is idle", "", 1, ["idle", "coffee machine"], []),
    (1, "chat", 0, "08:00:10", None, "Ann", "chat with", "Bo", "a talk about sleep", "", 4, ["Bo", "Ann"], LINES),
    (2, "event", 0, "08:00:10", None, "Ann", "chat with", "Bo", "Ann is chatting", "", 0, ["Bo", "Ann"], ["node_2"]),
    (1, "thought", 1, "08:00:20", "30", "Bo", "is", "tired", "Bo is tired", "", 6, ["tired", "is", "Bo"], ["node_2"]),
    (3, "event", 0, "08:01:00", None, "Ann", "drinks", "tea", "Ann is on a break (tea)", "tea", 12, ["tea", "Ann"], []),
    (2, "thought", 2, "08:02:00", "30", "Ann", "cares", "Bo", "Ann cares", "", 7, ["Ann"], DEEPER),
    (3, "thought", 3, "08:02:00", "30", "Ann", "cares", "Bo", "Twice", "", 7, ["Ann"], ["node_6", "node_2", "node_6"]),
    (4, "thought", 1, "08:03:00", None, "a\nb", "计划，关于", "茶", "A plan", "", 5.5, ["a\nb", "计划，关于"], None),
    (5, "thought", 1, "08:03:00", "30", "this", "is", "blank", "this is blank", "", 5, ["Plan"], "node_1"),
    (4, "event", 0, "08:04:00", None, "Bo", "在", "空闲", "Bo 空闲", "", 1, ["空闲", "Bo"], []),
]  # fmt: skip
STRENGTHS = {
    "kw_strength_event": {"bo": 1, "ann": 2, "tea": 1},
    "kw_strength_thought": {"tired": 1, "is": 1, "bo": 1, "ann": 2, "a\nb": 1, "计划，关于": 1, "plan": 1},
}
SCRATCH = {
    "name": "Ann Lee",
    "curr_tile": [3, 4],
    "recency_w": 1,
    "relevance_w": 1.5,
    "importance_w": 2,
    "recency_decay": 0.995,
    "importance_trigger_max": 150,
    "importance_trigger_curr": 61,
    "importance_ele_n": 7,
    "chat": None,
    "act_event": ["Ann", "drinks", "tea"],
}
SPATIAL = {"the Ville": {"cafe": {"counter": ["coffee machine"]}}}


def make_node(number: int, row: tuple) -> dict:
    """Spell a short row out: the day, thirty days more for `30`, the description where no other text is embedded."""
    of_type, kind, depth, clock, expires, *triple, description, key, weight, keywords, sources = row
    created, expiration = f"2023-02-13 {clock}", f"2023-03-15 {clock}" if expires else None
    values = (number, of_type, kind, depth, created, expiration, *triple, description, key or description, weight)
    return dict(zip(FIELDS, (*values, keywords, sources), strict=True))


def make_nodes() -> dict[str, dict]:
    """Give all nodes, the newest first."""
    return {f"node_{number}": make_node(number, ROWS[number - 1]) for number in range(len(ROWS), 0, -1)}


def make_embeddings(dimensions: int = 8) -> dict[str, list[float]]:
    """Give a vector of single precision and unit length for every text that is embedded."""
    keys = sorted({node["embedding_key"] for node in make_nodes().values()})
    rows = np.random.default_rng(7).normal(size=(len(keys), dimensions))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return dict(zip(keys, rows.astype(np.float64).tolist(), strict=True))


def write_saved_folder(path: Path, **changes: object) -> Path:
    """Write the folder; a file named with other content has that content, and None leaves it out."""
    files = {
        "bootstrap_memory/associative_memory/nodes.json": make_nodes(),
        "bootstrap_memory/associative_memory/kw_strength.json": STRENGTHS,
        "bootstrap_memory/associative_memory/embeddings.json": make_embeddings(),
        "bootstrap_memory/scratch.json": SCRATCH,
        "bootstrap_memory/spatial_memory.json": SPATIAL,
    }
    for name, content in files.items():
        chosen = changes.get(Path(name).stem, content)
        if chosen is not None:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(chosen if isinstance(chosen, str) else json.dumps(chosen), encoding="utf-8")
    return path


def read_saved_folder(path: Path) -> dict[str, object]:
    """Read every file of a folder, by name."""
    return {file.name: json.loads(file.read_bytes()) for file in sorted(path.rglob("*.json"))}

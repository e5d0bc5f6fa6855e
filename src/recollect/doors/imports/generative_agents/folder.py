"""Read and write the folder that Generative Agents saves a persona in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from recollect.errors import InvalidInputError
from recollect.models.memories import JSON

MOMENT = "%Y-%m-%d %H:%M:%S"
MAX_DIMENSIONS = 4_096
MISMATCH = f"the embeddings must be one vector per key, all of 1 to {MAX_DIMENSIONS} dimensions"
Vectors = Mapping[str, NDArray[np.float32]]
Model = TypeVar("Model", bound=BaseModel)


def check_created(text: str) -> str:
    """Check that a time has the format of the original."""
    datetime.strptime(text, MOMENT)  # noqa: DTZ007 - only whether it can be read
    return text


class SavedNode(BaseModel):
    """One memory as the original writes it; fields of a fork are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    node_count: int
    type_count: int
    type: Literal["event", "thought", "chat"]
    depth: int
    created: Annotated[str, AfterValidator(check_created)]
    expiration: str | None
    subject: str
    predicate: str
    object: str
    description: str
    embedding_key: str
    poignancy: int | float
    keywords: list[str]
    filling: JSON


class Strengths(BaseModel):
    """How often events and thoughts were filed under a keyword."""

    model_config = ConfigDict(frozen=True)

    kw_strength_event: dict[str, int]
    kw_strength_thought: dict[str, int]


class Scratch(BaseModel):
    """The part of the scratch that decides how a persona remembers; the rest is kept unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    recency_w: int | float
    relevance_w: int | float
    importance_w: int | float
    recency_decay: int | float
    importance_trigger_max: int | float
    importance_trigger_curr: int | float
    importance_ele_n: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A saved persona: node_1 to node_n in order, vectors by embedding key, and the rest as it was parsed."""

    nodes: list[SavedNode]
    strengths: Strengths
    scratch: Scratch
    vectors: Vectors = field(default_factory=dict[str, NDArray[np.float32]])
    spatial: JSON = None


def find_name(path: Path) -> str:
    """Return the name of the persona's folder as an agent's name."""
    whole = path.resolve()
    named = whole.parent if whole.name == "bootstrap_memory" else whole
    return " ".join(named.name.split())


def read_folder(path: Path) -> Folder:
    """Read a folder in the original's layout, from outside or inside of it, or with all files side by side."""
    places = (path / "bootstrap_memory" / "associative_memory", path / "associative_memory", path)
    inner = next((place for place in places if (place / "nodes.json").is_file()), None)
    if inner is None:
        raise InvalidInputError(f"{path} has no bootstrap_memory/associative_memory/nodes.json, and no nodes.json")
    outer = inner.parent if inner.name == "associative_memory" else inner
    return Folder(
        nodes=read_nodes(inner / "nodes.json"),
        strengths=parse(Strengths, read_json(inner / "kw_strength.json"), "kw_strength.json"),
        scratch=parse(Scratch, read_json(outer / "scratch.json"), "scratch.json"),
        vectors=read_vectors(inner),
        spatial=read_json(outer / "spatial_memory.json") if (outer / "spatial_memory.json").is_file() else None,
    )


def read_nodes(path: Path) -> list[SavedNode]:
    """Read nodes in the order of their numbers, which have no gaps."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise InvalidInputError("nodes.json holds no nodes by name")
    names = [f"node_{number}" for number in range(1, len(found) + 1)]
    if missing := next((name for name in names if name not in found), None):
        raise InvalidInputError(f"nodes.json holds {len(found)} nodes, but no {missing}")
    nodes = [parse(SavedNode, found[name], f"nodes.json, {name}") for name in names]
    for number, node in enumerate(nodes, start=1):
        if node.node_count != number:
            raise InvalidInputError(f"nodes.json, node_{number}: its node_count is {node.node_count}")
    return nodes


def read_vectors(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Read vectors from JSON, or from an array with its keys in another file; a folder may have none."""
    listed, packed = folder / "embeddings.json", folder / "embeddings.f32.npy"
    try:
        if listed.is_file():
            found: dict[str, object] = read_json(listed)
            return pair(list(found), np.array(list(found.values()), dtype=np.float32)) if found else {}
        return pair(read_json(folder / "embedding_keys.json"), np.load(packed)) if packed.is_file() else {}
    except (AttributeError, EOFError, TypeError, ValueError):
        raise InvalidInputError(MISMATCH) from None


def pair(keys: list[str], rows: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """Join keys and vectors, or say that they do not fit."""
    if rows.ndim != 2 or len(rows) != len(keys) or not 1 <= rows.shape[1] <= MAX_DIMENSIONS:
        raise InvalidInputError(MISMATCH)
    single: NDArray[np.float32] = rows.astype(np.float32, casting="same_kind")
    return dict(zip(keys, single, strict=True))


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read one file, or name its fault."""
    try:
        return json.loads(path.read_bytes(), parse_constant=refuse_constant)
    except FileNotFoundError:
        raise InvalidInputError(f"{path} is missing") from None
    except (ValueError, RecursionError) as problem:
        raise InvalidInputError(f"{path} is not JSON: {problem}") from None


def refuse_constant(name: str) -> None:
    """Refuse what Python reads as a number but JSON does not know."""
    raise ValueError(f"it holds {name}")


def parse(model: type[Model], value: object, place: str) -> Model:
    """Check parsed JSON against its model, or name the first fault."""
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        first = problem.errors(include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InvalidInputError(f"{place}: {field} {first['msg']}".replace("\n", " ")) from None


def write_folder(path: Path, folder: Folder) -> None:
    """Write a folder in the original's layout, as the original writes it: the newest node first."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidInputError(f"{path} is not empty. Choose an empty or a new folder.")
    outer = path / "bootstrap_memory"
    inner = outer / "associative_memory"
    inner.mkdir(parents=True, exist_ok=True)
    nodes = {f"node_{node.node_count}": node.model_dump() for node in reversed(folder.nodes)}
    vectors = {key: row.astype(np.float64).tolist() for key, row in folder.vectors.items()}
    (inner / "nodes.json").write_text(json.dumps(nodes), encoding="utf-8")
    (inner / "kw_strength.json").write_text(json.dumps(folder.strengths.model_dump()), encoding="utf-8")
    (inner / "embeddings.json").write_text(json.dumps(vectors), encoding="utf-8")
    (outer / "scratch.json").write_text(json.dumps(folder.scratch.model_dump(), indent=2), encoding="utf-8")
    if folder.spatial is not None:
        (outer / "spatial_memory.json").write_text(json.dumps(folder.spatial), encoding="utf-8")

"""How to run a model, from its own files and from Recollect's table of models."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.errors import SetupError
from recollect.llm.local.encoder import Pooling
from recollect.models.outside import KnownModel

CONFIG, TOKENIZER, MODULES = "config.json", "tokenizer.json", "modules.json"
LENGTHS = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
POOLING = "1_Pooling/config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
OPTIONAL = (MODULES, POOLING, LENGTHS, PROMPTS, TOKENIZER_CONFIG)
GRAPHS = ("onnx/model.onnx", "model.onnx")
FAMILIES = ("bert", "xlm-roberta")
MAX_TOKENS = 512
"""Longer texts are cut for every model: the work grows with the square of their length."""
MODES = {"pooling_mode_mean_tokens": Pooling.MEAN, "pooling_mode_cls_token": Pooling.CLS}
KNOWN_KINDS = ("Transformer", "Pooling", "Normalize")
CUE_PROMPTS, MEMORY_PROMPTS = ("query",), ("passage", "document", "corpus")
"""Names of prefixes in the models' files."""

Read = Callable[[str], Any]
"""Returns the parsed JSON of a file of the model, or None if it is missing."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How to run a model."""

    family: str
    dimensions: int
    pooling: Pooling
    tokens: int
    padding: int
    cue_prefix: str
    memory_prefix: str


def load_known() -> dict[str, KnownModel]:
    """Return the models that Recollect knows by name."""
    table = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
    rows = (KnownModel(**row | {"more": tuple(row.get("more", ()))}) for row in table["model"])
    return {row.name: row for row in rows}


def read_json(folder: Path) -> Read:
    """Return a function that parses the JSON files of a folder."""

    def read_json_file(path: str) -> Any:  # noqa: ANN401 - parsed JSON
        try:
            return json.loads((folder / path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            raise SetupError(f"{folder / path} is not JSON; pull the model again.") from None

    return read_json_file


def read_layout(read: Read, known: KnownModel | None) -> Layout:
    """Return how to run a model: by its own files if possible, else by the table."""
    config = read(CONFIG)
    if not isinstance(config, dict):
        raise SetupError(f"{CONFIG} is missing; pull the model again.")
    family = str(config.get("model_type", ""))
    if family not in FAMILIES:
        raise SetupError(f"A model of the family {family or '(none)'} cannot be run; {' and '.join(FAMILIES)} can.")
    padding = int(config.get("pad_token_id") or 0)
    prompts = (read(PROMPTS) or {}).get("prompts") or {}
    return Layout(
        family,
        int(config.get("hidden_size") or 0),
        find_pooling(read, known),
        find_tokens(read, config, family, padding),
        padding,
        find_prompt(prompts, CUE_PROMPTS, known.cue_prefix if known else ""),
        find_prompt(prompts, MEMORY_PROMPTS, known.memory_prefix if known else ""),
    )


def find_pooling(read: Read, known: KnownModel | None) -> Pooling:
    """Return the pooling; refuse a model with a layer that is not implemented."""
    modules = read(MODULES) or []
    kinds = {str(each.get("type", "")).rpartition(".")[2]: str(each.get("path", "")) for each in modules}
    if others := [kind for kind in kinds if kind not in KNOWN_KINDS]:
        raise SetupError(f"The model has a layer that cannot be run: {', '.join(others)}.")
    said = read(f"{kinds['Pooling']}/config.json" if "Pooling" in kinds else POOLING) or {}
    modes = [name for name, on in said.items() if name.startswith("pooling_mode_") and on is True]
    if not modes and known:
        return Pooling(known.pooling)
    if len(modes) != 1 or modes[0] not in MODES:
        raise SetupError(f"The model pools by {', '.join(modes) or 'an unknown rule'}; mean and cls can be run.")
    return MODES[modes[0]]


def find_tokens(read: Read, config: Mapping[str, Any], family: str, padding: int) -> int:
    """Return the maximum number of tokens of a text, including the first and the last one."""
    # XLM-RoBERTa numbers positions from the one after the padding token's.
    positions = int(config.get("max_position_embeddings") or MAX_TOKENS) - (padding + 1 if family != "bert" else 0)
    said = ((read(LENGTHS) or {}).get("max_seq_length"), (read(TOKENIZER_CONFIG) or {}).get("model_max_length"))
    return min(positions, MAX_TOKENS, *(int(each) for each in said if each))


def find_prompt(prompts: Mapping[str, Any], names: tuple[str, ...], otherwise: str) -> str:
    """Return a prefix by one of its names."""
    return next((str(prompts[name]) for name in names if prompts.get(name)), otherwise)

"""Models in the layout of a hub: MiniLM with its published weights, and a small XLM-RoBERTa with fixed random ones."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import bert
from model_files import find_weights
from recollect.llm.local.minilm import GRAPH, find_file

PADDING, HIDDEN, LAYERS, HEADS, POSITIONS = 1, 32, 2, 2, 40
EPSILON = 1e-5
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "in",
    "mat",
    "house",
    "query",
    "passage",
    ":",
    "li",
    "grows",
    "tomatoes",
    "what",
    "does",
]
LETTERS = "abcdefghijklmnopqrstuvwxyz猫狗茶花生过敏?.!"


def write_minilm(folder: Path) -> Path:
    """Write MiniLM as a hub has it: its own files, and a graph that gives the states of all tokens."""
    shutil.copytree(find_weights(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    model = onnx.load(str(find_file(GRAPH)))
    last = [node for node in model.graph.node if node.op_type == "LayerNormalization"][-1].output[0]
    model.graph.node.append(onnx.helper.make_node("Identity", [last], ["last_hidden_state"]))
    shape = ["texts", "tokens", 384]
    states = onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, shape)
    del model.graph.output[:]
    model.graph.output.append(states)
    (folder / "onnx").mkdir()
    onnx.save(model, str(folder / "onnx" / "model.onnx"))
    return folder


def draw_weights() -> dict[str, np.ndarray]:
    """Draw the weights of a small XLM-RoBERTa, always the same; 16 bits hold them exactly."""
    chance = np.random.default_rng(7)

    def draw(*shape: int) -> np.ndarray:
        return (chance.standard_normal(shape) * 0.3).astype(np.float16).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": draw(len(vocabulary()), HIDDEN),
        "embeddings.position_embeddings.weight": draw(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": np.zeros((1, HIDDEN), np.float32),
        "embeddings.LayerNorm.weight": 1 + draw(HIDDEN),
        "embeddings.LayerNorm.bias": draw(HIDDEN),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            weights |= {f"{name}{part}.weight": draw(HIDDEN, HIDDEN), f"{name}{part}.bias": draw(HIDDEN)}
        weights |= {f"{name}intermediate.dense.weight": draw(4 * HIDDEN, HIDDEN)}
        weights |= {f"{name}intermediate.dense.bias": draw(4 * HIDDEN)}
        weights |= {f"{name}output.dense.weight": draw(HIDDEN, 4 * HIDDEN), f"{name}output.dense.bias": draw(HIDDEN)}
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            weights |= {f"{name}{part}.weight": 1 + draw(HIDDEN), f"{name}{part}.bias": draw(HIDDEN)}
    return weights


def vocabulary() -> list[tuple[str, float]]:
    """Return the pieces and what each costs, as a unigram tokenizer has them."""
    pieces = [*(f"\u2581{word}" for word in WORDS), "\u2581", *LETTERS]
    return [*((token, 0.0) for token in SPECIAL), *((piece, -1.0 - len(pieces) / 100) for piece in pieces)]


def write_tokenizer(path: Path) -> None:
    """Write a tokenizer of the kind that XLM-RoBERTa has: unigram pieces between `<s>` and `</s>`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(vocabulary(), unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    # As published files have it: what they say of length and padding is not what a batch needs.
    tokenizer.enable_padding(length=POSITIONS, pad_id=PADDING, pad_token="<pad>")
    tokenizer.enable_truncation(8)
    tokenizer.save(str(path))


def write_xlm_roberta(folder: Path, pooling: str, prompts: dict[str, str] | None = None) -> Path:
    """Write the small model with its own files, and a graph that counts positions as the real ones do."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    write_tokenizer(folder / "tokenizer.json")
    config = {"model_type": "xlm-roberta", "hidden_size": HIDDEN, "pad_token_id": PADDING}
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    files: dict[str, Any] = {
        "config.json": config | {"max_position_embeddings": POSITIONS, "num_hidden_layers": LAYERS},
        "modules.json": [
            {"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()
        ],
        "1_Pooling/config.json": {
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
            "pooling_mode_max_tokens": False,
        },
        "config_sentence_transformers.json": {"prompts": prompts or {}},
    }
    for path, content in files.items():
        (folder / path).write_text(json.dumps(content))
    (folder / "onnx" / "model.onnx").write_bytes(build_xlm_roberta(draw_weights()))
    return folder


def build_xlm_roberta(weights: dict[str, np.ndarray]) -> bytes:
    """Build the graph: positions are counted from the padding's number on, over what is no padding."""
    shape = bert.BertShape(HIDDEN, LAYERS, HEADS, EPSILON)
    graph = bert._Graph()
    mask = graph.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
    padded = graph.add("Equal", "input_ids", graph.integers(PADDING))
    real = graph.add("Cast", graph.add("Not", padded), to=onnx.TensorProto.INT64)
    counted = graph.add("CumSum", real, graph.constant("axis", np.array(1, np.int64)))
    places = graph.add("Add", graph.add("Mul", counted, real), graph.integers(PADDING))
    tables = {name: weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")}
    words = graph.add("Gather", graph.matrix("words", tables["word"]), "input_ids")
    placed = graph.add("Gather", graph.matrix("places", tables["position"] + tables["token_type"][0]), places)
    summed = graph.add("Add", words, placed)
    state = graph.normalise(summed, weights, "embeddings.LayerNorm", EPSILON)
    bias = bert._attention_bias(graph, mask)
    for layer in range(LAYERS):
        state = bert._encode_layer(graph, weights, shape, bert._Layer(f"encoder.layer.{layer}.", state, bias))
    graph.nodes.append(onnx.helper.make_node("Identity", [state], ["last_hidden_state"]))
    return serialise(graph)


def serialise(graph: Any) -> bytes:
    """Return the graph as the bytes of a file."""
    helper, kinds, axes = onnx.helper, onnx.TensorProto, ["texts", "tokens"]
    inputs = [helper.make_tensor_value_info(name, kinds.INT64, axes) for name in ("input_ids", "attention_mask")]
    outputs = [helper.make_tensor_value_info("last_hidden_state", kinds.FLOAT, [*axes, HIDDEN])]
    body = helper.make_graph(graph.nodes, "encoder", inputs, outputs, list(graph.constants.values()))
    opsets = [helper.make_opsetid("", bert.OPSET)]
    model = helper.make_model(body, opset_imports=opsets, ir_version=bert.IR_VERSION)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def run_by_formulas(ids: list[int]) -> np.ndarray:
    """Return the states of one text's tokens by the formulas of the papers, in double precision and without a graph."""
    weights = {name: value.astype(np.float64) for name, value in draw_weights().items()}

    def dense(value: np.ndarray, name: str) -> np.ndarray:
        return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normalise(value: np.ndarray, name: str) -> np.ndarray:
        centred = value - value.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    places = np.arange(len(ids)) + PADDING + 1
    state = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][places]
    state = normalise(state, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name, width = f"encoder.layer.{layer}.", HIDDEN // HEADS
        queries, keys, values = (dense(state, f"{name}attention.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            own = slice(head * width, (head + 1) * width)
            scores = queries[:, own] @ keys[:, own].T / math.sqrt(width)
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(chances / chances.sum(axis=1, keepdims=True) @ values[:, own])
        attended = dense(np.concatenate(heads, axis=1), f"{name}attention.output.dense")
        state = normalise(attended + state, f"{name}attention.output.LayerNorm")
        inner = dense(state, f"{name}intermediate.dense")
        widened = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        state = normalise(dense(widened, f"{name}output.dense") + state, f"{name}output.LayerNorm")
    return state

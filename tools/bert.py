"""A BERT sentence encoder as an ONNX graph, built from its published weights without any training library.

Matrices are stored in 16 bits, because the file is half as large then, and cast to 32 when the graph is loaded.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

Weights: TypeAlias = Mapping[str, NDArray[np.float32]]

OPSET, IR_VERSION = 20, 9
"""The oldest opset with Gelu and LayerNormalization, so that older runtimes can read the file."""
MASKED = -1e9


@dataclass(frozen=True, slots=True)
class BertShape:
    """How many layers and heads the weights have."""

    hidden: int
    layers: int
    heads: int
    epsilon: float


@dataclass(slots=True)
class _Graph:
    """Collect nodes and constants; every `add` returns the name of the node's output."""

    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, Any] = field(default_factory=dict[str, Any])

    def constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self.constants:
            self.constants[name] = onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def matrix(self, name: str, value: NDArray[np.float32]) -> str:
        halved = self.constant(name, value.astype(np.float16))
        return self.add("Cast", halved, to=onnx.TensorProto.FLOAT)

    def integers(self, *values: int) -> str:
        return self.constant("integers_" + "_".join(map(str, values)), np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self.constant(f"number_{value}", np.array(value, np.float32))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def split(self, value: str, parts: int) -> list[str]:
        outputs = [f"Split_{len(self.nodes)}_{part}" for part in range(parts)]
        self.nodes.append(onnx.helper.make_node("Split", [value], outputs, axis=-1, num_outputs=parts))
        return outputs

    def linear(self, value: str, name: str, matrix: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        product = self.add("MatMul", value, self.matrix(f"{name}.matrix", matrix.T))
        return self.add("Add", product, self.constant(f"{name}.bias", bias))

    def normalise(self, value: str, weights: Weights, name: str, epsilon: float) -> str:
        scale = self.constant(f"{name}.weight", weights[f"{name}.weight"])
        shift = self.constant(f"{name}.bias", weights[f"{name}.bias"])
        return self.add("LayerNormalization", value, scale, shift, axis=-1, epsilon=epsilon)


def read_safetensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the float tensors of a safetensors file by name, as views on the given bytes."""
    (length,) = struct.unpack_from("<Q", data)
    start = 8 + length
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(data, dtype="<f4", count=(end - begin) // 4, offset=start + begin)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def build_graph(weights: Weights, shape: BertShape) -> bytes:
    """Return the encoder as ONNX bytes: token ids and mask in, mean-pooled unit vectors out."""
    graph = _Graph()
    mask = graph.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
    bias = _attention_bias(graph, mask)
    state = _embed_tokens(graph, weights, shape)
    for layer in range(shape.layers):
        state = _encode_layer(graph, weights, shape, _Layer(f"encoder.layer.{layer}.", state, bias))
    pooled = _pool(graph, state, mask)
    graph.nodes.append(onnx.helper.make_node("LpNormalization", [pooled], ["embedding"], axis=-1, p=2))
    return _serialise(graph, shape)


@dataclass(frozen=True, slots=True)
class _Layer:
    name: str
    state: str
    bias: str


def _embed_tokens(graph: _Graph, weights: Weights, shape: BertShape) -> str:
    def table(name: str) -> NDArray[np.float32]:
        return weights[f"embeddings.{name}_embeddings.weight"]

    words = graph.add("Gather", graph.matrix("words", table("word")), "input_ids")
    length = graph.add("Shape", "input_ids", start=1, end=2)
    # A Slice, because onnxruntime 1.31 turns a Gather over a Range into an invalid graph.
    zero = graph.integers(0)
    # The segment is always the first one, so its row is added to every position in advance.
    places = graph.matrix("places", table("position") + table("token_type")[0])
    summed = graph.add("Add", words, graph.add("Slice", places, zero, length, zero))
    return graph.normalise(summed, weights, "embeddings.LayerNorm", shape.epsilon)


def _attention_bias(graph: _Graph, mask: str) -> str:
    """Return 0 where a token is, and a large negative number where padding is."""
    spread = graph.add("Unsqueeze", mask, graph.integers(1, 2))
    absent = graph.add("Sub", graph.number(1), spread)
    return graph.add("Mul", absent, graph.number(MASKED))


def _encode_layer(graph: _Graph, weights: Weights, shape: BertShape, layer: _Layer) -> str:
    def dense(value: str, name: str) -> str:
        full = layer.name + name
        return graph.linear(value, full, weights[f"{full}.weight"], weights[f"{full}.bias"])

    def join(value: str, residual: str, name: str) -> str:
        summed = graph.add("Add", value, residual)
        return graph.normalise(summed, weights, layer.name + name, shape.epsilon)

    attended = dense(_attend(graph, weights, shape, layer), "attention.output.dense")
    attended = join(attended, layer.state, "attention.output.LayerNorm")
    widened = graph.add("Gelu", dense(attended, "intermediate.dense"))
    return join(dense(widened, "output.dense"), attended, "output.LayerNorm")


def _attend(graph: _Graph, weights: Weights, shape: BertShape, layer: _Layer) -> str:
    width = shape.hidden // shape.heads
    parts = [f"{layer.name}attention.self.{part}" for part in ("query", "key", "value")]
    scales = (1 / np.sqrt(np.float32(width)), np.float32(1), np.float32(1))
    # Query, key and value in one product, with the query's scaling folded into its weights.
    matrix = np.concatenate([weights[f"{p}.weight"] * s for p, s in zip(parts, scales, strict=True)])
    offset = np.concatenate([weights[f"{p}.bias"] * s for p, s in zip(parts, scales, strict=True)])
    joint = graph.linear(layer.state, f"{layer.name}attention.self", matrix, offset)
    query, key, value = graph.split(joint, 3)

    def spread(part: str, order: list[int]) -> str:
        heads = graph.add("Reshape", part, graph.integers(0, 0, shape.heads, width))
        return graph.add("Transpose", heads, perm=order)

    scores = graph.add("MatMul", spread(query, [0, 2, 1, 3]), spread(key, [0, 2, 3, 1]))
    chances = graph.add("Softmax", graph.add("Add", scores, layer.bias), axis=-1)
    mixed = graph.add("MatMul", chances, spread(value, [0, 2, 1, 3]))
    together = graph.add("Transpose", mixed, perm=[0, 2, 1, 3])
    return graph.add("Reshape", together, graph.integers(0, 0, shape.hidden))


def _pool(graph: _Graph, state: str, mask: str) -> str:
    """Return the mean over real tokens."""
    column = graph.add("Unsqueeze", mask, graph.integers(2))
    one = graph.integers(1)
    total = graph.add("ReduceSum", graph.add("Mul", state, column), one, keepdims=0)
    return graph.add("Div", total, graph.add("ReduceSum", column, one, keepdims=0))


def _serialise(graph: _Graph, shape: BertShape) -> bytes:
    helper, kinds = onnx.helper, onnx.TensorProto
    inputs = [
        helper.make_tensor_value_info(name, kinds.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("embedding", kinds.FLOAT, ["texts", shape.hidden])]
    body = helper.make_graph(graph.nodes, "sentence_encoder", inputs, outputs, list(graph.constants.values()))
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(body, opset_imports=opsets, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data

"""How providers of models behave, as their documents and their users report: what each accepts and how it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Refusal = Callable[[str], dict[str, Any]]
ANY_LENGTH = range(1, 4097)
SCHEMA, OBJECT, TEXT = "json_schema", "json_object", "text"


@dataclass
class Provider:
    """One provider, and what it was asked."""

    base: str
    """What its paths begin with."""
    refuse: Refusal
    """How the body of a refusal looks, given its message."""
    key: str = "sk-right"
    """Empty where none is needed."""
    embeds: Mapping[str, tuple[int, range | tuple[int, ...]]] = field(default_factory=dict)
    """Embedding models: the usual dimensions, and those that can be named."""
    batch: int = 2048
    too_many: int = 400
    """The status for more texts than `batch`."""
    chats: tuple[str, ...] = ()
    formats: tuple[str, ...] = (SCHEMA, OBJECT, TEXT)
    limit: str = "max_tokens"
    """The name that it knows for the longest answer."""
    balance: bool = True
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Path, `Authorization` and body of every request."""

    def answer(self, path: str, authorization: str, question: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        """Return status and body; no body where the chat model is to speak."""
        self.asked.append((path, authorization, question))
        if self.key and authorization != f"Bearer {self.key}":
            return 401, self.refuse("Incorrect API key provided")
        if not self.balance:
            return 402, self.refuse("Insufficient Balance")
        if path == f"{self.base}/embeddings":
            return self.embed(question)
        if path == f"{self.base}/chat/completions":
            return self.chat(question)
        return 404, self.refuse("Not Found")

    def embed(self, question: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return random vectors of the usual or the named dimensions."""
        texts = question["input"]
        if question["model"] not in self.embeds:
            return 404, self.refuse(f'model "{question["model"]}" not found')
        usual, namable = self.embeds[question["model"]]
        length = question.get("dimensions", usual)
        if len(texts) > self.batch:
            return self.too_many, self.refuse(f"batch size is invalid, it should not be larger than {self.batch}")
        if question.get("encoding_format") != "float" or ("dimensions" in question and length not in namable):
            return 400, self.refuse(f'Model "{question["model"]}" does not support changing output dimensions')
        rows = np.random.default_rng(5).standard_normal((len(texts), length)).tolist()
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        return 200, {"object": "list", "model": question["model"], "data": data, "usage": {"prompt_tokens": 1}}

    def chat(self, question: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        """Check a question to the chat model."""
        form = question.get("response_format", {}).get("type", TEXT)
        if question["model"] not in self.chats:
            return 404, self.refuse(f'model "{question["model"]}" not found')
        if other := {"max_tokens", "max_completion_tokens"}.intersection(question) - {self.limit}:
            return 400, self.refuse(f"Unsupported parameter: {other.pop()}. Use '{self.limit}' instead.")
        if form not in self.formats:
            return 400, self.refuse("This response_format type is unavailable now")
        if form == OBJECT and "json" not in question["messages"][-1]["content"].lower():
            return 400, self.refuse("messages must contain the word json in some form")
        return 200, None


def refuse_as_openai(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "invalid"}}


def refuse_as_dashscope(message: str) -> dict[str, Any]:
    said = f"<400> InternalError.Algo.InvalidParameter: Value error, {message}.: input.contents"
    error = {"message": said, "type": "InvalidParameter", "param": None, "code": "InvalidParameter"}
    return {"error": error, "id": "318cff27", "request_id": "318cff27"}


def refuse_as_siliconflow(message: str) -> dict[str, Any]:
    return {"code": 20042, "message": message, "data": None}


def refuse_as_vllm(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


def make_providers() -> dict[str, Provider]:
    """Return the providers of the page, by name."""
    qwen = (2048, 1536, 1024, 768, 512, 256, 128, 64)
    return {
        "OpenAI": Provider(
            "/v1",
            refuse_as_openai,
            embeds={"text-embedding-3-small": (1536, range(1, 1537))},
            chats=("gpt-5-mini",),
            limit="max_completion_tokens",
        ),
        "Ollama": Provider("/v1", refuse_as_openai, key="", embeds={"bge-m3": (1024, ANY_LENGTH)}, chats=("qwen3:8b",)),
        "vLLM": Provider("/v1", refuse_as_vllm, embeds={"BAAI/bge-m3": (1024, ())}, chats=("Qwen/Qwen3-8B",)),
        "DashScope": Provider(
            "/compatible-mode/v1",
            refuse_as_dashscope,
            embeds={"text-embedding-v4": (1024, qwen)},
            batch=10,
            chats=("qwen-plus",),
            formats=(OBJECT, TEXT),
        ),
        "DeepSeek": Provider("", refuse_as_openai, chats=("deepseek-flash",), formats=(OBJECT, TEXT)),
        "SiliconFlow": Provider(
            "/v1",
            refuse_as_siliconflow,
            embeds={"BAAI/bge-m3": (1024, ())},
            batch=64,
            too_many=413,
            chats=("Qwen/Qwen3-8B",),
            formats=(OBJECT, TEXT),
        ),
    }

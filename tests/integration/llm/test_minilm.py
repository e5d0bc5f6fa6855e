"""The local model gives the published vectors in any company, and explains what it lacks."""

import asyncio
import shutil
import sys
import time

import numpy as np
import pytest

import model_files
from recollect.errors import EmbedderError, SetupError
from recollect.llm.build import has_minilm
from recollect.llm.embedder import Embedder
from recollect.llm.local import minilm
from recollect.llm.local.encoder import Encoder
from recollect.llm.local.minilm import find_file, load_minilm
from recollect.llm.local.wordpiece import WordPiece
from support.programs.waiting import heartbeat, until

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not has_minilm(), reason="the local model is not installed"),
]

PAIRS = [
    ("We took in a stray tabby last winter.", "Which pet lives with them?"),
    ("My knees hurt, so I swim instead of jogging.", "What sport suits the user's health?"),
    ("The rent leaves my account on the third.", "When is the flat paid for?"),
    ("Our daughter starts school in September.", "Do they have children?"),
    ("I get sick whenever a dish has prawns in it.", "Is there a food allergy?"),
    ("She conducts the city's symphony orchestra.", "Which job in music does she have?"),
    ("The cellar was flooded after the storm.", "What damage did the weather do?"),
    ("He writes all his firmware in C.", "Which programming language does he use?"),
]
OTHERS = [
    "The library opens at nine.",
    "Trams are on strike today.",
    "The printer is out of toner.",
    "Somebody left an umbrella here.",
]


@pytest.fixture(scope="module")
def local() -> Encoder:
    return load_minilm()


def read_tokens(room: int = minilm.ROOM) -> WordPiece:
    return WordPiece(find_file(minilm.VOCABULARY).read_text(encoding="utf-8").splitlines(), room)


async def test_it_gives_the_published_values(local):
    vector = (await local.embed(["This is an example sentence"]))[0]
    assert vector[:3].tolist() == pytest.approx([0.0677, 0.0635, 0.0487], abs=1e-4)


async def test_low_overlap_questions_find_their_memory(local):
    memories = await local.embed([memory for memory, _ in PAIRS] + OTHERS)
    questions = await local.embed([question for _, question in PAIRS])
    best = (questions @ memories.T).argmax(axis=1)
    assert (best == np.arange(len(PAIRS))).sum() >= len(PAIRS) - 1


async def test_a_vector_depends_on_its_own_text_alone(local):
    text = PAIRS[0][0]
    company = [text, *OTHERS, "word " * 300, "x"]
    alone, together = (await local.embed([text]))[0], (await local.embed(company))[0]
    assert np.allclose(alone, together, atol=1e-5)


async def test_rows_come_in_the_order_of_the_texts(local):
    texts = [f"{'long ' * (number * 7 % 40)}number {number}" for number in range(40)]
    together = await local.embed(texts)
    for place in (0, 7, 23, 39):
        assert together[place] @ (await local.embed([texts[place]]))[0] > 0.99999


async def test_it_keeps_the_protocol(local):
    embedder: Embedder = local
    vectors = await embedder.embed(["tea", "", " ", "\ud800 broken", "安喜欢喝茶", "word " * 5000])
    assert vectors.shape == (6, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.model == "all-MiniLM-L6-v2@1"
    assert embedder.dimensions == 384
    assert embedder.reads("tea")
    assert not embedder.reads("安喜欢喝茶")
    assert (await embedder.embed([])).shape == (0, 384)


async def test_the_event_loop_stays_free(local):
    worked = time.process_time()
    async with heartbeat() as gaps:
        await local.embed([f"{'memory ' * 30} {number}" for number in range(64)])
    assert max(gaps) < (time.process_time() - worked) / 4


async def test_a_short_text_overtakes_a_long_list(local, monkeypatch):
    infer, runs = local._infer, []

    def note_and_infer(ids):
        runs.append(len(ids))
        return infer(ids)

    monkeypatch.setattr(local, "_infer", note_and_infer)
    backlog = asyncio.create_task(local.embed(["memory " * 60] * 120))
    await until(lambda: runs)
    await local.embed(["a cue"])
    assert not backlog.done()
    backlog.cancel()
    with pytest.raises(asyncio.CancelledError):
        await backlog


def test_the_files_are_made_from_the_published_weights():
    assert model_files.write_hashes(model_files.make_files()) == model_files.HASHES.read_text()
    assert model_files.check()


def test_other_weights_are_refused(monkeypatch, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    monkeypatch.setattr(model_files, "find_weights", lambda: tmp_path)
    with pytest.raises(SystemExit, match=r"model\.safetensors is not the published file"):
        model_files.make_files()


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A copy of the installed files that a test may spoil."""
    for name in (minilm.GRAPH, minilm.VOCABULARY):
        shutil.copy(find_file(name), tmp_path / name)
    monkeypatch.setattr(minilm, "find_data", lambda package, name: path if (path := tmp_path / name).exists() else None)
    return tmp_path


def test_a_spoilt_graph_names_the_command(package):
    (package / minilm.GRAPH).write_bytes((package / minilm.GRAPH).read_bytes()[:100_000])
    with pytest.raises(SetupError, match="pip install --force-reinstall recollect-minilm"):
        load_minilm()


@pytest.mark.parametrize("name", [minilm.GRAPH, minilm.VOCABULARY])
def test_a_missing_file_names_the_command(package, name):
    (package / name).unlink()
    with pytest.raises(SetupError, match=rf"{name} of recollect-minilm is missing; .*recollect-memory\[local\]"):
        load_minilm()


async def test_a_closed_model_refuses():
    model = load_minilm()
    await model.close()
    with pytest.raises(EmbedderError, match="closed") as caught:
        await model.embed(["tea"])
    assert caught.value.lasting


def test_a_missing_extra_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SetupError, match=r"onnxruntime is not installed; run: pip install 'recollect-memory\[local\]'"):
        load_minilm()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("This is an example sentence", "this is an example sentence"),
        ("Café naïve ÀÉÎ", "cafe naive ae ##i"),
        ("a\u200bb\tc\u0000d", "ab cd"),
        ("我爱tea", "我 [UNK] tea"),
        ("$5.00+[SEP]", "$ 5 . 00 + [ sep ]"),
        ("x" * 101 + " ok", "[UNK] ok"),
        ("unbelievably", "un ##bel ##ie ##va ##bly"),
        ("", ""),
    ],
)
def test_texts_are_cut_as_the_model_learnt_them(text, words):
    vocabulary = find_file(minilm.VOCABULARY).read_text(encoding="utf-8").splitlines()
    tokens = [vocabulary[number] for number in read_tokens().encode(text)]
    assert tokens == ["[CLS]", *words.split(), "[SEP]"]


def test_long_texts_keep_their_beginning_and_the_closing_token():
    ids = read_tokens(room=16).encode("tea " * 100_000)
    assert len(ids) == 16
    assert ids[0] == 101
    assert ids[-1] == 102

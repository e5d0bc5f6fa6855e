"""A model's name leads to its tokenizer, and what no vocabulary counts is estimated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.text import tokens
from recollect.core.text.tokens import ESTIMATE, TOKENIZERS, estimate, find_tokenizer
from recollect.llm.tokens.count import Estimate

USUAL = ("o200k_base", "cl100k_base", ESTIMATE)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_is_found_by_its_own_name(name):
    assert find_tokenizer(name, TOKENIZERS) == name


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("ft:gpt-4o-mini-2024-07-18:my-org::abc123", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-4.5-preview", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("gpt-5.1-codex", "o200k_base"),
        ("GPT-5-Mini", "o200k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("o1", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("azure/o4-mini-2025-04-16", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("gpt-4-turbo-2024-04-09", "cl100k_base"),
        ("openrouter/openai/gpt-3.5-turbo-16k", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
        ("qwen2.5:7b", "qwen"),
        ("qwen2-72b", "qwen"),
        ("qwen1.5-14b", "qwen"),
        ("qwen1-7b", "qwen"),
        ("qwen:4b", "qwen"),
        (" GPT-4 ", "cl100k_base"),
        ("text-embedding-ada-002", "cl100k_base"),
        ("llama-distill", ESTIMATE),
        ("deepseek", "deepseek"),
        ("qwen3-32b", "qwen"),
        ("qwen-plus-latest", "qwen"),
        ("QwQ-32B", "qwen"),
        ("Qwen/Qwen3.6-27B", "qwen3.5"),
        ("qwen3.5-plus", "qwen3.5"),
        ("deepseek-chat", "deepseek"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek"),
        ("deepseek-v4-flash", "deepseek"),
        ("deepseek.r1-v1:0", "deepseek"),
        ("deepseek-r1:671b", "deepseek"),
        ("deepseek-r1:8b", ESTIMATE),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", ESTIMATE),
        ("deepseek-coder-6.7b", ESTIMATE),
        ("deepseek-v2.5", ESTIMATE),
        ("qwen9-72b", ESTIMATE),
        ("gpt-2", ESTIMATE),
        ("claude-sonnet-4", ESTIMATE),
        ("llama-3.1-8b", ESTIMATE),
        ("phi-4o1", ESTIMATE),
        ("my model", ESTIMATE),
    ],
)
def test_a_model_is_counted_by_the_tokenizer_of_its_family(model, expected):
    assert find_tokenizer(model, TOKENIZERS) == expected


def test_without_a_name_the_first_known_one_counts():
    assert find_tokenizer("", ("cl100k_base", "o200k_base")) == "cl100k_base"
    assert find_tokenizer("", ()) == ESTIMATE


def test_a_tokenizer_of_your_own_is_found_by_its_name():
    assert find_tokenizer("letters", ("o200k_base", "letters")) == "letters"


@pytest.mark.parametrize("name", ["qwen", "Qwen/Qwen2.5-7B", "deepseek-chat"])
def test_what_is_not_counted_here_is_estimated(name):
    assert find_tokenizer(name, USUAL) == ESTIMATE


def test_an_estimate_needs_no_tokenizer_to_be_known():
    assert find_tokenizer("estimate", ()) == ESTIMATE
    assert find_tokenizer("mistral-large", ()) == ESTIMATE


def test_nothing_costs_nothing():
    assert estimate("") == 0


def test_a_short_text_costs_two_more_than_its_runs():
    assert [estimate(text) for text in ("a", "1", "a b", "!", "\n")] == [3, 3, 5, 3, 3]


@pytest.mark.parametrize(
    ("line", "cost"),
    [
        ("a", 1),
        ("word", 1),
        ("words", 1.25),
        ("telephone", 2.25),
        ("telephones", 2.75),
        ("w" * 24, 9.75),
        ("w" * 25, 10.4),
        ("to", 1),
        ("tea", 1.6),
        ("pizza", 1.85),
        ("pizzaX", 3.25),
        ("US", 1),
        ("USA", 1.45),
        ("A", 1),
        ("Word", 1),
        ("aB", 2.4),
        ("a1", 2),
        ("1a", 2.4),
        ("éa", 3),
        ("中A", 2.3),
        (" a", 1.02),
        (" 1", 2.02),
        ("\t1", 1.02),
        ("  ", 0.95),
        (" " * 16, 0.95),
        (" " * 17, 1),
        (",", 1),
        (",,,", 2),
        ("中", 1.3),
        ("😀", 3.2),
    ],
)
def test_a_line_costs_what_its_runs_cost(line, cost):
    # A thousand lines, each with 0.8 for its end, show thousandths of a token.
    assert estimate(f"{line}\n" * 1000) == pytest.approx(1000 * (cost + 0.8) + 2, abs=1)


def test_further_ends_of_lines_cost_less():
    assert [estimate("\n" * count) for count in (1, 2, 3, 12, 101)] == [3, 3, 4, 5, 23]


def test_a_blank_is_dear_only_before_a_number():
    assert estimate("a " * 100 + "a") < estimate("1 " * 100 + "1")


@given(st.text(max_size=200))
def test_an_estimate_lies_between_one_and_four_tokens_a_character(text):
    assert bool(text) <= estimate(text) <= 4 * len(text) + 2


@given(st.text(max_size=200), st.integers(-1, 120))
def test_a_cut_by_estimate_is_a_beginning_that_fits(text, most):
    kept = Estimate().cut(text, most)
    assert text.startswith(kept)
    assert estimate(kept) <= max(0, most)
    assert kept == text or estimate(text) > most


@given(st.text(st.sampled_from("azAZ09 \t\n.,-é中😀")) | st.text())
def test_pieces_cost_what_their_runs_cost_in_the_text(text):
    whole = sorted(tokens._list_costs(text))
    assert sorted(cost for piece in tokens._PIECES.findall(text) for cost in tokens._costs(piece)) == whole

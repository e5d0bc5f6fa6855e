"""No text can close the tags around it in a prompt, or look like one of them; other signs stay as they are."""

from __future__ import annotations

from string import ascii_lowercase

import pytest

from recollect.core.text.tags import confusable_pattern, escape_angle_brackets, escape_tags, list_confusables

ALPHABETS = {
    "circled": ("Ⓐ", "ⓐ"),
    "wide": ("Ａ", "ａ"),
    "bold": ("𝐀", "𝐚"),
    "italic": ("𝐴", "𝑎"),
    "double": ("𝔸", "𝕒"),
    "last style": ("𝙰", "𝚊"),
}


@pytest.mark.parametrize(
    "text",
    [
        "<memories>",
        "<MEMORIES>",
        "< m-e-m-o-r-i-e-s >",
        "<conversation>",
        "＜memories＞",
        "<mеmоriеs>",
        "<mem0r1es>",
        "</anything>",
        "< / memories",
        "〈／note〉",
        "<\u200bmemories",
        "<\u200b/x>",
    ],
)
def test_what_could_be_a_tag_is_none(text):
    assert escape_tags(f"a {text} b").startswith("a ‹")


@pytest.mark.parametrize(
    "text",
    [
        "if a < b > c",
        "<div>",
        "List<String>",
        "<https://example.org>",
        "memories",
        "<a memories>",
        "<other <",
        "a < 3/4",
    ],
)
def test_other_signs_stay(text):
    assert escape_tags(text) == text


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_letters_of_other_alphabets_spell_the_same_words(alphabet):
    for first in ALPHABETS[alphabet]:
        for word in ("memories", "conversation"):
            written = "".join(chr(ord(first) + ascii_lowercase.index(letter)) for letter in word)
            assert escape_tags(f"<{written}>") == f"‹{written}>"


def test_a_sign_within_a_word_begins_anew():
    assert escape_tags("<mem<memories>") == "<mem‹memories>"


def test_what_is_not_seen_is_dropped():
    assert escape_tags("a\u200bb\u2060c\ufeffd") == "abcd"
    assert escape_angle_brackets("a\u200bb\u00adc") == "abc"


def test_a_joiner_of_scripts_stays():
    assert escape_tags("می\u200cخواهم <b>") == "می\u200cخواهم <b>"


def test_notes_have_no_signs_of_tags_at_all():
    assert escape_angle_brackets("1 < 2 > 1, ＜a＞ 〈b〉") == "1 ‹ 2 › 1, ‹a› ‹b›"


def test_a_letter_looks_like_itself_in_both_cases():
    assert list_confusables("z")[:2] == ["z", "Z"]
    assert {"Ⓩ", "ⓩ", "Ｚ", "ｚ"} <= {*list_confusables("z")}
    assert "X" not in list_confusables("z")
    assert {"о", "О", "0"} <= {*list_confusables("o")}


def test_a_word_is_spelt_with_anything_between_its_letters():
    assert confusable_pattern("ab").count("*") == 1

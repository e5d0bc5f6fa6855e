"""No text can close the tags around it in a prompt, or look like one of them; other signs stay as they are."""

from __future__ import annotations

from string import ascii_lowercase

import pytest

from recollect.core.text.tags import defuse_signs, defuse_tags, look_alikes, spell

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
    assert defuse_tags(f"a {text} b").startswith("a ‹")


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
    assert defuse_tags(text) == text


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_letters_of_other_alphabets_spell_the_same_words(alphabet):
    for first in ALPHABETS[alphabet]:
        for word in ("memories", "conversation"):
            written = "".join(chr(ord(first) + ascii_lowercase.index(letter)) for letter in word)
            assert defuse_tags(f"<{written}>") == f"‹{written}>"


def test_a_sign_within_a_word_begins_anew():
    assert defuse_tags("<mem<memories>") == "<mem‹memories>"


def test_what_is_not_seen_is_dropped():
    assert defuse_tags("a\u200bb\u2060c\ufeffd") == "abcd"
    assert defuse_signs("a\u200bb\u00adc") == "abc"


def test_a_joiner_of_scripts_stays():
    assert defuse_tags("می\u200cخواهم <b>") == "می\u200cخواهم <b>"


def test_notes_have_no_signs_of_tags_at_all():
    assert defuse_signs("1 < 2 > 1, ＜a＞ 〈b〉") == "1 ‹ 2 › 1, ‹a› ‹b›"


def test_a_letter_looks_like_itself_in_both_cases():
    assert look_alikes("z")[:2] == ["z", "Z"]
    assert {"Ⓩ", "ⓩ", "Ｚ", "ｚ"} <= {*look_alikes("z")}
    assert "X" not in look_alikes("z")
    assert {"о", "О", "0"} <= {*look_alikes("o")}


def test_a_word_is_spelt_with_anything_between_its_letters():
    assert spell("ab").count("*") == 1

"""The local embedder that reads Chinese through an English gloss: one space for both languages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recollect.core.text.terms import is_chinese
from recollect.llm.embedder import GLOSS
from recollect.llm.local.encoder import Encoder, EncoderTraits
from recollect.llm.local.gloss.dictionary import load_dictionary
from recollect.llm.local.gloss.gloss import Gloss, fold
from recollect.llm.local.minilm import DIMENSIONS, open_minilm, reads_words
from recollect.llm.local.wordpiece import WordPiece
from recollect.loading import load

QUICK_CHARACTERS = 200
"""Texts up to this total length are glossed and tokenised at once, in a fraction of a millisecond."""


@dataclass(frozen=True, slots=True)
class GlossedPieces:
    """Turn a text into the tokens of its gloss."""

    gloss: Gloss
    tokens: WordPiece

    def encode(self, text: str) -> list[int]:
        """Return the ids of the gloss; of a text that has none, as a name alone, those of the text itself."""
        return self.tokens.encode(self.gloss.read(text) or text)

    def reads(self, text: str) -> bool:
        """Tell whether a text is written with words, or in Chinese that has a gloss: names and numbers have none."""
        return reads_words(text) or (is_chinese(text) and self.gloss.can_read(text))


def load_gloss(threads: int = 0, cache: Path | None = None) -> Encoder:
    """Open the model and the dictionary, building their files on the first call.

    A text without Chinese has the vector that MiniLM gives it.
    """
    tag = load("rjieba", "chinese").tag
    session, tokens = open_minilm(threads)
    pieces = GlossedPieces(Gloss(load_dictionary(fold, cache), tag), tokens)
    return Encoder(session, pieces, EncoderTraits(GLOSS, DIMENSIONS, pieces.reads, quick_characters=QUICK_CHARACTERS))

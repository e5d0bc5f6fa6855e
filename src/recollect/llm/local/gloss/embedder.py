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
"""Texts up to this total length are glossed and tokenized directly, in a fraction of a millisecond."""


@dataclass(frozen=True, slots=True)
class GlossedPieces:
    """Converts a text to the tokens of its gloss."""

    gloss: Gloss
    tokens: WordPiece

    def encode(self, text: str) -> list[int]:
        """Return the token IDs of the gloss, or of the text itself if it has no gloss, such as a name."""
        return self.tokens.encode(self.gloss.gloss_text(text) or text)

    def reads(self, text: str) -> bool:
        """Return whether a text is in words, or in Chinese that has a gloss: names and numbers have none."""
        return reads_words(text) or (is_chinese(text) and self.gloss.can_read(text))


def load_gloss(threads: int = 0, cache: Path | None = None) -> Encoder:
    """Open the model and the dictionary, and build their files on the first call.

    A text without Chinese has the same vector as with MiniLM.
    """
    tag = load("rjieba", "chinese").tag
    session, tokens = open_minilm(threads)
    pieces = GlossedPieces(Gloss(load_dictionary(fold, cache), tag), tokens)
    return Encoder(session, pieces, EncoderTraits(GLOSS, DIMENSIONS, pieces.reads, quick_characters=QUICK_CHARACTERS))

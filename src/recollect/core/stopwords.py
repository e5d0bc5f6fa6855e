"""Words and characters that say too little to search by, and those that only ask."""

from __future__ import annotations

STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "did", "do", "does", "for", "had", "has"),
        *("have", "he", "her", "his", "if", "in", "into", "is", "it", "no", "not", "of", "on", "or", "she"),
        *(
            "such",
            "that",
            "the",
            "their",
            "then",
            "there",
            "these",
            "they",
            "this",
            "to",
            "was",
            "will",
            "with",
        ),
        *("aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "ll", "re", "s"),
        *("shouldn", "t", "ve", "wasn", "weren", "won", "wouldn"),
    )
)
"""English words dropped on both sides; the last two lines are what is left of "don't", "isn't" and the like.

"I", "my", "you" and "your" stay: whether a turn speaks of oneself tells the user's turns from the
assistant's, which matters in long chats with one."""

QUESTION_WORDS = frozenset(
    (
        *("what", "when", "where", "who", "whom", "whose", "which", "why", "how", "whether"),
        *("can", "could", "should", "would", "many", "much", "kind", "type", "sort"),
    )
)
"""English words dropped from a cue only: a memory may well be about a band called "The Who"."""

STOP_CHARACTERS = frozenset("的了是在和与也都就而及着或吗呢吧啊")
"""Characters dropped as single terms; the pairs they stand in stay."""

QUESTION_PHRASES = (
    *("为什么", "什么时候", "什么", "哪里", "哪儿", "哪个", "哪些", "哪", "多少", "怎么样", "怎样", "怎么"),
    *("如何", "何时", "何地", "请问", "谁", "几(?![乎何])", "吗", "呢"),
)
"""Chinese patterns cut out of a cue before it is split, the longer ones first."""

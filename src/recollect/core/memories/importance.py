"""Rate the importance of a memory without a rating, by rules without a model, in English and Chinese.

The ratings are rough. They are marked as ratings by rule, and an enrichment replaces them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from recollect.models.memories import ImportanceFrom, NewMemory

IDLE, SMALL_TALK, ORDINARY, LIFE_EVENT = 1.0, 2.0, 5.0, 8.0
MAX_SMALL_TALK_LENGTH = 60
MAX_LENGTH_READ = 2_000
"""In longer texts, only this beginning is checked; a model finds the rest."""

_GREETINGS = (
    "hi|hello|hey|thanks|thank you|okay|ok|yes|yeah|yep|nope|no|sure|goodbye|bye|see you|good morning|good night",
    "good evening|great|nice|cool|fine|right|exactly|indeed|please|you're welcome|you are welcome|no problem|got it",
    "i see|so much|very much|a lot|ha|lol|wow|oh|ah|hmm|hm|well|there|too|again",
    "你好|您好|嗨|喂|谢谢你|谢谢您|谢谢|多谢|好的|好啊|好呀|好吧|好|嗯|哦|噢|是的|是啊|是|对的|对啊|对|行|可以|当然|没问题",
    "不客气|不用谢|再见|拜拜|晚安|早上好|早安|下午好|晚上好|哈|呵|明白了|明白|知道了|收到|了解|没事",
)
_TURNS = (
    r"died|dies|dying|passed away|deaths?|funerals?|cancer|diagnosed|pregnan(?:t|cy)|gave birth|was born|miscarriage",
    r"got married|getting married|weddings?|engaged to|proposed to me|divorced?|divorcing|broke up|laid off|got fired",
    r"was fired|lost my job|promoted|graduated|new job|retired|accident|surgery|hospitali[sz]ed|in hospital|arrested",
    r"allergic|allergy|suicid(?:e|al)|bankrupt(?:cy)?|moved to|moving to|emigrat(?:ed|ing)",
)
_CHINESE_TURNS = (
    "去世|过世|逝世|病逝|死了|葬礼|癌|确诊|怀孕|流产|出生|生了孩子|结婚|婚礼|订婚|求婚|离婚|分手|被裁|失业|被开除|升职",
    "毕业了|退休|新工作|入职|车祸|事故|手术|住院|被捕|过敏|自杀|破产|搬到|移民",
)
# No word begins with a mark, and no mark is matched twice, so every text is matched in one way, in one pass.
_SMALL_TALK = re.compile(rf"[\W_]*(?:(?:{'|'.join(_GREETINGS)})[\W_]*)*")
_LIFE_EVENT = re.compile(rf"\b(?:{'|'.join(_TURNS)})\b|{'|'.join(_CHINESE_TURNS)}")


def complete(memory: NewMemory, *, idle: bool = False) -> NewMemory:
    """Return a memory with an importance, by the rules if it has none."""
    if memory.importance is not None:
        return memory
    return replace(memory, importance=rate(memory.content, idle=idle), importance_from=ImportanceFrom.RULE)


def rate(content: str, *, idle: bool = False) -> float:
    """Rate a text: idle, small talk, a life event, or ordinary."""
    if idle:
        return IDLE
    read = content[:MAX_LENGTH_READ].casefold()
    if len(content) <= MAX_SMALL_TALK_LENGTH and _SMALL_TALK.fullmatch(read):
        return SMALL_TALK
    return LIFE_EVENT if _LIFE_EVENT.search(read) else ORDINARY


def read_importance(given: float | None) -> float:
    """Return an importance as a number; a missing one is ordinary."""
    return ORDINARY if given is None else float(given)

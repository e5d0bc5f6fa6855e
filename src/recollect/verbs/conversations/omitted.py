"""Explain which memories and turns a prompt omits, after it is made."""

from __future__ import annotations

from functools import cache

from recollect.core.conversations.block import BlockMemory, fold, shorten_ids, write_line
from recollect.core.dates.periods import find_zone
from recollect.llm.tokens.count import Tokenizer
from recollect.models.blocks import OmitReason, OmittedHit
from recollect.models.conversations import Context
from recollect.models.memories import Memory
from recollect.models.recall import Hit
from recollect.verbs.conversations.prompt import PromptMaterial, PromptRequest


def list_left_out(
    material: PromptMaterial, wanted: PromptRequest, made: Context, tokenizer: Tokenizer
) -> tuple[OmittedHit, ...]:
    """List the recalled memories that a prompt does not show, best first."""
    shown = {line.memory_id for line in made.lines}
    count, zone = cache(tokenizer.count), find_zone(wanted.cue.zone)
    names = shorten_ids(hit.memory.id for hit in (*material.hits, *material.irrelevant))

    def to_omitted_hit(hit: Hit, why: OmitReason) -> OmittedHit:
        line = BlockMemory(hit.memory, names[hit.memory.id], hit.score, material.source_texts)
        return OmittedHit(hit.memory.id, hit.score, count(write_line(line, zone=zone, wording=material.wording)), why)

    reasons = OmitReasons(material, wanted, made)
    left = [to_omitted_hit(hit, reasons.find_reason(hit.memory)) for hit in material.hits if hit.memory.id not in shown]
    left += [to_omitted_hit(hit, OmitReason.IRRELEVANT) for hit in material.irrelevant if hit.memory.id not in shown]
    return tuple(sorted(left, key=lambda each: -each.score))


class OmitReasons:
    """The content of a prompt, to find why a memory is not among its lines."""

    def __init__(self, material: PromptMaterial, wanted: PromptRequest, made: Context) -> None:
        said = [*made.history.messages, *material.asked]
        self._said = {each.id for each in said}
        self._words = {"", fold(wanted.cue.text), *(fold(each.content) for each in said)}
        shown = {line.memory_id for line in made.lines}
        known: list[Memory] = [hit.memory for hit in material.hits if hit.memory.id in shown]
        known += [memory for memory in material.pinned if memory.id in shown]
        known += [made.summary] if made.summary else []
        self._known = {each.id for each in known}
        self._told = {fold(each.content) for each in known}
        self._full = len(made.hits) >= material.most

    def find_reason(self, memory: Memory) -> OmitReason:
        """Return why a memory is omitted."""
        content = fold(memory.content)
        if memory.id in self._said or content in self._words:
            return OmitReason.IN_HISTORY
        if memory.id in self._known or content in self._told:
            return OmitReason.REPEATED
        return OmitReason.LIMIT if self._full else OmitReason.NO_ROOM

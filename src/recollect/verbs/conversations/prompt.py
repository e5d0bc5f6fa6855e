"""Divide one budget over a thread, memories and a summary, and assemble the prompt; without reads or writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cache
from types import MappingProxyType
from uuid import UUID

from recollect.core.conversations.block import (
    PINNED_PART,
    BlockMemory,
    TextMeter,
    cut_line,
    drop_last_lines,
    fill,
    fold,
    order,
    render,
    render_block,
    shorten_ids,
    write_summary,
)
from recollect.core.conversations.budget import BudgetTokens, allocate, cost, price_image
from recollect.core.conversations.messages import to_prompt
from recollect.core.conversations.prompt_texts import ENGLISH, Wording
from recollect.core.dates.periods import find_zone
from recollect.core.text.similarity import SourceText
from recollect.errors import InvalidInputError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.blocks import BlockLine, BudgetPart, BudgetReport
from recollect.models.conversations import (
    BudgetShares,
    Context,
    History,
    HistoryOptions,
    Message,
    OversizedTurn,
    PromptMessage,
    TokenUsage,
)
from recollect.models.memories import Memory, Role
from recollect.models.recall import Cue, Hit, RecallResult
from recollect.store.conversations.conversations import Read
from recollect.verbs.conversations.history import fit_history, render_history

NOTHING_RECALLED = RecallResult((), {})
NOTHING_SHOWN: Mapping[UUID, BlockLine] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """The options of a prompt."""

    cue: Cue
    budget: int
    shares: BudgetShares
    window: HistoryOptions
    system: str


@dataclass(frozen=True, slots=True)
class PromptMaterial:
    """The material of a prompt."""

    thread: Sequence[Read]
    """The thread, newest first, without the turn that the query itself began."""
    asked: tuple[Message, ...]
    """The messages of the thread that are the query, oldest first; empty if the query is not appended yet."""
    summary: Memory | None
    recollection: RecallResult
    """The recalled memories."""
    most: int
    """Maximum number of memories to show."""
    source_texts: Mapping[UUID, SourceText] = field(default_factory=dict[UUID, SourceText])
    """The texts of sources of recalled summaries."""
    pinned: Sequence[Memory] = ()
    """Pinned memories, newest first."""
    wording: Wording = ENGLISH
    """The words around them."""
    irrelevant: Sequence[Hit] = ()
    """Recalled memories that are hardly likely to help."""

    @property
    def hits(self) -> Sequence[Hit]:
        """Return the recalled memories, best first."""
        return self.recollection.hits


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens as the model does, each text once."""

    tokenizer: Tokenizer
    window: HistoryOptions
    count: Callable[[str], int]
    zone: tzinfo = UTC
    wording: Wording = ENGLISH

    @property
    def gauge(self) -> TextMeter:
        """Return the functions that count and cut lines."""
        return TextMeter(self.count, self.tokenizer.cut, self.zone, self.wording)

    @property
    def image_tokens(self) -> int:
        """Return the tokens of each image in the prompt."""
        return price_image(self.window)

    def price(self, messages: Sequence[Message]) -> int:
        """Return the tokens of messages of the thread."""
        return sum(cost(message, self.image_tokens) for message in messages)

    def frame(self, text: str) -> int:
        """Return the tokens of a message with this text; 0 for an empty text."""
        return self.tokenizer.frame + self.count(text) if text else 0


@dataclass(frozen=True, slots=True)
class PromptDraft:
    """The parts that fitted in addition to the caller's own words."""

    history: History
    summary: str
    """The summary's line."""
    lines: Mapping[UUID, BlockLine]
    """The lines of all shown memories, best first."""
    granted: BudgetTokens
    """Maximum number of tokens for each part."""
    wording: Wording = ENGLISH

    @property
    def block(self) -> str:
        """Write the block; empty without memories."""
        return render_block(self.lines.values(), self.summary, self.wording)


def assemble(material: PromptMaterial, wanted: PromptRequest, tokenizer: Tokenizer) -> Context:
    """Assemble a prompt that costs no more than its budget."""
    wording = material.wording
    measure = TokenCounter(tokenizer, wanted.window, cache(tokenizer.count), find_zone(wanted.cue.zone), wording)
    system = measure.frame(wanted.system)
    asked = measure.price(material.asked) if material.asked else measure.frame(wanted.cue.text)
    room = wanted.budget - tokenizer.priming - system - asked
    if room < 0:
        raise InvalidInputError(
            f"budget too small: the system prompt and the message need {wanted.budget - room} tokens, "
            f"{-room} more than the budget of {wanted.budget}"
        )
    draft = compose(material, wanted, room, measure)
    hits = tuple(hit for hit in material.hits if hit.memory.id in draft.lines)
    block = draft.block
    bare = measure.frame(render([], wording)) if block else 0
    summary = measure.frame(render([draft.summary], wording)) - bare if draft.summary else 0
    memories = measure.frame(block) - bare - summary
    parts = (system, summary, memories, draft.history.tokens, asked, tokenizer.priming + bare)
    return Context(
        messages=(
            *to_message(Role.SYSTEM, wanted.system),
            *to_message(Role.SYSTEM, block),
            *draft.history.prompt,
            *(to_prompt(message, images=wanted.window.images) for message in material.asked),
            *to_message(Role.USER, "" if material.asked else wanted.cue.text),
        ),
        block=block,
        summary=material.summary if draft.summary else None,
        hits=hits,
        history=draft.history,
        spending=TokenUsage(*parts, total=sum(parts), budget=wanted.budget),
        methods=material.recollection.methods,
        asked=material.asked[0].id if material.asked else None,
        lines=tuple(order(draft.lines.values())),
        pinned_left_out=name_missing(material, draft),
        status=material.recollection.status,
        message=material.recollection.message,
        shares=budget_report(draft.granted, parts) if wanted.cue.explain else None,
    )


def budget_report(granted: BudgetTokens, parts: Sequence[int]) -> BudgetReport:
    """Report the maximum and the actual tokens of a prompt's parts, in the order of the parts."""
    _, summary, memories, history, *_ = parts
    return BudgetReport(
        BudgetPart(granted.history, history),
        BudgetPart(granted.memories, memories),
        BudgetPart(granted.summary, summary),
    )


def name_missing(material: PromptMaterial, draft: PromptDraft) -> tuple[UUID, ...]:
    """List the pinned memories that are neither a line of the prompt nor in another part."""
    present: list[Message | Memory] = [*draft.history.messages, *material.asked]
    present += [material.summary] if material.summary and draft.summary else []
    present += [memory for memory in material.pinned if memory.id in draft.lines]
    told = {fold(each.content) for each in present}
    missing = (memory for memory in material.pinned if memory.id not in draft.lines)
    return tuple(memory.id for memory in missing if fold(memory.content) not in told)


def to_message(role: Role, text: str) -> list[PromptMessage]:
    """Create a message from a text; none from an empty text."""
    return [{"role": role.value, "content": text}] if text else []


def compose(material: PromptMaterial, wanted: PromptRequest, room: int, measure: TokenCounter) -> PromptDraft:
    """Divide the room after the tokens of the block's frame; omit the block if nothing fits in it."""
    form = measure.frame(render([], measure.wording))
    if (material.summary is not None or material.hits or material.pinned) and room > form:
        draft = divide(material, wanted, room - form, measure)
        if draft.summary or draft.lines:
            return trim(draft, room, measure)
    return divide(replace(material, summary=None, recollection=NOTHING_RECALLED, pinned=()), wanted, room, measure)


def divide(material: PromptMaterial, wanted: PromptRequest, room: int, measure: TokenCounter) -> PromptDraft:
    """Divide the room by shares; if the memories need less, divide again, so that others get the rest."""
    shares, summary = wanted.shares, write_summary(material.summary, measure.wording) if material.summary else ""
    whole = fit_history(material.thread, replace(wanted.window, max_tokens=room)).tokens
    # A share of 0 gets nothing, even if the others leave room.
    history_wants = min(whole, room) if shares.history else 0
    summary_wants = measure.count(summary) if summary and shares.summary else 0
    memories_want = room if (material.hits or material.pinned) and shares.memories else 0
    # Pinned memories take at most a tenth of the minimum for memories.
    tenth = min(wanted.budget // PINNED_PART, int(room * shares.memories))
    while True:
        portions = allocate(room, shares, BudgetTokens(history_wants, memories_want, summary_wants))
        history = show_history(material.thread, portions.history, room if shares.history else 0, measure)
        left = room - history.tokens
        for_summary = min(portions.summary, left)
        line = cut_line(summary, for_summary, measure.gauge) if summary else ""
        left -= measure.count(line) if line else 0
        for_memories = left if shares.memories else 0
        kept = select_new_memories(material, wanted.cue, history, pinned=True) if memories_want else []
        pinned = fill(kept, min(tenth, left), measure.gauge, len(kept))
        candidates = select_new_memories(material, wanted.cue, history, pinned.lines) if memories_want else []
        filled = fill(candidates, left - pinned.tokens, measure.gauge, material.most)
        spent = pinned.tokens + filled.tokens
        # Only decrease: other turns in the history omit other memories, and the two could alternate forever.
        if not filled.exhausted or spent >= memories_want:
            lines, most = {**pinned.lines, **filled.lines}, max(portions.history, history.tokens)
            return PromptDraft(history, line, lines, BudgetTokens(most, for_memories, for_summary), measure.wording)
        memories_want = spent


def show_history(thread: Sequence[Read], portion: int, room: int, measure: TokenCounter) -> History:
    """Choose the newest whole turns that fit; an oversized last turn is whole if allowed and possible, else cut."""
    window = replace(measure.window, max_tokens=portion)
    fitted = fit_history(thread, window)
    if window.oversized is OversizedTurn.KEEP and portion < fitted.tokens <= room:
        window = replace(window, max_tokens=room)
    history = render_history(fitted, thread, replace(window, oversized=OversizedTurn.CUT), measure.tokenizer)
    return replace(history, tokens=measure.price(history.messages), cut=history.cut and bool(history.messages))


def select_new_memories(
    material: PromptMaterial,
    cue: Cue,
    history: History,
    shown: Mapping[UUID, BlockLine] = NOTHING_SHOWN,
    *,
    pinned: bool = False,
) -> list[BlockMemory]:
    """List recalled or pinned memories that add something new to the prompt, best first."""
    present: list[Message | Memory] = [*history.messages, *material.asked]
    present += [material.summary] if material.summary else []
    present += [memory for memory in material.pinned if memory.id in shown]
    known = {each.id for each in present}
    told = {"", fold(cue.text), *(fold(each.content) for each in present)}
    scores = {hit.memory.id: hit.score for hit in material.hits}
    names = shorten_ids([*scores, *(memory.id for memory in material.pinned)])
    # Texts that the prompt already has are not repeated as sources.
    source_texts = {each: text for each, text in material.source_texts.items() if each not in known}
    kept: list[BlockMemory] = []
    for memory in material.pinned if pinned else [hit.memory for hit in material.hits]:
        content = fold(memory.content)
        if memory.id not in known and content not in told:
            told.add(content)
            each = BlockMemory(memory, names[memory.id], scores.get(memory.id, 0.0), source_texts)
            kept.append(replace(each, pinned=pinned))
    return kept


def trim(draft: PromptDraft, room: int, measure: TokenCounter) -> PromptDraft:
    """Drop the last memories while the block as a whole costs more than the sum of its lines."""
    left = room - draft.history.tokens

    def fits(lines: Sequence[BlockLine]) -> bool:
        return measure.frame(render_block(lines, draft.summary, draft.wording)) <= left

    lines = drop_last_lines([*draft.lines.values()], fits)
    draft = replace(draft, lines={line.memory_id: line for line in lines})
    return draft if lines or fits(()) else replace(draft, summary="")

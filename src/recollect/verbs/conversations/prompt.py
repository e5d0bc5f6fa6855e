"""Divide one budget over a thread, memories and a summary, and assemble the prompt; nothing is read or written."""

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
    Gauge,
    cut_line,
    fill,
    fold,
    lay_out,
    leave_least,
    order,
    render,
    shorten_ids,
    write_summary,
)
from recollect.core.conversations.budget import Portions, allot, cost, price_image
from recollect.core.conversations.messages import to_prompt
from recollect.core.conversations.wording import ENGLISH, Wording
from recollect.core.dates.periods import find_zone
from recollect.core.text.similar import SourceText
from recollect.errors import InvalidInputError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.blocks import Line, PromptShares, ShareUse
from recollect.models.conversations import Context, History, Message, Oversized, PromptMessage, Shares, Spending, Window
from recollect.models.memories import Memory, Role
from recollect.models.recall import Cue, Hit, Recollection
from recollect.store.conversations.conversations import Read
from recollect.verbs.conversations.history import choose, show

NOTHING_RECALLED = Recollection((), {})
NOTHING_SHOWN: Mapping[UUID, Line] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """The options of a prompt."""

    cue: Cue
    budget: int
    shares: Shares
    window: Window
    system: str


@dataclass(frozen=True, slots=True)
class PromptMaterial:
    """The material of a prompt."""

    thread: Sequence[Read]
    """The thread, newest first, without the turn that the cue itself began."""
    asked: tuple[Message, ...]
    """The messages of the thread that are the cue, oldest first; empty if the cue is not appended yet."""
    summary: Memory | None
    recollection: Recollection
    """What was recalled."""
    most: int
    """How many memories may be shown at most."""
    source_texts: Mapping[UUID, SourceText] = field(default_factory=dict[UUID, SourceText])
    """What the sources of recalled summaries say."""
    pinned: Sequence[Memory] = ()
    """Pinned memories, the newest first."""
    wording: Wording = ENGLISH
    """The words around them."""
    irrelevant: Sequence[Hit] = ()
    """What was recalled and is hardly likely to help."""

    @property
    def hits(self) -> Sequence[Hit]:
        """Return the recalled memories, best first."""
        return self.recollection.hits


@dataclass(frozen=True, slots=True)
class Measure:
    """Count as the model does, every text once."""

    tokenizer: Tokenizer
    window: Window
    count: Callable[[str], int]
    zone: tzinfo = UTC
    wording: Wording = ENGLISH

    @property
    def gauge(self) -> Gauge:
        """Return how lines are counted and cut."""
        return Gauge(self.count, self.tokenizer.cut, self.zone, self.wording)

    @property
    def image_tokens(self) -> int:
        """Return what each image costs that is passed on."""
        return price_image(self.window)

    def price(self, messages: Sequence[Message]) -> int:
        """Return what messages of the thread cost."""
        return sum(cost(message, self.image_tokens) for message in messages)

    def frame(self, text: str) -> int:
        """Return what a message of this text costs; 0 for an empty one."""
        return self.tokenizer.frame + self.count(text) if text else 0


@dataclass(frozen=True, slots=True)
class PromptDraft:
    """What fitted in addition to the caller's own words."""

    history: History
    summary: str
    """The summary's line."""
    lines: Mapping[UUID, Line]
    """The line of every memory that is shown, the best first."""
    granted: Portions
    """What each part could have cost."""
    wording: Wording = ENGLISH

    @property
    def block(self) -> str:
        """Write the block; empty without memories."""
        return lay_out(self.lines.values(), self.summary, self.wording)


def assemble(material: PromptMaterial, wanted: PromptRequest, tokenizer: Tokenizer) -> Context:
    """Assemble a prompt that costs no more than its budget."""
    wording = material.wording
    measure = Measure(tokenizer, wanted.window, cache(tokenizer.count), find_zone(wanted.cue.zone), wording)
    system = measure.frame(wanted.system)
    asked = measure.price(material.asked) if material.asked else measure.frame(wanted.cue.text)
    room = wanted.budget - tokenizer.priming - system - asked
    if room < 0:
        raise InvalidInputError(
            f"the system text and the cue alone are {-room} tokens above the budget of {wanted.budget}: "
            f"they take {wanted.budget - room} with their framing"
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
            *speak(Role.SYSTEM, wanted.system),
            *speak(Role.SYSTEM, block),
            *draft.history.prompt,
            *(to_prompt(message, images=wanted.window.images) for message in material.asked),
            *speak(Role.USER, "" if material.asked else wanted.cue.text),
        ),
        block=block,
        summary=material.summary if draft.summary else None,
        hits=hits,
        history=draft.history,
        spending=Spending(*parts, total=sum(parts), budget=wanted.budget),
        methods=material.recollection.methods,
        asked=material.asked[0].id if material.asked else None,
        lines=tuple(order(draft.lines.values())),
        pinned_left_out=name_missing(material, draft),
        status=material.recollection.status,
        message=material.recollection.message,
        shares=tell_shares(draft.granted, parts) if wanted.cue.explain else None,
    )


def tell_shares(granted: Portions, parts: Sequence[int]) -> PromptShares:
    """Say what the parts of a prompt could have cost, and what they cost; in the order of its spending."""
    _, summary, memories, history, *_ = parts
    return PromptShares(
        ShareUse(granted.history, history), ShareUse(granted.memories, memories), ShareUse(granted.summary, summary)
    )


def name_missing(material: PromptMaterial, draft: PromptDraft) -> tuple[UUID, ...]:
    """List the pinned memories that the prompt shows neither as a line nor in the words of another part."""
    present: list[Message | Memory] = [*draft.history.messages, *material.asked]
    present += [material.summary] if material.summary and draft.summary else []
    present += [memory for memory in material.pinned if memory.id in draft.lines]
    told = {fold(each.content) for each in present}
    missing = (memory for memory in material.pinned if memory.id not in draft.lines)
    return tuple(memory.id for memory in missing if fold(memory.content) not in told)


def speak(role: Role, text: str) -> list[PromptMessage]:
    """Make a message of a text; none for an empty one."""
    return [{"role": role.value, "content": text}] if text else []


def compose(material: PromptMaterial, wanted: PromptRequest, room: int, measure: Measure) -> PromptDraft:
    """Divide the room, with the cost of the block's form set aside; without the block where nothing is left for it."""
    form = measure.frame(render([], measure.wording))
    if (material.summary is not None or material.hits or material.pinned) and room > form:
        draft = divide(material, wanted, room - form, measure)
        if draft.summary or draft.lines:
            return trim(draft, room, measure)
    return divide(replace(material, summary=None, recollection=NOTHING_RECALLED, pinned=()), wanted, room, measure)


def divide(material: PromptMaterial, wanted: PromptRequest, room: int, measure: Measure) -> PromptDraft:
    """Give each part its share, and again if the memories need less: the others get what is left."""
    shares, summary = wanted.shares, write_summary(material.summary, measure.wording) if material.summary else ""
    whole = choose(material.thread, replace(wanted.window, max_tokens=room)).tokens
    # A share of 0 gets nothing, even if the others leave room.
    history_wants = min(whole, room) if shares.history else 0
    summary_wants = measure.count(summary) if summary and shares.summary else 0
    memories_want = room if (material.hits or material.pinned) and shares.memories else 0
    # Pinned memories take at most a tenth of what the memories get in any case.
    tenth = min(wanted.budget // PINNED_PART, int(room * shares.memories))
    while True:
        portions = allot(room, shares, Portions(history_wants, memories_want, summary_wants))
        history = show_history(material.thread, portions.history, room if shares.history else 0, measure)
        left = room - history.tokens
        for_summary = min(portions.summary, left)
        line = cut_line(summary, for_summary, measure.gauge) if summary else ""
        left -= measure.count(line) if line else 0
        for_memories = left if shares.memories else 0
        kept = leave_out(material, wanted.cue, history, pinned=True) if memories_want else []
        pinned = fill(kept, min(tenth, left), measure.gauge, len(kept))
        candidates = leave_out(material, wanted.cue, history, pinned.lines) if memories_want else []
        filled = fill(candidates, left - pinned.tokens, measure.gauge, material.most)
        spent = pinned.tokens + filled.tokens
        # Only ever less: other turns in the history leave out other memories, and the two could alternate forever.
        if not filled.exhausted or spent >= memories_want:
            lines, most = {**pinned.lines, **filled.lines}, max(portions.history, history.tokens)
            return PromptDraft(history, line, lines, Portions(most, for_memories, for_summary), measure.wording)
        memories_want = spent


def show_history(thread: Sequence[Read], portion: int, room: int, measure: Measure) -> History:
    """Choose the newest whole turns that fit; an oversized last turn is whole if allowed and possible, else cut."""
    window = replace(measure.window, max_tokens=portion)
    fitted = choose(thread, window)
    if window.oversized is Oversized.KEEP and portion < fitted.tokens <= room:
        window = replace(window, max_tokens=room)
    history = show(fitted, thread, replace(window, oversized=Oversized.CUT), measure.tokenizer)
    return replace(history, tokens=measure.price(history.messages), cut=history.cut and bool(history.messages))


def leave_out(
    material: PromptMaterial,
    cue: Cue,
    history: History,
    shown: Mapping[UUID, Line] = NOTHING_SHOWN,
    *,
    pinned: bool = False,
) -> list[BlockMemory]:
    """List recalled or pinned memories that say something new to the prompt, best first."""
    present: list[Message | Memory] = [*history.messages, *material.asked]
    present += [material.summary] if material.summary else []
    present += [memory for memory in material.pinned if memory.id in shown]
    known = {each.id for each in present}
    told = {"", fold(cue.text), *(fold(each.content) for each in present)}
    scores = {hit.memory.id: hit.score for hit in material.hits}
    names = shorten_ids([*scores, *(memory.id for memory in material.pinned)])
    # What the prompt says anyway is not repeated as a source.
    source_texts = {each: text for each, text in material.source_texts.items() if each not in known}
    kept: list[BlockMemory] = []
    for memory in material.pinned if pinned else [hit.memory for hit in material.hits]:
        content = fold(memory.content)
        if memory.id not in known and content not in told:
            told.add(content)
            each = BlockMemory(memory, names[memory.id], scores.get(memory.id, 0.0), source_texts)
            kept.append(replace(each, pinned=pinned))
    return kept


def trim(draft: PromptDraft, room: int, measure: Measure) -> PromptDraft:
    """Drop the last memories while the block as a whole costs more than its lines did one by one."""
    left = room - draft.history.tokens

    def fits(lines: Sequence[Line]) -> bool:
        return measure.frame(lay_out(lines, draft.summary, draft.wording)) <= left

    lines = leave_least([*draft.lines.values()], fits)
    draft = replace(draft, lines={line.memory_id: line for line in lines})
    return draft if lines or fits(()) else replace(draft, summary="")

"""Ask the model about a segment, once for all steps, and store its answer before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from recollect.core.conversations.messages import memory_text
from recollect.core.knowledge.extractions import AnyExtraction, parse_extraction
from recollect.core.knowledge.transcripts import find_names, fit_facts, write_facts, write_transcript
from recollect.core.text.names import normalize_name
from recollect.errors import ChatModelError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.knowledge import Fact, ParsedExtraction, Statement
from recollect.store.knowledge import facts, segments
from recollect.store.knowledge.segments import NewExtraction
from recollect.verbs.knowledge.steps.draft import JOURNAL, Draft, SegmentExtraction, StepContext
from recollect.verbs.service.costs import metered

PROMPT = "extraction"
STEP = "summarise"
MAX_KNOWN_FACTS, MAX_LISTED = 60, 40
MAX_STORED_ANSWER_LENGTH = 200_000
"""Maximum length of a stored answer in characters; longer ones only repeat themselves."""
USER = "User"
PLAIN_PROMPT = "Between the tags lies a conversation of which nothing is known.\n\n<conversation>\n</conversation>"


class ExtractOnce:
    """Returns the extraction of one segment, stored or new, and the same for all steps."""

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self.asked = 0
        self._extraction: SegmentExtraction | None = None

    async def __call__(self, draft: Draft) -> SegmentExtraction | None:
        """Find or request the extraction of a draft; None if there is no model and no stored one."""
        if self._extraction is None:
            context, segment_id = self.context, draft.segment.id
            kept = await segments.find_extraction(context.parts.database, context.scope_id, segment_id, context.run_id)
            if kept.get("said"):
                self._extraction = await reopen(self.context, kept)
            elif context.parts.chat is not None:
                self.asked += 1
                self._extraction = await extract_segment(self.context, draft)
        return self._extraction


async def extract_segment(context: StepContext, draft: Draft) -> SegmentExtraction:
    """Request an extraction and store it; raise ChatModelError if no part of the answer is usable."""
    segment_id, version = draft.segment.id, version_of(PROMPT)
    heed = context.budgeted
    chat = metered(context.parts, context.scope_id, STEP, prompt_version=version, source_id=segment_id, budgeted=heed)
    shown = fit_facts(await find_shown(context, draft), chat.characters, MAX_LISTED)
    answer = await say(chat, write_prompt(context, draft, shown, chat.characters))
    parsed = parse_extraction(answer, len(shown), context.zone)
    if not is_usable(parsed):
        raise ChatModelError("the chat model returned nothing usable for this segment", answered=True)
    content = {"said": storable(answer), "shown": [str(fact.id) for fact in shown]}
    sources = [message.id for message in draft.messages]
    extraction = NewExtraction(segment_id, content, chat.model, version, sources, context.run_id)
    await segments.keep_extraction(context.parts.database, context.scope_id, extraction)
    return SegmentExtraction(parsed, shown)


async def say(chat: ChatModel, prompt: str) -> str:
    """Ask once; if the model refuses, check whether it refuses every prompt."""
    try:
        return (await chat.complete(prompt, AnyExtraction)).text
    except ChatModelError as problem:
        if not problem.lasting:
            raise
        # A model that accepts another prompt refused this one: its messages are the cause, and a retry will not help.
        await chat.complete(PLAIN_PROMPT, AnyExtraction)
        raise ChatModelError("the chat model refuses this segment, but accepts other prompts", answered=True) from None


async def reopen(context: StepContext, kept: Mapping[str, Any]) -> SegmentExtraction:
    """Read a stored extraction; facts that were shown and no longer exist cannot be replaced."""
    ids = [UUID(each) for each in kept["shown"]]
    found: dict[UUID, Fact] = {}
    if ids:
        async with context.parts.database.reading(context.scope.tenant_id) as connection:
            read = await facts.fetch_facts(connection, context.scope_id, lineages=ids)
        found = {fact.id: fact for fact in read if fact.superseded_at is None}
    if context.staged is not None:
        found |= {each: fact for each in ids if (fact := context.staged.stated.find_fact(each))}
    parsed = parse_extraction(kept["said"], len(ids), context.zone)
    numbers = {number: fact for number, each in enumerate(ids, 1) if (fact := found.get(each))}
    places = {number: place for place, number in enumerate(numbers, 1)}
    statements = tuple(renumber(statement, places) for statement in parsed.statements)
    return SegmentExtraction(replace(parsed, statements=statements), tuple(numbers.values()))


def renumber(statement: Statement, places: Mapping[int, int]) -> Statement:
    """Renumber the facts that a statement replaces."""
    return replace(statement, replaces=tuple(places[number] for number in statement.replaces if number in places))


async def find_shown(context: StepContext, draft: Draft) -> Sequence[Fact]:
    """Find current facts about entities that the segment may mention, newest first."""
    texts = [context.scope.user or USER, context.scope.agent]
    for message in draft.messages:
        texts += [message.name, memory_text(message)]
    called = list(dict.fromkeys([*map(normalize_name, texts[:2]), *find_names(texts)]))
    known = await segments.find_known(context.parts.database, context.scope_id, called, MAX_KNOWN_FACTS)
    found: Sequence[Fact] = ()
    if known:
        async with context.parts.database.reading(context.scope.tenant_id) as connection:
            found = await facts.fetch_facts(connection, context.scope_id, subjects=known, newest=MAX_LISTED)
    believed = [fact for fact in found if fact.superseded_at is None]
    shown = sorted(believed, key=lambda fact: fact.created_at, reverse=True)
    if context.staged is not None:
        shown = context.staged.choose_shown_facts(called, shown)
    return [fact for fact in shown if not is_over(fact, context)]


def is_over(fact: Fact, context: StepContext) -> bool:
    """Return whether a fact is no longer true."""
    return fact.span.invalid_at is not None and fact.span.invalid_at <= context.now


def write_prompt(context: StepContext, draft: Draft, shown: Sequence[Fact], characters: int) -> str:
    """Write the prompt: the messages, the known facts, and the request."""
    # The journal of an agent is in its own words.
    teller = context.scope.agent if draft.segment.conversation == JOURNAL else context.scope.user or USER
    names = (teller, context.scope.agent)
    known = write_facts(shown)
    conversation = write_transcript(draft.messages, names, characters - len(known))
    return fill_prompt(PROMPT, user=names[0], agent=names[1], messages=conversation, facts=known)


def is_usable(parsed: ParsedExtraction) -> bool:
    """Return whether an answer has any requested part."""
    return bool(parsed.summary or parsed.label or parsed.mentions or parsed.statements)


def storable(answer: str) -> str:
    """Return the part of an answer that the database can store as JSON."""
    return answer[:MAX_STORED_ANSWER_LENGTH].replace("\0", "").encode(errors="replace").decode()

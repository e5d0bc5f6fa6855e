"""Find the entities of a segment's mentions: in SQL if that is enough, else by one question for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.core.knowledge.entities import (
    MAX_NAMES_PER_PROMPT,
    AmbiguousMention,
    AnyNameMatches,
    EntityCandidate,
    MatchMethod,
    match_entity,
    read_matches,
    write_doubts,
)
from recollect.core.text.names import normalize_name
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.knowledge import Entity, Mention
from recollect.store.knowledge import entities, segments
from recollect.verbs.knowledge.steps.draft import Draft, StepContext
from recollect.verbs.service.costs import metered

PROMPT = "resolve"


async def resolve(context: StepContext, draft: Draft) -> Draft:
    """Find for each mention the entity that the scope already has, or none."""
    if not draft.mentions:
        return draft
    own, others = await find_candidates(context, draft.mentions)
    chosen = [
        match_entity(mention, own.get(index, ()), others.get(index, ())) for index, mention in enumerate(draft.mentions)
    ]
    doubts = {index: each for index, each in enumerate(chosen) if isinstance(each, AmbiguousMention)}
    answers = await resolve_doubts(context, draft, await describe_doubts(context, doubts))
    resolved: dict[str, Entity | None] = {}
    for index, (mention, each) in enumerate(zip(draft.mentions, chosen, strict=True)):
        entity = answers.get(index) if isinstance(each, AmbiguousMention) else each
        resolved.setdefault(normalize_name(mention.name), entity)
    return replace(draft, resolved=resolved)


async def find_candidates(
    context: StepContext, mentions: Sequence[Mention]
) -> tuple[Mapping[int, list[EntityCandidate]], Mapping[int, list[EntityCandidate]]]:
    """Find candidates for all mentions at once: by their names, and by their aliases."""
    asked = [(index, mention.name, True) for index, mention in enumerate(mentions)]
    asked += [(index, alias, False) for index, mention in enumerate(mentions) for alias in mention.aliases]
    names = [name for _, name, _ in asked]
    async with context.parts.database.reading(context.scope.tenant_id) as connection:
        without = context.staged.segment_ids if context.staged else ()
        found = await entities.find_candidates(connection, context.scope_id, names, similar=True, without=without)
    own: dict[int, list[EntityCandidate]] = {}
    others: dict[int, list[EntityCandidate]] = {}
    if context.staged is not None:
        found = merge(found, context.staged.match_entities(names))
    for candidate in found:
        index, _, is_own = asked[candidate.number]
        (own if is_own else others).setdefault(index, []).append(candidate)
    return own, others


async def describe_doubts(context: StepContext, doubts: Mapping[int, AmbiguousMention]) -> dict[int, AmbiguousMention]:
    """Add the known data of the candidates, without hidden ones."""
    ids: set[UUID] = {entity.id for doubt in doubts.values() for entity in doubt.candidates}
    known = await entities.fetch(context.parts.database, context.scope, sorted(ids)) if ids else {}
    if context.staged is not None:
        known = context.staged.find_run_entities(sorted(ids)) | known
    described = {
        index: replace(doubt, candidates=tuple(known[each.id] for each in doubt.candidates if each.id in known))
        for index, doubt in doubts.items()
    }
    return {index: doubt for index, doubt in described.items() if doubt.candidates}


async def resolve_doubts(
    context: StepContext, draft: Draft, doubts: Mapping[int, AmbiguousMention]
) -> dict[int, Entity]:
    """Ask the model about all doubts at once; return its certain matches by position of the mention."""
    places = list(doubts)[:MAX_NAMES_PER_PROMPT]
    if not places or context.parts.chat is None:
        return {}
    database, scope_id, segment_id = context.parts.database, context.scope_id, draft.segment.id
    kept = (await segments.find_extraction(database, scope_id, segment_id, context.run_id)).get("matches")
    if kept is not None:
        return find_kept(doubts, kept)
    asked = [doubts[place] for place in places]
    version, heed = version_of(PROMPT), context.budgeted
    chat = metered(context.parts, scope_id, PROMPT, prompt_version=version, source_id=segment_id, budgeted=heed)
    matches = await match_names(chat, context.scope.agent, asked)
    taken = {normalize_name(asked[number].mention.name): key_of(entity) for number, entity in matches.items()}
    await segments.keep_matches(database, scope_id, segment_id, context.run_id, taken)
    return {places[number]: entity for number, entity in matches.items()}


async def match_names(chat: ChatModel, agent: str, doubts: Sequence[AmbiguousMention]) -> Mapping[int, Entity]:
    """Ask a model in one question which known name each name means; return certain matches by position."""
    names, known_names, known = write_doubts(doubts)
    prompt = fill_prompt(PROMPT, agent=agent, names=names, known=known_names)
    return read_matches((await chat.complete(prompt, AnyNameMatches)).text, doubts, known)


def find_kept(doubts: Mapping[int, AmbiguousMention], kept: Mapping[str, Sequence[str]]) -> dict[int, Entity]:
    """Return the certain matches of an earlier answer."""
    return {
        place: entity
        for place, doubt in doubts.items()
        for entity in doubt.candidates
        if kept.get(normalize_name(doubt.mention.name)) == key_of(entity)
    }


def key_of(entity: Entity) -> list[str]:
    """Return the fields that identify an entity."""
    return [normalize_name(entity.name), entity.type.value]


def merge(known: Sequence[EntityCandidate], met: Sequence[EntityCandidate]) -> list[EntityCandidate]:
    """Join the candidates of the store and of a run for the same names, each once, with its most certain match."""
    ways = list(MatchMethod)
    found = sorted([*known, *met], key=lambda each: (each.number, ways.index(each.way)))
    return list({(each.number, each.entity.id): each for each in reversed(found)}.values())[::-1]

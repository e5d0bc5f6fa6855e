"""Rederive: derive memories again from the remaining evidence if some of it was purged."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.agents.reflection import fit_notes, number_notes
from recollect.core.memories.erasure import Restatement, restate
from recollect.core.text.keywords import counts_for_keywords, is_idle
from recollect.core.text.terms import average_length, term_weights
from recollect.errors import ChatModelError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.memories import Memory, NewMemory
from recollect.models.service import Caller, Scope
from recollect.store.agents import reflections
from recollect.store.memories import evidence, memories
from recollect.store.memories.columns import Row
from recollect.store.memories.evidence import PendingRederivation
from recollect.store.service import scopes
from recollect.store.service.scopes import BEGINNING
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.memories.rows import PreparedMemory, Write, embed_missing, pair_vectors, prepare, store_vectors
from recollect.verbs.service.costs import metered

STEP, PROMPT = "rederive", "restatement"
MAKER = Caller(0, frozenset(), "rederive", 100)


async def rederive(parts: Dependencies, scope_id: int) -> int:
    """Derive memories of a scope again if possible, sources first; return how many."""
    chat = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    scope = await reflections.find_scope(parts.database, scope_id)
    made, after, refused = 0, BEGINNING, None
    while scope is not None and (each := await evidence.find_next(parts.database, scope_id, after)):
        after = each.id
        try:
            made += await derive_again(parts, chat, scope, scope_id, each)
        except ChatModelError as problem:
            if problem.unavailable:
                raise
            # A memory that the model cannot word must not block the others.
            refused = problem
    if refused is not None:
        raise refused
    return made


async def derive_again(
    parts: Dependencies, chat: ChatModel, scope: Scope, scope_id: int, each: PendingRederivation
) -> bool:
    """Ask for one statement from the remaining evidence, and replace the memory; return whether it was stored."""
    found = await memories.fetch_every(parts.database, scope, each.evidence)
    sources = [found[source] for source in each.evidence if source in found]
    if len(sources) < len(each.evidence):
        return False
    memory = await restate_notes(chat, scope, each, sources)
    prepared = prepare(memory)
    vectors = await embed_missing(parts, [memory])
    write = Write(MAKER, scope, [prepared], vectors, "", b"")
    async with parts.database.transaction(scope.tenant_id) as connection:
        memory_count, term_count = await evidence.open_scope(connection, scope_id)
        if not await evidence.hold(connection, scope_id, each):
            return False
        place = await scopes.read_place(await scopes.ask_place(connection, scope.agent, scope.user))
        row = to_row(each, prepared, min(source.trust for source in sources), average_length(term_count, memory_count))
        await evidence.store_rederived_memory(connection, scope_id, row, sum(prepared.counts.values()))
        await store_vectors(connection, scope_id, place.space, [row], pair_vectors(parts, write, place.space))
        await evidence.exclude_past_version(connection, scope_id, each.id)
    return True


async def restate_notes(
    chat: ChatModel, scope: Scope, each: PendingRederivation, sources: Sequence[Memory]
) -> NewMemory:
    """Ask for one statement from several notes."""
    notes = number_notes(fit_notes(sources, chat.characters))
    answer = await chat.ask(fill_prompt(PROMPT, agent=scope.agent, notes=notes), Restatement)
    memory = restate(answer, each.kind, each.importance, each.occurred_at)
    if memory is None:
        raise ChatModelError("the chat model returned nothing usable for these memories", answered=True)
    return memory


def to_row(each: PendingRederivation, prepared: PreparedMemory, trust: int, average: float) -> Row:
    """Convert a memory to a row with its new words."""
    memory = prepared.memory
    return Row(
        id=each.id,
        memory=memory,
        keywords=prepared.keywords,
        counted=counts_for_keywords(memory.kind, memory.triple),
        idle=is_idle(memory.triple),
        depth=each.depth,
        occurred_at=each.occurred_at,
        trust=trust,
        evidence=(),
        weights=term_weights(prepared.counts, average),
        draw=prepared.draw,
        tells=prepared.tells,
        named=prepared.named,
    )

"""Rederive: derive memories again from the evidence that is left, where some of it was purged."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.core.agents.reflection import fit_notes, number_notes
from recollect.core.memories.erasure import Restatement, restate
from recollect.core.text.keywords import is_idle, strengthens
from recollect.core.text.terms import average_length, weigh
from recollect.errors import ChatModelError
from recollect.llm.chat import ChatModel
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.memories import Memory, NewMemory
from recollect.models.service import Caller, Scope
from recollect.store.agents import reflections
from recollect.store.memories import evidence, memories
from recollect.store.memories.columns import Row
from recollect.store.memories.evidence import ToRederive
from recollect.store.service import scopes
from recollect.store.service.scopes import BEGINNING
from recollect.verbs.memories.rows import Prepared, Write, embed_missing, place_vectors, prepare, store_vectors
from recollect.verbs.parts import Parts
from recollect.verbs.service.costs import metered

STEP, PROMPT = "rederive", "restatement"
MAKER = Caller(0, frozenset(), "rederive", 100)


async def rederive(parts: Parts, scope_id: int) -> int:
    """Derive again what is possible in a scope, sources first; return how many."""
    chat = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    scope = await reflections.find_scope(parts.database, scope_id)
    made, after, refused = 0, BEGINNING, None
    while scope is not None and (each := await evidence.find_next(parts.database, scope_id, after)):
        after = each.id
        try:
            made += await make_again(parts, chat, scope, scope_id, each)
        except ChatModelError as problem:
            if problem.unavailable:
                raise
            # One that the model cannot word must not block the others.
            refused = problem
    if refused is not None:
        raise refused
    return made


async def make_again(parts: Parts, chat: ChatModel, scope: Scope, scope_id: int, each: ToRederive) -> bool:
    """Ask for one statement from what is left, and store it in place of the old one; tell whether it was stored."""
    found = await memories.fetch_every(parts.database, scope, each.evidence)
    sources = [found[source] for source in each.evidence if source in found]
    if len(sources) < len(each.evidence):
        return False
    memory = await ask(chat, scope, each, sources)
    prepared = prepare(memory)
    vectors = await embed_missing(parts, [memory])
    write = Write(MAKER, scope, [prepared], vectors, "", b"")
    async with parts.database.transaction(scope.tenant_id) as connection:
        memory_count, term_count = await evidence.open_scope(connection, scope_id)
        if not await evidence.hold(connection, scope_id, each):
            return False
        place = await scopes.read_place(await scopes.ask_place(connection, scope.agent, scope.user))
        row = to_row(each, prepared, min(source.trust for source in sources), average_length(term_count, memory_count))
        await evidence.write(connection, scope_id, row, sum(prepared.counts.values()))
        await store_vectors(connection, scope_id, place.space, [row], place_vectors(parts, write, place.space))
        await evidence.keep_past(connection, scope_id, each.id)
    return True


async def ask(chat: ChatModel, scope: Scope, each: ToRederive, sources: Sequence[Memory]) -> NewMemory:
    """Ask what the notes say together."""
    notes = number_notes(fit_notes(sources, chat.characters))
    answer = await chat.ask(fill_prompt(PROMPT, agent=scope.agent, notes=notes), Restatement)
    memory = restate(answer, each.kind, each.importance, each.occurred_at)
    if memory is None:
        raise ChatModelError("the chat model said nothing of the notes that it was shown", answered=True)
    return memory


def to_row(each: ToRederive, prepared: Prepared, trust: int, average: float) -> Row:
    """Replace the old words by new ones."""
    memory = prepared.memory
    return Row(
        id=each.id,
        memory=memory,
        keywords=prepared.keywords,
        counted=strengthens(memory.kind, memory.triple),
        idle=is_idle(memory.triple),
        depth=each.depth,
        occurred_at=each.occurred_at,
        trust=trust,
        evidence=(),
        weights=weigh(prepared.counts, average),
        draw=prepared.draw,
        tells=prepared.tells,
        named=prepared.named,
    )

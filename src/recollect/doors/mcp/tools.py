"""The tools: what a model may do with a memory, each by one call of a verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, create_model

from recollect.doors.mcp import answers
from recollect.doors.mcp.arguments import (
    AnyMind,
    Arguments,
    AssociateArguments,
    ContextArguments,
    ForgetArguments,
    Given,
    HistoryArguments,
    PinArguments,
    RecallArguments,
    RememberArguments,
    ReviseArguments,
    Scoped,
)
from recollect.mind.mind import OPERATIONS
from recollect.models.recall import Filter
from recollect.models.service import Right

READ = str(Right.READ)
RIGHTS = {operation.tool: operation.right for operation, _ in OPERATIONS.values() if operation.tool}
"""The right of each tool: that of its operation."""


@dataclass(frozen=True, slots=True)
class Deed(Generic[Given]):
    """One tool: what it takes, what it answers, and what it does."""

    takes: type[Given]
    gives: type[BaseModel]
    run: Callable[[AnyMind, Given], Awaitable[tuple[BaseModel, str]]]
    destroys: bool = False
    repeatable: bool = True
    """Whether a second call with the same arguments changes nothing more."""

    @property
    def name(self) -> str:
        """Name the tool as its verb."""
        return self.run.__name__

    @property
    def reads(self) -> bool:
        """Tell whether it only reads, by the right that its operation takes."""
        return READ in RIGHTS[self.name]

    @property
    def arguments(self) -> type[Arguments]:
        """Give what the tool takes, with the names of the scope at the end."""
        return with_scope(self.takes)

    def describe(self) -> Tool:
        """Describe the tool as clients list it."""
        hints = ToolAnnotations(
            title=self.name.capitalize(),
            read_only_hint=self.reads,
            destructive_hint=self.destroys,
            idempotent_hint=self.repeatable,
            open_world_hint=False,
        )
        return Tool(
            name=self.name,
            title=self.name.capitalize(),
            description=self.run.__doc__,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.gives.model_json_schema(mode="serialization"),
            annotations=hints,
        )


@cache
def with_scope(takes: type[Arguments]) -> type[Arguments]:
    """Add the names of the scope to what a tool takes, at the end; cached, because every call needs it."""
    fields: Any = {name: (field.annotation, field) for name, field in Scoped.model_fields.items()}
    return create_model(takes.__name__, __base__=takes, **fields)


async def remember(mind: AnyMind, given: RememberArguments) -> tuple[BaseModel, str]:
    """Store one thing worth knowing later: what the user said of themselves, decided, likes, or what happened."""
    [receipt] = await mind.remember(given.to_value(), idempotency_key=given.once, if_new=given.if_new)
    return answers.tell_receipt(receipt)


async def recall(mind: AnyMind, given: RecallArguments) -> tuple[BaseModel, str]:
    """Find what is remembered about something, best first. Call it before answering what the user may have told."""
    return answers.tell_recollection(await mind.recall(given.to_cue()))


async def associate(mind: AnyMind, given: AssociateArguments) -> tuple[BaseModel, str]:
    """Find the events and thoughts that something perceived reminds of, by its keywords alone."""
    [found] = await mind.associate(given.to_value(), limit=given.limit)
    return answers.tell_association(found)


async def history(mind: AnyMind, given: HistoryArguments) -> tuple[BaseModel, str]:
    """Read the newest whole turns of a conversation that fit a number of tokens, oldest first."""
    return answers.tell_history(await mind.conversation(given.conversation).history(given.max_tokens))


async def context(mind: AnyMind, given: ContextArguments) -> tuple[BaseModel, str]:
    """Get one text to read before answering: what is remembered of it, and in a conversation what was said last."""
    if not given.conversation:
        return answers.tell_block(await mind.blocks.show(given.to_cue(), given.budget))
    return answers.tell_context(await mind.conversation(given.conversation).context(given.to_cue(), given.budget))


async def forget(mind: AnyMind, given: ForgetArguments) -> tuple[BaseModel, str]:
    """Delete memories by ids, or all that a filter admits, with what was derived, for good. Ask the user first."""
    gone = await mind.forget(given.ids, Filter(**given.to_fields()), dry_run=given.dry_run)
    return answers.tell_forgotten(gone, dry_run=given.dry_run)


async def revise(mind: AnyMind, given: ReviseArguments) -> tuple[BaseModel, str]:
    """Correct a memory by its id: the old version stays readable as of its time, and is recalled no more."""
    return answers.tell_revised(await mind.revise(given.id, given.to_value()))


async def pin(mind: AnyMind, given: PinArguments) -> tuple[BaseModel, str]:
    """Let every context show memories, whatever is asked: what must never be overlooked. Or let them go again."""
    return answers.tell_pinned(await mind.pin(given.ids, pinned=given.pinned), pinned=given.pinned)


DEEDS: dict[str, Deed[Any]] = {
    deed.name: deed
    for deed in (
        Deed(RememberArguments, answers.StoredMemory, remember, repeatable=False),
        Deed(RecallArguments, answers.Recollected, recall),
        Deed(AssociateArguments, answers.Associated, associate),
        Deed(HistoryArguments, answers.HistoryAnswer, history),
        Deed(ContextArguments, answers.Prompted, context),
        Deed(ReviseArguments, answers.RevisedMemory, revise),
        Deed(PinArguments, answers.PinnedMemories, pin),
        Deed(ForgetArguments, answers.ForgottenMemories, forget, destroys=True),
    )
}

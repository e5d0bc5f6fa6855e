"""The tools: what a model may do with a memory, each by one call of a verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, create_model

from recollect.doors.mcp import results
from recollect.doors.mcp.arguments import (
    AnyMind,
    Arguments,
    AssociateArguments,
    ContextArguments,
    ForgetArguments,
    Given,
    HistoryArguments,
    RecallArguments,
    RememberArguments,
    ScopeArguments,
    UpdateArguments,
    read_moment,
)
from recollect.mind.mind import OPERATIONS
from recollect.models.filters import Filter
from recollect.models.service import Right

READ = str(Right.READ)
RIGHTS = {operation.tool: operation.right for operation, _ in OPERATIONS.values() if operation.tool}
"""The right of each tool: that of its operation."""


@dataclass(frozen=True, slots=True)
class ToolSpec(Generic[Given]):
    """One tool: its arguments, its answer and its function."""

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
        """Return whether the tool only reads, by the right of its operation."""
        return READ in RIGHTS[self.name]

    @property
    def arguments(self) -> type[Arguments]:
        """Return the tool's arguments, with the names of the scope at the end."""
        return with_scope(self.takes)

    def describe_tool(self) -> Tool:
        """Describe the tool as clients list it."""
        hints = ToolAnnotations(
            title=self.name.capitalize().replace("_", " "),
            read_only_hint=self.reads,
            destructive_hint=self.destroys,
            idempotent_hint=self.repeatable,
            open_world_hint=False,
        )
        return Tool(
            name=self.name,
            title=self.name.capitalize().replace("_", " "),
            description=self.run.__doc__,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.gives.model_json_schema(mode="serialization"),
            annotations=hints,
        )


@cache
def with_scope(takes: type[Arguments]) -> type[Arguments]:
    """Add the names of the scope to what a tool takes, at the end; cached, because every call needs it."""
    fields: Any = {name: (field.annotation, field) for name, field in ScopeArguments.model_fields.items()}
    return create_model(takes.__name__, __base__=takes, **fields)


async def remember(mind: AnyMind, given: RememberArguments) -> tuple[BaseModel, str]:
    """Save something worth knowing in later conversations: a preference, a decision, an event."""
    [receipt] = await mind.remember(given.to_value(), idempotency_key=given.once, if_new=given.if_new)
    return results.format_receipt(receipt)


async def recall(mind: AnyMind, given: RecallArguments) -> tuple[BaseModel, str]:
    """Search long-term memory. Call this before answering anything that may depend on earlier conversations."""
    return results.format_recall_result(await mind.recall(given.to_cue()))


async def associate(mind: AnyMind, given: AssociateArguments) -> tuple[BaseModel, str]:
    """Find events and thoughts that share keywords with an observation."""
    [found] = await mind.associate(given.to_value(), limit=given.limit)
    return results.format_association(found)


async def history(mind: AnyMind, given: HistoryArguments) -> tuple[BaseModel, str]:
    """Read the most recent messages of a conversation, up to a token limit, oldest first."""
    return results.format_history(await mind.conversation(given.conversation).history(given.max_tokens))


async def context(mind: AnyMind, given: ContextArguments) -> tuple[BaseModel, str]:
    """Get everything relevant for the next answer as one text, with recent messages of a conversation."""
    if not given.conversation:
        return results.format_block(await mind.blocks.show(given.to_cue(), given.budget))
    return results.format_context(await mind.conversation(given.conversation).context(given.to_cue(), given.budget))


async def forget(mind: AnyMind, given: ForgetArguments) -> tuple[BaseModel, str]:
    """Permanently delete memories by ID. Ask the user first."""
    gone = await mind.forget(given.ids, filter=Filter(**given.to_fields()), dry_run=given.dry_run)
    return results.format_forgotten(gone, dry_run=given.dry_run)


async def update_memory(mind: AnyMind, given: UpdateArguments) -> tuple[BaseModel, str]:
    """Correct, update or pin a memory by ID. The old version is kept but no longer recalled."""
    updated = await mind.update(
        given.id,
        content=given.content or None,
        importance=given.importance,
        keywords=given.keywords or None,
        occurred_at=read_moment("occurred_at", given.occurred_at),
        topic=given.topic or None,
        pinned=given.pinned,
    )
    return results.format_update(updated)


TOOLS: dict[str, ToolSpec[Any]] = {
    deed.name: deed
    for deed in (
        ToolSpec(RememberArguments, results.StoredMemory, remember, repeatable=False),
        ToolSpec(RecallArguments, results.RecallToolResult, recall),
        ToolSpec(AssociateArguments, results.AssociateResult, associate),
        ToolSpec(HistoryArguments, results.HistoryAnswer, history),
        ToolSpec(ContextArguments, results.ContextResult, context),
        ToolSpec(UpdateArguments, results.UpdatedMemory, update_memory),
        ToolSpec(ForgetArguments, results.ForgetToolResult, forget, destroys=True),
    )
}

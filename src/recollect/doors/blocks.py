"""The commands for blocks: show what a cue reminds of as a prompt would, and what a short id stands for."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.markup import escape
from rich.table import Column, Table

from recollect.doors.recall import OPTIONS, read_options
from recollect.doors.terminal import Agent, Tenant, User, err, out, with_mind, with_options
from recollect.errors import UnavailableError
from recollect.models.blocks import Block, Resolved
from recollect.models.memories import Memory
from recollect.models.recall import Cue, Status

BLOCK = TypeAdapter(Block)


@with_options(
    conversation=Annotated[str | None, typer.Option(help="Whose blocks before this one count.", show_default="none's")],
    carry=Annotated[bool | None, typer.Option("--carry", help="Show on what was shown before, as it fades.")],
    limit=Annotated[int | None, typer.Option(help="Most lines to show.", show_default="what fits")],
    json=Annotated[bool | None, typer.Option("--json", help="Print the block with its lines as JSON.")],
    **OPTIONS,
)
def block(
    text: Annotated[str, typer.Argument(help="What to be reminded of.")],
    agent: Agent,
    user: User = "",
    budget: Annotated[int, typer.Option(help="Most tokens that it may cost.")] = 2_000,
    tenant: Tenant = "default",
    **more: Any,  # noqa: ANN401 - what `with_options` names
) -> None:
    """Show what a cue reminds of as text for a prompt, within a budget in tokens."""
    cue = Cue(text, limit=more["limit"], **read_options(more))
    conversation, carry = more["conversation"] or "", bool(more["carry"])
    made = with_mind(
        agent, user, tenant, lambda mind: mind.blocks.recall(cue, budget, conversation=conversation, carry=carry)
    )
    if made.status is Status.ERROR:
        raise UnavailableError(f"No channel could look. {made.message}")
    if more["json"]:
        out.print_json(BLOCK.dump_json(made).decode())
        return
    out.print(escape(made.text) if made.text else "nothing to show", highlight=False, soft_wrap=True)
    beside = f", {made.left_out} found no room" if made.left_out else ""
    beside += f", {made.not_repeated} were shown before" if made.not_repeated else ""
    err.print(f"{made.tokens} of {made.budget} tokens by {made.tokenizer}{beside}", highlight=False)


def resolve(
    short_id: Annotated[str, typer.Argument(help="As it stands in a block, as m1a2b.")],
    agent: Agent,
    user: User = "",
    conversation: Annotated[str, typer.Option(help="Which conversation was shown it.")] = "",
    tenant: Tenant = "default",
) -> None:
    """Show the memory that a short id of a block stands for, and what it was made from."""
    found = with_mind(agent, user, tenant, lambda mind: mind.blocks.resolve(short_id, conversation))
    out.print(to_table(found))


def to_table(found: Resolved) -> Table:
    """Lay out a memory and its evidence."""
    table = Table("", Column("id", no_wrap=True, min_width=36), "kind", "when", "memory")

    def add(what: str, memory: Memory) -> None:
        when = f"{memory.occurred_at:%F %R}"
        table.add_row(what, str(memory.id), memory.kind.value, when, escape(memory.content))

    add("memory", found.memory)
    for each in found.evidence:
        add("evidence", each)
    return table

"""Tools that let an agent remember of its own accord, and recall."""

from __future__ import annotations

from agents import FunctionTool, function_tool

from recollect.client import RemoteMind
from recollect.models import FilterLike, OptionsLike

NOTHING = "No memories found."


def memory_tools(
    mind: RemoteMind,
    *,
    limit: int = 5,
    filter: FilterLike | None = None,  # noqa: A002 - as everywhere
    options: OptionsLike | None = None,
) -> list[FunctionTool]:
    """Make the tools `remember` and `recall` for one scope; every recall has the same filter and options."""

    @function_tool
    async def remember(text: str) -> str:
        """Remember something for all conversations to come.

        Args:
            text: What to remember, as one sentence that can be understood by itself.
        """
        await mind.remember(text)
        return "Remembered."

    @function_tool
    async def recall(query: str) -> str:
        """Recall what is known from earlier conversations.

        Args:
            query: A question, or a few words, about what you want to know.
        """
        found = await mind.recall(query, limit=limit, filter=filter, options=options)
        return "\n".join(f"- {hit.memory.content} ({hit.memory.occurred_at:%Y-%m-%d})" for hit in found.hits) or NOTHING

    return [remember, recall]

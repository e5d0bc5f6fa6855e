"""Tools that let an agent remember of its own accord, and recall."""

from __future__ import annotations

from dataclasses import replace

from agents import FunctionTool, function_tool

from recollect.client import RemoteMind
from recollect.models import Cue

NOTHING = "No memories found."


USUAL = Cue()


def memory_tools(mind: RemoteMind, *, limit: int = 5, usual: Cue = USUAL) -> list[FunctionTool]:
    """Make the tools `remember` and `recall` for one scope; `usual` is what else every recall says, as its kinds."""

    @function_tool
    async def remember(text: str) -> str:
        """Remember something for all conversations to come.

        Args:
            text: What to remember, as one sentence that can be understood by itself.
        """
        await mind.remember(text)
        return "Remembered."

    @function_tool
    async def recall(cue: str) -> str:
        """Recall what is known from earlier conversations.

        Args:
            cue: A question, or a few words, about what you want to know.
        """
        found = await mind.recall(replace(usual, text=cue, limit=limit))
        return "\n".join(f"- {hit.memory.content} ({hit.memory.occurred_at:%Y-%m-%d})" for hit in found.hits) or NOTHING

    return [remember, recall]

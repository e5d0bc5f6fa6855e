"""The prompt: a question after the memories that match it."""

from __future__ import annotations

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent
from pydantic import Field

from recollect.doors.mcp.arguments import LEFT_OUT, AnyMind, Arguments

DESCRIPTION = "Add relevant memories to a question."
PROMPTS = [
    Prompt(
        name="with_memory",
        title="With memory",
        description=DESCRIPTION,
        arguments=[
            PromptArgument(name="question", description="The user's question.", required=True),
            PromptArgument(name="budget", description="Token limit for memories. Default: 2000."),
            PromptArgument(name="agent", description=f"Whose memory it is; {LEFT_OUT}."),
            PromptArgument(name="user", description=f"Name of the user it is about; {LEFT_OUT}."),
        ],
    )
]


class QuestionArguments(Arguments):
    """What the prompt is filled in with; clients send every one as text."""

    question: str = Field(min_length=1, max_length=8_000)
    budget: int = Field(2_000, ge=1, le=200_000)
    agent: str = Field("", max_length=128)
    user: str = Field("", max_length=128)


async def fill_prompt(mind: AnyMind, given: QuestionArguments) -> GetPromptResult:
    """Return a question after the memories that match it."""
    block = await mind.blocks.show(given.question, given.budget)
    text = f"{block.text}\n\n{given.question}" if block.text else given.question
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=DESCRIPTION, messages=[message])

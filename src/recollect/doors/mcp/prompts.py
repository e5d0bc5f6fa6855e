"""The prompt: a question with what is remembered of it put before."""

from __future__ import annotations

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent
from pydantic import Field

from recollect.doors.mcp.arguments import LEFT_OUT, AnyMind, Arguments

DESCRIPTION = "A question, with what is remembered of it put before."
PROMPTS = [
    Prompt(
        name="with_memory",
        title="With memory",
        description=DESCRIPTION,
        arguments=[
            PromptArgument(name="question", description="What the user asks or says.", required=True),
            PromptArgument(name="budget", description="How many tokens the memories may have; 2000 if left out."),
            PromptArgument(name="agent", description=f"Whose memory it is; {LEFT_OUT}."),
            PromptArgument(name="user", description=f"Whom it is about or with; {LEFT_OUT}."),
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
    """Put what is remembered before a question."""
    block = await mind.blocks.show(given.question, given.budget)
    text = f"{block.text}\n\n{given.question}" if block.text else given.question
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=DESCRIPTION, messages=[message])

"""An agent of the OpenAI Agents SDK whose session is a conversation of Recollect: it goes on, and it is remembered.

A scripted model stands in for a real one, so that nothing but Recollect is asked over the network.

Run: uv run --project integrations/openai_agents python examples/openai_agents_session.py
"""

from __future__ import annotations

import asyncio
import os
from uuid import uuid4

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from recollect_openai_agents import RecollectSession, memory_tools

from recollect.client import Client

set_tracing_disabled(disabled=True)
SCRIPT = (
    [function_call("find_recipe", {"dish": "curry"}, call_id="call-1")],
    [assistant_message("Then a coconut curry, without peanuts.")],
    [assistant_message("For three people: one more can of coconut milk.")],
    [function_call("recall", {"cue": "What must not be in the food?"}, call_id="call-2")],
    [assistant_message("Leave the peanuts out of the cake.")],
)


@function_tool
def find_recipe(dish: str) -> str:
    """Look a recipe up."""
    return f"{dish}: coconut milk, chickpeas, spinach"


async def main() -> None:
    """Run an agent twice in one session and once in another, and show what each run knew."""
    async with Client(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"]) as client:
        mind = await client.mind("cook", f"li-{uuid4().hex[:8]}")
        agent = Agent(name="cook", model=ScriptedModel(SCRIPT), tools=[find_recipe, *memory_tools(mind, limit=1)])
        dinner = RecollectSession("dinner", mind)
        for question in ("I am allergic to peanuts. What may I cook tonight?", "And for three people?"):
            result = await Runner.run(agent, question, session=dinner)
            print(f"{question}\n  {result.final_output}  ({len(await dinner.get_items())} items in the session)")
        birthday = RecollectSession("birthday", mind)
        question = "My sister bakes me a cake. What should she know?"
        result = await Runner.run(agent, question, session=birthday)
        print(f"{question}\n  {result.final_output}")
        for item in await birthday.get_items():
            if item.get("type") == "function_call_output":
                print(f"  recalled from another session: {item['output']}")
        await dinner.clear_session()
        print(f"after clearing: {len(await dinner.get_items())} items in the session about dinner")


if __name__ == "__main__":
    asyncio.run(main())

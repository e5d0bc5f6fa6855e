"""An agent of Pydantic AI whose conversations lie in Recollect: loaded, continued, branched, forked, and recalled.

A scripted model stands in for a real one, so that nothing but Recollect is asked over the network.

Run: uv run --project integrations/pydantic_ai python examples/pydantic_ai_conversation.py
"""

from __future__ import annotations

import asyncio
import os
from uuid import uuid4

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from recollect_pydantic_ai import RecollectConversationStore

from recollect.client import Client


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Say how much of the conversation the model was sent."""
    return ModelResponse(parts=[TextPart(f"I was sent {len(messages)} messages.")])


async def main() -> None:
    """Run an agent twice in one conversation, branch it, fork it, and recall from it."""
    async with Client(os.environ["RECOLLECT_URL"], os.environ["RECOLLECT_KEY"]) as client:
        mind = await client.mind("cook", f"li-{uuid4().hex[:8]}")
        store, agent = RecollectConversationStore(mind), Agent(FunctionModel(answer))
        for question in ("I am allergic to peanuts. What may I cook?", "And for three people?"):
            conversation = await store.load("dinner") or Conversation(conversation_id="dinner")
            result = await agent.run(question, conversation=conversation)
            await store.save(result, scope="li")
            print(f"{question}\n  {result.output}")
        loaded = await store.load("dinner")
        if loaded is None or loaded.revision is None:
            return
        branch = await store.branch("dinner", at=2, expected_revision=loaded.revision)
        await store.save(await agent.run("And without an oven?", conversation=branch))
        fork = await store.fork("dinner", new_conversation_id="lunch")
        await store.save(await agent.run("And for lunch?", conversation=fork))
        for record in await store.list_conversations(scope="li"):
            history = await store.load_entries(record.conversation_id) or []
            print(f"{record.conversation_id}: {len(history)} messages, {len(record.branches)} branches left behind")
        hit = (await mind.recall("Which allergies are there?", limit=1)).hits[0]
        print(f"recalled: {hit.memory.content}")
        await store.delete("dinner")
        lunch = await store.load("lunch")
        print(f"dinner deleted; lunch still has {len(lunch.messages) if lunch else 0} messages")


if __name__ == "__main__":
    asyncio.run(main())

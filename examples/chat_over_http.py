"""A chat bot's loop over HTTP: append what is said, ask for a prompt within a budget, see why each memory is in it.

Start a server with `recollect up`, and set RECOLLECT_URL and RECOLLECT_KEY as it says.

Run: uv run python examples/chat_over_http.py
"""

from __future__ import annotations

import asyncio
from uuid import uuid4

import recollect

SAID = (
    ("I am allergic to peanuts, please remember that.", "Noted: no peanuts."),
    ("My sister Mei visits on Friday.", "How nice. Shall we plan a dinner?"),
)
QUESTION = "What may I cook for Mei and me?"


async def main() -> None:
    """Converse, then show the prompt that a chat model would get."""
    async with recollect.connect() as client:
        mind = await client.mind("cook", f"li-{uuid4().hex[:8]}")
        last_week = mind.conversation("last-week")
        for question, answer in SAID:
            await last_week.append([{"role": "user", "content": question}, {"role": "assistant", "content": answer}])
        context = await mind.conversation("today").context(QUESTION, budget=600)
        for message in context.messages:
            print(f"{message['role']}: {message['content']}")
        for hit in context.hits:
            print(f"{hit.score:.2f}  {hit.memory.content}  ({', '.join(hit.channels)})")


if __name__ == "__main__":
    asyncio.run(main())

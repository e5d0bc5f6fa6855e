"""An MCP client over HTTP: the tools it finds, something remembered, recalled and put before a question.

Start a server with `recollect up`, and set RECOLLECT_URL and RECOLLECT_KEY as it says.

Run: uv run python examples/mcp_client.py
"""

from __future__ import annotations

import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

SCOPE = {"agent": "guide", "user": "mei"}


def read(answer: CallToolResult) -> str:
    """Give the text of an answer."""
    return "\n".join(part.text for part in answer.content if isinstance(part, TextContent))


async def main() -> None:
    """Call the tools as a model would."""
    headers = {"Authorization": f"Bearer {os.environ['RECOLLECT_KEY']}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        line = streamable_http_client(f"{os.environ['RECOLLECT_URL']}/mcp", http_client=http)
        async with Client(line) as client:
            print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
            await client.call_tool("remember", {"content": "Mei walks with a cane.", "once": "cane"} | SCOPE)
            print(read(await client.call_tool("recall", {"text": "How does Mei walk?"} | SCOPE)))
            print(read(await client.call_tool("context", {"text": "Which path should Mei take?"} | SCOPE)))
            wrong = await client.call_tool("recall", {"text": "Mei", "limit": 500} | SCOPE)
            print("refused:", read(wrong))


if __name__ == "__main__":
    asyncio.run(main())

"""Store one thing in long-term memory."""

import memory_tool

from recollect.models import NewMemory


class Remember(memory_tool.MemoryTool):
    """Remember something."""

    def _perform(self, mind: memory_tool.SyncMind, given: memory_tool.Given) -> memory_tool.Answer:
        (vector,) = self.embed(given, [given.get("content", "")])
        memory = memory_tool.fill(NewMemory, {"content": ""} | given, embedding=vector)
        (receipt,) = mind.remember(memory, idempotency_key=self.once(given))
        return f"Remembered, id {receipt.id}.", {"ids": [str(receipt.id)]}

"""Delete memories, and all that was derived from them."""

import memory_tool


class Forget(memory_tool.MemoryTool):
    """Forget something."""

    def _perform(self, mind: memory_tool.BlockingMind, given: memory_tool.Given) -> memory_tool.Answer:
        forgotten = [str(each) for each in mind.forget(given.get("ids", []))]
        return f"Forgot {len(forgotten)} memories.", {"ids": forgotten}

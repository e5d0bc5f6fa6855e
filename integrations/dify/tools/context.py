"""Give back one prompt within a budget: the newest turns, what the cue reminds of, the running summary."""

import memory_tool


class Context(memory_tool.MemoryTool):
    """Make a prompt."""

    def _perform(self, mind: memory_tool.SyncMind, given: memory_tool.Given) -> memory_tool.Answer:
        budget, system = given.get("budget", 4_000), given.get("system", "")
        made = self.conversation(mind, given).context(self.cue(given), budget, system=system)
        variables = {"messages": [*map(dict, made.messages)], "ids": [str(hit.memory.id) for hit in made.hits]}
        texts = {"block": made.block, "history": made.history.text, "tokens": made.spending.total}
        return made.block or "No memories found.", variables | texts

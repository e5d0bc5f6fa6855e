"""Give back the newest turns of a conversation that fit a budget."""

import memory_tool

from recollect.errors import NotFoundError
from recollect.models import HistoryOptions


class History(memory_tool.MemoryTool):
    """Read a conversation."""

    def _perform(self, mind: memory_tool.SyncMind, given: memory_tool.Given) -> memory_tool.Answer:
        try:
            history = self.conversation(mind, given).history(memory_tool.fill(HistoryOptions, given))
        except NotFoundError:
            return "Nothing was said yet.", {"messages": [], "ids": [], "tokens": 0, "complete": True}
        said = {"messages": [*map(dict, history.prompt)], "ids": [str(each.id) for each in history.messages]}
        return history.text or "Nothing was said yet.", said | {"tokens": history.tokens, "complete": history.complete}

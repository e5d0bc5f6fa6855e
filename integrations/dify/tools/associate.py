"""Give back which events and thoughts a perceived triple reminds of, by its keywords."""

import memory_tool

from recollect.models import Triple


class Associate(memory_tool.MemoryTool):
    """Associate with what is perceived."""

    def _perform(self, mind: memory_tool.SyncMind, given: memory_tool.Given) -> memory_tool.Answer:
        (found,) = mind.associate(memory_tool.fill(Triple, given), limit=given.get("limit", 30))
        events, thoughts = memory_tool.show(found.events), memory_tool.show(found.thoughts)
        ids = [each["id"] for each in events + thoughts]
        return memory_tool.tell(events + thoughts), {"events": events, "thoughts": thoughts, "ids": ids}

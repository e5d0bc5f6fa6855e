"""Recall what a cue reminds of, best first."""

import memory_tool


class Recall(memory_tool.MemoryTool):
    """Recall something."""

    def _perform(self, mind: memory_tool.SyncMind, given: memory_tool.Given) -> memory_tool.Answer:
        found = mind.recall(self.cue(given))
        shown = memory_tool.show(hit.memory for hit in found.hits)
        hits = [a | {"score": b.score, "relevance": b.relevance or 0.0} for a, b in zip(shown, found.hits, strict=True)]
        return memory_tool.tell(hits), {"status": found.status.value, "hits": hits, "ids": [hit["id"] for hit in hits]}

"""Append what user and assistant said to a conversation, as one turn."""

import memory_tool

from recollect.models import NewMessage, Role


class Append(memory_tool.MemoryTool):
    """Save a turn."""

    def _perform(self, mind: memory_tool.SyncMind, given: memory_tool.Given) -> memory_tool.Answer:
        said = [(role, given[f"{role}_message"]) for role in Role if f"{role}_message" in given] or [(Role.USER, "")]
        vectors = self.embed(given, [text for _, text in said])
        turn = [NewMessage(*each, embedding=vector) for each, vector in zip(said, vectors, strict=True)]
        appended = self.conversation(mind, given).append(turn, idempotency_key=self.once(given))
        return f"Appended {len(appended)} messages.", {"ids": [str(each.id) for each in appended]}

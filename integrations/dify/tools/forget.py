"""Delete memories, and all that was derived from them."""

import memory_tool


class Forget(memory_tool.MemoryTool):
    """Forget something."""

    def _perform(self, mind: memory_tool.SyncMind, given: memory_tool.Given) -> memory_tool.Answer:
        only, dry_run = memory_tool.fill(memory_tool.Filter, given), bool(given.get("dry_run"))
        gone = [str(each) for each in mind.forget(given.get("ids", []), filter=only, dry_run=dry_run)]
        return f"{'Would forget' if dry_run else 'Forgot'} {len(gone)} memories.", {"ids": gone}

"""LangGraph's checkpointer on items: a step of a graph is kept as a whole or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from secrets import token_hex
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from recollect_langchain.connection import Connection, both

from recollect_langgraph_checkpoint import steps


class RecollectSaver(BaseCheckpointSaver[str]):
    """Checkpoints in one scope; they are no memories, and a recall never finds them."""

    def __init__(self, connection: Connection, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.connection = connection

    put, aput = both(steps.put, "items")
    put_writes, aput_writes = both(steps.put_writes, "items")
    get_tuple, aget_tuple = both(steps.get_tuple, "items")
    delete_thread, adelete_thread = both(steps.delete_thread, "items")
    delete_for_runs, adelete_for_runs = both(steps.delete_for_runs, "items")
    copy_thread, acopy_thread = both(steps.copy_thread, "items")
    prune, aprune = both(steps.prune, "items")
    _page, _apage = both(steps.page, "items")

    def list(self, config: RunnableConfig | None, **asked: Any) -> Iterator[CheckpointTuple]:  # noqa: ANN401
        """List checkpoints, the newest first; by `filter`, `before` and `limit`."""
        for find in steps.pages(config, **asked):
            yield from (page := self._page(find))
            if len(page) < find.limit:
                return

    async def alist(self, config: RunnableConfig | None, **asked: Any) -> AsyncIterator[CheckpointTuple]:  # noqa: ANN401
        """List the same from an event loop."""
        for find in steps.pages(config, **asked):
            page = await self._apage(find)
            for each in page:
                yield each
            if len(page) < find.limit:
                return

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - as the protocol has it
        """Count on; by chance two branches of a thread never share a version, and so no value."""
        number = int(str(current).split(".", maxsplit=1)[0]) if current else 0
        return f"{number + 1:032}.{token_hex(8)}"

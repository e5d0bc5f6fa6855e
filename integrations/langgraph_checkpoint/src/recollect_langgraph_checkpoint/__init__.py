"""Recollect for LangGraph: the checkpointer."""

from recollect_langgraph_checkpoint.saver import RecollectSaver

__all__ = ["RecollectSaver"]

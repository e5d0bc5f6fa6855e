"""Recollect for LangGraph: the long-term store."""

from recollect_langchain import Connection

from recollect_langgraph.store import RecollectStore

__all__ = ["Connection", "RecollectStore"]

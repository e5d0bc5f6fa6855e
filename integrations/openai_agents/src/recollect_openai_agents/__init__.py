"""Recollect for the OpenAI Agents SDK: a session that remembers, and tools to remember and to recall."""

from recollect_openai_agents.session import RecollectSession
from recollect_openai_agents.tools import memory_tools

__all__ = ["RecollectSession", "memory_tools"]

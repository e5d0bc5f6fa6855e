"""Recollect for LangChain: the connection, a retriever that recalls, and a conversation as chat history."""

from recollect_langchain.connection import Connection
from recollect_langchain.history import RecollectChatMessageHistory
from recollect_langchain.retriever import RecollectRetriever

__all__ = ["Connection", "RecollectChatMessageHistory", "RecollectRetriever"]

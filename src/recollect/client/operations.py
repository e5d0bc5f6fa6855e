"""The list of operations, as a client needs it.

Written by tools/clients.py: change the methods of recollect.mind that declare the operations, and run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recollect import models


@dataclass(frozen=True, slots=True)
class RemoteOperation:
    """The request of an operation, and the type of its answer; the type is loaded on first use."""

    method: str
    path: str
    gives: Callable[[], Any] | None = None
    answer: str = ""
    """The field of the body that holds the answer; empty if the whole body is the answer."""
    agent_only: bool = False
    """Whether no user is named."""


OPERATIONS: Mapping[str, RemoteOperation] = {
    "associate": RemoteOperation("POST", "/v1/associate", lambda: list[models.Association], answer="associations"),
    "changes": RemoteOperation("GET", "/v1/changes"),
    "conversations": RemoteOperation("GET", "/v1/conversations", lambda: models.ConversationPage),
    "evidence": RemoteOperation("GET", "/v1/memories/{memory_id}/evidence", lambda: models.EvidenceWalk),
    "fade": RemoteOperation("POST", "/v1/fade", lambda: models.FadeReport),
    "feedback": RemoteOperation("POST", "/v1/feedback", lambda: int, answer="marked"),
    "forget": RemoteOperation("POST", "/v1/forget", lambda: list[UUID], answer="forgotten"),
    "forget_everything": RemoteOperation("POST", "/v1/forget/everything", lambda: models.UserErasure),
    "get": RemoteOperation("GET", "/v1/memories/{memory_id}", lambda: models.Memory),
    "list": RemoteOperation("GET", "/v1/memories", lambda: models.MemoryPage),
    "load": RemoteOperation("POST", "/v1/load", lambda: list[UUID], answer="ids"),
    "overview": RemoteOperation("GET", "/v1/overview", lambda: models.Overview),
    "profile": RemoteOperation("GET", "/v1/profile", lambda: models.Profile, agent_only=True),
    "recall": RemoteOperation("POST", "/v1/recall", lambda: models.RecallResult),
    "recall_each": RemoteOperation(
        "POST", "/v1/recall-each", lambda: list[models.RecallResult], answer="recollections"
    ),
    "reflect_later": RemoteOperation("POST", "/v1/reflections", lambda: str, answer="job"),
    "reflection": RemoteOperation("GET", "/v1/reflections/{job_id}", lambda: models.ReflectionProgress),
    "remember": RemoteOperation("POST", "/v1/memories", lambda: list[models.Receipt], answer="memories"),
    "restore": RemoteOperation("POST", "/v1/fade/restore", lambda: list[UUID], answer="restored"),
    "set_profile": RemoteOperation("PUT", "/v1/profile", lambda: models.Profile, agent_only=True),
    "update": RemoteOperation("PATCH", "/v1/memories/{memory_id}", lambda: models.UpdateResult),
    "blocks.show": RemoteOperation("POST", "/v1/blocks", lambda: models.MemoryBlock),
    "conversation.append": RemoteOperation(
        "POST", "/v1/messages", lambda: list[models.MessageReceipt], answer="messages"
    ),
    "conversation.chat": RemoteOperation("POST", "/v1/chat", lambda: models.Reply),
    "conversation.context": RemoteOperation("POST", "/v1/context", lambda: models.Context),
    "conversation.delete": RemoteOperation(
        "DELETE", "/v1/conversations/{conversation}", lambda: models.DeletedConversation
    ),
    "conversation.get": RemoteOperation("GET", "/v1/conversations/{conversation}", lambda: models.ConversationInfo),
    "conversation.history": RemoteOperation("POST", "/v1/history", lambda: models.History),
    "conversation.messages": RemoteOperation(
        "GET", "/v1/conversations/{conversation}/messages", lambda: models.MessagePage
    ),
    "conversation.purge": RemoteOperation(
        "POST", "/v1/conversations/{conversation}/purge", lambda: models.PurgeReceipt
    ),
    "conversation.segments": RemoteOperation(
        "GET", "/v1/conversations/{conversation}/segments", lambda: list[models.SegmentRecord], answer="segments"
    ),
    "conversation.update": RemoteOperation(
        "PATCH", "/v1/conversations/{conversation}", lambda: models.ConversationInfo
    ),
    "items.batch": RemoteOperation("POST", "/v1/items", lambda: list[dict[str, Any]], answer="results"),
    "knowledge.add": RemoteOperation("POST", "/v1/facts", lambda: list[models.Fact], answer="facts"),
    "knowledge.duplicates": RemoteOperation("GET", "/v1/entities/duplicates", lambda: models.MergeProposalPage),
    "knowledge.end": RemoteOperation("PATCH", "/v1/facts/{fact_id}", lambda: models.Fact),
    "knowledge.entities": RemoteOperation("GET", "/v1/entities", lambda: models.EntityPage),
    "knowledge.export": RemoteOperation("GET", "/v1/graph"),
    "knowledge.facts": RemoteOperation("GET", "/v1/facts", lambda: models.FactPage),
    "knowledge.merge": RemoteOperation("POST", "/v1/entities/{entity_id}/merge", lambda: models.Entity),
    "knowledge.neighbors": RemoteOperation("GET", "/v1/entities/{entity_id}/neighbors", lambda: models.Neighbors),
    "knowledge.paths": RemoteOperation("GET", "/v1/graph/paths", lambda: list[models.FactPath], answer="paths"),
    "knowledge.split": RemoteOperation("POST", "/v1/entities/{entity_id}/split", lambda: models.Entity),
    "recalls.explain": RemoteOperation("GET", "/v1/recalls/{recall_id}", lambda: models.Explanation),
    "recalls.list": RemoteOperation("GET", "/v1/recalls", lambda: models.SavedRecallPage),
    "recalls.replay": RemoteOperation("POST", "/v1/recalls/{recall_id}/replay", lambda: models.Replay),
    "topics.link": RemoteOperation("POST", "/v1/topics/links", lambda: models.Topic),
    "topics.links": RemoteOperation("GET", "/v1/topics/links", lambda: list[models.TopicLink], answer="links"),
    "topics.tree": RemoteOperation("GET", "/v1/topics", lambda: models.TopicTree),
    "topics.unlink": RemoteOperation("POST", "/v1/topics/unlink", lambda: list[UUID], answer="unlinked"),
    "topics.update": RemoteOperation("PATCH", "/v1/topics", lambda: models.Topic),
}

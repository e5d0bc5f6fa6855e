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
    "activity": RemoteOperation("GET", "/v1/activity", lambda: list[models.DailyCount], answer="days"),
    "associate": RemoteOperation("POST", "/v1/associate", lambda: list[models.Association], answer="associations"),
    "browse": RemoteOperation("GET", "/v1/memories", lambda: models.MemoryPage),
    "changes": RemoteOperation("GET", "/v1/changes"),
    "conversations": RemoteOperation("GET", "/v1/conversations", lambda: models.ConversationPage),
    "evidence": RemoteOperation("GET", "/v1/memories/{memory_id}/evidence", lambda: models.EvidenceWalk),
    "feedback": RemoteOperation("POST", "/v1/feedback", lambda: int, answer="marked"),
    "forget": RemoteOperation("POST", "/v1/forget", lambda: list[UUID], answer="forgotten"),
    "forget_everything": RemoteOperation("POST", "/v1/forget/everything", lambda: models.UserErasure),
    "get": RemoteOperation("GET", "/v1/memories/{memory_id}", lambda: models.Memory),
    "get_many": RemoteOperation("POST", "/v1/memories/read", lambda: list[models.Memory], answer="memories"),
    "last_chat": RemoteOperation("GET", "/v1/last-chat", lambda: models.Memory),
    "load": RemoteOperation("POST", "/v1/load", lambda: list[UUID], answer="ids"),
    "metadata": RemoteOperation(
        "GET", "/v1/metadata", lambda: Mapping[str, models.JSON], answer="metadata", agent_only=True
    ),
    "overview": RemoteOperation("GET", "/v1/overview", lambda: models.Overview),
    "pin": RemoteOperation("POST", "/v1/pin", lambda: list[UUID], answer="pinned"),
    "profile": RemoteOperation("GET", "/v1/profile", lambda: models.Profile, agent_only=True),
    "recall": RemoteOperation("POST", "/v1/recall", lambda: models.RecallResult),
    "recall_each": RemoteOperation(
        "POST", "/v1/recall-each", lambda: list[models.RecallResult], answer="recollections"
    ),
    "reflect_later": RemoteOperation("POST", "/v1/reflect", lambda: str, answer="job"),
    "reflection": RemoteOperation("GET", "/v1/reflections/{job_id}", lambda: models.ReflectionProgress),
    "remember": RemoteOperation("POST", "/v1/memories", lambda: list[models.Receipt], answer="memories"),
    "revise": RemoteOperation("POST", "/v1/memories/{memory_id}/revise", lambda: models.UpdateResult),
    "set_profile": RemoteOperation("PUT", "/v1/profile", agent_only=True),
    "tune": RemoteOperation("POST", "/v1/tune", lambda: list[models.Tuning], answer="tunings", agent_only=True),
    "versions": RemoteOperation(
        "GET", "/v1/memories/{memory_id}/versions", lambda: list[models.Memory], answer="versions"
    ),
    "blocks.resolve": RemoteOperation("GET", "/v1/blocks/{short_id}", lambda: models.ResolvedId),
    "blocks.show": RemoteOperation("POST", "/v1/blocks", lambda: models.MemoryBlock),
    "conversation.append": RemoteOperation(
        "POST", "/v1/messages", lambda: list[models.MessageReceipt], answer="messages"
    ),
    "conversation.archive": RemoteOperation(
        "POST", "/v1/conversations/{conversation}/archive", lambda: models.ConversationInfo
    ),
    "conversation.close_segment": RemoteOperation(
        "POST", "/v1/conversations/{conversation}/segments", lambda: list[models.SegmentRecord], answer="segments"
    ),
    "conversation.context": RemoteOperation("POST", "/v1/context", lambda: models.Context),
    "conversation.converse": RemoteOperation("POST", "/v1/converse", lambda: models.Reply),
    "conversation.delete": RemoteOperation(
        "POST", "/v1/conversations/{conversation}/delete", lambda: models.DeletedConversation
    ),
    "conversation.describe": RemoteOperation("PATCH", "/v1/conversations/{conversation}"),
    "conversation.history": RemoteOperation("POST", "/v1/history", lambda: models.History),
    "conversation.leaves": RemoteOperation(
        "GET", "/v1/conversations/{conversation}/leaves", lambda: list[models.ThreadEnd], answer="leaves"
    ),
    "conversation.messages": RemoteOperation(
        "GET", "/v1/conversations/{conversation}/messages", lambda: models.MessagePage
    ),
    "conversation.purge": RemoteOperation(
        "POST", "/v1/conversations/{conversation}/purge", lambda: models.PurgeReceipt
    ),
    "conversation.read": RemoteOperation("GET", "/v1/conversations/{conversation}", lambda: models.ConversationInfo),
    "conversation.receipts": RemoteOperation(
        "GET", "/v1/conversations/{conversation}/receipts", lambda: list[models.PurgeReceipt], answer="receipts"
    ),
    "conversation.restore": RemoteOperation(
        "POST", "/v1/conversations/{conversation}/restore", lambda: models.ConversationInfo
    ),
    "conversation.segments": RemoteOperation(
        "GET", "/v1/conversations/{conversation}/segments", lambda: list[models.SegmentRecord], answer="segments"
    ),
    "fading.explain": RemoteOperation(
        "POST", "/v1/fading/explain", lambda: list[models.FadeDecision], answer="judgements"
    ),
    "fading.fade": RemoteOperation("POST", "/v1/fading", lambda: models.FadeReport),
    "fading.faded": RemoteOperation("GET", "/v1/faded", lambda: models.FadedPage),
    "fading.revive": RemoteOperation("POST", "/v1/faded/revive", lambda: list[UUID], answer="revived"),
    "items.batch": RemoteOperation("POST", "/v1/items", lambda: list[dict[str, Any]], answer="results"),
    "knowledge.add": RemoteOperation("POST", "/v1/facts", lambda: list[models.Fact], answer="facts"),
    "knowledge.connections": RemoteOperation(
        "GET", "/v1/connections", lambda: list[models.FactPath], answer="connections"
    ),
    "knowledge.end": RemoteOperation("POST", "/v1/facts/{fact_id}/end", lambda: models.Fact),
    "knowledge.entities": RemoteOperation("GET", "/v1/entities", lambda: models.EntityPage),
    "knowledge.entities_by_facts": RemoteOperation("GET", "/v1/entities/by-facts", lambda: models.EntityPage),
    "knowledge.entity": RemoteOperation("GET", "/v1/entities/{entity_id}", lambda: models.Entity),
    "knowledge.export": RemoteOperation("GET", "/v1/graph"),
    "knowledge.fact_versions": RemoteOperation(
        "GET", "/v1/facts/{fact_id}/versions", lambda: list[models.Fact], answer="versions"
    ),
    "knowledge.facts": RemoteOperation("GET", "/v1/facts", lambda: models.FactPage),
    "knowledge.merge": RemoteOperation("POST", "/v1/entities/{entity_id}/merge", lambda: models.Entity),
    "knowledge.neighbours": RemoteOperation("GET", "/v1/entities/{entity_id}/neighbours", lambda: models.Neighbors),
    "knowledge.proposed_merges": RemoteOperation("GET", "/v1/merges/proposed", lambda: models.MergeProposalPage),
    "knowledge.split": RemoteOperation("POST", "/v1/entities/{entity_id}/split", lambda: models.Entity),
    "knowledge.timeline": RemoteOperation("GET", "/v1/entities/{entity_id}/timeline", lambda: models.TimelinePage),
    "recalls.explain": RemoteOperation("GET", "/v1/recalls/{recall_id}", lambda: models.Explanation),
    "recalls.list": RemoteOperation("GET", "/v1/recalls", lambda: models.SavedRecallPage),
    "recalls.replay": RemoteOperation("POST", "/v1/recalls/{recall_id}/replay", lambda: models.Replay),
    "topics.link": RemoteOperation("POST", "/v1/topics/links", lambda: models.Topic),
    "topics.links": RemoteOperation("GET", "/v1/topics/links", lambda: list[models.TopicLink], answer="links"),
    "topics.merge": RemoteOperation("POST", "/v1/topics/merge", lambda: models.Topic),
    "topics.move": RemoteOperation("POST", "/v1/topics/move", lambda: models.Topic),
    "topics.related": RemoteOperation("GET", "/v1/topics/related", lambda: list[models.RelatedTopic], answer="related"),
    "topics.rename": RemoteOperation("POST", "/v1/topics/rename", lambda: models.Topic),
    "topics.tree": RemoteOperation("GET", "/v1/topics", lambda: models.TopicTree),
    "topics.unlink": RemoteOperation("POST", "/v1/topics/unlink", lambda: list[UUID], answer="unlinked"),
}

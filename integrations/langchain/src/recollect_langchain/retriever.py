"""A LangChain retriever that recalls: documents with the score, and the reasons for it."""

from __future__ import annotations

from dataclasses import replace

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from recollect.models import Cue, Hit
from recollect_langchain.connection import Connection


class RecollectRetriever(BaseRetriever):
    """Recall by a query; `k` documents at most, the best first."""

    connection: Connection
    k: int = 10
    cue: Cue = Cue()
    """What else every recall says: kinds, channels, as_of, at, ..."""

    def _get_relevant_documents(self, query: str, *, run_manager: object, k: int | None = None) -> list[Document]:
        del run_manager
        found = self.connection.mind.recall(self._cue(query, k))
        return [to_document(hit) for hit in found.hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: object, k: int | None = None
    ) -> list[Document]:
        del run_manager
        mind = await self.connection.open_mind()
        found = await mind.recall(self._cue(query, k))
        return [to_document(hit) for hit in found.hits]

    def _cue(self, query: str, k: int | None) -> Cue:
        return replace(self.cue, text=query, limit=k or self.k)


def to_document(hit: Hit) -> Document:
    """Turn a hit into a document; `shares` is what each channel and each preference added to the score."""
    memory = hit.memory
    shares = {name: channel.share for name, channel in hit.channels.items()} | dict(hit.preferences)
    metadata = {
        "score": hit.score,
        "kind": memory.kind.value,
        "shares": shares,
        "speaker": memory.speaker,
        "conversation": memory.conversation,
        "occurred_at": memory.occurred_at.isoformat(),
        "trust": memory.trust,
    }
    return Document(id=str(memory.id), page_content=memory.content, metadata=dict(memory.metadata) | metadata)

"""Remember one memory, given by its arguments: a write of many that has one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect import models
from recollect.misspelt import name_arguments

if TYPE_CHECKING:
    from recollect.models.memories import JSON, IfNew, Kind, NewMemory, Receipt


@name_arguments
class RememberVerb(ABC):
    """The method of anything that stores many memories at once."""

    __slots__ = ()

    @abstractmethod
    def remember_many(
        self,
        memories: Sequence[str | NewMemory],
        *,
        if_new: IfNew = "",
        idempotency_key: str = "",
        bulk: bool = False,
    ) -> Coroutine[Any, Any, list[Receipt]]:
        """Store memories in one transaction."""

    async def remember(
        self,
        content: str,
        *,
        kind: Kind | str = "event",
        speaker: str = "",
        importance: float | None = None,
        keywords: Sequence[str] = (),
        topic: str = "",
        metadata: Mapping[str, JSON] | None = None,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        pinned: bool = False,
        if_new: IfNew = "",
        idempotency_key: str = "",
    ) -> Receipt:
        """Store one memory. `remember_many` stores several, with everything that a `NewMemory` can hold.

        Args:
            content: The memory, as a sentence that can be understood alone.
            kind: event, thought, fact, chat, message or summary.
            speaker: Name of the speaker, who is searchable.
            importance: 1 (trivial) to 10 (life-changing). Default: estimated.
            keywords: Keywords to find it by. Default: from its content.
            topic: Topic path, such as `travel->Japan`.
            metadata: Your own JSON. Filter by it with `where`.
            occurred_at: When it happened. Default: now.
            expires_at: When it is no longer recalled. Default: never.
            pinned: Whether every prompt includes it.
            if_new: `same` skips equal texts, `near` also similar words.
            idempotency_key: A repeated call with the same key stores nothing.
        """
        memory = models.NewMemory(
            content,
            models.Kind(kind),
            speaker,
            importance,
            keywords=tuple(keywords),
            topic=topic,
            metadata=metadata or {},
            occurred_at=occurred_at,
            expires_at=expires_at,
            pinned=pinned,
        )
        [receipt] = await self.remember_many([memory], if_new=if_new, idempotency_key=idempotency_key)
        return receipt

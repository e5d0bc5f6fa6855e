"""One scope's blocks as one object: what a cue reminds of as text for a prompt, and what its short ids stand for."""

from __future__ import annotations

from dataclasses import dataclass, field

from recollect.caller_view import CallerView, right_for
from recollect.models import Cue, Right
from recollect.models.blocks import Block, Resolved
from recollect.store.scopes import Place
from recollect.verbs.block import Asked, block, resolve


@dataclass(frozen=True, slots=True)
class BlockView(CallerView):
    """One caller's view of what can be shown of one scope."""

    located: list[Place] = field(default_factory=list[Place])
    """The mind's own: where the scope lay when the caller was admitted."""

    async def recall(
        self,
        cue: str | Cue,
        budget: int = 2_000,
        *,
        conversation: str = "",
        carry: bool = False,
        tokenizer: str = "",
    ) -> Block:
        """Give back what a cue reminds of as one text within a budget in tokens, each line with its short id.

        In a conversation, what was shown before is left out until it has faded; with `carry` it is shown on, in less
        and less words.
        """
        asked = Asked(Cue(cue) if isinstance(cue, str) else cue, budget, conversation, carry, tokenizer)
        async with self._asking(right_for([asked.cue])):
            place = self.located.pop() if self.located else None
            return await block(self.parts, self.scope, asked, place)

    async def resolve(self, short_id: str, conversation: str = "") -> Resolved:
        """Give back the memory that a short id stands for in a conversation, or in the scope, and its evidence."""
        async with self._asking(Right.READ):
            return await resolve(self.parts, self.scope, short_id, conversation)

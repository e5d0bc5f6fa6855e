"""The SDK's view of what can be shown of one scope on a server."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from recollect.client.bodies import JsonType, to_cue_body, to_parameters
from recollect.client.fading import Sender
from recollect.models.blocks import Block, Resolved
from recollect.models.recall import Cue

BLOCK, RESOLVED = JsonType(Block), JsonType(Resolved)


@dataclass(frozen=True, slots=True)
class RemoteBlocks:
    """What can be shown of one scope on a server."""

    client: Sender
    agent: str
    user: str

    async def recall(
        self,
        cue: str | Cue,
        budget: int = 2_000,
        *,
        conversation: str = "",
        carry: bool = False,
        tokenizer: str = "",
    ) -> Block:
        """Give back what a cue reminds of as one text within a budget in tokens, each line with its short id."""
        asked = to_cue_body(Cue(cue) if isinstance(cue, str) else cue)
        chosen = {"budget": budget, "conversation": conversation, "carry": carry, "tokenizer": tokenizer}
        body = {"agent": self.agent, "user": self.user} | asked | chosen
        return BLOCK.validate_json(await self.client.send("POST", "/v1/blocks", json=body))

    async def resolve(self, short_id: str, conversation: str = "") -> Resolved:
        """Give back the memory that a short id stands for in a conversation, or in the scope, and its evidence."""
        parameters = to_parameters(agent=self.agent, user=self.user, conversation=conversation)
        path = f"/v1/blocks/{quote(short_id.strip().strip('[]').lower(), safe='')}"
        return RESOLVED.validate_json(await self.client.send("GET", path, params=parameters))

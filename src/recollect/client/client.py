"""The SDK: the verbs of a mind over HTTP, with retries that cannot store anything twice."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from recollect import models
from recollect.client.calls import RemoteTenant, RequestSender, name_scopes, reader
from recollect.client.mind import RemoteMind
from recollect.client.transport import Parameters, Transport
from recollect.loading import load

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from recollect.models.imports import ImportResult, UserErasure
    from recollect.models.service import ApiKey, CurrentKey, NewKey, Right


ERASURE, ERASURES, IMPORTED = (
    (lambda: models.UserErasure),
    (lambda: list[models.UserErasure]),
    (lambda: models.ImportResult),
)
KEY, KEYS, NEW_KEY, OWN_KEY = (
    (lambda: models.ApiKey),
    (lambda: list[models.ApiKey]),
    (lambda: models.NewKey),
    (lambda: models.CurrentKey),
)
"""The types of answers, which are loaded at their first use."""
PLAIN_NAMES = re.compile(r"[\w.:@-]{1,128} [\w.:@-]{0,128}", re.ASCII)
"""An agent and a user that need no closer look."""
IMPORT_TIMEOUT_SECONDS = 3_900.0
"""Longer than a server takes for an import or an erasure."""
KEY_SECONDS = 30.0
"""How long to wait for a new key."""


class RemoteKeyVerbs(RequestSender):
    """What the holder of an API key does with keys."""

    async def key(self) -> CurrentKey:
        """Return the rights, scopes and expiry of your own key."""
        own: CurrentKey = reader(OWN_KEY)(await self.send("GET", "/v1/key"))
        return own

    async def keys(self) -> list[ApiKey]:
        """List the keys of the tenant; needs the right `admin`."""
        listed: dict[str, list[ApiKey]] = reader(KEYS, "keys")(await self.send("GET", "/v1/keys"))
        return listed["keys"]

    async def create_key(
        self,
        name: str,
        rights: Sequence[Right | str],
        *,
        trust: int = 50,
        agent: str | None = None,
        user: str | None = None,
        expires_at: datetime | None = None,
    ) -> NewKey:
        """Make a key; with the right `delegate` alone one for a scope and a day, that ends with one's own."""
        body = {"name": name, "rights": list(rights), "trust": trust, "agent": agent, "user": user}
        if expires_at is not None:
            body["expires_at"] = expires_at.isoformat()
        # Sent again it would make a second key, whose secret nobody has seen.
        made: NewKey = reader(NEW_KEY)(await self.send_once("POST", "/v1/keys", KEY_SECONDS, json=body))
        return made

    async def revoke_key(self, key_id: UUID) -> ApiKey:
        """Revoke a key of the tenant; without the right `admin` one that one's own key made."""
        revoked: ApiKey = reader(KEY)(await self.send("DELETE", f"/v1/keys/{key_id}"))
        return revoked


class Client(RemoteKeyVerbs, RemoteTenant):
    """A connection to a Recollect server, as the holder of one API key; `recollect.connect` makes it.

    Args:
        url: Address of the server. Default: the environment variable RECOLLECT_URL.
        key: API key. Default: the environment variable RECOLLECT_KEY.
        timeout_seconds: Maximum time to wait for an answer.
        transport: How requests are sent.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout_seconds: float = 15.0,
        transport: type[Transport] = Transport,
    ) -> None:
        address = os.environ.get("RECOLLECT_URL", "") if url is None else url
        secret = os.environ.get("RECOLLECT_KEY", "") if key is None else key
        self._transport = transport(address, secret, timeout_seconds)

    async def mind(self, agent: str, user: str = "") -> RemoteMind:
        """Choose a scope; nothing is sent."""
        # Without an agent the server takes the scope that the key is bound to.
        if agent and not PLAIN_NAMES.fullmatch(f"{agent} {user}"):
            load("recollect.core.text.checks").check_scope(agent, user)
        return RemoteMind(self, agent, user)

    async def export_scopes(
        self, file: BinaryIO, agent: str | None = None, user: str | None = None, *, vectors: Sequence[str] = ()
    ) -> None:
        """Write whole scopes to a file, with everything they hold; those of all agents, or all users, if None."""
        parameters = name_scopes(agent, user) | {"vectors": list(vectors)}
        async for piece in self.stream("/v1/export", parameters):
            file.write(piece)

    async def import_scopes(
        self,
        file: BinaryIO,
        name: str = "export",
        *,
        agent: str | None = None,
        user: str | None = None,
        as_new: bool = False,
    ) -> ImportResult:
        """Import a file that an export wrote: restored by who may do that, else as new memories of `import:NAME`."""
        parameters = name_scopes(agent, user) | {"name": name, "as_new": str(as_new).lower()}
        answer = await self._transport.upload("/v1/import", parameters, file, IMPORT_TIMEOUT_SECONDS)
        imported: ImportResult = reader(IMPORTED)(answer)
        return imported

    async def forget_user(self, user: str, *, dry_run: bool = False) -> UserErasure:
        """Erase a user over all agents for good, or only count what would go; needs the right `admin`."""
        body = {"user": user, "dry_run": dry_run}
        answer = await self._transport.send_once("POST", "/v1/erasures", IMPORT_TIMEOUT_SECONDS, json=body)
        erasure: UserErasure = reader(ERASURE)(answer)
        return erasure

    async def erasures(self, user: str = "", *, limit: int = 50) -> list[UserErasure]:
        """List what erasures of users removed, the latest first; of one user if named."""
        answer = await self.send("GET", "/v1/erasures", params={"user": user, "limit": str(limit)})
        receipts: dict[str, list[UserErasure]] = reader(ERASURES, "erasures")(answer)
        return receipts["erasures"]

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close_connections()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, method: str, path: str, **content: Any) -> bytes:  # noqa: ANN401 - httpx's own arguments
        """Send a request, and retry where the server or the network is unavailable; return the body."""
        return await self._transport.send(method, path, **content)

    def stream(self, path: str, parameters: Parameters) -> AsyncIterator[bytes]:
        """Read a long answer piece by piece; once it has begun nothing is sent again."""
        return self._transport.stream(path, parameters)

    async def send_once(self, method: str, path: str, seconds: float, **content: Any) -> bytes:  # noqa: ANN401
        """Send a request that must not be repeated, wait at most `seconds` for the answer, and return its body."""
        return await self._transport.send_once(method, path, seconds, **content)

    async def pause(self, seconds: float) -> None:
        """Wait before the next request."""
        await self._transport.pause(seconds)

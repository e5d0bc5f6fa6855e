"""Compare the identity of a server with the expected one, at every connection."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, LiteralString, cast

from psycopg import AsyncConnection, errors
from psycopg.rows import dict_row

from recollect.errors import WrongServerError
from recollect.models.shards import ServerIdentity

QUERY = cast("LiteralString", Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
LOG = logging.getLogger("recollect.shards")


class ServerCheck:
    """The direct address of a server, and the identity that each connection must find."""

    def __init__(self, direct: str = "", expected: ServerIdentity | None = None) -> None:
        self.direct, self.expected = direct, expected
        self.refused = False
        """Whether a connection found another server."""

    async def __call__(self, connection: AsyncConnection[Any]) -> None:
        """Raise WrongServerError if a new connection leads to another server."""
        if self.expected is None:
            return
        try:
            await check_identity(connection, self.expected)
        except WrongServerError as problem:
            if not self.refused:
                LOG.error(json.dumps({"event": "server_refused", "reason": str(problem)}))  # noqa: TRY400
            self.refused = True
            raise


async def read_identity(connection: AsyncConnection[Any]) -> ServerIdentity | None:
    """Return the identity of a server; None if it has none, or no schema."""
    try:
        row = await (await connection.cursor(row_factory=dict_row).execute(QUERY)).fetchone()
    except errors.UndefinedTable:
        return None
    return ServerIdentity(**row) if row else None


async def check_identity(connection: AsyncConnection[Any], expected: ServerIdentity) -> None:
    """Raise WrongServerError unless a connection leads to the expected server."""
    found = await read_identity(connection)
    if found != expected:
        raise WrongServerError(
            f"The server at {connection.info.host}:{connection.info.port}/{connection.info.dbname} should be "
            f"{expected}, but it {f'is {found}' if found else 'has no identity'}: correct its address with "
            "`recollect admin shard add`, or run `recollect admin shard check`."
        )

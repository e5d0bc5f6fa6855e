"""Look memories up by the keywords they are filed under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.models.memories import Kind
from recollect.models.recall import Times
from recollect.models.service import Scope
from recollect.store.database.pool import Database, load_queries
from recollect.store.memories.memories import bind
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)


async def associate(
    database: Database, scope: Scope, asked: Sequence[Sequence[str]], limit: int, *, newest: bool, times: Times
) -> Mapping[tuple[int, Kind], list[UUID]]:
    """Find, for each list of keywords, the events and thoughts filed under any of them: best first, or newest first.

    A memory counts the sum of ln(1 + all of its kind / strength) over the keywords it shares. The logarithm lets two
    telling keywords win over one that is merely rarer; the inverse itself would let one word, met once, beat any
    number of others. A keyword that only idle memories have has no strength and counts nothing, though they are found.
    """
    pairs = [(position, keyword) for position, keywords in enumerate(asked) for keyword in keywords]
    parameters = {
        **names(scope),
        "positions": [position for position, _ in pairs],
        "keywords": [keyword for _, keyword in pairs],
        "limit": limit,
        "newest": newest,
        **bind(times),
    }
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["associate"], parameters)
    return {(row["position"], Kind(row["kind"])): row["ids"] for row in await found.fetchall()}


async def find_last_chat(database: Database, scope: Scope, keyword: str, times: Times) -> UUID | None:
    """Find the newest chat filed under a keyword."""
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(QUERIES["last_chat"], {**names(scope), "keyword": keyword, **bind(times)})
    row = await found.fetchone()
    return row["id"] if row else None

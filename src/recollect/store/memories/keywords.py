"""Find memories by the keywords they are filed under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg import sql

from recollect.models.filters import Filter
from recollect.models.memories import Kind
from recollect.models.service import Scope
from recollect.store.database.filter import PLACE, Columns, bind, restrict
from recollect.store.database.pool import Database, load_queries
from recollect.store.service.scopes import names

QUERIES = load_queries(__file__)


async def associate(
    database: Database, scope: Scope, asked: Sequence[Sequence[str]], limit: int, *, newest: bool, only: Filter
) -> Mapping[tuple[int, Kind], list[UUID]]:
    """Find, for each list of keywords, the events and thoughts filed under any of them: best first, or newest first.

    A memory counts the sum of ln(1 + all of its kind / strength) over the keywords it shares. The logarithm lets two
    distinctive keywords win over one that is merely rarer; the inverse itself would let one word, met once, beat any
    number of others. A keyword that only idle memories have has no strength and counts nothing, though they are found.
    """
    pairs = [(position, keyword) for position, keywords in enumerate(asked) for keyword in keywords]
    parameters = {
        **names(scope),
        "positions": [position for position, _ in pairs],
        "keywords": [keyword for _, keyword in pairs],
        "limit": limit,
        "newest": newest,
        **bind(only),
    }
    query = sql.SQL(QUERIES["associate"]).format(filter=restrict(only, Columns("filed", trust=None), PLACE))
    async with database.reading(scope.tenant_id) as connection:
        found = await connection.execute(query, parameters)
    return {(row["position"], Kind(row["kind"])): row["ids"] for row in await found.fetchall()}

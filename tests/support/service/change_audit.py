"""A second witness of what changes: it notes every changed row with its transaction, to be held against the log."""

from __future__ import annotations

from dataclasses import dataclass

from support.service.known_numbers import VECTORS

WATCHED = {
    "memories": ("id", {"stored", "changed", "forgotten", "state"}, "to_jsonb({}) - 'revived_at'"),
    "memory_features": ("id", {"pinned"}, "{}.pinned"),
    VECTORS: ("id", {"stored", "fact", "state", "embedded", "forgotten", "changed"}, "{}.embedding"),
    "beliefs": ("id", {"fact", "forgotten"}, "to_jsonb({}) - 'withheld_for'"),
    "messages": ("id", {"stored", "changed", "forgotten"}, "to_jsonb({})"),
    "entities": ("id", {"entity"}, "to_jsonb({})"),
    "mentions": ("entity_id", {"entity"}, "to_jsonb({})"),
    "topics": ("id", {"topic"}, "to_jsonb({})"),
    "topic_links": ("topic_id", {"topic"}, "to_jsonb({}) - 'withheld_for'"),
    "related_topics": ("topic_id", {"topic"}, "to_jsonb({})"),
    "items": ("memory_id", {"item"}, "to_jsonb({})"),
    "conversations": (
        "null::uuid",
        {"conversation"},
        "jsonb_build_array({0}.state, {0}.name, {0}.metadata)",
    ),
}
"""By table: which ids are told, under which operations, and what of a row it is a change of."""
PAIRS = """
select witnessed.xid, witnessed.scope_id, source, array_agg(distinct id) filter (where id is not null)
from witnessed group by 1, 2, 3
"""
LOG = "select xmin::text, scope_id, number, operation, ids, at from changes order by scope_id, number"


@dataclass
class Audit:
    """What was witnessed, and what the log says."""

    owner: object

    def __post_init__(self):
        self.owner.execute("create table witnessed (xid text, scope_id bigint, source text, id uuid)")
        for table, (column, _, compared) in WATCHED.items():
            for event, row in (("insert", "new"), ("delete", "old"), ("update", "new")):
                if event == "insert" and table in {"memory_features", "conversations", "messages"}:
                    continue
                if event == "delete" and table in {"memory_features", "messages"}:
                    continue
                told = column if column.startswith("null") else f"{row}.{column}"
                when = ""
                if event == "update":
                    when = f"when ({compared.format('old')} is distinct from {compared.format('new')})"
                name = f"witness_{table}_{event}"
                self.owner.execute(
                    f"create function {name}() returns trigger language plpgsql security definer as $$ begin "
                    f"insert into witnessed values (pg_current_xact_id()::text, {row}.scope_id, '{table}', {told}); "
                    f"return null; end $$; "
                    f"create trigger {name} after {event} on {table} for each row {when} execute function {name}()"
                )

    def check(self):
        """Hold the log against what was witnessed: each change once, in order, none without its row."""
        log = self.owner.execute(LOG).fetchall()
        told: dict[tuple[str, int], list[tuple[str, set[object]]]] = {}
        numbers: dict[int, list[int]] = {}
        moments: dict[int, list[object]] = {}
        for xid, scope_id, number, operation, ids, at in log:
            told.setdefault((xid, scope_id), []).append((operation, set(ids)))
            numbers.setdefault(scope_id, []).append(number)
            moments.setdefault(scope_id, []).append(at)
        for scope_id, counted in self.owner.execute("select id, change_number from scopes").fetchall():
            assert numbers.get(scope_id, []) == [*range(1, counted + 1)], "numbers without a gap"
            assert moments.get(scope_id, []) == sorted(moments.get(scope_id, [])), "in the order of the lock"
        witnessed = self.owner.execute(PAIRS).fetchall()
        for xid, scope_id, source, ids in witnessed:
            operations = WATCHED[source][1]
            logged = [each for operation, each in told.get((xid, scope_id), []) if operation in operations]
            assert logged, f"{source} changed without a row in the log"
            assert set(ids or ()) <= set().union(*logged), f"ids of {source} are not told"
        seen = {(xid, scope_id) for xid, scope_id, _, _ in witnessed}
        extra = {key: rows for key, rows in told.items() if key not in seen}
        assert not extra, f"rows without a change: {extra}"
        for rows in told.values():
            for operation in ("stored", "forgotten"):
                ids = [identity for each, named in rows if each == operation for identity in named]
                assert len(ids) == len(set(ids)), "told twice"

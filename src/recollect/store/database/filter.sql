-- name: kinds
{kind} = any (%(kinds)s::text[])

-- name: min_trust
{trust} >= %(min_trust)s::smallint

-- name: as_of
{id} < %(before)s::uuid

-- name: at
-- Looked up in a set that is built once. As a join, the planner might not use the order that a limit needs.
({id} in (select true_at({scope}, %(at)s::timestamptz))) is true

-- name: conversations
features.conversation_id = any (%(conversations)s::text[])

-- name: roles
features.role = any (%(roles)s::text[])

-- name: speakers
features.speaker = any (%(speakers)s::text[])

-- name: origins
features.origin = any (%(origins)s::text[])

-- name: topics
features.id = any (array(
    select links.memory_id from topic_links links
    where links.scope_id = {scope} and links.topic_id = any (array(
        select found.id from topics_at({scope}, %(topics)s::text[]) found
    ))
))

-- name: topics_below
features.id = any (array(
    select links.memory_id from topic_links links
    where links.scope_id = {scope} and links.topic_id = any (array(
        select found.id from topics_at({scope}, %(topics)s::text[]) found
        union all
        select lower.id from unnest(%(topics)s::text[]) as asked (path)
        cross join lateral topics_below({scope}, asked.path) as lower (id)
    ))
))

-- name: since
features.occurred_at >= %(since)s::timestamptz

-- name: until
features.occurred_at < %(until)s::timestamptz

-- name: min_importance
features.importance >= %(min_importance)s::real

-- name: state
features.state = %(state)s

-- name: where
-- The metadata of a whole scope are read once: row by row it would take many times as long.
features.id = any (array(
    select described.id from memories described where described.scope_id = {scope}{conditions}
))

-- name: where_of_row
-- For few rows, the metadata of each is looked up.
exists (
    select from (
        select metadata from memories
        where memories.scope_id = {scope} and memories.id between features.id and features.id
        order by memories.id limit 1
    ) described
    where true{conditions}
)

-- name: condition
field_meets(
    described.metadata -> (%(where_fields)s::text[])[{place}], (%(where_operators)s::text[])[{place}],
    (%(where_operands)s::jsonb[])[{place}]
)

-- name: pinned
-- A constant, not a parameter: only then a generic plan uses the index of the few pinned memories.
features.pinned

-- name: not_pinned
not features.pinned

-- name: unpinned
-- Nearly all match: looking up the few others is cheaper than reading the features of a whole scope.
{id} not in (select features.id from memory_features features where features.scope_id = {scope} and features.pinned)

-- name: featured
select features.id from memory_features features where features.scope_id = {scope}{conditions}

-- name: trust
(
    select trusted.trust from memories trusted
    where trusted.scope_id = {scope} and trusted.id between {id} and {id}
    order by trusted.id limit 1
)

-- name: standing
-- Of versions, the one that is (or was) believed; of facts, those that are (or were) true. The indexes follow. For
-- other kinds, the indexes have the current version.
({kind} not in ('fact', 'summary') and {current} or stands(
    {scope}, {id}, {occurred_at}, %(as_of)s::timestamptz, %(at)s::timestamptz
))

-- name: indexed
memories.withheld is null

-- name: indexed_features
features.state = 'current'

-- name: happened
({kind} in ('fact', 'summary') or {occurred_at} <= %(at)s::timestamptz)

-- name: allowed
select memories.id from memories where memories.scope_id = {scope}{filter}

-- name: listed
array({allowed})

-- name: by_key
-- Few have such features, or the statement reads by the key: with a join, statistics would decide whether the whole
-- scope is read.
{id} = any (array({allowed}))

-- name: by_set
-- For rows that are read in another order than that of the key. From an array, because the planner builds a hash only
-- for a set that looks small.
({id} in (select unnest(array({allowed})))) is true

-- name: by_row
-- For the few rows that a statement names itself.
exists (
    select from memory_features features
    where features.scope_id = {scope} and features.id between {id} and {id}{conditions}
    order by features.id limit 1
)

-- name: among
{id} in ({allowed})

-- name: place
(select scope_id from place)

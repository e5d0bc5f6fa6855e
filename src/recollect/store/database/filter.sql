-- name: kinds
{kind} = any (%(kinds)s::text[])

-- name: min_trust
{trust} >= %(min_trust)s::smallint

-- name: as_of
{id} < %(before)s::uuid

-- name: at
-- Looked up in a set that is made once. As a join, the planner might not use the order that a limit needs.
({id} in (select true_at({scope}, %(at)s::timestamptz))) is true

-- name: pinned
-- Written out, not compared with a value: only so a plan that does not see the value takes the index of the few pinned.
features.pinned

-- name: not_pinned
not features.pinned

-- name: unpinned
-- Nearly all are: to look up the few others is cheaper than to read the features of a whole scope.
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
-- Of versions, the one that is believed, or was; of facts, what is not over, or was true. The indexes follow.
({kind} not in ('fact', 'summary') or stands(
    {scope}, {id}, {occurred_at}, %(as_of)s::timestamptz, %(at)s::timestamptz
))

-- name: happened
({kind} in ('fact', 'summary') or {occurred_at} <= %(at)s::timestamptz)

-- name: allowed
select memories.id from memories where memories.scope_id = {scope}{filter}

-- name: listed
array({allowed})

-- name: rare
-- By key: such features are rare, and with a join, statistics would decide whether the whole scope is read.
{id} = any (array({allowed}))

-- name: among
{id} in ({allowed})

-- name: place
(select scope_id from place)

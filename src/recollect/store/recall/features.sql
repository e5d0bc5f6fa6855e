-- name: features
-- Numbers as bytes, which are read as arrays; in the order of the key, which is that of the IDs.
select string_agg(uuid_send(features.id), '') as ids,
       string_agg(timestamptz_send(features.occurred_at), '') as moments,
       string_agg(int4send(features.length), '') as lengths,
       string_agg(float4send(features.importance), '') as importances,
       string_agg(int2send(features.tells), '') as tells,
       string_agg(int8send(coalesce(features.number, 0)), '') as numbers,
       string_agg(boolsend(coalesce(features.role = 'assistant', false)), '') as assistant,
       array_agg(features.kind) as kinds, array_agg(features.speaker) as speakers,
       array_agg(features.conversation_id) as conversations
from (
    select * from memory_features features
    where features.scope_id = %(scope_id)s and features.id = any ({ids}){current}
      -- Memories that the fetch will not return must not replace others with the same text.
      and (features.expires_at is null or features.expires_at > now()){filter}
      and (not {any_deleted_here} or not rests_on_deleted(features.scope_id, features.id))
    order by features.id
) features

-- name: accesses
-- The last accesses of candidates: the folded ones, and those on the log.
select string_agg(uuid_send(id), '') as ids, string_agg(timestamptz_send(accessed_at), '') as moments
from (
    select id, max(accessed_at) as accessed_at
    from (
        select id, last_accessed_at as accessed_at from accesses
        where scope_id = %(scope_id)s and id = any (%(ids)b::uuid[])
        union all
        select touched.id, access_log.accessed_at from access_log, unnest(access_log.ids) as touched (id)
        where access_log.scope_id = %(scope_id)s and touched.id = any (%(ids)b::uuid[])
    ) every
    group by id
) latest

-- name: cosines
select string_agg(uuid_send(vectors.id), '') as ids,
       string_agg(float8send(-(vectors.embedding <#> %(vector)s::{type}({dimensions}))), '') as cosines
from {vectors} vectors
where vectors.scope_id = %(scope_id)s and vectors.id = any ({distant})

-- name: terms
-- Pairs: a candidate, and the position of a term of the query that it has.
select string_agg(uuid_send(indexed.id), '') as ids, string_agg(int2send(asked.place::smallint), '') as places
from {indexed} indexed
join unnest(%(terms)b::bigint[]) with ordinality as asked (term, place) on asked.term = any (indexed.terms)
where indexed.scope_id = %(scope_id)s and indexed.id = any ({ids})

-- name: evidence
-- Pairs: a candidate, and a memory of its evidence; those of the first candidates first. Later statements read the
-- features of this evidence, too.
select string_agg(uuid_send(pairs.id), '') as learned, string_agg(uuid_send(pairs.source_id), '') as sources,
       set_config('recollect.evidence', coalesce(array_agg(distinct pairs.source_id)::text, '{}'), true) as noted
from (
    select asked.id, each.source_id
    from unnest(%(ids)b::uuid[]) with ordinality as asked (id, place)
    cross join lateral (
        select source_id from evidence
        where evidence.scope_id = %(scope_id)s and evidence.memory_id = asked.id
        order by source_id limit %(most_of_one)s
    ) each
    order by asked.place limit %(most_pairs)s
) pairs

-- name: with_evidence
%(ids)b::uuid[] || current_setting('recollect.evidence')::uuid[]

-- name: distant_with_evidence
%(distant)b::uuid[] || current_setting('recollect.evidence')::uuid[]

-- name: current
-- Evidence may have left recall, unlike a channel's candidates.
and features.state = 'current'

-- name: features
-- Each part is looked up by its key, row by row: for a join of sets, the planner expects one row each.
select memories.id, memories.kind, memories.occurred_at, memories.speaker,
       left(memories.content, %(most_read)s) as beginning, right(rtrim(right(memories.content, 40)), 1) as ending,
       said.conversation_id, said.number, said.role, worded.length, worded.places, {cosine} as cosine
from memories
left join lateral (
    select messages.conversation_id, messages.number, messages.role from messages
    where messages.scope_id = %(scope_id)s and messages.id between memories.id and memories.id
    order by messages.id limit 1
) said on memories.kind = 'message'
left join lateral (
    select cardinality(indexed.terms) as length, array(
        select number - 1 from unnest(%(terms)b::bigint[]) with ordinality as asked (term, number)
        where term = any (indexed.terms)
    ) as places
    from (
        (select memory_terms.terms from memory_terms
         where memory_terms.scope_id = %(scope_id)s and memory_terms.id between memories.id and memories.id
         order by memory_terms.id limit 1)
        union all
        (select withheld_memories.terms from withheld_memories
         where memories.withheld is not null
           and withheld_memories.scope_id = %(scope_id)s and withheld_memories.id between memories.id and memories.id
         order by withheld_memories.id limit 1)
    ) indexed
    limit 1
) worded on true
{placed}
where memories.scope_id = %(scope_id)s and memories.id = any (array(select unnest(%(ids)b::uuid[])))
  -- What the fetch will not show must not replace its duplicates.
  and (memories.expires_at is null or memories.expires_at > now()){filter}
  and (
      not (select exists (
          select from conversations
          where scope_id = %(scope_id)s and not synced and state in ('deleted', 'purging')
      ))
      or not rests_on_deleted(memories.scope_id, memories.id)
  )

-- name: placed
left join lateral (
    select -(vectors.embedding <#> %(vector)s::{type}({dimensions})) as cosine from {vectors} vectors
    where vectors.scope_id = %(scope_id)s and vectors.id between memories.id and memories.id
    order by vectors.id limit 1
) placed on true

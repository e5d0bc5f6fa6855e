-- name: nearest
select past.id, -(side.embedding <#> %(vector)s::{type}::vector) as score
from ({left}) as past (id)
join withheld_vectors side
    on side.scope_id = %(scope_id)s and side.id = past.id and side.space_id = %(space_id)s
order by score desc, past.id desc
limit %(limit)s

-- name: match
select id, score
from match_terms(
    %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[], %(kinds)s::text[], %(min_trust)s::smallint,
    %(before)s::uuid, {allowed}, array({left}), %(memory_count)s, null
)
where past
order by score desc, id desc
limit %(limit)s

-- name: versions
select past_versions(
    %(scope_id)s, %(as_of)s::timestamptz, %(at)s::timestamptz, %(kinds)s::text[], %(min_trust)s::smallint, {allowed}
)

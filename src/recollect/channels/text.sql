-- name: match
select id, score
from match_terms(
    %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[], %(kinds)s::text[], %(min_trust)s::smallint,
    %(before)s::uuid, %(memory_count)s, %(limit)s
)

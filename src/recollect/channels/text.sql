-- name: match
select id, score, rarities
from match_terms(
    %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[], %(kinds)s::text[], %(min_trust)s::smallint,
    %(before)s::uuid, %(memory_count)s, %(limit)s
)

-- name: match_then
-- What is past counts for how frequent a term was; to propose it is another channel's part.
select id, score, rarities
from match_versions(
    %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[],
    array(select past_versions(
        %(scope_id)s, %(as_of)s::timestamptz, %(at)s::timestamptz, %(kinds)s::text[], %(min_trust)s::smallint
    )),
    %(kinds)s::text[], %(min_trust)s::smallint, %(before)s::uuid, %(memory_count)s
)
where not past
  and (%(at)s::timestamptz is null or id in (select true_at(%(scope_id)s, %(at)s::timestamptz)))
order by score desc, id desc
limit %(limit)s

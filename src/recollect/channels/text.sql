-- name: match
select id, score, rarities
from match_terms(
    %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[], %(kinds)s::text[], %(min_trust)s::smallint,
    %(before)s::uuid, {allowed}, array[]::uuid[], %(memory_count)s, %(limit)s
)

-- name: match_then
-- What is past counts for how frequent a term was; to propose it is another channel's part.
select id, score, rarities
from match_terms(
    %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[], %(kinds)s::text[], %(min_trust)s::smallint,
    %(before)s::uuid, {allowed},
    array(select past_versions(
        %(scope_id)s, %(as_of)s::timestamptz, %(at)s::timestamptz, %(kinds)s::text[], %(min_trust)s::smallint,
        {allowed}
    )),
    %(memory_count)s, null
) matched
where not past{then}
order by score desc, id desc
limit %(limit)s

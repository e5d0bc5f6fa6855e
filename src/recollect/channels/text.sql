-- name: match
select id, score, rarities
from match_terms(
    %(scope_id)s, %(terms)s::bigint[], %(slots)s::integer[], %(kinds)s::text[], %(min_trust)s::smallint,
    %(before)s::uuid, {allowed}, array[]::uuid[], %(memory_count)s, %(limit)s
)

-- name: match_then
-- Past versions count in the frequency of a term, but another channel proposes them.
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

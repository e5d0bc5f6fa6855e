-- name: filed
-- A keyword counts more if fewer memories have it. For each keyword and kind, the newest memories are read. Whether they
-- also have a frequent keyword is checked separately, because its list may not reach that far back.
with asked as materialized (
    select keyword, frequency, ln(1 + %(memory_count)s / frequency::float8) as weight
    from (
        select given.keyword, (
            select sum(case when kinds.kind in ('event', 'thought') then (
                select strength from keyword_strengths strengths
                where strengths.scope_id = %(scope_id)s and strengths.kind = kinds.kind
                  and strengths.keyword = given.keyword
            ) else (
                select count(*) from (
                    select from memory_keywords filed
                    where filed.scope_id = %(scope_id)s and filed.keyword = given.keyword and filed.kind = kinds.kind
                    limit %(longest)s + 1
                ) filed_under_it
            ) end)
            from unnest(%(kinds)s::text[]) as kinds (kind)
        ) as frequency
        from unnest(%(keywords)s::text[]) as given (keyword)
        where (
            select true from memory_keywords filed
            where filed.scope_id = %(scope_id)s and filed.keyword = given.keyword
            limit 1
        )
        -- Without this, the subquery would be planned and run again for each use of the frequency.
        offset 0
    ) counted
    where frequency > 0
), shared as (
    select kinds.kind, newest.id, sum(asked.weight) as weight, array_agg(asked.keyword) as keywords
    from asked cross join unnest(%(kinds)s::text[]) as kinds (kind) cross join lateral (
        select filed.id from memory_keywords filed
        where filed.scope_id = %(scope_id)s and filed.keyword = asked.keyword and filed.kind = kinds.kind
          -- Events and thoughts that are not counted are idle, and never in the stream.
          and (filed.counted or kinds.kind not in ('event', 'thought')){filter}
        order by filed.id desc
        limit %(longest)s
    ) newest
    group by kinds.kind, newest.id
)
-- Rounded, so that the order of additions cannot make equal scores differ.
select id, round((weight + coalesce((
           select sum(asked.weight) from asked
           where asked.frequency > %(longest)s and asked.keyword <> all (shared.keywords) and (
               select true from memory_keywords filed
               where filed.scope_id = %(scope_id)s and filed.keyword = asked.keyword and filed.kind = shared.kind
                 and filed.id = shared.id
               limit 1
           )
       ), 0))::numeric, 9)::float8 as score,
       (select count(*) from asked where frequency > %(longest)s) as frequent
from shared
order by score desc, id desc
limit %(limit)s

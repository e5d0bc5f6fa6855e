-- name: associate
-- Memories with the same set of keywords are ranked by age, so of each of the at most seven sets only the newest few
-- can be hits, and no keyword's whole list is read, unless it is the rarer one of two that rarely occur together.
with place as materialized (
    select id as scope_id, event_count, thought_count from scopes
    where tenant_id = current_tenant() and agent = %(agent)s and "user" = %(user)s
), asked as materialized (
    select position, keyword, kind, (
               select strength from keyword_strengths strengths
               where strengths.scope_id = (select scope_id from place) and strengths.kind = kinds.kind
                 and strengths.keyword = given.keyword
           ) as strength
    from unnest(%(positions)s::integer[], %(keywords)s::text[]) as given (position, keyword)
    cross join unnest('{{event,thought}}'::text[]) as kinds (kind)
    where (
        select true from memory_keywords filed
        where filed.scope_id = (select scope_id from place) and filed.keyword = given.keyword and filed.kind = kinds.kind
        limit 1
    )
), rarest_first as (
    select position, keyword, kind,
           ln(1 + case kind when 'event' then event_count else thought_count end / strength::float8) as weight,
           count(*) over of_list as total, row_number() over (of_list order by strength, keyword) as number
    from asked cross join place
    window of_list as (partition by position, kind)
), sets as (
    select position, kind, array_agg(keyword order by number) as keywords, count(*) as matched,
           coalesce(sum(weight), 0) as score
    from rarest_first cross join generate_series(1, 7) as mask
    where mask < (1 << total::integer) and (mask & (1 << (number::integer - 1))) <> 0
    group by position, kind, mask
), found as (
    select position, sets.kind, newest.id, max(score) as score, max(matched) as matched
    from sets cross join lateral (
        select id from memory_keywords filed
        where scope_id = (select scope_id from place) and keyword = keywords[1] and filed.kind = sets.kind{filter}
          -- A limit keeps each of these an index lookup: as a join, it would read the whole list.
          and (matched < 2 or (
              select true from memory_keywords second
              where second.scope_id = (select scope_id from place) and second.keyword = keywords[2]
                and second.kind = sets.kind and second.id = filed.id
              limit 1
          ))
          and (matched < 3 or (
              select true from memory_keywords third
              where third.scope_id = (select scope_id from place) and third.keyword = keywords[3]
                and third.kind = sets.kind and third.id = filed.id
              limit 1
          ))
        order by id desc
        limit %(limit)s
    ) as newest
    group by position, sets.kind, newest.id
), ranked as (
    select position, kind, id,
           row_number() over (
               partition by position, kind
               order by case when %(newest)s then 0 else score end desc,
                        case when %(newest)s then 0 else matched end desc, id desc
           ) as rank
    from found
)
select position, kind, array_agg(id order by rank) as ids
from ranked where rank <= %(limit)s
group by position, kind

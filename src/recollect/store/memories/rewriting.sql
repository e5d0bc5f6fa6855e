-- name: raise_version
update text_rules set version = %(version)s where version < %(version)s

-- name: lock
select memory_count, term_count, text_version from scopes where id = %(scope_id)s for no key update

-- name: texts
-- Also of what is withheld: it may come back with the terms that it had.
select id, kind, content, speaker, subject, predicate, object, keywords from memories
where scope_id = %(scope_id)s and id > %(after)s
order by id limit %(limit)s

-- name: replace_terms
with given as materialized (
    select * from json_to_recordset(%(rows)s::json)
        as given (id uuid, terms bigint[], weights sparsevec, length integer, tells smallint, difference integer)
), shown as (
    update memory_terms side set terms = given.terms, weights = given.weights
    from given where side.scope_id = %(scope_id)s and side.id = given.id
    returning given.difference
), withheld as (
    update withheld_memories side
    set terms = given.terms, weights = given.weights, term_count = side.term_count + given.difference
    from given where side.scope_id = %(scope_id)s and side.id = given.id
), featured as (
    update memory_features side set length = given.length, tells = given.tells
    from given where side.scope_id = %(scope_id)s and side.id = given.id
)
-- The counter of the scope is of what takes part in recall.
update scopes set term_count = term_count + (select coalesce(sum(difference), 0) from shown) where id = %(scope_id)s

-- name: keywords
select distinct keyword as written from memory_keywords where scope_id = %(scope_id)s
union
select distinct unnest(keywords) from memories where scope_id = %(scope_id)s and keywords <> '{}'

-- name: replace_keywords
with given as materialized (
    select * from unnest(%(old)s::text[], %(new)s::text[]) as given (old, new)
), noted as (
    update memories set keywords = array(
        select coalesce(given.new, each.keyword)
        from unnest(keywords) with ordinality as each (keyword, place) left join given on given.old = each.keyword
        group by 1 order by min(each.place))
    where scope_id = %(scope_id)s and keywords && %(old)s::text[]
), unfiled as (
    delete from memory_keywords where scope_id = %(scope_id)s and keyword = any (%(old)s::text[])
    returning keyword, kind, id, counted
)
insert into memory_keywords (scope_id, keyword, kind, id, counted)
select %(scope_id)s, given.new, kind, id, bool_or(counted) from unfiled join given on given.old = unfiled.keyword
group by given.new, kind, id
on conflict (scope_id, keyword, kind, id) do update set counted = memory_keywords.counted or excluded.counted

-- name: count_keywords
with gone as (
    delete from keyword_strengths
    where scope_id = %(scope_id)s and keyword = any (%(old)s::text[])
), counted as (
    select kind, keyword, count(*) as times from memory_keywords
    where scope_id = %(scope_id)s and keyword = any (%(new)s::text[]) and counted
    group by kind, keyword
)
insert into keyword_strengths (scope_id, kind, keyword, strength)
select %(scope_id)s, kind, keyword, times from counted
on conflict (scope_id, kind, keyword) do update set strength = excluded.strength

-- name: speakers
select distinct speaker as written from memory_features where scope_id = %(scope_id)s and speaker <> ''

-- name: replace_speakers
update memory_features side set speaker = given.new
from unnest(%(old)s::text[], %(new)s::text[]) as given (old, new)
where side.scope_id = %(scope_id)s and side.speaker = given.old

-- name: names
select normalised as written from entities where scope_id = %(scope_id)s
union
select normalised from mentions where scope_id = %(scope_id)s

-- name: replace_names
-- Two entities of one type that are now called the same stay two: the newer one is told apart by its number, and found by
-- its mentions. Whether they are one is for a merge to say.
with given as materialized (
    select * from unnest(%(old)s::text[], %(new)s::text[]) as given (old, new)
), renamed as materialized (
    select entities.id, given.new,
           exists (
               select from entities other
               where other.scope_id = %(scope_id)s and other.normalised = given.new and other.type = entities.type
           ) or row_number() over (partition by given.new, entities.type order by created_at, id) > 1 as taken
    from entities join given on given.old = entities.normalised
    where entities.scope_id = %(scope_id)s
)
update entities set normalised = case
    when renamed.taken then left(renamed.new, 400) || ' (' || entities.id || ')' else renamed.new end
from renamed where entities.scope_id = %(scope_id)s and entities.id = renamed.id

-- name: replace_mentions
with given as materialized (
    select * from unnest(%(old)s::text[], %(new)s::text[]) as given (old, new)
), chosen as materialized (
    select source_id, entity_id, given.new, min(given.old) as old
    from mentions join given on given.old = mentions.normalised
    where scope_id = %(scope_id)s and not exists (
        select from mentions other
        where other.scope_id = %(scope_id)s and other.source_id = mentions.source_id
          and other.entity_id = mentions.entity_id and other.normalised = given.new)
    group by source_id, entity_id, given.new
)
update mentions set normalised = chosen.new
from chosen
where scope_id = %(scope_id)s and mentions.source_id = chosen.source_id and mentions.entity_id = chosen.entity_id
  and mentions.normalised = chosen.old

-- name: drop_mentions
-- What one source called an entity in both scripts, it calls it once.
delete from mentions where scope_id = %(scope_id)s and normalised = any (%(old)s::text[])

-- name: predicates
select distinct predicate as written from beliefs where scope_id = %(scope_id)s and predicate <> ''

-- name: replace_predicates
-- A fact that was stated in both scripts for the same time stays stated twice.
update beliefs side set predicate = given.new
from unnest(%(old)s::text[], %(new)s::text[]) as given (old, new)
where side.scope_id = %(scope_id)s and side.predicate = given.old
  and not exists (
      select from beliefs other
      where other.scope_id = %(scope_id)s and other.predicate = given.new
        and other.subject_id = side.subject_id and other.object_id = side.object_id
  )

-- name: paths
select path::text as written from topics where scope_id = %(scope_id)s order by nlevel(path), path

-- name: replant
select replant_topics(%(scope_id)s, %(path)s, %(new_path)s)

-- name: close
update scopes set text_version = %(version)s where id = %(scope_id)s

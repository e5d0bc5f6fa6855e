-- Walking the graph of facts: all that a hop reads of a fact lies in the index that it goes by.

-- Follow facts from entities, hop by hop, in whichever direction they point. A hop takes the newest facts that touch
-- what the hop before reached and lead nowhere that was left behind: at most `beam` of them, and of one entity no more
-- than its share, but ten in either direction. `hidden` names the reasons for which a fact is out of sight. The plan is
-- kept, because to make it takes as long as to run it. `allowed` names the only facts to follow; all if null. Sorting is held to be dear, here and below: a planner without
-- statistics takes every scope for a small one, and would rather read all of it and sort than go by the key.
create function walk_facts(
    asked_scope bigint, starts uuid[], hops integer, beam integer, as_of timestamptz, at timestamptz, hidden text[],
    allowed uuid[]
) returns table (hop integer, place bigint, id uuid, source uuid, target uuid)
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
    set enable_sort = off
as $$
declare
    -- A deleted conversation, and what was made from it, is out of sight at once; the rows follow one by one.
    unsynced boolean := exists (
        select from conversations
        where scope_id = asked_scope and not synced and state in ('deleted', 'purging'));
begin
    return query
    with recursive walk (hop, frontier, behind, facts, sources, targets) as (
        select 0, starts, '{}'::uuid[], '{}'::uuid[], '{}'::uuid[], '{}'::uuid[]
        union all
        select walk.hop + 1,
               array(select distinct reached.id from unnest(followed.targets) as reached (id)
                     where reached.id <> all (walk.frontier)),
               walk.behind || walk.frontier, followed.facts, followed.sources, followed.targets
        from walk cross join lateral (
            select array_agg(best.id order by best.id desc) as facts,
                   array_agg(best.source order by best.id desc) as sources,
                   array_agg(best.target order by best.id desc) as targets
            from (
                select distinct on (touching.id) touching.id, each.id as source, touching.target
                from unnest(walk.frontier) as each (id) cross join lateral (
                    (select fact.id, fact.object_id as target from beliefs fact
                     where fact.scope_id = asked_scope and fact.subject_id = each.id
                       and fact.created_at <= as_of and (fact.superseded_at is null or fact.superseded_at > as_of)
                       and (fact.valid_at is null or fact.valid_at <= at)
                       and (fact.invalid_at is null or fact.invalid_at > at)
                       and (fact.withheld_for is null or fact.withheld_for <> all (hidden))
                       and fact.object_id <> all (walk.behind)
                       and (allowed is null or fact.id in (select unnest(allowed)))
                       and (not unsynced or not rests_on_deleted(asked_scope, fact.id))
                     order by fact.id desc
                     limit greatest(10, beam / cardinality(walk.frontier)))
                    union all
                    (select fact.id, fact.subject_id from beliefs fact
                     where fact.scope_id = asked_scope and fact.object_id = each.id
                       and fact.created_at <= as_of and (fact.superseded_at is null or fact.superseded_at > as_of)
                       and (fact.valid_at is null or fact.valid_at <= at)
                       and (fact.invalid_at is null or fact.invalid_at > at)
                       and (fact.withheld_for is null or fact.withheld_for <> all (hidden))
                       and fact.subject_id <> all (walk.behind)
                       and (allowed is null or fact.id in (select unnest(allowed)))
                       and (not unsynced or not rests_on_deleted(asked_scope, fact.id))
                     order by fact.id desc
                     limit greatest(10, beam / cardinality(walk.frontier)))
                ) touching
                order by touching.id desc, each.id
                limit beam
            ) best
        ) followed
        where walk.hop < hops and cardinality(walk.frontier) > 0 and followed.facts is not null
    )
    select walk.hop, step.place, step.id, step.source, step.target
    from walk, unnest(walk.facts, walk.sources, walk.targets) with ordinality as step (id, source, target, place);
end $$;

-- Read facts by the ids of their memories, in the order asked for, with what the two ends are called. One by one, by
-- key: a planner that does not know how many are asked for would compare each of them with each.
create function read_relations(asked_scope bigint, asked_ids uuid[])
    returns table (
        place bigint, id uuid, lineage uuid, version integer, subject_id uuid, predicate text, object_id uuid,
        valid_at timestamptz, invalid_at timestamptz, created_at timestamptz, superseded_at timestamptz, content text,
        subject_name text, subject_type text, object_name text, object_type text
    )
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
    set enable_sort = off
as $$
begin
    return query
    select each.place, fact.id, fact.lineage, fact.version, fact.subject_id, fact.predicate, fact.object_id,
           fact.valid_at, fact.invalid_at, fact.created_at, fact.superseded_at, said.content,
           subject.name, subject.type, object.name, object.type
    from unnest(asked_ids) with ordinality as each (id, place)
    cross join lateral (
        select beliefs.* from beliefs
        where beliefs.scope_id = asked_scope and beliefs.id between each.id and each.id order by beliefs.id limit 1
    ) fact
    cross join lateral (
        select memories.content from memories
        where memories.scope_id = asked_scope and memories.id between each.id and each.id order by memories.id limit 1
    ) said
    cross join lateral (
        select entities.name, entities.type from entities
        where entities.scope_id = asked_scope and entities.id between fact.subject_id and fact.subject_id
        order by entities.id limit 1
    ) subject
    cross join lateral (
        select entities.name, entities.type from entities
        where entities.scope_id = asked_scope and entities.id between fact.object_id and fact.object_id
        order by entities.id limit 1
    ) object;
end $$;

-- Whether anything that is in sight speaks of an entity, by one name or by any.
create function is_mentioned(asked_scope bigint, asked_entity uuid, asked_name text) returns boolean
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
    set enable_sort = off
as $$
declare
    source uuid;
begin
    for source in
        select source_id from mentions
        where scope_id = asked_scope and entity_id = asked_entity and (asked_name is null or normalised = asked_name)
        order by mentioned_at desc
    loop
        if source_in_sight(asked_scope, source) then
            return true;
        end if;
    end loop;
    return false;
end $$;

-- Find the entities that a text names. What may be a name is given with its place in the text: of a name within a
-- longer one only the longer one is meant. The longest names first, and so many entities at most.
create function find_named(asked_scope bigint, names text[], firsts integer[], lasts integer[], most integer)
    returns uuid[]
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
    set enable_sort = off
as $$
declare
    known text[] := array(
        select each.name from (select distinct unnest(names)) as each (name)
        cross join lateral (
            -- Between, here and below: in the order of a range only one index is.
            select from mentions where scope_id = asked_scope and normalised between each.name and each.name
            order by normalised, entity_id limit 1
        ) mentioned);
begin
    return array(
        with recursive called (name, entity_id) as (
            select each.name, first.entity_id from unnest(known) as each (name)
            cross join lateral (
                select mentions.entity_id from mentions
                where mentions.scope_id = asked_scope and mentions.normalised between each.name and each.name
                order by mentions.normalised, mentions.entity_id limit 1
            ) first
            union all
            -- From entity to entity: one that is often spoken of is mentioned by the same name a thousand times.
            select called.name, next.entity_id from called
            cross join lateral (
                select mentions.entity_id from mentions
                where mentions.scope_id = asked_scope and mentions.normalised between called.name and called.name
                  and mentions.entity_id > called.entity_id
                order by mentions.normalised, mentions.entity_id limit 1
            ) next
        ), spotted as materialized (
            select asked.first, asked.last, called.entity_id
            from unnest(names, firsts, lasts) as asked (name, first, last) join called on called.name = asked.name
            where is_mentioned(asked_scope, called.entity_id, called.name)
        )
        select spotted.entity_id from spotted
        where not exists (
            select from spotted longer
            where longer.first <= spotted.first and longer.last >= spotted.last
              and longer.last - longer.first > spotted.last - spotted.first
        )
        group by spotted.entity_id
        order by max(spotted.last - spotted.first) desc, spotted.entity_id
        limit most);
end $$;

-- One page of all facts as they were at two times, in the order of their ids.
create function page_facts(
    asked_scope bigint, after uuid, as_of timestamptz, at timestamptz, hidden text[], allowed uuid[], most integer
) returns setof uuid
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
    set enable_sort = off
as $$
declare
    unsynced boolean := exists (
        select from conversations
        where scope_id = asked_scope and not synced and state in ('deleted', 'purging'));
begin
    return query
    select fact.id from beliefs fact
    where fact.scope_id = asked_scope and fact.id > after and fact.subject_id is not null
      and fact.created_at <= as_of and (fact.superseded_at is null or fact.superseded_at > as_of)
      and (fact.valid_at is null or fact.valid_at <= at) and (fact.invalid_at is null or fact.invalid_at > at)
      and (fact.withheld_for is null or fact.withheld_for <> all (hidden))
      and (allowed is null or fact.id in (select unnest(allowed)))
      and (not unsynced or not rests_on_deleted(asked_scope, fact.id))
    order by fact.id
    limit most;
end $$;

-- Facts in two times: how names find entities, how versions take over from each other, what goes with its sources, and
-- how the past is read.

-- Find for each name the few entities that are called most alike, as far as it is at least so alike.
create function match_names(asked_scope bigint, asked_names text[], thresholds real[], most integer)
    returns table (number integer, id uuid, alike real)
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
begin
    -- Without a tenant the comparison is null: only what is true may go on.
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    select asked.number::integer, nearest.id, nearest.alike
    from unnest(asked_names, thresholds) with ordinality as asked (name, threshold, number)
    cross join lateral (
        select entities.id, similarity(entities.normalised, asked.name) as alike from entities
        where entities.scope_id = asked_scope
        order by entities.normalised <-> asked.name
        limit most
    ) nearest
    where nearest.alike >= asked.threshold;
end $$;
revoke execute on function match_names(bigint, text[], real[], integer) from public;
grant execute on function match_names(bigint, text[], real[], integer) to recollect_service;
grant create on schema public to recollect_matcher;
alter function match_names(bigint, text[], real[], integer) owner to recollect_matcher;
revoke create on schema public from recollect_matcher;

-- Whether what a mention comes from is in sight: a segment of a conversation that is not deleted, or a memory.
create function source_in_sight(asked_scope bigint, asked_source uuid) returns boolean
    language sql stable as $$
    select exists (
        select from segments
        join conversations on conversations.scope_id = asked_scope and conversations.id = segments.conversation_id
        where segments.scope_id = asked_scope and segments.id = asked_source
          and conversations.state not in ('deleted', 'purging')
    ) or exists (
        select from memories
        where memories.scope_id = asked_scope and memories.id = asked_source
          and (withheld is null or withheld in ('archived', 'past', 'faded'))
          and not rests_on_deleted(asked_scope, asked_source)
    )
$$;

-- An entity that nothing speaks of any more goes. One whose name is gone with the mention that it came from takes the
-- oldest name that is left, and a mark of its own where another has that name already.
create function tidy_entities(asked_scope bigint, asked_ids uuid[]) returns void
    language plpgsql as $$
declare
    each record;
    chosen record;
begin
    delete from entities
    where scope_id = asked_scope and id = any (asked_ids)
      and not exists (select from mentions where mentions.scope_id = asked_scope and entity_id = entities.id)
      and not exists (select from beliefs where beliefs.scope_id = asked_scope and subject_id = entities.id)
      and not exists (select from beliefs where beliefs.scope_id = asked_scope and object_id = entities.id);
    for each in
        select id, normalised, type from entities
        where scope_id = asked_scope and id = any (asked_ids)
          and not exists (
              select from mentions where mentions.scope_id = asked_scope and entity_id = entities.id
                and mentions.normalised = entities.normalised and mentions.name = entities.name
          )
        order by id
    loop
        select called.name, called.normalised,
               exists (
                   select from entities other where other.scope_id = asked_scope and other.id <> each.id
                     and other.normalised = called.normalised and other.type = each.type
               ) as taken
        into chosen
        from (
            select mentions.name, mentions.normalised, mentioned_at from mentions
            where mentions.scope_id = asked_scope and entity_id = each.id
            union all
            -- Of an entity that only facts are left of, what they call it.
            select named.name, left(lower(named.name), 400), 'infinity'
            from beliefs
            join memories on memories.scope_id = asked_scope and memories.id = beliefs.id
            cross join lateral (
                select case when subject_id = each.id then memories.subject else memories.object end as name
            ) named
            where beliefs.scope_id = asked_scope and named.name <> ''
              and beliefs.id in (
                  select id from beliefs where scope_id = asked_scope and subject_id = each.id
                  union all
                  select id from beliefs where scope_id = asked_scope and object_id = each.id
              )
        ) called
        order by called.normalised <> each.normalised, taken, mentioned_at, called.normalised, called.name
        limit 1;
        update entities
        set name = coalesce(chosen.name, '?'),
            normalised = case
                when chosen.name is null then '? (' || each.id || ')'
                when chosen.taken then left(chosen.normalised, 400) || ' (' || each.id || ')'
                else chosen.normalised
            end
        where scope_id = asked_scope and id = each.id;
    end loop;
end $$;

-- When a version goes, the one before it is believed for as long as that one was, as if nobody had ever said it.
create function heal_lineages() returns trigger
    language plpgsql as $$
declare
    each record;
    until timestamptz;
begin
    for each in
        select kept.*, gone.last_end
        from (
            select scope_id, lineage, array_agg(created_at) as starts, max(version) as last_version,
                   (array_agg(superseded_at order by version desc))[1] as last_end
            from forgotten where not contested group by scope_id, lineage
        ) gone
        join beliefs kept on kept.scope_id = gone.scope_id and kept.lineage = gone.lineage
            and kept.superseded_at = any (gone.starts) and kept.version < gone.last_version
    loop
        until := (
            select created_at from beliefs
            where scope_id = each.scope_id and lineage = each.lineage and version > each.version and not contested
            order by version limit 1);
        if until is null then
            until := each.last_end;
            -- What another fact says by now is not said twice.
            continue when until is null and exists (
                select from beliefs other
                where other.scope_id = each.scope_id and other.subject_id = each.subject_id
                  and other.object_id = each.object_id and other.predicate = each.predicate
                  and other.superseded_at is null
                  and tstzrange(other.valid_at, other.invalid_at) && tstzrange(each.valid_at, each.invalid_at));
        end if;
        update beliefs set superseded_at = until where scope_id = each.scope_id and id = each.id;
        if until is null and (each.invalid_at is null or each.invalid_at > clock_timestamp()) then
            -- It was withheld only because another version took its place.
            update memories set withheld = 'archived'
            where scope_id = each.scope_id and id = each.id and withheld = 'past';
            if give_back_message(each.scope_id, each.id) then
                perform restore_memories(each.scope_id, array[each.id]);
            end if;
        end if;
    end loop;
    perform tidy_entities(scope_id, array_agg(ends.id))
    from forgotten, unnest(array[subject_id, object_id]) as ends (id)
    where ends.id is not null group by scope_id;
    return null;
end $$;
create trigger heal_lineages after delete on beliefs
    referencing old table as forgotten for each statement execute function heal_lineages();

create function forget_names() returns trigger
    language plpgsql as $$
begin
    perform tidy_entities(scope_id, array_agg(distinct entity_id)) from forgotten group by scope_id;
    return null;
end $$;
create trigger forget_names after delete on mentions
    referencing old table as forgotten for each statement execute function forget_names();
-- What a segment says of entities goes with it.
create trigger erase_mentions after delete on segments
    referencing old table as forgotten for each statement execute function erase_side_rows('mentions', 'source_id');

-- A fact that lost any of what it was made from is not made again, because its ends and predicate stand beside its words,
-- and all of it may come from what is gone: it goes, with what was made from it alone, and the rest of its evidence is
-- read again. At the end of the transaction, because whoever takes the evidence away has not finished counting; all
-- of a scope at once, so that none of its versions is believed in between.
create function drop_facts_to_rederive() returns trigger
    language plpgsql as $$
declare
    dropped uuid[];
    poorer uuid[];
begin
    if not exists (select from memories where scope_id = new.scope_id and id = new.id and withheld = 'to_rederive') then
        return null;
    end if;
    dropped := array(
        select memories.id from memories
        join beliefs on beliefs.scope_id = new.scope_id and beliefs.id = memories.id
        where memories.scope_id = new.scope_id and withheld = 'to_rederive' and subject_id is not null);
    perform learn_again(new.scope_id, dropped);
    while cardinality(dropped) > 0 loop
        with lost as (
            delete from evidence where scope_id = new.scope_id and source_id = any (dropped) returning memory_id
        )
        select array_agg(distinct memory_id) into poorer from lost;
        delete from memories where scope_id = new.scope_id and id = any (dropped);
        dropped := array(
            select id from memories
            where scope_id = new.scope_id and id = any (poorer) and withheld = 'to_rederive'
              and not exists (select from evidence where evidence.scope_id = new.scope_id and memory_id = memories.id));
    end loop;
    return null;
end $$;

create constraint trigger drop_facts_to_rederive after update of withheld on memories
    deferrable initially deferred for each row
    when (new.withheld = 'to_rederive' and old.withheld is distinct from 'to_rederive' and new.kind = 'fact')
    execute function drop_facts_to_rederive();

create function follow_memory() returns trigger
    language plpgsql as $$
begin
    new.withheld_for := (
        select memories.withheld from memories
        where memories.scope_id = new.scope_id and memories.id between new.id and new.id order by memories.id limit 1
    );
    return new;
end $$;
create trigger follow_memory before insert on beliefs for each row execute function follow_memory();

create function follow_withholding() returns trigger
    language plpgsql as $$
begin
    update beliefs set withheld_for = new.withheld where scope_id = new.scope_id and id between new.id and new.id;
    return null;
end $$;
create trigger follow_withholding after update of withheld on memories for each row
    when (new.kind = 'fact' and new.withheld is distinct from old.withheld) execute function follow_withholding();

-- Of versions and facts, those that the indexes of recall do not hold: superseded, or over by now.
create function past_among(asked_scope bigint, asked_ids uuid[]) returns setof uuid
    language sql stable as $$
    select id from beliefs
    where scope_id = asked_scope and id = any (asked_ids)
      and (superseded_at is not null or invalid_at <= clock_timestamp())
$$;

-- Since when and until when a version is true, until when it was believed, and when it was contested; null for what is no version. Two functions
-- whose plans are kept, because to plan one more join would cost every recall more than these looks do.
create function belief_of(asked_scope bigint, asked_id uuid) returns timestamptz[]
    language plpgsql stable as $$
begin
    return (select array[valid_at, invalid_at, superseded_at, case when contested then created_at end] from beliefs
            where scope_id = asked_scope and id between asked_id and asked_id order by id limit 1);
end $$;

-- Whether a fact or a summary is believed and not over: now, or as of a moment, or was true at one. What has no span in
-- the world goes by when it happened.
create function stands(asked_scope bigint, asked_id uuid, occurred_at timestamptz, as_of timestamptz, at timestamptz)
    returns boolean
    language plpgsql stable as $$
declare
    version record;
begin
    select valid_at, invalid_at, superseded_at, subject_id is not null or valid_at is not null as bounded into version
    from beliefs where scope_id = asked_scope and id between asked_id and asked_id order by id limit 1;
    return coalesce(version.superseded_at > as_of, version.superseded_at is null)
        and (version.invalid_at is null or version.invalid_at > coalesce(at, as_of, now()))
        and (at is null or case when version.bounded then coalesce(version.valid_at <= at, true)
                                else occurred_at <= at end);
end $$;

-- Of what the indexes hold, that which was true at a moment, or had happened by then.
create function true_at(asked_scope bigint, moment timestamptz) returns setof uuid
    language sql stable as $$
    select id from memories
    where scope_id = asked_scope and kind = any ('{message,event,chat,thought,summary}') and occurred_at <= moment
      and withheld is null
    union all
    select memories.id from memories
    left join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.kind = 'fact' and memories.withheld is null
      and case when beliefs.id is null then memories.occurred_at <= moment
               else (beliefs.valid_at is null or beliefs.valid_at <= moment)
                   and (beliefs.invalid_at is null or beliefs.invalid_at > moment) end
$$;

-- Versions that have left the indexes, as they were believed as of a moment (now if null), and true: at a moment, or
-- not over by then.
-- What was believed then does not change afterwards, so one that has faded since is among them.
create function past_versions(
    asked_scope bigint, as_of timestamptz, at timestamptz, kinds text[], min_trust smallint, allowed uuid[]
) returns setof uuid
    language sql stable as $$
    select memories.id from memories
    join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.withheld in ('past', 'faded')
      and (kinds is null or memories.kind = any (kinds)) and memories.trust >= min_trust
      and (allowed is null or memories.id = any (allowed))
      and (as_of is null or beliefs.created_at <= as_of)
      and (beliefs.superseded_at is null or beliefs.superseded_at > as_of)
      and (beliefs.invalid_at is null or beliefs.invalid_at > coalesce(at, as_of, now()))
      and (at is null or case when memories.kind = 'fact' then coalesce(beliefs.valid_at <= at, true)
                              else memories.occurred_at <= at end)
$$;

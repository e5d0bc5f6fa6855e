-- Facts in two times: how names find entities, how versions take over from each other, and what goes with its sources.

-- Samples of what columns hold outlive it: nothing that was said goes there.
alter table entities alter name set statistics 0, alter normalised set statistics 0;
alter table mentions alter name set statistics 0, alter normalised set statistics 0, alter description set statistics 0;
alter table beliefs alter predicate set statistics 0;

-- With the source, so that a name is looked up in the index alone: else the planner would rather read all of a scope's.
drop index mentions_by_name;
create index mentions_by_name on mentions (scope_id, normalised, entity_id) include (source_id);
create index beliefs_believed on beliefs (scope_id, subject_id, object_id)
    where superseded_at is null and subject_id is not null;

-- Row-level security keeps similarity away from indexes, because it is not leakproof. The matcher may read this one
-- table whole; its function takes the tenant from the transaction and never leaves the scope.
create index entities_by_trigram on entities using gist (scope_id, normalised gist_trgm_ops);
create policy of_matcher on entities for select to recollect_matcher using (true);
grant select on entities to recollect_matcher;

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

-- Give versions the vectors of those whose place they take, in all spaces: they say the same. Return the heirs that
-- lack one in the active space.
create function inherit_vectors(asked_scope bigint, heirs uuid[], elders uuid[]) returns uuid[]
    language plpgsql as $$
declare
    space record;
    waiting uuid[] := '{}';
begin
    for space in select id, state from embedding_spaces loop
        execute format(
            'insert into %1$I (scope_id, id, kind, trust, idle, importance, embedding) '
            'select $1, memories.id, memories.kind, memories.trust, memories.idle, memories.importance, '
            'coalesce(hot.embedding, side.embedding::%2$s) '
            'from unnest($2, $3) as given (heir, elder) '
            'join (select id, kind, trust, idle, importance from memories '
            'where scope_id = $1 and id = any ($2) offset 0) memories on memories.id = given.heir '
            'left join %1$I hot on hot.scope_id = $1 and hot.id = given.elder '
            'left join withheld_vectors side on side.scope_id = $1 and side.id = given.elder and side.space_id = $4 '
            'where hot.id is not null or side.id is not null '
            'on conflict (scope_id, id) do nothing',
            'vectors_' || space.id,
            (select format_type(atttypid, atttypmod) from pg_attribute
             where attrelid = ('vectors_' || space.id)::regclass and attname = 'embedding'))
            using asked_scope, heirs, elders, space.id;
        if space.state = 'active' then
            execute format(
                'select array(select heir from unnest($2) as given (heir) where not exists ('
                'select from %I vectors where vectors.scope_id = $1 and vectors.id = given.heir))',
                'vectors_' || space.id)
                into waiting using asked_scope, heirs;
        end if;
    end loop;
    return waiting;
end $$;

-- Bring back what is believed again and is not over: it was withheld only because another version took its place.
create function bring_back(asked_scope bigint, asked_ids uuid[]) returns void
    language plpgsql as $$
begin
    update memories set withheld = 'archived'
    where scope_id = asked_scope and id = any (asked_ids) and withheld = 'past';
    perform restore_memories(asked_scope, asked_ids);
end $$;

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
            from forgotten group by scope_id, lineage
        ) gone
        join beliefs kept on kept.scope_id = gone.scope_id and kept.lineage = gone.lineage
            and kept.superseded_at = any (gone.starts) and kept.version < gone.last_version
    loop
        until := (
            select created_at from beliefs
            where scope_id = each.scope_id and lineage = each.lineage and version > each.version
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
            perform bring_back(each.scope_id, array[each.id]);
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

-- What a source says of entities goes with it.
create trigger erase_mentions after delete on memories
    referencing old table as forgotten for each statement execute function erase_with_memory('mentions', 'source_id');
create trigger erase_mentions after delete on segments
    referencing old table as forgotten for each statement execute function erase_with_memory('mentions', 'source_id');
-- A segment that lost a message loses what was made of it, and is read again; a run that never took over said nothing.
create function erase_digested() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in
        select scope_id, array_agg(segment_id) as ids from forgotten
        where run_id = '00000000-0000-0000-0000-000000000000' group by scope_id
    loop
        delete from mentions where scope_id = each.scope_id and source_id = any (each.ids);
    end loop;
    return null;
end $$;
create trigger erase_digested after delete on digests
    referencing old table as forgotten for each statement execute function erase_digested();

-- Let the segments that facts rest on be applied once more, from the digest that stands: what they say by themselves is
-- learned again without a model, and a fact that stands already is recognised. One that no digest is kept of is left
-- alone. No job is put off here: `close_silent` finds what waits within five minutes.
create function learn_again(asked_scope bigint, asked_facts uuid[]) returns void
    language plpgsql as $$
declare
    reopened uuid[];
begin
    with closed as (
        update segments set state = 'closed', attempts = 0, enriched_at = null
        where scope_id = asked_scope and state = 'enriched'
          and id = any (array(
              select segment.id
              from (select distinct source_id from evidence
                    where scope_id = asked_scope and memory_id = any (asked_facts)) source
              join messages on messages.scope_id = asked_scope and messages.id = source.source_id
              cross join lateral (
                  select id, last_number from segments
                  where segments.scope_id = asked_scope and segments.conversation_id = messages.conversation_id
                    and first_number <= messages.number
                  order by first_number desc limit 1
              ) segment
              where segment.last_number >= messages.number))
          and (
              select content ? 'said' from digests
              where digests.scope_id = asked_scope and segment_id = segments.id and applied_at is not null
              order by applied_at desc limit 1
          )
        returning id
    )
    select array_agg(id) into reopened from closed;
    -- Where a run has taken over, what it said is what is said again.
    insert into digests (scope_id, segment_id, model, prompt_version, content, made_at)
    select distinct on (segment_id) scope_id, segment_id, model, prompt_version, content, made_at from digests
    where scope_id = asked_scope and segment_id = any (reopened) and applied_at is not null
    order by segment_id, applied_at desc
    on conflict (scope_id, segment_id, run_id) do update
    set model = excluded.model, prompt_version = excluded.prompt_version, content = excluded.content,
        made_at = excluded.made_at;
end $$;

-- A fact that lost any of what it was made from is not made anew, because its ends and predicate stand beside its words,
-- and all of it may come from what is gone: it goes, with what was made from it alone, and the rest of its evidence is
-- heard again. At the end of the transaction, because whoever takes the evidence away has not finished counting; all
-- of a scope at once, so that none of its versions is believed in between.
create function drop_stale_facts() returns trigger
    language plpgsql as $$
declare
    dropped uuid[];
    poorer uuid[];
begin
    if not exists (select from memories where scope_id = new.scope_id and id = new.id and withheld = 'stale') then
        return null;
    end if;
    dropped := array(
        select memories.id from memories
        join beliefs on beliefs.scope_id = new.scope_id and beliefs.id = memories.id
        where memories.scope_id = new.scope_id and withheld = 'stale' and subject_id is not null);
    perform learn_again(new.scope_id, dropped);
    while cardinality(dropped) > 0 loop
        with lost as (
            delete from evidence where scope_id = new.scope_id and source_id = any (dropped) returning memory_id
        )
        select array_agg(distinct memory_id) into poorer from lost;
        delete from memories where scope_id = new.scope_id and id = any (dropped);
        dropped := array(
            select id from memories
            where scope_id = new.scope_id and id = any (poorer) and withheld = 'stale'
              and not exists (select from evidence where evidence.scope_id = new.scope_id and memory_id = memories.id));
    end loop;
    return null;
end $$;
create constraint trigger drop_stale_facts after update of withheld on memories
    deferrable initially deferred for each row
    when (new.withheld = 'stale' and old.withheld is distinct from 'stale' and new.kind = 'fact')
    execute function drop_stale_facts();

-- Topics: the tree that memories are filed under, and what of each takes part in recall.

-- A topic is there as long as something is filed under it, names it as related, or lies below it; then it goes, because
-- its name was said by somebody. A label of its path is made from its normalised name; what it was called stands beside.
create table topics (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    path ltree not null,
    name text not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, id),
    unique (scope_id, path)
);
-- Samples of what columns hold outlive it: nothing that was said goes there.
alter table topics alter path set statistics 0, alter name set statistics 0;
select protect_scoped('topics');
create trigger note_filed after insert on topics
    referencing new table as filed for each statement execute function note_filed();

-- A memory's tie to a topic, with all that a recall by topic reads of the memory: it would have to look each of them up
-- by its key otherwise.
create table topic_links (
    scope_id bigint not null,
    topic_id uuid not null,
    memory_id uuid not null,
    activation double precision not null check (activation between 0 and 1),
    diffusion double precision not null check (diffusion between 0 and 1),
    independence double precision not null check (independence between 0 and 1),
    occurred_at timestamptz not null,
    kind text not null,
    trust smallint not null,
    withheld_for text,
    primary key (scope_id, topic_id, memory_id),
    foreign key (scope_id, topic_id) references topics
);
select protect_scoped('topic_links');
create index topic_links_by_time on topic_links (scope_id, topic_id, occurred_at desc, memory_id)
    include (kind, trust, activation, diffusion, independence) where withheld_for is null;
create index topic_links_of_memory on topic_links (scope_id, memory_id);

-- Which topics a link leads to, in the order in which they were named.
create table related_topics (
    scope_id bigint not null,
    topic_id uuid not null,
    memory_id uuid not null,
    related_id uuid not null,
    -- Among what the link leads to; where two have the same, the topics' ids decide.
    place integer not null,
    primary key (scope_id, topic_id, memory_id, related_id),
    foreign key (scope_id, related_id) references topics
);
select protect_scoped('related_topics');
create index related_topics_by_related on related_topics (scope_id, related_id);

-- The last place among what a link leads to. Between, because only the key gives the order of a range.
create function last_place(asked_scope bigint, asked_topic uuid, asked_memory uuid) returns integer
    language sql stable as $$
    select coalesce(max(place), 0) from (
        select place from related_topics
        where scope_id = asked_scope and topic_id between asked_topic and asked_topic
          and memory_id between asked_memory and asked_memory
        order by topic_id, memory_id, related_id
        limit 1000
    ) led
$$;

-- Row-level security keeps the operators of paths away from indexes, because they are not leakproof. The matcher may
-- read this one table whole; its functions take the tenant from the transaction and never leave the scope.
create policy of_matcher on topics for select to recollect_matcher using (true);
grant select on topics to recollect_matcher;

create function topics_at(asked_scope bigint, asked_paths text[]) returns table (place integer, id uuid)
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
    select asked.place::integer, found.id from unnest(asked_paths) with ordinality as asked (path, place)
    cross join lateral (
        select topics.id from topics where topics.scope_id = asked_scope and topics.path = asked.path::ltree offset 0
    ) found;
end $$;

-- All that lies below a path, in the order of the tree. Of all labels that begin with another one, that with a hyphen
-- behind it is the least: whatever lies below a path sorts between the two.
create function topics_below(asked_scope bigint, asked_path text) returns setof uuid
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    return query
    select topics.id from topics
    where topics.scope_id = asked_scope and path > asked_path::ltree and path < (asked_path || '-')::ltree
    order by path;
end $$;

create function is_topic_above(asked_scope bigint, asked_path text) returns boolean
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return false;
    end if;
    return exists (
        select from topics
        where topics.scope_id = asked_scope and path > asked_path::ltree and path < (asked_path || '-')::ltree
        order by scope_id, path limit 1);
end $$;
revoke execute on function topics_at(bigint, text[]) from public;
revoke execute on function topics_below(bigint, text) from public;
revoke execute on function is_topic_above(bigint, text) from public;
grant execute on function topics_at(bigint, text[]) to recollect_service;
grant execute on function topics_below(bigint, text) to recollect_service;
grant execute on function is_topic_above(bigint, text) to recollect_service;
grant create on schema public to recollect_matcher;
alter function topics_at(bigint, text[]) owner to recollect_matcher;
alter function topics_below(bigint, text) owner to recollect_matcher;
alter function is_topic_above(bigint, text) owner to recollect_matcher;
revoke create on schema public from recollect_matcher;

-- Let topics go that nothing needs any more, and then those above them, in a scope that the caller has locked.
create function tidy_topics(asked_scope bigint, asked_ids uuid[]) returns void
    language plpgsql as $$
declare
    parents text[];
begin
    while cardinality(asked_ids) > 0 loop
        with gone as (
            delete from topics
            where scope_id = asked_scope and id = any (asked_ids)
              -- Between, and in the order of the key: else any index of the scope will do, and all of it may be read.
              and (select topic_id from topic_links
                   where topic_links.scope_id = asked_scope and topic_id between topics.id and topics.id
                   order by topic_id, memory_id limit 1) is null
              and (select related_id from related_topics
                   where related_topics.scope_id = asked_scope and related_id between topics.id and topics.id
                   order by related_id limit 1) is null
              and not is_topic_above(asked_scope, path::text)
            returning path
        )
        select array_agg(distinct subpath(path, 0, -1)::text) filter (where nlevel(path) > 1) into parents from gone;
        asked_ids := array(select id from topics_at(asked_scope, parents));
    end loop;
end $$;
-- Whatever way a memory goes, its links go with it; with a link what it is related to, and with both their topics.
create trigger erase_topic_links after delete on memories
    referencing old table as forgotten for each statement execute function erase_side_rows('topic_links', 'memory_id');

-- All at once: one by one the planner would read the whole scope for each.
create function drop_related_topics(asked_scope bigint, topic_ids uuid[], memory_ids uuid[]) returns void
    language sql
    set enable_nestloop = off
as $$
    delete from related_topics related using unnest(topic_ids, memory_ids) as link (topic_id, memory_id)
    where related.scope_id = asked_scope and related.topic_id = link.topic_id and related.memory_id = link.memory_id
$$;

create function erase_related_topics() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in
        select scope_id, array_agg(topic_id) as topics, array_agg(memory_id) as memories from forgotten group by scope_id
    loop
        perform drop_related_topics(each.scope_id, each.topics, each.memories);
        perform tidy_topics(each.scope_id, array(select distinct unnest(each.topics)));
    end loop;
    return null;
end $$;
create trigger erase_related_topics after delete on topic_links
    referencing old table as forgotten for each statement execute function erase_related_topics();

create function forget_related() returns trigger
    language plpgsql as $$
begin
    perform tidy_topics(scope_id, array_agg(distinct related_id)) from forgotten group by scope_id;
    return null;
end $$;
create trigger forget_related after delete on related_topics
    referencing old table as forgotten for each statement execute function forget_related();

-- A link takes part in recall as its memory does. What a memory was about that lost some of its evidence may be what is
-- gone: it is filed again where it is made again.
create function follow_into_topics() returns trigger
    language plpgsql as $$
begin
    if new.withheld = 'to_rederive' then
        delete from topic_links where scope_id = new.scope_id and memory_id between new.id and new.id;
    else
        update topic_links set withheld_for = new.withheld
        where scope_id = new.scope_id and memory_id between new.id and new.id;
    end if;
    return null;
end $$;
create trigger follow_into_topics after update of withheld on memories for each row
    when (new.withheld is distinct from old.withheld) execute function follow_into_topics();

-- Let one topic take the place of another: what is filed under that, and what is related to it. Of two links of one
-- memory, the newer one says how.
create function absorb_topic(asked_scope bigint, absorbed uuid, heir uuid) returns void
    language plpgsql as $$
begin
    insert into topic_links
    select asked_scope, heir, memory_id, activation, diffusion, independence, occurred_at, kind, trust, withheld_for
    from topic_links where scope_id = asked_scope and topic_id = absorbed
    on conflict (scope_id, topic_id, memory_id) do update
    set activation = excluded.activation, diffusion = excluded.diffusion, independence = excluded.independence,
        occurred_at = excluded.occurred_at
    where excluded.occurred_at > topic_links.occurred_at;
    insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
    select asked_scope, heir, memory_id, related_id, last_place(asked_scope, heir, memory_id) + place
    from related_topics where scope_id = asked_scope and topic_id = absorbed
    on conflict do nothing;
    insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
    select asked_scope, topic_id, memory_id, heir, place
    from related_topics where scope_id = asked_scope and related_id = absorbed and topic_id <> absorbed
    on conflict do nothing;
    delete from related_topics
    where scope_id = asked_scope and (related_id = absorbed or (topic_id = heir and related_id = heir));
    delete from topic_links where scope_id = asked_scope and topic_id = absorbed;
    delete from topics where scope_id = asked_scope and id = absorbed;
end $$;

-- Bring a topic with all that lies below it to another path, in a scope that the caller has locked. Where a topic is
-- there already, that one absorbs what comes.
create function replant_topics(asked_scope bigint, old_path text, new_path text) returns void
    language plpgsql as $$
declare
    moved uuid[] := array(select id from topics_at(asked_scope, array[old_path]))
        || array(select topics_below(asked_scope, old_path));
    paths text[];
    each record;
begin
    paths := array(
        select new_path || substr(topics.path::text, length(old_path) + 1)
        from unnest(moved) with ordinality as mover (id, place)
        join topics on topics.scope_id = asked_scope and topics.id = mover.id
        order by mover.place);
    -- Out of the way first: where a topic goes, another one of these may still stand.
    update topics set path = '-'::ltree || path where scope_id = asked_scope and id = any (moved);
    for each in
        select mover.id, mover.path, met.id as heir
        from unnest(moved, paths) with ordinality as mover (id, path, place)
        left join topics_at(asked_scope, paths) met on met.place = mover.place
        order by mover.place desc
    loop
        if each.heir is null then
            update topics set path = each.path::ltree where scope_id = asked_scope and id = each.id;
        else
            perform absorb_topic(asked_scope, each.id, each.heir);
        end if;
    end loop;
    perform tidy_topics(asked_scope, array(
        select id from topics_at(asked_scope, array[subpath(old_path::ltree, 0, -1)::text])))
    where nlevel(old_path::ltree) > 1;
end $$;

-- What a topic and those above it are called, from the root down.
create function names_of(asked_scope bigint, asked_topic uuid) returns text[]
    language plpgsql stable as $$
declare
    own ltree := (select path from topics where scope_id = asked_scope and id between asked_topic and asked_topic
                  order by id limit 1);
begin
    return array(
        select topics.name
        from topics_at(asked_scope, array(
            select subpath(own, 0, level)::text from generate_series(1, nlevel(own)) as level)) above
        cross join lateral (
            select topics.name from topics
            where topics.scope_id = asked_scope and topics.id between above.id and above.id order by topics.id limit 1
        ) topics
        order by above.place);
end $$;

-- A path's topics with those above it, or all; of each how many memories take part in recall, and whether anything that
-- is in sight is filed under it or names it as related; of memories that are `allowed`, or all if null. The planner takes
-- a scope for a few rows, and would compare each with each. What is out of sight is told by conversations, which a later
-- file makes: the body is not checked here.
set local check_function_bodies = off;

create function list_topics(asked_scope bigint, asked_paths text[], allowed uuid[])
    returns table (
        path text, name text, memories bigint, seen boolean, activation double precision, newest_at timestamptz
    )
    language sql stable
    set enable_nestloop = off
as $$
    with unsynced as materialized (
        select exists (
            select from conversations
            where scope_id = asked_scope and not synced and state in ('deleted', 'purging')
        ) as any_left
    ), wanted as materialized (
        select case when cardinality(asked_paths) > 0 then
            array(select id from topics_at(asked_scope, asked_paths))
            || array(select topics_below(asked_scope, asked_paths[cardinality(asked_paths)]))
        end as ids
    ), listed as materialized (
        select id, topics.path, topics.name from topics
        where scope_id = asked_scope
          and ((select ids is null from wanted) or id = any (array(select unnest(ids) from wanted)))
    ), linked as materialized (
        select topic_id, memory_id, withheld_for, activation, occurred_at from topic_links
        where scope_id = asked_scope and (withheld_for is null or withheld_for in ('archived', 'faded'))
          and (allowed is null or memory_id in (select unnest(allowed)))
          and (not (select any_left from unsynced) or not rests_on_deleted(scope_id, memory_id))
    ), counted as materialized (
        select topic_id, count(*) filter (where withheld_for is null) as memories,
               avg(linked.activation) filter (where withheld_for is null) as activation,
               max(occurred_at) filter (where withheld_for is null) as newest_at
        from linked group by topic_id
    ), named as materialized (
        select distinct related_id from related_topics join linked using (topic_id, memory_id)
        where related_topics.scope_id = asked_scope
    )
    select listed.path::text, listed.name, coalesce(counted.memories, 0),
           counted.topic_id is not null or named.related_id is not null, counted.activation, counted.newest_at
    from listed
    left join counted on counted.topic_id = listed.id
    left join named on named.related_id = listed.id
    order by listed.path
$$;
set local check_function_bodies = on;

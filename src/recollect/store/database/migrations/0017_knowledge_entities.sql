-- Entities: their vectors, which of them are one, and where a recall by names starts.

-- What an entity is called and described as, by meaning. Half precision in every space: it finds an entity, it does not rank.
create table entity_vectors (
    scope_id bigint not null,
    space_id integer not null references embedding_spaces on delete cascade,
    id uuid not null,
    embedding halfvec not null,
    primary key (scope_id, space_id, id)
);
-- In line as long as it fits a page: all of a scope's are read in one recall.
alter table entity_vectors alter embedding set storage main, alter embedding set statistics 0;
select protect_scoped('entity_vectors');

-- Which entity has absorbed which, from when until when. What each of them was called, and is described as by its vector, stays
-- its own: as of a moment the absorbed one leads to the other or does not.
create table entity_merges (
    scope_id bigint not null,
    absorbed_id uuid not null,
    merged_at timestamptz not null,
    kept_id uuid not null check (kept_id <> absorbed_id),
    -- When it was taken back; null while it holds.
    split_at timestamptz check (split_at >= merged_at),
    primary key (scope_id, absorbed_id, merged_at)
);
select protect_scoped('entity_merges');
create unique index entity_merges_one_at_a_time on entity_merges (scope_id, absorbed_id) where split_at is null;
create index entity_merges_of_kept on entity_merges (scope_id, kept_id);
create trigger log_inserted after insert on entity_merges
    referencing new table as latter for each statement execute function log_rows('entity', 'absorbed_id');
create trigger log_updated after update on entity_merges
    referencing new table as latter for each statement execute function log_rows('entity', 'absorbed_id');
create trigger log_deleted after delete on entity_merges
    referencing old table as latter for each statement execute function log_rows('entity', 'absorbed_id');

create trigger erase_entity after delete on entities
    referencing old table as forgotten for each statement execute function erase_side_rows(
        'entity_vectors', 'id', 'pending_embeddings', 'id', 'entity_merges', 'absorbed_id', 'entity_merges', 'kept_id');

-- An entity waits for a vector when it gets a name that it did not have, or a description. `sweep` has a job made
-- of what waits: no write of facts needs the embedder.
create function await_entity_vector() returns trigger
    language plpgsql as $$
begin
    if not exists (select from embedding_spaces where state = 'active') then
        return null;
    end if;
    insert into pending_embeddings (scope_id, id)
    select distinct scope_id, entity_id from mentioned
    where description <> '' or not exists (
        select from mentions other
        where other.scope_id = mentioned.scope_id and other.normalised = mentioned.normalised
          and other.entity_id = mentioned.entity_id and other.source_id <> mentioned.source_id
    )
    on conflict do nothing;
    return null;
end $$;
create trigger await_entity_vector after insert on mentions
    referencing new table as mentioned for each statement execute function await_entity_vector();
create trigger renew_entity_vector after update on mentions
    referencing new table as mentioned for each statement execute function await_entity_vector();

-- A vector that was made with a name or a description that is gone goes with it, and another one is made of what is left.
create function drop_entity_vectors() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in
        select scope_id, array_agg(distinct entity_id) as ids from forgotten
        where description <> '' or not exists (
            select from mentions other
            where other.scope_id = forgotten.scope_id and other.normalised = forgotten.normalised
              and other.entity_id = forgotten.entity_id
        )
        group by scope_id
    loop
        delete from entity_vectors where scope_id = each.scope_id and id = any (each.ids);
        insert into pending_embeddings (scope_id, id)
        select each.scope_id, entities.id from entities
        where entities.scope_id = each.scope_id and entities.id = any (each.ids)
          and exists (select from embedding_spaces where state = 'active')
        on conflict do nothing;
    end loop;
    return null;
end $$;
-- After forget_names, which removes entities that nothing speaks of any more: the order is that of the names.
create trigger forget_vectors after delete on mentions
    referencing old table as forgotten for each statement execute function drop_entity_vectors();

-- The entity that an id leads to as of a moment, now if null: the one that absorbed it, or itself.
create function leads_to(asked_scope bigint, asked_id uuid, as_of timestamptz) returns uuid
    language plpgsql stable as $$
declare
    reached uuid := asked_id;
    next uuid;
begin
    loop
        next := (
            select kept_id from entity_merges
            where scope_id = asked_scope and absorbed_id between reached and reached
              and merged_at <= coalesce(as_of, 'infinity') and (split_at is null or split_at > coalesce(as_of, 'infinity'))
            order by absorbed_id, merged_at limit 1);
        exit when next is null;
        reached := next;
    end loop;
    return reached;
end $$;

-- An entity and all that lead to it as of a moment, now if null.
create function members_of(asked_scope bigint, asked_id uuid, as_of timestamptz) returns uuid[]
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
as $$
declare
    members uuid[] := array[asked_id];
    more uuid[] := array[asked_id];
begin
    loop
        more := array(
            select absorbed_id from entity_merges
            where scope_id = asked_scope and kept_id = any (more)
              and merged_at <= coalesce(as_of, 'infinity') and (split_at is null or split_at > coalesce(as_of, 'infinity')));
        exit when cardinality(more) = 0;
        members := members || more;
    end loop;
    return members;
end $$;

-- For each name, the entity that is spelled most alike among those that begin alike, if the two have half of their trigrams in
-- common. By the first letters, not by the index of trigrams: most words of a cue are no names, and each search would
-- cost as much as all vectors of a small scope.
create function spelled_alike(asked_scope bigint, asked_names text[])
    returns table (id uuid, alike real)
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
as $$
begin
    return query
    select nearest.id, max(nearest.alike)
    from unnest(asked_names) as asked (name)
    cross join lateral (
        select entities.id, similarity(entities.normalised, asked.name) as alike from entities
        where entities.scope_id = asked_scope and entities.initials = left(asked.name, 2)
        order by alike desc, entities.id limit 1
    ) nearest
    where nearest.alike >= 0.5
    group by nearest.id;
end $$;

-- Where a walk along facts starts, and how much each start counts. Names in the cue count most, then spellings that are
-- alike, then entities that mean the like, then the ends of facts among the first hits. Of what nothing in sight
-- speaks, no walk starts.
create function find_starts(
    asked_scope bigint, names text[], firsts integer[], lasts integer[], spelled text[],
    asked_space integer, meaning halfvec, floor real, shares real[], hits uuid[], most integer, as_of timestamptz
) returns table (id uuid, weight real)
    language plpgsql stable
    set plan_cache_mode = force_generic_plan
    set enable_sort = off
as $$
declare
    found uuid[] := find_named(asked_scope, names, firsts, lasts, most);
    weights real[] := array_fill(1::real, array[cardinality(found)]);
    each record;
begin
    if cardinality(found) < most and cardinality(spelled) > 0 then
        for each in
            select near.id, near.alike as weight from spelled_alike(asked_scope, spelled) near
        loop
            if each.id <> all (found) and is_mentioned(asked_scope, each.id, null) then
                found := found || each.id;
                weights := weights || each.weight;
            end if;
        end loop;
    end if;
    if cardinality(found) < most and meaning is not null then
        for each in
            select near.id, near.weight from (
                select held.id, -(held.embedding <#> meaning) as weight from entity_vectors held
                where held.scope_id = asked_scope and held.space_id = asked_space
                order by held.embedding <#> meaning limit 3
            ) near where near.weight >= floor
        loop
            if each.id <> all (found) and is_mentioned(asked_scope, each.id, null) then
                found := found || each.id;
                weights := weights || (shares[1] * each.weight)::real;
            end if;
        end loop;
    end if;
    if cardinality(found) < most and cardinality(hits) > 0 then
        for each in
            select ends.id from (
                select unnest(array[subject_id, object_id]) as id from beliefs
                where beliefs.scope_id = asked_scope and beliefs.id = any (hits) and subject_id is not null
            ) ends group by ends.id
        loop
            if each.id <> all (found) then
                found := found || each.id;
                weights := weights || shares[2];
            end if;
        end loop;
    end if;
    return query
    select led.id, max(led.weight) from (
        -- An absorbed one is a start, too: of what was hidden when it was absorbed, facts are still its own.
        select unnest(array[start.id, leads_to(asked_scope, start.id, as_of)]) as id, start.weight
        from unnest(found, weights) with ordinality as start (id, weight, place)
        where start.place <= most
    ) led group by led.id;
end $$;

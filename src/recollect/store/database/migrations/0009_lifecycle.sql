-- What becomes of conversations in the end: out of recall and back again, or gone for good with what was made from them.

-- Why a memory takes no part in recall: its conversation is archived or deleted, or what it was made from is gone and
-- it waits to be made anew. Null for all that do take part.
alter table memories add column withheld text check (withheld in ('archived', 'deleted', 'stale'));
drop index memories_by_time;
create index memories_by_time on memories (scope_id, kind, occurred_at desc, id desc) include (idle)
    where withheld is null;
create index memories_stale on memories (scope_id, id) where withheld = 'stale';

-- What ranking read of a withheld memory, so that it can come back as it was, without a model.
create table withheld_memories (
    scope_id bigint not null,
    id uuid not null,
    terms bigint[] not null,
    weights sparsevec(1000000000) not null,
    draw integer not null,
    counted boolean not null,
    -- Its part of what the scope's counter of terms lost by it.
    term_count bigint not null,
    last_accessed_at timestamptz,
    access_count integer,
    primary key (scope_id, id)
);
select protect_scoped('withheld_memories');
create trigger erase_withheld_memories after delete on memories
    referencing old table as forgotten for each statement execute function erase_with_memory('withheld_memories', 'id');

create table withheld_vectors (
    scope_id bigint not null,
    id uuid not null,
    space_id integer not null,
    embedding vector not null,
    primary key (scope_id, id, space_id)
);
alter table withheld_vectors alter embedding set storage external;
select protect_scoped('withheld_vectors');
create trigger erase_withheld_vectors after delete on memories
    referencing old table as forgotten for each statement execute function erase_with_memory('withheld_vectors', 'id');

-- What a purge removed, in numbers: it outlives what it is about, and says nothing of what was said.
create table purge_receipts (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    conversation_id text not null,
    asked_by text not null,
    removed jsonb not null default '{}',
    begun_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    primary key (scope_id, id)
);
select protect_scoped('purge_receipts');
create index purge_receipts_of_conversation on purge_receipts (scope_id, conversation_id, begun_at desc);

-- Recency is a matter among those that take part.
create or replace function latest_accesses(asked_scope bigint, asked_kinds text[], before uuid, most integer)
    returns table (id uuid, accessed_at timestamptz, thought boolean)
    language sql stable
    begin atomic
    select logged.id, log.accessed_at, logged.kind = 'thought'
    from access_log log, unnest(log.ids, log.kinds) as logged (id, kind)
    where log.scope_id = asked_scope and logged.kind = any (asked_kinds) and (before is null or logged.id < before)
    union all
    select newest.id, newest.last_accessed_at, asked.kind = 'thought'
    from unnest(asked_kinds) as asked (kind), lateral (
        select accesses.id, accesses.last_accessed_at from accesses
        where accesses.scope_id = asked_scope and accesses.kind = asked.kind and (before is null or accesses.id < before)
        order by accesses.last_accessed_at desc, accesses.id desc
        limit most
    ) newest
    union all
    select newest.id, newest.occurred_at, asked.kind = 'thought'
    from unnest(asked_kinds) as asked (kind), lateral (
        select memories.id, memories.occurred_at from memories
        where memories.scope_id = asked_scope and memories.kind = asked.kind and not memories.idle
          and memories.withheld is null and (before is null or memories.id < before)
        order by memories.occurred_at desc, memories.id desc
        limit most
    ) newest;
    end;

create or replace function fold_accesses(folded_scope bigint) returns void
    language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashint8extended(folded_scope, 6));
    with taken as (
        delete from access_log where scope_id = folded_scope returning accessed_at, ids
    ), latest as (
        select touched.id, max(accessed_at) as accessed_at, count(*) as times
        from taken, unnest(taken.ids) as touched (id)
        group by touched.id
    )
    insert into accesses (scope_id, id, kind, last_accessed_at, access_count)
    select memories.scope_id, memories.id, memories.kind, latest.accessed_at, latest.times
    from latest join memories on memories.scope_id = folded_scope and memories.id = latest.id
    where memories.withheld is null
    order by memories.id
    on conflict (scope_id, id) do update
    set last_accessed_at = greatest(accesses.last_accessed_at, excluded.last_accessed_at),
        access_count = accesses.access_count + excluded.access_count;
end $$;

-- Take keywords back from memories, and from the strengths that they added to.
create function unfile(asked_scope bigint, filed_keywords text[], filed_kinds text[], filed_ids uuid[]) returns void
    language plpgsql as $$
begin
    with unfiled as (
        delete from memory_keywords side
        using unnest(filed_keywords, filed_kinds, filed_ids) as filed (keyword, kind, id)
        where side.scope_id = asked_scope and side.keyword = filed.keyword
          and side.kind = filed.kind and side.id = filed.id
        returning side.kind, side.keyword, side.counted
    ), gone as (
        select kind, keyword, count(*) as times from unfiled where counted group by 1, 2
    ), weakened as (
        update keyword_strengths side set strength = side.strength - gone.times
        from gone
        where side.scope_id = asked_scope and side.kind = gone.kind and side.keyword = gone.keyword
          and side.strength > gone.times
        returning side.kind, side.keyword
    )
    delete from keyword_strengths side using gone
    where side.scope_id = asked_scope and side.kind = gone.kind and side.keyword = gone.keyword
      and not exists (select from weakened where weakened.kind = side.kind and weakened.keyword = side.keyword);
end $$;
create or replace function erase_keywords() returns trigger
    language plpgsql as $$
begin
    perform unfile(scope_id, array_agg(filed.keyword), array_agg(kind), array_agg(id))
    from forgotten, unnest(forgotten.keywords) as filed (keyword)
    group by scope_id;
    return null;
end $$;

-- Count memories out of a scope that the caller has locked, and in again. Terms are taken to be spread evenly: what
-- went out is returned, so that the same can come back.
create function count_out(asked_scope bigint, kinds text[]) returns bigint
    language sql as $$
    update scopes
    set memory_count = scopes.memory_count - cardinality(kinds),
        event_count = event_count - cardinality(array_positions(kinds, 'event')),
        thought_count = thought_count - cardinality(array_positions(kinds, 'thought')),
        chat_count = chat_count - cardinality(array_positions(kinds, 'chat')),
        term_count = scopes.term_count - before.share
    from (
        select least(term_count, term_count * cardinality(kinds) / greatest(memory_count, 1)) as share
        from scopes where id = asked_scope
    ) before
    where id = asked_scope
    returning before.share
$$;
create function count_in(asked_scope bigint, kinds text[], terms bigint) returns void
    language sql as $$
    update scopes
    set memory_count = memory_count + cardinality(kinds),
        event_count = event_count + cardinality(array_positions(kinds, 'event')),
        thought_count = thought_count + cardinality(array_positions(kinds, 'thought')),
        chat_count = chat_count + cardinality(array_positions(kinds, 'chat')),
        term_count = term_count + terms
    where id = asked_scope
$$;

-- Take memories out of every index that recall reads; return how many took part until now.
create function withhold_memories(asked_scope bigint, asked_ids uuid[], reason text) returns integer
    language plpgsql as $$
declare
    space integer;
    taken uuid[];
    share bigint;
begin
    perform fold_accesses(asked_scope);
    -- Whoever is giving one of them a vector at this moment is waited for.
    taken := array(select id from memories where scope_id = asked_scope and id = any (asked_ids) and withheld is null
                   order by id for update);
    update memories set withheld = reason
    where scope_id = asked_scope and id = any (asked_ids)
      and withheld is distinct from reason and withheld is distinct from 'stale';
    if cardinality(taken) = 0 then
        return 0;
    end if;
    share := count_out(
        asked_scope, array(select kind from memories where scope_id = asked_scope and id = any (taken)));
    insert into withheld_memories
        (scope_id, id, terms, weights, draw, counted, term_count, last_accessed_at, access_count)
    select asked_scope, memory_terms.id, memory_terms.terms, memory_terms.weights, memory_terms.draw,
           exists (
               select from memories join memory_keywords filed
                   on filed.scope_id = asked_scope and filed.keyword = any (memories.keywords)
                  and filed.kind = memories.kind and filed.id = memories.id
               where memories.scope_id = asked_scope and memories.id = memory_terms.id and filed.counted
           ),
           share * each.number / cardinality(taken) - share * (each.number - 1) / cardinality(taken),
           accesses.last_accessed_at, accesses.access_count
    from unnest(taken) with ordinality as each (id, number)
    join memory_terms on memory_terms.scope_id = asked_scope and memory_terms.id = each.id
    left join accesses on accesses.scope_id = asked_scope and accesses.id = each.id;
    for space in select id from embedding_spaces loop
        execute format(
            'with taken as (delete from %I where scope_id = $1 and id = any ($2) returning id, embedding) '
            'insert into withheld_vectors (scope_id, id, space_id, embedding) '
            'select $1, id, $3, embedding::vector from taken', 'vectors_' || space)
            using asked_scope, taken, space;
    end loop;
    perform unfile(asked_scope, array_agg(filed.keyword), array_agg(kind), array_agg(id))
    from memories, unnest(keywords) as filed (keyword)
    where scope_id = asked_scope and id = any (taken)
    having count(*) > 0;
    delete from memory_terms where scope_id = asked_scope and id = any (taken);
    delete from accesses where scope_id = asked_scope and id = any (taken);
    delete from pending_embeddings where scope_id = asked_scope and id = any (taken);
    return cardinality(taken);
end $$;

-- Put withheld memories back where they were; return those that still wait for a vector of the active space.
create function restore_memories(asked_scope bigint, asked_ids uuid[]) returns uuid[]
    language plpgsql as $$
declare
    space integer;
    taken uuid[];
    waiting uuid[];
begin
    taken := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                   and withheld in ('archived', 'deleted') order by id for update);
    if cardinality(taken) = 0 then
        return '{}';
    end if;
    update memories set withheld = null where scope_id = asked_scope and id = any (taken);
    -- Memories are looked up all at once: one by one the planner would read the scope by time for each of them.
    insert into memory_terms (scope_id, id, kind, trust, terms, weights, draw)
    select asked_scope, memories.id, memories.kind, memories.trust, side.terms, side.weights, side.draw
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id
    where side.scope_id = asked_scope and side.id = any (taken);
    insert into memory_keywords (scope_id, keyword, kind, id, counted)
    select asked_scope, filed.keyword, memories.kind, memories.id, side.counted
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id,
         unnest(memories.keywords) as filed (keyword)
    where side.scope_id = asked_scope and side.id = any (taken);
    insert into keyword_strengths (scope_id, kind, keyword, strength)
    select asked_scope, memories.kind, filed.keyword, count(*)
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id,
         unnest(memories.keywords) as filed (keyword)
    where side.scope_id = asked_scope and side.id = any (taken) and side.counted
    group by memories.kind, filed.keyword
    on conflict (scope_id, kind, keyword) do update set strength = keyword_strengths.strength + excluded.strength;
    insert into accesses (scope_id, id, kind, last_accessed_at, access_count)
    select asked_scope, memories.id, memories.kind, side.last_accessed_at, side.access_count
    from withheld_memories side join (
        select id, kind, trust, keywords from memories where scope_id = asked_scope and id = any (taken) offset 0
    ) memories on memories.id = side.id
    where side.scope_id = asked_scope and side.id = any (taken) and side.last_accessed_at is not null;
    for space in select id from embedding_spaces loop
        execute format(
            'insert into %I (scope_id, id, kind, trust, idle, importance, embedding) '
            'select $1, memories.id, memories.kind, memories.trust, memories.idle, memories.importance, side.embedding '
            'from withheld_vectors side join ('
            'select id, kind, trust, idle, importance from memories where scope_id = $1 and id = any ($2) offset 0'
            ') memories on memories.id = side.id where side.scope_id = $1 and side.id = any ($2) and side.space_id = $3', 'vectors_' || space)
            using asked_scope, taken, space;
    end loop;
    waiting := array(
        select memories.id from memories join embedding_spaces active on active.state = 'active'
        where scope_id = asked_scope and memories.id = any (taken) and (content <> '' or embedding_text <> '')
          and not exists (
              select from withheld_vectors side
              where side.scope_id = asked_scope and side.id = memories.id and side.space_id = active.id
          ));
    insert into pending_embeddings (scope_id, id) select asked_scope, unnest(waiting);
    perform count_in(
        asked_scope, array(select kind from memories where scope_id = asked_scope and id = any (taken)),
        (select sum(side.term_count)::bigint from withheld_memories side
         where side.scope_id = asked_scope and side.id = any (taken)));
    delete from withheld_memories where scope_id = asked_scope and id = any (taken);
    delete from withheld_vectors where scope_id = asked_scope and id = any (taken);
    return waiting;
end $$;

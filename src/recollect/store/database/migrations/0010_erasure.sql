-- What was made from what goes: derived memories that are hidden with their sources, come back with them, or go too.

-- Whatever way a memory goes, its side rows go in the same statement. By key, because a join with what was forgotten
-- would read all of the tenant's rows as soon as more than a few go at once.
create or replace function erase_with_memory() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in select scope_id, array_agg(id) as ids from forgotten group by scope_id loop
        execute format('delete from %I where scope_id = $1 and %I = any ($2)', tg_argv[0], tg_argv[1])
            using each.scope_id, each.ids;
    end loop;
    return null;
end $$;
create or replace function erase_vectors() returns trigger
    language plpgsql as $$
declare
    each record;
    space integer;
begin
    for each in select scope_id, array_agg(id) as ids from forgotten group by scope_id loop
        for space in select id from embedding_spaces loop
            execute format('delete from %I where scope_id = $1 and id = any ($2)', 'vectors_' || space)
                using each.scope_id, each.ids;
        end loop;
    end loop;
    return null;
end $$;

-- All that was made from memories, at any depth.
create function derived_from(asked_scope bigint, asked_ids uuid[]) returns setof uuid
    language sql stable as $$
    with recursive derived (id) as (
        select memory_id from evidence where scope_id = asked_scope and source_id = any (asked_ids)
        union
        select next.memory_id
        from derived cross join lateral (
            select memory_id from evidence where scope_id = asked_scope and source_id = derived.id offset 0
        ) next
    )
    select id from derived
$$;

-- Whether a memory was said in a conversation that is deleted, or made from anything that was: true at once, also for
-- what still lies in the indexes.
create function rests_on_deleted(asked_scope bigint, asked_id uuid) returns boolean
    language sql stable as $$
    with recursive source (id) as (
        values (asked_id)
        union
        select next.source_id
        from source cross join lateral (
            select source_id from evidence where scope_id = asked_scope and memory_id = source.id offset 0
        ) next
    )
    select exists (
        select from source
        join messages on messages.scope_id = asked_scope and messages.id = source.id
        join conversations on conversations.scope_id = asked_scope and conversations.id = messages.conversation_id
        where conversations.state in ('deleted', 'purging')
    )
$$;

-- Bring back what was made from memories that are back, once nothing else it was made from is hidden; return those
-- that still wait for a vector.
create function restore_derived(asked_scope bigint, asked_ids uuid[]) returns uuid[]
    language plpgsql as $$
declare
    hidden uuid[] := array(
        select id from memories where scope_id = asked_scope and withheld = 'deleted'
          and id = any (array(select derived_from(asked_scope, asked_ids))));
    ready uuid[];
    waiting uuid[] := '{}';
begin
    loop
        ready := array(
            select each.id from unnest(hidden) as each (id)
            where not exists (
                select from evidence join memories source
                    on source.scope_id = asked_scope and source.id = evidence.source_id
                left join messages on messages.scope_id = asked_scope and messages.id = source.id
                left join conversations
                    on conversations.scope_id = asked_scope and conversations.id = messages.conversation_id
                where evidence.scope_id = asked_scope and evidence.memory_id = each.id
                  and (source.withheld in ('deleted', 'stale') or conversations.state in ('deleted', 'purging'))
            ));
        exit when cardinality(ready) = 0;
        waiting := waiting || restore_memories(asked_scope, ready);
        hidden := array(select unnest(hidden) except select unnest(ready));
    end loop;
    return waiting;
end $$;

-- Count the rows of memories' vectors in all spaces, withheld ones too.
create function count_vectors(asked_scope bigint, asked_ids uuid[]) returns bigint
    language plpgsql stable as $$
declare
    space integer;
    held bigint;
    total bigint := (select count(*) from withheld_vectors where scope_id = asked_scope and id = any (asked_ids));
begin
    for space in select id from embedding_spaces loop
        execute format('select count(*) from %I where scope_id = $1 and id = any ($2)', 'vectors_' || space)
            into held using asked_scope, asked_ids;
        total := total + held;
    end loop;
    return total;
end $$;

-- Erase memories for good, and what is said by those that partly rest on them, in a scope that the caller has locked;
-- `lost` is the evidence that the stale ones lose. Return how many rows went, by what they were.
create function erase_memories(asked_scope bigint, gone uuid[], stale uuid[], lost uuid[]) returns jsonb
    language plpgsql as $$
declare
    touched uuid[] := gone || stale;
    removed jsonb;
begin
    -- Whoever is giving one of them a vector at this moment is waited for, and what is on the log becomes countable.
    perform from memories where scope_id = asked_scope and id = any (touched) order by id for update;
    perform fold_accesses(asked_scope);
    removed := jsonb_build_object(
        'stale', (select count(*) from memories where scope_id = asked_scope and id = any (stale)
                    and withheld is distinct from 'stale'),
        'vectors', count_vectors(asked_scope, touched),
        'terms', (select count(*) from memory_terms where scope_id = asked_scope and id = any (touched))
            + (select count(*) from withheld_memories where scope_id = asked_scope and id = any (touched)),
        'keywords', (select coalesce(sum(cardinality(keywords)), 0) from memories
                     where scope_id = asked_scope and id = any (touched)),
        'accesses', (select count(*) from accesses where scope_id = asked_scope and id = any (touched))
            + (select count(*) from withheld_memories where scope_id = asked_scope and id = any (touched)
                 and last_accessed_at is not null),
        'feedback', (select count(*) from feedback where scope_id = asked_scope and memory_id = any (touched)));
    with dropped as (
        delete from evidence where scope_id = asked_scope
          and (memory_id = any (gone) or (memory_id = any (stale) and source_id = any (lost))) returning 1
    ), unkeyed as (
        delete from idempotency_keys where scope_id = asked_scope and key in (
            select named.key from idempotency_keys named, unnest(named.memory_ids) as made (id)
            where named.scope_id = asked_scope and made.id in (select unnest(touched))
        ) returning 1
    ), unsaid as (
        -- Before their memories, so that nobody looks for heirs of what goes as a whole.
        delete from messages where scope_id = asked_scope and id = any (gone)
        returning coalesce(jsonb_array_length(attachments), 0) as attachments
    )
    select removed || jsonb_build_object(
        'evidence', (select count(*) from dropped),
        'idempotency_keys', (select count(*) from unkeyed),
        'messages', (select count(*) from unsaid),
        'attachments', (select coalesce(sum(attachments), 0) from unsaid),
        'derived', cardinality(gone) - (select count(*) from unsaid)) into removed;
    perform withhold_memories(asked_scope, stale, 'stale');
    update memories set content = '', speaker = '', subject = '', predicate = '', object = '', keywords = '{}',
        embedding_text = '', metadata = '{}'
    where scope_id = asked_scope and id = any (stale);
    delete from withheld_memories where scope_id = asked_scope and id = any (stale);
    delete from withheld_vectors where scope_id = asked_scope and id = any (stale);
    delete from feedback where scope_id = asked_scope and memory_id = any (stale);
    update conversations set summary_id = null where scope_id = asked_scope and summary_id = any (gone);
    perform count_out(asked_scope, array(
        select kind from memories where scope_id = asked_scope and id = any (gone) and withheld is null));
    delete from memories where scope_id = asked_scope and id = any (gone);
    return removed;
end $$;

-- The planner's statistics are samples of what columns hold, and they outlive it: nothing that was said goes there.
-- To give a column the type that it has rewrites nothing, and forgets what was sampled before.
alter table memories
    alter content set statistics 0, alter content type text,
    alter speaker set statistics 0, alter speaker type text,
    alter subject set statistics 0, alter subject type text,
    alter predicate set statistics 0, alter predicate type text,
    alter object set statistics 0, alter object type text,
    alter keywords set statistics 0, alter keywords type text[],
    alter embedding_text set statistics 0, alter embedding_text type text,
    alter metadata set statistics 0, alter metadata type jsonb;
alter table idempotency_keys
    alter key set statistics 0, alter key type text,
    alter fingerprint set statistics 0, alter fingerprint type bytea;
alter table memory_terms alter weights set statistics 0;
alter table withheld_memories alter terms set statistics 0, alter weights set statistics 0;
alter table withheld_vectors alter embedding set statistics 0;
alter table messages alter parts set statistics 0, alter attachments set statistics 0,
    alter external_id set statistics 0;
alter table conversations alter name set statistics 0, alter metadata set statistics 0;
do $$
declare
    space integer;
begin
    for space in select id from embedding_spaces loop
        execute format('alter table %I alter embedding set statistics 0', 'vectors_' || space);
    end loop;
end $$;
-- Of a column that was never sampled the planner thinks that it is hardly ever null, and so that next to nothing takes
-- part in recall. Only rows that change would have it sampled by itself: those that were there before wait for ever.
do $$
begin
    if pg_relation_size('memories') > 0 then
        analyze memories;
    end if;
end $$;
create or replace function create_embedding_space(new_model text, new_dimensions integer, new_precision text)
    returns integer
    language plpgsql as $$
declare
    bytes integer := new_dimensions * case new_precision when 'half' then 2 else 4 end;
    type text := case new_precision when 'half' then 'halfvec' else 'vector' end;
    new_storage text := case when bytes <= 2560 then 'covering' when bytes <= 8000 then 'plain' else 'external' end;
    space integer;
    vectors text;
begin
    insert into embedding_spaces (model, dimensions, precision, storage)
        values (new_model, new_dimensions, new_precision, new_storage) returning id into space;
    vectors := 'vectors_' || space;
    execute format(
        'create table %I (scope_id bigint not null, id uuid not null, kind text not null, trust smallint not null, '
        'idle boolean not null, importance real not null, embedding %s(%s) not null '
        'check (%s(embedding) between 0.98 and 1.02), primary key (scope_id, id) %s) '
        'with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000)',
        vectors, type, new_dimensions, case new_precision when 'half' then 'l2_norm' else 'vector_norm' end,
        case when new_storage = 'covering' then 'include (kind, trust, idle, importance, embedding)' else '' end);
    execute format('alter table %I alter embedding set storage %s, alter embedding set statistics 0', vectors,
                   case when new_storage = 'external' then 'external' else 'plain' end);
    perform protect_scoped(vectors::regclass);
    perform equip_space(space);
    return space;
end $$;

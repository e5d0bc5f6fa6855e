-- Out of recall and back again, or gone for good: memories that are withheld, restored, faded, revived and erased.

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

-- Take memories out of every index that recall reads; return how many took part until now. What goes with a deleted
-- conversation is out of sight, whatever becomes of it meanwhile: it is past when it is back.
create function withhold_memories(asked_scope bigint, asked_ids uuid[], reason text) returns integer
    language plpgsql as $$
declare
    space integer;
    taken uuid[];
    share bigint;
begin
    if reason = 'past' then
        asked_ids := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                             and withheld is distinct from 'deleted');
    end if;
    perform fold_accesses(asked_scope);
    -- Whoever is giving one of them a vector at this moment is waited for.
    taken := array(select id from memories where scope_id = asked_scope and id = any (asked_ids) and withheld is null
                   order by id for update);
    update memories set withheld = reason
    where scope_id = asked_scope and id = any (asked_ids)
      and withheld is distinct from reason and withheld is distinct from 'to_rederive';
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

-- Put withheld memories back where they were; return those that still wait for a vector of the active space. What is past
-- by now, or had faded before its conversation went, comes back into sight, and not into the indexes.
create function restore_memories(asked_scope bigint, asked_ids uuid[]) returns uuid[]
    language plpgsql as $$
declare
    space integer;
    taken uuid[];
    waiting uuid[];
begin
    update memories set withheld = case when id in (select past_among(asked_scope, asked_ids)) then 'past' else 'faded' end
    where scope_id = asked_scope and withheld in ('archived', 'deleted')
      and id = any (array(
          select past_among(asked_scope, asked_ids)
          union
          select id from withheld_memories
          where scope_id = asked_scope and id = any (asked_ids) and faded_at is not null
      ));
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
            'select $1, memories.id, memories.kind, memories.trust, memories.idle, '
            'case when $3 = (select folded_space from scopes where id = $1) then memories.importance end, side.embedding '
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

-- Let memories fade that take part in recall, each with its reason, in a scope that the caller has locked; return them.
create function fade_memories(
    asked_scope bigint, asked_ids uuid[], scores double precision[], grounds text[], reasons text[]
) returns uuid[]
    language plpgsql as $$
declare
    taken uuid[] := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                            and withheld is null order by id for update);
begin
    perform withhold_memories(asked_scope, taken, 'faded');
    update withheld_memories side
    set faded_at = clock_timestamp(), fading_score = given.score, fading_grounds = given.ground,
        fading_reason = given.reason
    from unnest(asked_ids, scores, grounds, reasons) as given (id, score, ground, reason)
    where side.scope_id = asked_scope and side.id = any (taken) and side.id = given.id;
    return taken;
end $$;

-- Bring faded memories back as they were; what had expired does so no more. Tell which, and which of them still wait
-- for a vector.
create function revive_memories(asked_scope bigint, asked_ids uuid[], out revived uuid[], out waiting uuid[])
    language plpgsql as $$
begin
    revived := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                       and withheld = 'faded' order by id for update);
    update withheld_memories set faded_at = null where scope_id = asked_scope and id = any (revived);
    update memories
    set withheld = 'archived', revived_at = clock_timestamp(),
        expires_at = case when expires_at > clock_timestamp() then expires_at end
    where scope_id = asked_scope and id = any (revived);
    waiting := restore_memories(asked_scope, revived);
    -- What is past by now is so still.
    revived := array(select id from memories where scope_id = asked_scope and id = any (revived)
                       and withheld is null order by id);
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
                  and (source.withheld in ('deleted', 'to_rederive') or conversations.state in ('deleted', 'purging'))
            ));
        exit when cardinality(ready) = 0;
        waiting := waiting || restore_memories(asked_scope, ready);
        hidden := array(select unnest(hidden) except select unnest(ready));
    end loop;
    return waiting;
end $$;

-- Count what an erasure would remove, by what it is; a receipt says the same. Accesses on the log are counted as if they
-- were folded.
create function count_erasure(asked_scope bigint, gone uuid[], to_rederive uuid[], lost uuid[]) returns jsonb
    language plpgsql stable as $$
begin
    return (with touched as materialized (select unnest(gone || to_rederive) as id), unsaid as (
        select coalesce(jsonb_array_length(attachments), 0) as attachments from messages
        where scope_id = asked_scope and id = any (gone)
        union all
        select coalesce(jsonb_array_length(attachments), 0) from past_messages
        where scope_id = asked_scope and id = any (gone)
    ), logged as materialized (
        select distinct access.id from access_log, unnest(access_log.ids) as access (id)
        where access_log.scope_id = asked_scope
    ), accessed as (
        select id from accesses where scope_id = asked_scope and id in (select id from touched)
        union
        select memories.id from logged join touched using (id)
        join memories on memories.scope_id = asked_scope and memories.id = logged.id and memories.withheld is null
    ), kept as (
        select last_accessed_at from withheld_memories where scope_id = asked_scope and id in (select id from touched)
    )
    select jsonb_build_object(
        'to_rederive', (select count(*) from memories where scope_id = asked_scope and id = any (to_rederive)
                    and withheld is distinct from 'to_rederive'),
        'vectors', count_vectors(asked_scope, gone || to_rederive),
        'terms', (select count(*) from memory_terms where scope_id = asked_scope and id in (select id from touched))
            + (select count(*) from kept),
        'keywords', (select coalesce(sum(cardinality(keywords)), 0) from memories
                     where scope_id = asked_scope and id in (select id from touched)),
        'accesses', (select count(*) from accessed)
            + (select count(*) from kept where last_accessed_at is not null),
        'feedback', (select count(*) from feedback
                     where scope_id = asked_scope and memory_id in (select id from touched)),
        'evidence', (select count(*) from evidence where scope_id = asked_scope
            and (memory_id = any (gone) or (memory_id = any (to_rederive) and source_id = any (lost)))),
        'idempotency_keys', (select count(*) from idempotency_keys named where scope_id = asked_scope
            and exists (select from unnest(named.memory_ids) as made (id) join touched using (id))),
        'messages', (select count(*) from unsaid),
        'attachments', (select coalesce(sum(attachments), 0) from unsaid),
        'derived', cardinality(gone) - (select count(*) from unsaid)));
end $$;

-- Erase memories for good, and what is said by those that partly rest on them, in a scope that the caller has locked;
-- `lost` is the evidence that those to rederive lose. Return how many rows went, by what they were.
create function erase_memories(asked_scope bigint, gone uuid[], to_rederive uuid[], lost uuid[]) returns jsonb
    language plpgsql as $$
declare
    touched uuid[] := gone || to_rederive;
    removed jsonb;
begin
    -- Whoever is giving one of them a vector at this moment is waited for.
    perform from memories where scope_id = asked_scope and id = any (touched) order by id for update;
    perform fold_accesses(asked_scope);
    removed := count_erasure(asked_scope, gone, to_rederive, lost);
    with dropped as (
        delete from evidence where scope_id = asked_scope
          and (memory_id = any (gone) or (memory_id = any (to_rederive) and source_id = any (lost)))
    ), unkeyed as (
        delete from idempotency_keys where scope_id = asked_scope and key in (
            select named.key from idempotency_keys named, unnest(named.memory_ids) as made (id)
            where named.scope_id = asked_scope and made.id in (select unnest(touched)))
    ), unsaid as (
        -- Before their memories, so that nobody looks for heirs of what goes as a whole.
        delete from messages where scope_id = asked_scope and id = any (gone)
    )
    delete from past_messages where scope_id = asked_scope and id = any (gone);
    perform withhold_memories(asked_scope, to_rederive, 'to_rederive');
    -- What lost some of its evidence stays as a blank row; recalls that were kept quote it.
    perform erase_recalls_of(asked_scope, array_agg(id), array_agg(content))
    from memories where scope_id = asked_scope and id = any (to_rederive) and content <> '' having count(*) > 0;
    update memories set content = '', speaker = '', subject = '', predicate = '', object = '', keywords = '{}',
        embedding_text = '', metadata = '{}'
    where scope_id = asked_scope and id = any (to_rederive);
    update memory_features set length = 0, tells = 0, speaker = ''
    where scope_id = asked_scope and id = any (to_rederive);
    delete from withheld_memories where scope_id = asked_scope and id = any (to_rederive);
    delete from withheld_vectors where scope_id = asked_scope and id = any (to_rederive);
    delete from feedback where scope_id = asked_scope and memory_id = any (to_rederive);
    update conversations set summary_id = null where scope_id = asked_scope and summary_id = any (gone);
    perform count_out(asked_scope, array(
        select kind from memories where scope_id = asked_scope and id = any (gone) and withheld is null));
    delete from memories where scope_id = asked_scope and id = any (gone);
    return removed;
end $$;

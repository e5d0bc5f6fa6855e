-- Segments: how often a model was asked about one, what becomes of one that loses messages, and how far a message is.

alter table segments
    -- How often a model was asked in vain, or its worker died over it.
    add column attempts smallint not null default 0,
    alter label set statistics 0;
alter table digests alter content set statistics 0;

-- What a segment came to is made anew from the messages that are left, and goes with the last of them.
create function erase_segments() returns trigger
    language plpgsql as $$
declare
    touched uuid[];
    emptied uuid[];
    asked_scope bigint;
begin
    for asked_scope in select distinct scope_id from gone loop
        touched := array(
            select distinct segment.id from gone cross join lateral (
                select segments.id, segments.last_number from segments
                where segments.scope_id = gone.scope_id and segments.conversation_id = gone.conversation_id
                  and segments.first_number <= gone.number
                order by segments.first_number desc limit 1
            ) segment
            where gone.scope_id = asked_scope and segment.last_number >= gone.number);
        continue when cardinality(touched) = 0;
        emptied := array(
            select id from segments where scope_id = asked_scope and id = any (touched) and not exists (
                select from messages
                where messages.scope_id = asked_scope and messages.conversation_id = segments.conversation_id
                  and messages.number between segments.first_number and segments.last_number
            ));
        delete from digests where scope_id = asked_scope and segment_id = any (touched);
        delete from segments where scope_id = asked_scope and id = any (emptied);
        update segments set state = 'closed', label = '', reason = '', attempts = 0, enriched_at = null
        where scope_id = asked_scope and id = any (touched);
    end loop;
    return null;
end $$;
create trigger erase_segments after delete on messages
    referencing old table as gone for each statement execute function erase_segments();

-- A segment whose messages had all gone before it was written goes with its conversation.
create function erase_segments_of() returns trigger
    language plpgsql as $$
begin
    delete from segments using gone
    where segments.scope_id = gone.scope_id and segments.conversation_id = gone.id;
    return null;
end $$;
create trigger erase_segments after delete on conversations
    referencing old table as gone for each statement execute function erase_segments_of();

-- The segment that a message lies in, by its state; null while its topic is still running.
create function segment_state(asked_scope bigint, asked_id uuid) returns text
    language sql stable as $$
    select segment.state
    from (
        select conversation_id, number from messages
        where scope_id = asked_scope and id between asked_id and asked_id
        order by id limit 1
    ) said
    cross join lateral (
        select state, last_number from segments
        where scope_id = asked_scope and conversation_id = said.conversation_id and first_number <= said.number
        order by first_number desc limit 1
    ) segment
    where segment.last_number >= said.number
$$;

-- How far a memory has come. It has failed when the job that was to give it a vector was given up and none waits, or
-- when no model could make anything of its segment.
create or replace function memory_state(asked_scope bigint, asked_id uuid) returns text
    language plpgsql stable as $$
declare
    space integer := (select id from embedding_spaces where state = 'active');
    embedded boolean := exists (
        select from withheld_vectors where scope_id = asked_scope and id = asked_id and space_id = space);
    lock_of_job text := 'embed:' || asked_scope;
    segment text := segment_state(asked_scope, asked_id);
begin
    if segment in ('enriched', 'failed') then
        return segment;
    end if;
    if space is not null and not embedded then
        execute format('select exists (select from %I where scope_id = $1 and id = $2)', 'vectors_' || space)
            into embedded using asked_scope, asked_id;
    end if;
    if embedded then
        return 'embedded';
    elsif exists (select from pending_embeddings where scope_id = asked_scope and id = asked_id)
        and exists (select from procrastinate_jobs
                    where (args ->> 'scope_id')::bigint >> 40 = asked_scope >> 40 and status = 'failed'
                      and status in ('todo', 'doing', 'failed') and lock = lock_of_job)
        and not exists (select from procrastinate_jobs where lock = lock_of_job and status = 'todo')
        and not exists (select from procrastinate_jobs where lock = lock_of_job and status = 'doing') then
        return 'failed';
    end if;
    return 'stored';
end $$;

-- Conversations: messages in the order they were said, their branches, and what becomes of them in the end.

create table conversations (
    scope_id bigint not null,
    id text not null,
    name text not null default '',
    state text not null default 'active' check (state in ('active', 'archived', 'deleted', 'purging')),
    -- Whether all its memories are in line with the state; if not, a job works on it, and has come to this number.
    synced boolean not null default true,
    synced_number bigint not null default 0,
    last_number bigint not null default 0,
    summary_id uuid,
    metadata jsonb not null default '{}',
    created_at timestamptz not null,
    updated_at timestamptz not null,
    changed_at timestamptz not null,
    -- When somebody last appended to it or brought it back, by the clock: what was said long ago may have come today.
    idle_since timestamptz not null default clock_timestamp(),
    -- The last message that lies in a closed segment; what comes after it is still running.
    segmented_number bigint not null default 0,
    -- What the indexes hold instead of columns that every append changes: appends within an hour write to no index.
    updated_hour timestamp not null generated always as (date_trunc('hour', updated_at at time zone 'UTC')) stored,
    idle_hour timestamp not null generated always as (date_trunc('hour', idle_since at time zone 'UTC')) stored,
    running boolean not null generated always as (segmented_number < last_number) stored,
    primary key (scope_id, id)
) with (fillfactor = 70);
alter table conversations alter name set statistics 0, alter metadata set statistics 0;
select protect_scoped('conversations');
create index conversations_by_time on conversations (scope_id, updated_hour desc, id);
-- By time alone, for upkeep over all tenants.
create index conversations_by_idleness on conversations (state, idle_hour);
create index conversations_deleted on conversations (changed_at) where state = 'deleted';
create index conversations_becoming_silent on conversations (idle_hour) where running;
create index conversations_unsynced on conversations (scope_id) where not synced;
create index conversations_running on conversations (scope_id) where running;
-- The running summary of a conversation does not fade.
create index conversations_by_summary on conversations (scope_id, summary_id) where summary_id is not null;

-- What only a message has. A parent's number is smaller than its child's, so no walk can run in circles.
create table messages (
    scope_id bigint not null,
    id uuid not null,
    conversation_id text not null,
    number bigint not null,
    parent_id uuid,
    turn_id uuid not null,
    role text not null check (role in ('user', 'assistant', 'system', 'tool')),
    status text not null check (status in ('done', 'pending', 'failed')),
    occurred_at timestamptz not null,
    tokens jsonb not null,
    images smallint not null default 0,
    parts jsonb,
    attachments jsonb,
    external_id text not null default '',
    -- What the source named as the parent, where that says more than the parent here: none before there were branches.
    stated_parent uuid,
    primary key (scope_id, id),
    unique (scope_id, conversation_id, number)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
alter table messages alter parts set statistics 0, alter attachments set statistics 0,
    alter external_id set statistics 0;
select protect_scoped('messages');
create index messages_by_parent on messages (scope_id, parent_id) where parent_id is not null;
create unique index messages_by_external_id on messages (scope_id, conversation_id, external_id) where external_id <> '';
create index messages_without_branches on messages (scope_id, conversation_id, number)
    where stated_parent = '00000000-0000-0000-0000-000000000000';

-- Messages of past and contested versions, as they stood in their conversation. `messages` holds what is shown.
create table past_messages (
    like messages including defaults including constraints,
    primary key (scope_id, id)
);
alter table past_messages alter parts set statistics 0, alter attachments set statistics 0,
    alter external_id set statistics 0;
select protect_scoped('past_messages');
create index past_messages_by_parent on past_messages (scope_id, parent_id) where parent_id is not null;
create index past_messages_by_number on past_messages (scope_id, conversation_id, number);
create trigger erase_past_messages after delete on memories
    referencing old table as forgotten for each statement execute function erase_side_rows('past_messages', 'id');

-- Forgotten messages by a hash of their external IDs: a source that sends its messages again does not bring them back.
create table forgotten_messages (
    scope_id bigint not null,
    conversation_id text not null,
    external_hash bytea not null,
    id uuid not null,
    primary key (scope_id, conversation_id, external_hash)
);
select protect_scoped('forgotten_messages');

-- A forgotten message leaves no gap: what followed it follows what it followed.
create function erase_messages() returns trigger
    language plpgsql as $$
begin
    -- An event may stand in the journal, which is kept as a conversation.
    if not exists (select from forgotten where kind in ('message', 'event')) then
        return null;
    end if;
    insert into forgotten_messages (scope_id, conversation_id, external_hash, id)
    select message.scope_id, message.conversation_id, sha256(convert_to(message.external_id, 'UTF8')), message.id
    from forgotten cross join lateral (
        (
            select messages.scope_id, conversation_id, external_id, messages.id from messages
            where messages.scope_id = forgotten.scope_id and messages.id between forgotten.id and forgotten.id
            order by messages.id limit 1
        )
        union all
        select past.scope_id, past.conversation_id, past.external_id, past.id from past_messages past
        where past.scope_id = forgotten.scope_id and past.id = forgotten.id
    ) message
    where message.external_id <> '' and exists (
        select from conversations
        where scope_id = message.scope_id and id = message.conversation_id and state <> 'purging')
    on conflict do nothing;
    -- From the oldest of a forgotten stretch downwards, what followed any of it follows what the oldest followed. Rows
    -- are looked up by their keys, one by one (see conversations.sql), and changed where they were found.
    with recursive gone as materialized (
        select message.place, message.scope_id, message.id, message.parent_id
        from forgotten cross join lateral (
            select messages.ctid as place, messages.scope_id, messages.id, messages.parent_id from messages
            where messages.scope_id = forgotten.scope_id and messages.id between forgotten.id and forgotten.id
            order by messages.id limit 1
            for update
        ) message
    ), heir (scope_id, id, parent_id) as (
        select gone.scope_id, gone.id, gone.parent_id
        from gone left join gone above on above.scope_id = gone.scope_id and above.id = gone.parent_id
        where above.id is null
        union all
        select gone.scope_id, gone.id, heir.parent_id
        from heir join gone on gone.scope_id = heir.scope_id and gone.parent_id = heir.id
    ), orphan as materialized (
        select child.place, heir.parent_id
        from heir cross join lateral (
            select messages.ctid as place, messages.scope_id, messages.id from messages
            where messages.scope_id = heir.scope_id and messages.parent_id between heir.id and heir.id
            order by messages.parent_id
            for update
        ) child
        left join gone on gone.scope_id = child.scope_id and gone.id = child.id
        where gone.id is null
    ), adopted as (
        update messages set parent_id = orphan.parent_id from orphan where messages.ctid = orphan.place
    )
    delete from messages using gone where messages.ctid = gone.place;
    return null;
end $$;
create trigger erase_messages after delete on memories
    referencing old table as forgotten for each statement execute function erase_messages();

-- What a purge removed, in numbers: it outlives what it is about, and says nothing of what was said.
create table purge_receipts (
    scope_id bigint not null,
    tenant_id bigint not null generated always as (scope_id >> 40) stored,
    id uuid not null default gen_random_uuid(),
    conversation_id text not null,
    asked_by text not null,
    removed jsonb not null default '{}',
    begun_at timestamptz not null default clock_timestamp(),
    -- When the record had nothing of it any more, and when no mirror had any of it either.
    erased_at timestamptz,
    finished_at timestamptz,
    -- What became of it in each mirror, by its name.
    mirrors jsonb not null default '{}',
    primary key (scope_id, id)
);
select protect_scoped('purge_receipts');
create index purge_receipts_by_time on purge_receipts (scope_id, begun_at desc, id desc);
create index purge_receipts_of_tenant on purge_receipts (tenant_id, begun_at desc, id desc);
create index purge_receipts_of_conversation on purge_receipts (scope_id, conversation_id, begun_at desc);

-- The tenant's receipts from before a place in their order. In the order of the index: of the range of scopes that the
-- policy names the planner expects few rows, and would rather read and sort all of them.
create function receipts_before(moment timestamptz, before_id uuid, most integer) returns setof purge_receipts
    language sql stable
    set enable_sort = off
    set enable_bitmapscan = off
as $$
    select * from purge_receipts
    where tenant_id = current_tenant() and (begun_at, id) < (moment, before_id)
    order by begun_at desc, id desc
    limit most
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
        cross join lateral (
            select conversation_id from messages where messages.scope_id = asked_scope and messages.id = source.id
            union all
            select conversation_id from past_messages past where past.scope_id = asked_scope and past.id = source.id
        ) said
        join conversations on conversations.scope_id = asked_scope and conversations.id = said.conversation_id
        where conversations.state in ('deleted', 'purging')
    )
$$;

create table shown_memories (
    scope_id bigint not null,
    -- The caller's name for it: blocks may be asked for before its first message.
    conversation_id text not null,
    memory_id uuid not null,
    short_id text not null,
    score double precision not null,
    computed_at timestamptz not null,
    primary key (scope_id, conversation_id, memory_id)
);
select protect_scoped('shown_memories');
create index shown_memories_by_memory on shown_memories (scope_id, memory_id);
create index shown_memories_by_time on shown_memories (computed_at);
create trigger erase_shown_memories after delete on memories
    referencing old table as forgotten for each statement execute function erase_side_rows('shown_memories', 'memory_id');
create trigger erase_shown_memories after delete on conversations
    referencing old table as forgotten for each statement execute function erase_side_rows('shown_memories', 'conversation_id');

-- What the message said that another one follows: its last characters, up to a number.
create function said_before(asked_scope bigint, asked_id uuid, most integer)
    returns table (parent_id uuid, speaker text, content text)
    language sql stable as $$
    select parent.id, parent.speaker, right(parent.content, most)
    from (
        select messages.parent_id from messages
        where messages.scope_id = asked_scope and messages.id between asked_id and asked_id
        order by messages.id limit 1
    ) message
    cross join lateral (
        select memories.id, memories.speaker, memories.content from memories
        where memories.scope_id = asked_scope and memories.id between message.parent_id and message.parent_id
        order by memories.id limit 1
    ) parent
$$;

-- Of what followed forgotten messages, vectors that hold their words go in the same statement, withheld ones too, and
-- wait to be made again. What is purged goes as a whole: there is nothing to make again.
create function erase_follower_vectors() returns trigger
    language plpgsql as $$
declare
    each record;
    space integer;
    followers uuid[];
    affected uuid[];
    lost uuid[];
begin
    for each in select scope_id, array_agg(id) as ids from forgotten where kind = 'message' group by scope_id loop
        followers := array(
            select follower.id from unnest(each.ids) as gone (id)
            cross join lateral (
                (
                    select messages.id, messages.conversation_id from messages
                    where messages.scope_id = each.scope_id and messages.parent_id between gone.id and gone.id
                    order by messages.parent_id
                )
                union all
                select past.id, past.conversation_id from past_messages past
                where past.scope_id = each.scope_id and past.parent_id = gone.id
            ) follower
            cross join lateral (
                select conversations.state from conversations
                where conversations.scope_id = each.scope_id
                  and conversations.id between follower.conversation_id and follower.conversation_id
                order by conversations.id limit 1
            ) conversation
            where conversation.state <> 'purging');
        continue when cardinality(followers) = 0;
        lost := '{}';
        for space in select id from embedding_spaces loop
            affected := array(select id from context_vectors
                             where scope_id = each.scope_id and id = any (followers) and space_id = space);
            continue when cardinality(affected) = 0;
            lost := lost || affected;
            execute format('delete from %I where scope_id = $1 and id = any ($2)', 'vectors_' || space)
                using each.scope_id, affected;
            delete from withheld_vectors
            where scope_id = each.scope_id and id = any (affected) and space_id = space;
            insert into pending_embeddings (scope_id, id)
            select each.scope_id, memories.id from memories
            where memories.scope_id = each.scope_id and memories.id = any (affected) and memories.withheld is null
              and exists (select from embedding_spaces active where active.id = space and active.state = 'active')
            on conflict do nothing;
        end loop;
        if cardinality(lost) > 0 then
            perform log_change(each.scope_id, 'embedded', array(select distinct unnest(lost)));
        end if;
        delete from context_vectors where scope_id = each.scope_id and id = any (followers);
    end loop;
    return null;
end $$;
-- Triggers run in the order of their names: this one before `erase_messages`, which gives the followers another parent.
create trigger erase_follower_vectors after delete on memories
    referencing old table as forgotten for each statement execute function erase_follower_vectors();

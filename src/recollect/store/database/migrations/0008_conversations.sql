-- Conversations: messages in the order they were said, and their branches.

create table conversations (
    scope_id bigint not null,
    id text not null,
    name text not null default '',
    state text not null default 'active' check (state in ('active', 'archived', 'deleted', 'purging')),
    -- Whether all its memories are where the state wants them; if not, a job is on it, and has come to this number.
    settled boolean not null default true,
    settled_number bigint not null default 0,
    last_number bigint not null default 0,
    summary_id uuid,
    metadata jsonb not null default '{}',
    created_at timestamptz not null,
    updated_at timestamptz not null,
    changed_at timestamptz not null,
    -- When somebody last appended to it or brought it back, by the clock: what was said long ago may have come today.
    idle_since timestamptz not null default clock_timestamp(),
    primary key (scope_id, id)
) with (fillfactor = 70);
select protect_scoped('conversations');
create index conversations_by_time on conversations (scope_id, updated_at desc, id);
create index conversations_by_idleness on conversations (scope_id, state, idle_since);
create index conversations_unsettled on conversations (scope_id) where not settled;

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
select protect_scoped('messages');
create index messages_by_parent on messages (scope_id, parent_id) where parent_id is not null;
create unique index messages_by_external_id on messages (scope_id, conversation_id, external_id) where external_id <> '';
create index messages_without_branches on messages (scope_id, conversation_id, number)
    where stated_parent = '00000000-0000-0000-0000-000000000000';

-- A forgotten message leaves no gap: what followed it follows what it followed.
create function erase_messages() returns trigger
    language plpgsql as $$
begin
    if not exists (select from forgotten where kind = 'message') then
        return null;
    end if;
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

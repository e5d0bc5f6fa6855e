-- Showings: which memories a conversation was shown in blocks, under which short id, and how present each still is.

create table showings (
    scope_id bigint not null,
    -- The caller's name for it: blocks may be asked for before its first message.
    conversation_id text not null,
    memory_id uuid not null,
    short_id text not null,
    score double precision not null,
    reckoned_at timestamptz not null,
    primary key (scope_id, conversation_id, memory_id)
);
select protect_scoped('showings');
create index showings_by_memory on showings (scope_id, memory_id);
create index showings_by_time on showings (scope_id, reckoned_at);

create trigger erase_showings after delete on memories
    referencing old table as forgotten for each statement execute function erase_with_memory('showings', 'memory_id');

create function erase_showings_of() returns trigger
    language plpgsql as $$
begin
    delete from showings using gone
    where showings.scope_id = gone.scope_id and showings.conversation_id = gone.id;
    return null;
end $$;
create trigger erase_showings after delete on conversations
    referencing old table as gone for each statement execute function erase_showings_of();

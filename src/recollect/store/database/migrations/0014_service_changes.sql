-- The change log: which ids changed how, in the order of each scope. It holds no content.

-- Renewed by the owner when a backup is restored (`select renew_incarnation()`): numbers that were given after that
-- backup was made are given again, and a reader that had read them must begin again. A record without a row here is not
-- served: it was restored, and what was erased since is still in it.
create table incarnations (
    id uuid not null default gen_random_uuid() primary key,
    begun_at timestamptz not null default clock_timestamp()
);
create unique index one_incarnation on incarnations ((true));
insert into incarnations default values;
grant select on incarnations to recollect_service;

-- The incarnations of the servers that scopes of some buckets have come from: their log has come along with its numbers,
-- so a cursor from there still holds.
create table former_incarnations (
    tenant_id integer not null references tenants,
    first_bucket smallint not null,
    last_bucket smallint not null,
    id uuid not null,
    primary key (tenant_id, first_bucket, last_bucket, id)
);
alter table former_incarnations enable row level security;
create policy of_tenant on former_incarnations
    using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
grant select on former_incarnations to recollect_service;

create function renew_incarnation() returns uuid
    language sql as $$
    delete from former_incarnations;
    delete from incarnations;
    insert into incarnations default values returning id
$$;
revoke execute on function renew_incarnation() from public;

create table changes (
    scope_id bigint not null,
    -- Of this scope alone and without gaps: counted while the scope is locked, so that it is the order of the commits.
    number bigint not null,
    at timestamptz not null default clock_timestamp(),
    key_id uuid,
    -- The form of the row: a reader can tell one that it does not know.
    version smallint not null default 1,
    operation text not null check (operation in (
        'stored', 'changed', 'revised', 'forgotten', 'state', 'embedded', 'pinned', 'fact', 'entity', 'topic', 'item',
        'conversation'
    )),
    -- Of memories; of entities and topics where the operation says so. Items and conversations have names, which are
    -- content, and no id here.
    ids uuid[] not null,
    primary key (scope_id, number)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
select protect_scoped('changes');
-- Rows come and go in the order of time.
create index changes_by_time on changes using brin (at) with (autosummarize = on);

-- How far a reader has read in a scope: what it has not read is kept longer.
create table change_readers (
    scope_id bigint not null,
    name text not null,
    position bigint not null default 0,
    read_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, name)
);
select protect_scoped('change_readers');

-- On which channel followers are told of changes: only who may read the incarnation can listen there.
create function change_channel() returns text
    language sql stable
    return (select 'recollect_' || replace(id::text, '-', '') from incarnations);

-- Log a change in the transaction that makes it. It locks the scope, which every writer has locked before. Followers are
-- told only where there are some: transactions that notify commit one after the other, over the whole server.
create function log_change(changed_scope bigint, changed text, changed_ids uuid[]) returns void
    language plpgsql as $$
declare
    next_number bigint;
    told_until timestamptz;
begin
    -- A scope that goes to object storage or comes back is the same afterwards.
    if current_setting('recollect.cold', true) = 'moving' then
        return;
    end if;
    update scopes set change_number = change_number + 1 where id = changed_scope
    returning change_number, followed_until into next_number, told_until;
    insert into changes (scope_id, number, key_id, operation, ids)
    values (changed_scope, next_number, current_key(), changed, changed_ids);
    if exists (select from mirrors) then
        perform note_unmirrored(changed_scope, next_number);
    end if;
    if told_until > clock_timestamp() then
        perform pg_notify(change_channel(), changed_scope::text);
    end if;
end $$;

-- Every write stores memories, so this plan is kept; the general function below makes its own each time.
create function log_stored() returns trigger
    language plpgsql as $$
begin
    perform log_change(scope_id, 'stored', array_agg(id order by id)) from stored group by scope_id;
    return null;
end $$;
create trigger log_stored after insert on memories
    referencing new table as stored for each statement execute function log_stored();

-- Log the rows that a statement inserted, deleted or changed. The arguments name the operation, the column with the ids,
-- and, of an update, the columns that count: rows that are equal in them have not changed.
create function log_rows() returns trigger
    language plpgsql as $$
declare
    columns text := concat_ws(', ', 'scope_id', tg_argv[1] || ' as id', nullif(array_to_string(tg_argv[2:], ', '), ''));
    former text := case when tg_nargs > 2 then ' except all select ' || columns || ' from former' else '' end;
    each record;
begin
    for each in execute format(
        'select scope_id, coalesce(array_agg(distinct id order by id) filter (where id is not null), ''{}'') as ids '
        'from (select %s from latter%s) changed group by scope_id', columns, former)
    loop
        perform log_change(each.scope_id, tg_argv[0], each.ids);
    end loop;
    return null;
end $$;

create trigger log_forgotten after delete on memories
    referencing old table as latter for each statement execute function log_rows('forgotten', 'id');
create trigger log_changed after update on memories
    referencing old table as former new table as latter for each statement execute function log_rows(
        'changed', 'id', 'content', 'speaker', 'importance', 'importance_from', 'subject', 'predicate', 'object', 'idle', 'depth',
        'keywords', 'trust', 'occurred_at', 'embedding_text', 'metadata', 'expires_at');
create trigger log_state after update on memories
    referencing old table as former new table as latter for each statement
    execute function log_rows('state', 'id', 'withheld');
create trigger log_updated after update on messages
    referencing new table as latter for each statement execute function log_rows('changed', 'id');

create trigger log_inserted after insert on beliefs
    referencing new table as latter for each statement execute function log_rows('fact', 'id');
create trigger log_updated after update on beliefs
    referencing old table as former new table as latter for each statement execute function log_rows(
        'fact', 'id', 'valid_at', 'invalid_at', 'superseded_at', 'subject_id', 'object_id');

create trigger log_inserted after insert on entities
    referencing new table as latter for each statement execute function log_rows('entity', 'id');
create trigger log_updated after update on entities
    referencing new table as latter for each statement execute function log_rows('entity', 'id');
create trigger log_deleted after delete on entities
    referencing old table as latter for each statement execute function log_rows('entity', 'id');
create trigger log_inserted after insert on mentions
    referencing new table as latter for each statement execute function log_rows('entity', 'entity_id');
create trigger log_updated after update on mentions
    referencing new table as latter for each statement execute function log_rows('entity', 'entity_id');
create trigger log_deleted after delete on mentions
    referencing old table as latter for each statement execute function log_rows('entity', 'entity_id');

create trigger log_inserted after insert on topics
    referencing new table as latter for each statement execute function log_rows('topic', 'id');
create trigger log_updated after update on topics
    referencing old table as former new table as latter for each statement
    execute function log_rows('topic', 'id', 'path', 'name');
create trigger log_deleted after delete on topics
    referencing old table as latter for each statement execute function log_rows('topic', 'id');
create trigger log_inserted after insert on topic_links
    referencing new table as latter for each statement execute function log_rows('topic', 'topic_id');
create trigger log_updated after update on topic_links
    referencing old table as former new table as latter for each statement execute function log_rows(
        'topic', 'topic_id', 'memory_id', 'activation', 'diffusion', 'independence', 'occurred_at');
create trigger log_deleted after delete on topic_links
    referencing old table as latter for each statement execute function log_rows('topic', 'topic_id');
create trigger log_inserted after insert on related_topics
    referencing new table as latter for each statement execute function log_rows('topic', 'topic_id');
create trigger log_deleted after delete on related_topics
    referencing old table as latter for each statement execute function log_rows('topic', 'topic_id');

create trigger log_inserted after insert on items
    referencing new table as latter for each statement execute function log_rows('item', 'memory_id');
create trigger log_updated after update on items
    referencing new table as latter for each statement execute function log_rows('item', 'memory_id');
create trigger log_deleted after delete on items
    referencing old table as latter for each statement execute function log_rows('item', 'memory_id');

-- For each row: nearly every update of a conversation is an append, which its messages log.
create function log_conversation() returns trigger
    language plpgsql as $$
begin
    perform log_change(old.scope_id, 'conversation', '{}');
    return null;
end $$;
create trigger log_changed after update of state, name, metadata on conversations for each row
    when (new.state <> old.state or new.name <> old.name or new.metadata <> old.metadata)
    execute function log_conversation();
create trigger log_deleted after delete on conversations for each row execute function log_conversation();

-- What is remembered: one wide row per memory, read by key for the few that win.

create table memories (
    scope_id bigint not null,
    id uuid not null,
    kind text not null check (kind in ('message', 'event', 'chat', 'thought', 'fact', 'summary')),
    content text not null,
    speaker text not null default '',
    importance real not null check (importance between 1 and 10),
    subject text not null default '',
    predicate text not null default '',
    object text not null default '',
    idle boolean not null default false,
    depth smallint not null default 0,
    keywords text[] not null default '{}',
    origin text not null,
    trust smallint not null check (trust between 0 and 100),
    occurred_at timestamptz not null,
    created_at timestamptz not null,
    embedding_text text not null default '',
    metadata jsonb not null default '{}',
    primary key (scope_id, id)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
select protect_scoped('memories');
-- Recency begins here: what was never recalled was last accessed when it happened.
create index memories_by_time on memories (scope_id, kind, occurred_at desc, id desc) include (idle);

-- What memories are filtered by, one narrow row for each: looked up before a limit is applied.
create table memory_features (
    scope_id bigint not null,
    id uuid not null,
    pinned boolean not null,
    primary key (scope_id, id)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
create index memory_features_pinned on memory_features (scope_id, id) where pinned;
select protect_scoped('memory_features');

-- Which memories a memory was made from.
create table evidence (
    scope_id bigint not null,
    memory_id uuid not null,
    source_id uuid not null,
    primary key (scope_id, memory_id, source_id)
);
create index evidence_of_source on evidence (scope_id, source_id, memory_id);
select protect_scoped('evidence');

-- Ids only, never content: what a repeated key answers.
create table idempotency_keys (
    scope_id bigint not null,
    key text not null,
    fingerprint bytea not null,
    memory_ids uuid[] not null default '{}',
    embedded boolean[] not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    replayed_at timestamptz,
    primary key (scope_id, key)
);
select protect_scoped('idempotency_keys');

-- What still waits for its vector in the active embedding space.
create table pending_embeddings (
    scope_id bigint not null,
    id uuid not null,
    primary key (scope_id, id)
);
select protect_scoped('pending_embeddings');

-- Whatever way a memory goes, its side rows go in the same statement.
create function erase_with_memory() returns trigger
    language plpgsql as $$
begin
    execute format(
        'delete from %I side using forgotten where side.scope_id = forgotten.scope_id and side.%I = forgotten.id',
        tg_argv[0], tg_argv[1]);
    return null;
end $$;

create trigger erase_memory_features after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_with_memory('memory_features', 'id');
create trigger erase_evidence after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_with_memory('evidence', 'memory_id');
create trigger erase_pending_embeddings after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_with_memory('pending_embeddings', 'id');

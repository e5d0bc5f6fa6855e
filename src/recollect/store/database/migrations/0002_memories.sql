-- What is remembered: one wide row per memory, read by key for the few that win, and narrow side rows that ranking reads:
-- terms, keywords, accesses.

create table memories (
    scope_id bigint not null,
    id uuid not null,
    kind text not null check (kind in ('message', 'event', 'chat', 'thought', 'fact', 'summary')),
    content text not null,
    speaker text not null default '',
    importance real not null check (importance between 1 and 10),
    -- Who said how important it is.
    importance_from text not null default 'caller' check (importance_from in ('caller', 'model', 'rule')),
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
    -- Why it takes no part in recall: its conversation is archived or deleted; what it was made from is gone, and it waits
    -- to be made again; it is a version that is no longer believed, or a fact that is over; it has faded. Null for all that
    -- do take part.
    withheld text check (withheld in ('archived', 'deleted', 'to_rederive', 'past', 'faded')),
    expires_at timestamptz,
    -- When it was brought back: from then on it may fade again.
    revived_at timestamptz,
    primary key (scope_id, id)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
-- The planner's statistics are samples of what columns hold, and they outlive it: nothing that was said goes there.
alter table memories
    alter content set statistics 0, alter speaker set statistics 0,
    alter subject set statistics 0, alter predicate set statistics 0, alter object set statistics 0,
    alter keywords set statistics 0, alter embedding_text set statistics 0, alter metadata set statistics 0;
select protect_scoped('memories');
-- Recency begins here: what was never recalled was last accessed when it happened.
create index memories_by_time on memories (scope_id, kind, occurred_at desc, id desc) include (idle)
    where withheld is null;
create index memories_to_rederive on memories (scope_id, id) where withheld = 'to_rederive';
create index memories_withheld_in_time on memories (scope_id, withheld, id) where withheld in ('past', 'faded');
-- Only what is still in the indexes can expire from them.
create index memories_expiring on memories (scope_id, expires_at) where expires_at is not null and withheld is null;
-- By time alone, for upkeep over all tenants.
create index memories_expired on memories (expires_at) where expires_at is not null and withheld is null;

-- What ranking and filters read of memories, one narrow row for each, in columns whose order wastes no bytes. It follows
-- from the memory, its message and its terms, and is written with them.
create table memory_features (
    id uuid not null,
    scope_id bigint not null,
    occurred_at timestamptz not null,
    expires_at timestamptz,
    -- Of a message, its place in its conversation; null for all that is none.
    number bigint,
    importance real not null,
    -- How many different terms it is found by.
    length integer not null,
    -- Bits: 1 it ends as a question, 2 it tells a time, 4 a number, 8 it is an instruction.
    tells smallint not null,
    pinned boolean not null,
    kind text not null,
    -- What is deleted has a state that no filter names.
    state text not null default 'current'
        check (state in ('current', 'in_archived', 'faded', 'past', 'withheld', 'deleted')),
    -- In the form names are compared by.
    speaker text not null,
    origin text not null,
    conversation_id text,
    role text,
    -- With importance: the stream reads that of a whole scope.
    primary key (scope_id, id) include (importance)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
alter table memory_features alter speaker set statistics 0;
create index memory_features_by_time on memory_features (scope_id, occurred_at desc, id desc);
create index memory_features_by_conversation on memory_features (scope_id, conversation_id, id)
    where conversation_id is not null;
create index memory_features_pinned on memory_features (scope_id, id) where pinned;
select protect_scoped('memory_features');

-- Features follow their memory in the statement that changes it.
create function follow_into_features() returns trigger
    language plpgsql as $$
declare
    folded integer;
begin
    update memory_features
    set importance = new.importance, occurred_at = new.occurred_at, expires_at = new.expires_at,
        state = case new.withheld
            when 'archived' then 'in_archived' when 'to_rederive' then 'withheld' else coalesce(new.withheld, 'current')
        end
    where scope_id = new.scope_id and id between new.id and new.id;
    if new.importance is distinct from old.importance then
        select folded_space into folded from scopes where id = new.scope_id;
        if folded is not null then
            execute format('update %I set importance = $1 where scope_id = $2 and id = $3', 'vectors_' || folded)
                using new.importance, new.scope_id, new.id;
        end if;
    end if;
    return null;
end $$;
create trigger follow_into_features after update of withheld, importance, occurred_at, expires_at on memories
    for each row when (
        new.withheld is distinct from old.withheld or new.importance is distinct from old.importance
        or new.occurred_at is distinct from old.occurred_at or new.expires_at is distinct from old.expires_at
    ) execute function follow_into_features();

-- Which memories a memory was made from.
create table evidence (
    scope_id bigint not null,
    memory_id uuid not null,
    source_id uuid not null,
    primary key (scope_id, memory_id, source_id)
);
create index evidence_of_source on evidence (scope_id, source_id, memory_id);
select protect_scoped('evidence');
create trigger note_filed after insert on evidence
    referencing new table as filed for each statement execute function note_filed();

-- Ids only, never content: what a repeated key answers.
create table idempotency_keys (
    scope_id bigint not null,
    key text not null,
    fingerprint bytea not null,
    memory_ids uuid[] not null default '{}',
    embedded boolean[] not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    replayed_at timestamptz,
    -- What a repeated key answers for items: revisions and times, never what they hold.
    outcome jsonb,
    primary key (scope_id, key)
);
alter table idempotency_keys
    alter key set statistics 0, alter fingerprint set statistics 0, alter outcome set statistics 0;
select protect_scoped('idempotency_keys');
create index idempotency_keys_by_time on idempotency_keys (created_at);

-- What still waits for its vector in the active embedding space.
create table pending_embeddings (
    scope_id bigint not null,
    id uuid not null,
    primary key (scope_id, id)
);
select protect_scoped('pending_embeddings');

-- Which vectors were made with the words of the message before, by their spaces. A caller's own vector is not among
-- them, nor one that was made before its conversation was read.
create table context_vectors (
    scope_id bigint not null,
    id uuid not null,
    space_id integer not null,
    primary key (scope_id, id, space_id)
);
select protect_scoped('context_vectors');

-- Search by words: hashed terms in one GIN index, BM25 weights in a sparse vector. A term's hash begins with bits
-- of its scope, so that one index serves all scopes and the posting lists of a scope lie together.
create table memory_terms (
    scope_id bigint not null,
    id uuid not null,
    kind text not null,
    trust smallint not null,
    terms bigint[] not null,
    weights sparsevec(1000000000) not null,
    -- By which a sample is drawn: of its content alone, so that the same memories rank the same wherever they are stored.
    draw integer not null,
    primary key (scope_id, id)
) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 5000);
alter table memory_terms alter weights set statistics 0;
-- Without a pending list: some write would have to flush it for all others, and every search would read it.
create index memory_terms_by_term on memory_terms using gin (terms) with (fastupdate = off);
select protect_scoped('memory_terms');
-- Row-level security keeps operators that are not leakproof away from indexes, and && is one. The matcher may
-- read this one table whole; its function takes the tenant from the transaction and never leaves the scope.
create policy of_matcher on memory_terms for select to recollect_matcher using (true);
grant select on memory_terms to recollect_matcher;

-- Keywords, and how many memories are filed under each.
create table memory_keywords (
    scope_id bigint not null,
    keyword text not null,
    kind text not null,
    id uuid not null,
    counted boolean not null,
    primary key (scope_id, keyword, kind, id)
);
select protect_scoped('memory_keywords');
create trigger note_filed after insert on memory_keywords
    referencing new table as filed for each statement execute function note_filed();

create table keyword_strengths (
    scope_id bigint not null,
    kind text not null,
    keyword text not null,
    strength integer not null,
    primary key (scope_id, kind, keyword)
);
select protect_scoped('keyword_strengths');

-- Accesses are appended, one row per recall, and folded into one row per memory by a job: no recall waits for another.
create table access_log (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    accessed_at timestamptz not null,
    ids uuid[] not null,
    kinds text[] not null,
    primary key (scope_id, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
select protect_scoped('access_log');

create table accesses (
    scope_id bigint not null,
    id uuid not null,
    kind text not null,
    last_accessed_at timestamptz not null,
    access_count integer not null,
    primary key (scope_id, id)
) with (fillfactor = 70);
select protect_scoped('accesses');
create index accesses_by_time on accesses (scope_id, kind, last_accessed_at desc, id desc);

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
    -- Why it has faded, as long as it is withheld. Where a deleted conversation takes it along and brings it back, it has
    -- still faded.
    faded_at timestamptz,
    fading_score double precision,
    fading_grounds text,
    fading_reason text,
    primary key (scope_id, id)
);
alter table withheld_memories alter terms set statistics 0, alter weights set statistics 0;
select protect_scoped('withheld_memories');
-- Who matches words matches those of past versions, too.
create policy of_matcher on withheld_memories for select to recollect_matcher using (true);
grant select on withheld_memories to recollect_matcher;

create table withheld_vectors (
    scope_id bigint not null,
    id uuid not null,
    space_id integer not null,
    embedding vector not null,
    primary key (scope_id, id, space_id)
);
alter table withheld_vectors alter embedding set storage external, alter embedding set statistics 0;
select protect_scoped('withheld_vectors');

-- Whatever way a row goes, the rows beside it go in the same statement: tables, and the columns of them that name it. By
-- key, because a join with what was forgotten would read all of the tenant's rows as soon as more than a few go at once.
create function erase_side_rows() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in select scope_id, array_agg(id) as ids from forgotten group by scope_id loop
        for place in 0 .. tg_nargs - 1 by 2 loop
            execute format('delete from %I where scope_id = $1 and %I = any ($2)', tg_argv[place], tg_argv[place + 1])
                using each.scope_id, each.ids;
        end loop;
    end loop;
    return null;
end $$;
create trigger erase_side_rows_of_memories after delete on memories
    referencing old table as forgotten for each statement execute function erase_side_rows(
        'memory_features', 'id', 'evidence', 'memory_id', 'pending_embeddings', 'id', 'memory_terms', 'id',
        'accesses', 'id', 'withheld_memories', 'id', 'withheld_vectors', 'id', 'context_vectors', 'id');

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

-- A forgotten memory's keywords go with it: whoever counts them later must not learn of it.
create function erase_keywords() returns trigger
    language plpgsql as $$
begin
    perform unfile(scope_id, array_agg(filed.keyword), array_agg(kind), array_agg(id))
    from forgotten, unnest(forgotten.keywords) as filed (keyword)
    group by scope_id;
    return null;
end $$;
create trigger erase_keywords after delete on memories
    referencing old table as forgotten for each statement execute function erase_keywords();

-- One fold of a scope at a time, memories in one order, and no time ever moves backwards.
create function fold_accesses(folded_scope bigint) returns void
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

-- Search by words: hashed terms in one GIN index, BM25 weights in a sparse vector.

-- A term's hash contains its scope, so that one index serves all scopes and every posting list is one scope's.
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
create index memory_terms_by_term on memory_terms using gin (terms) with (gin_pending_list_limit = 256);
select protect_scoped('memory_terms');

create trigger erase_memory_terms after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_with_memory('memory_terms', 'id');

-- Row-level security keeps operators that are not leakproof away from indexes, and && is one. The matcher may
-- read this one table whole; its function takes the tenant from the transaction and never leaves the scope.
create policy of_matcher on memory_terms for select to recollect_matcher using (true);
grant select on memory_terms to recollect_matcher;

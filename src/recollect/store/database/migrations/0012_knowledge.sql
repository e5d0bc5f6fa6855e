-- Knowledge: what is learned from talk. Segments on one topic, what a model made of each, the entities that facts speak
-- of, facts and summaries in their versions, and what every call of a model cost.

create extension if not exists pg_trgm;

-- A run of a conversation's messages on one topic that has come to its end. What follows the last one is still running.
create table segments (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    conversation_id text not null,
    first_number bigint not null,
    last_number bigint not null check (last_number >= first_number),
    ending text not null check (ending in ('topic', 'idle', 'length', 'asked')),
    -- How near the turn came that ended it, where another topic did.
    similarity real,
    label text not null default '',
    state text not null default 'closed' check (state in ('closed', 'enriched', 'failed')),
    -- Why it failed, in words that quote nothing said.
    reason text not null default '',
    closed_at timestamptz not null default clock_timestamp(),
    enriched_at timestamptz,
    primary key (scope_id, id),
    unique (scope_id, conversation_id, first_number)
);
select protect_scoped('segments');
create index segments_to_enrich on segments (scope_id, closed_at, id) where state = 'closed';

-- The last message that lies in a closed segment; what comes after it is still running.
alter table conversations add column segmented_number bigint not null default 0;
-- What was said is for enrichment from now on; what was said before it was there is so only if somebody asks. Forced
-- security would hide every row from an owner who is no superuser.
alter table conversations no force row level security;
update conversations set segmented_number = last_number;
alter table conversations force row level security;
create index conversations_running on conversations (scope_id, idle_since) where segmented_number < last_number;

-- A pass over history with another model or prompt: it builds beside what stands, and takes its place at once.
create table runs (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    model text not null,
    since timestamptz,
    state text not null default 'building' check (state in ('building', 'switched', 'abandoned')),
    begun_at timestamptz not null default clock_timestamp(),
    switched_at timestamptz,
    primary key (scope_id, id)
);
select protect_scoped('runs');

-- What a model made of a segment, kept before anything is made of it: it is paid for once. No run is the usual case.
create table digests (
    scope_id bigint not null,
    segment_id uuid not null,
    run_id uuid not null default '00000000-0000-0000-0000-000000000000',
    -- Empty where no model was asked.
    model text not null,
    prompt_version text not null,
    content jsonb not null,
    made_at timestamptz not null default clock_timestamp(),
    -- Null while nothing has come of it yet.
    applied_at timestamptz,
    summary_id uuid,
    primary key (scope_id, segment_id, run_id),
    foreign key (scope_id, segment_id) references segments on delete cascade
);
select protect_scoped('digests');

-- What facts speak of. What an entity is called and described as is said by its mentions, and goes with them.
create table entities (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    name text not null,
    normalised text not null check (length(normalised) between 1 and 500),
    type text not null check (type in ('person', 'place', 'organization', 'product', 'skill', 'activity', 'event',
                                       'emotion', 'thing', 'other')),
    created_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, id),
    unique (scope_id, normalised, type)
);
select protect_scoped('entities');

-- One name of an entity as one source used it: a segment's, or a fact's own where a caller stated it.
create table mentions (
    scope_id bigint not null,
    source_id uuid not null,
    entity_id uuid not null,
    normalised text not null check (length(normalised) between 1 and 500),
    name text not null,
    description text not null default '',
    mentioned_at timestamptz not null default clock_timestamp(),
    primary key (scope_id, source_id, entity_id, normalised),
    foreign key (scope_id, entity_id) references entities on delete cascade
);
select protect_scoped('mentions');
create index mentions_by_name on mentions (scope_id, normalised, entity_id);
create index mentions_of_entity on mentions (scope_id, entity_id, mentioned_at desc);

-- One version of a fact or of a summary, beside its memory: true in the world for a span, believed for another. What a
-- summary says has no span in the world, and joins no entities.
create table beliefs (
    scope_id bigint not null,
    id uuid not null,
    lineage uuid not null,
    version integer not null check (version > 0),
    subject_id uuid,
    -- As facts are compared by; as it was stated stands in the memory.
    predicate text not null default '',
    object_id uuid,
    valid_at timestamptz,
    invalid_at timestamptz check (invalid_at > valid_at),
    created_at timestamptz not null,
    superseded_at timestamptz check (superseded_at >= created_at),
    primary key (scope_id, id),
    unique (scope_id, lineage, version),
    foreign key (scope_id, subject_id) references entities,
    foreign key (scope_id, object_id) references entities,
    check ((subject_id is null) = (object_id is null)),
    -- Of one fact, one version is believed at a time.
    constraint beliefs_one_at_a_time exclude using gist (
        scope_id with =, lineage with =, tstzrange(created_at, superseded_at) with &&
    ),
    -- What is believed now says the same thing once for any moment.
    constraint beliefs_said_once exclude using gist (
        scope_id with =, subject_id with =, predicate with =, object_id with =, tstzrange(valid_at, invalid_at) with &&
    ) where (superseded_at is null and subject_id is not null)
);
select protect_scoped('beliefs');
create index beliefs_by_subject on beliefs (scope_id, subject_id) where subject_id is not null;
create index beliefs_by_object on beliefs (scope_id, object_id) where object_id is not null;
create trigger erase_beliefs after delete on memories
    referencing old table as forgotten for each statement execute function erase_with_memory('beliefs', 'id');

-- Versions that are no longer believed, and facts that are over, leave the indexes of recall as what is archived does.
-- What has faded is forgotten in the same way, and can be brought back. What expires says so.
alter table memories
    drop constraint memories_withheld_check,
    add constraint memories_withheld_check check (withheld in ('archived', 'deleted', 'stale', 'past', 'faded')),
    add column expires_at timestamptz;
create index memories_withheld_in_time on memories (scope_id, withheld, id) where withheld in ('past', 'faded');

-- Every step that was taken and every call of a model: who, for what, at which cost, and how it went.
create table ledger (
    scope_id bigint not null,
    tenant_id bigint not null generated always as (scope_id >> 40) stored,
    number bigint generated always as identity,
    at timestamptz not null default clock_timestamp(),
    step text not null,
    -- Empty where no model was asked.
    model text not null default '',
    prompt_version text not null default '',
    prompt_tokens bigint not null default 0,
    completion_tokens bigint not null default 0,
    -- In the currency of the configured prices; null where none is configured.
    price double precision,
    milliseconds double precision not null,
    outcome text not null,
    -- More than one where a day was added up.
    calls bigint not null default 1,
    -- What it was done for: a segment, or nothing named.
    source_id uuid,
    primary key (scope_id, number)
);
select protect_scoped('ledger');
create index ledger_by_time on ledger (tenant_id, at) include (prompt_tokens, completion_tokens);

-- How many tokens a tenant's enrichment may spend a day; null means as configured.
alter table tenants add column tokens_per_day bigint check (tokens_per_day >= 0);
grant select (tokens_per_day) on tenants to recollect_service;

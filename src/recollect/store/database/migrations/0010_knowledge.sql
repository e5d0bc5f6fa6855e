-- Knowledge: what is learned from conversations. Segments on one topic, what a model made of each, the entities that facts speak
-- of, facts and summaries in their versions, and runs over history.

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
    -- How often asking a model failed, or its worker died.
    attempts smallint not null default 0,
    primary key (scope_id, id),
    unique (scope_id, conversation_id, first_number)
);
alter table segments alter label set statistics 0;
select protect_scoped('segments');
create index segments_to_enrich on segments (scope_id, closed_at, id) where state = 'closed';

-- A pass over history with another model or prompt: it builds without changing anything, and takes over at once.
create table runs (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    model text not null,
    since timestamptz,
    state text not null default 'building' check (state in ('building', 'switched', 'abandoned')),
    begun_at timestamptz not null default clock_timestamp(),
    switched_at timestamptz,
    prompt_version text not null default '',
    primary key (scope_id, id)
);
select protect_scoped('runs');

-- What a model made of a segment, kept before anything is made of it: it is paid for once. No run is the usual case.
create table extractions (
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
alter table extractions alter content set statistics 0;
select protect_scoped('extractions');

-- What facts speak of. What an entity is called and described as is said by its mentions, and goes with them.
create table entities (
    scope_id bigint not null,
    id uuid not null default gen_random_uuid(),
    name text not null,
    normalised text not null check (length(normalised) between 1 and 500),
    type text not null check (type in ('person', 'place', 'organization', 'product', 'skill', 'activity', 'event',
                                       'emotion', 'thing', 'other')),
    created_at timestamptz not null default clock_timestamp(),
    -- By these a name with a slip in it is looked for.
    initials text not null generated always as (left(normalised, 2)) stored,
    primary key (scope_id, id),
    unique (scope_id, normalised, type)
);
alter table entities alter name set statistics 0, alter normalised set statistics 0;
create index entities_by_initials on entities (scope_id, initials) include (id, normalised);
select protect_scoped('entities');
-- Row-level security keeps similarity away from indexes, because it is not leakproof. The matcher may read this one
-- table whole; its function takes the tenant from the transaction and never leaves the scope.
create index entities_by_trigram on entities using gist (scope_id, normalised gist_trgm_ops);
create policy of_matcher on entities for select to recollect_matcher using (true);
grant select on entities to recollect_matcher;

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
alter table mentions alter name set statistics 0, alter normalised set statistics 0, alter description set statistics 0;
select protect_scoped('mentions');
create trigger note_filed after insert on mentions
    referencing new table as filed for each statement execute function note_filed();
-- With the source, so that a name is looked up in the index alone: else the planner would rather read all of a scope's.
create index mentions_by_name on mentions (scope_id, normalised, entity_id) include (source_id);
create index mentions_of_entity on mentions (scope_id, entity_id, mentioned_at desc);

-- One version of a memory: of every fact, of the summary of a segment, and of all that was ever revised. A fact is true in
-- the world for a span and joins two entities; what others say has no span, and joins none.
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
    -- Why a fact is out of recall, as its memory says: a hop would have to look every memory up by its key otherwise.
    withheld_for text,
    -- Of a writer who is trusted less than the version that it was to replace: kept, and believed at no time.
    contested boolean not null default false check (not contested or superseded_at = created_at),
    -- Whether somebody revised the version before it: then it goes with that one. Others rest on evidence of their own.
    revises boolean not null default false,
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
alter table beliefs alter predicate set statistics 0;
select protect_scoped('beliefs');
-- The newest facts of an entity first, whichever end of them it is, and all that a hop reads of them.
create index beliefs_by_subject on beliefs (scope_id, subject_id, id desc)
    include (object_id, valid_at, invalid_at, created_at, superseded_at, withheld_for) where subject_id is not null;
create index beliefs_by_object on beliefs (scope_id, object_id, id desc)
    include (subject_id, valid_at, invalid_at, created_at, superseded_at, withheld_for) where object_id is not null;
create index beliefs_believed on beliefs (scope_id, subject_id, object_id)
    where superseded_at is null and subject_id is not null;
-- Facts that have come to their end while they were believed, and are still in the indexes.
create index beliefs_ending on beliefs (invalid_at)
    where superseded_at is null and invalid_at is not null and withheld_for is null;
-- What a memory says of entities goes with it.
create trigger erase_knowledge after delete on memories
    referencing old table as forgotten
    for each statement execute function erase_side_rows('beliefs', 'id', 'mentions', 'source_id');

-- What a segment came to is made again from the messages that are left, and goes with the last of them.
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
        delete from extractions where scope_id = asked_scope and segment_id = any (touched);
        delete from segments where scope_id = asked_scope and id = any (emptied);
        update segments set state = 'closed', label = '', reason = '', attempts = 0, enriched_at = null
        where scope_id = asked_scope and id = any (touched);
    end loop;
    return null;
end $$;
create trigger erase_segments after delete on messages
    referencing old table as gone for each statement execute function erase_segments();

-- A segment whose messages had all gone before it was written goes with its conversation.
create trigger erase_segments after delete on conversations
    referencing old table as forgotten for each statement execute function erase_side_rows('segments', 'conversation_id');

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

-- What a segment that lost a message was taken to say goes, whichever run said it; one that never took over said nothing.
create function erase_extracted() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in
        select scope_id, array_agg(segment_id) as ids from forgotten
        where applied_at is not null or run_id = '00000000-0000-0000-0000-000000000000' group by scope_id
    loop
        delete from mentions where scope_id = each.scope_id and source_id = any (each.ids);
    end loop;
    return null;
end $$;
create trigger erase_extracted after delete on extractions
    referencing old table as forgotten for each statement execute function erase_extracted();

-- Let the segments that facts rest on be applied once more, from the extraction that stands: what they say by themselves is
-- learned again without a model, and a fact that stands already is recognised. One that has no extraction is left
-- alone. No job is queued here: `close_silent` finds what waits within five minutes.
create function learn_again(asked_scope bigint, asked_facts uuid[]) returns void
    language plpgsql as $$
declare
    reopened uuid[];
begin
    with closed as (
        update segments set state = 'closed', attempts = 0, enriched_at = null
        where scope_id = asked_scope and state = 'enriched'
          and id = any (array(
              select segment.id
              from (select distinct source_id from evidence
                    where scope_id = asked_scope and memory_id = any (asked_facts)) source
              join messages on messages.scope_id = asked_scope and messages.id = source.source_id
              cross join lateral (
                  select id, last_number from segments
                  where segments.scope_id = asked_scope and segments.conversation_id = messages.conversation_id
                    and first_number <= messages.number
                  order by first_number desc limit 1
              ) segment
              where segment.last_number >= messages.number))
          and (
              select content ? 'said' from extractions
              where extractions.scope_id = asked_scope and segment_id = segments.id and applied_at is not null
              order by applied_at desc limit 1
          )
        returning id
    )
    select array_agg(id) into reopened from closed;
    -- Where a run has taken over, what it said is what is said again.
    insert into extractions (scope_id, segment_id, model, prompt_version, content, made_at)
    select distinct on (segment_id) scope_id, segment_id, model, prompt_version, content, made_at from extractions
    where scope_id = asked_scope and segment_id = any (reopened) and applied_at is not null
    order by segment_id, applied_at desc
    on conflict (scope_id, segment_id, run_id) do update
    set model = excluded.model, prompt_version = excluded.prompt_version, content = excluded.content,
        made_at = excluded.made_at;
end $$;

-- Of the facts that are believed now, those whose newest version rests on nothing but these segments, and the version
-- that stands once they are read again: none where the fact came from them, the newest that did not where they only
-- changed it. What somebody else said, changed or confirmed is not among them. The planner takes a scope for a few rows, and would
-- compare each with each.
create function versions_of_run(asked_scope bigint, asked_segments uuid[])
    returns table (id uuid, lineage uuid, stands boolean, valid_at timestamptz, invalid_at timestamptz)
    language sql stable
    set enable_nestloop = off
as $$
    with recursive inside as materialized (
        select said.id from unnest(asked_segments) as asked (id)
        cross join lateral (
            select conversation_id, first_number, last_number from segments
            where scope_id = asked_scope and segments.id between asked.id and asked.id order by segments.id limit 1
        ) segment
        cross join lateral (
            select messages.id from messages
            where scope_id = asked_scope and conversation_id = segment.conversation_id
              and number between segment.first_number and segment.last_number
            offset 0
        ) said
    ), resting as materialized (
        select memory_id, source_id from evidence where scope_id = asked_scope
    ), versions as materialized (
        select beliefs.id, beliefs.lineage, version, superseded_at, subject_id, predicate, object_id, beliefs.valid_at,
               beliefs.invalid_at
        from beliefs where scope_id = asked_scope and subject_id is not null
    ), touched (id) as (
        select resting.memory_id from inside join resting on resting.source_id = inside.id
        union
        select resting.memory_id from touched join resting on resting.source_id = touched.id
    ), learned as materialized (
        select versions.* from touched join versions on versions.id = touched.id
        join memories on memories.scope_id = asked_scope and memories.id = touched.id and memories.origin = 'enrich'
    ), causes as materialized (
        -- What a version was made from, beside the version before it.
        select learned.id, resting.source_id from learned
        join resting on resting.memory_id = learned.id
        left join versions own on own.id = resting.source_id
        where own.lineage is distinct from learned.lineage
    ), others (id) as (
        (
            select learned.id from learned where not exists (select from causes where causes.id = learned.id)
            union
            select causes.id from causes
            where not exists (select from inside where inside.id = causes.source_id)
              and not exists (select from learned where learned.id = causes.source_id)
        )
        union
        select causes.id from others join causes on causes.source_id = others.id
    ), of_run as materialized (
        select learned.* from learned where not exists (select from others where others.id = learned.id)
    ), standing as materialized (
        select distinct on (of_run.id) of_run.id as place, earlier.* from of_run
        join versions earlier on earlier.lineage = of_run.lineage and earlier.version < of_run.version
        where not exists (select from of_run own where own.id = earlier.id)
        order by of_run.id, earlier.version desc
    )
    select of_run.id, of_run.lineage, standing.id is not null, standing.valid_at, standing.invalid_at
    from of_run left join standing on standing.place = of_run.id
    where of_run.superseded_at is null
      -- What another fact says by now is not said twice.
      and not exists (
          select from versions other
          where other.subject_id = standing.subject_id and other.object_id = standing.object_id
            and other.predicate = standing.predicate and other.lineage <> standing.lineage
            and other.superseded_at is null and not exists (select from of_run own where own.id = other.id)
            and tstzrange(other.valid_at, other.invalid_at) && tstzrange(standing.valid_at, standing.invalid_at)
      )
$$;

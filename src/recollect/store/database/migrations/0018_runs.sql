-- Runs over history: which segments only a run knows yet, and what a run takes the place of.

alter table runs add column prompt_version text not null default '';

-- A segment that was cut from old talk for a run, and is nobody else's before the run has taken over.
alter table segments
    drop constraint segments_state_check,
    add constraint segments_state_check check (state in ('closed', 'enriched', 'failed', 'cut'));

-- One that loses a message waits for the next run, and not for the usual model.
create function stay_cut() returns trigger
    language plpgsql as $$
begin
    new.state := 'cut';
    return new;
end $$;
create trigger stay_cut before update of state on segments for each row
    when (old.state = 'cut' and new.state = 'closed') execute function stay_cut();

-- What a segment that lost a message was taken to say goes, whichever run said it; one that never took over said nothing.
create or replace function erase_digested() returns trigger
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

-- Of the facts that are believed now, those whose newest version rests on nothing but these segments, and the version
-- that stands once they are read anew: none where the fact came from them, the newest that did not where they only
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

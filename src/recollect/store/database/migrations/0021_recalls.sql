-- Recalls that are kept for a time, each with all that its ranking was made from, to be explained and replayed.

create table recalls (
    scope_id bigint not null,
    id uuid not null,
    asked_at timestamptz not null,
    text text not null,
    cue jsonb not null,
    vector bytea,
    space_id integer,
    inputs bytea not null,
    listed uuid[] not null,
    hits jsonb not null,
    "limit" integer not null,
    status text not null,
    message text not null,
    methods jsonb not null,
    tallies jsonb not null,
    milliseconds double precision not null,
    primary key (scope_id, id)
);
select protect_scoped('recalls');
-- The inputs come compressed. What a cue says is nothing for the planner's samples.
alter table recalls
    alter inputs set storage external,
    alter text set statistics 0, alter cue set statistics 0, alter vector set statistics 0,
    alter inputs set statistics 0, alter listed set statistics 0, alter hits set statistics 0,
    alter methods set statistics 0, alter tallies set statistics 0, alter message set statistics 0;

-- Whoever keeps a recall holds this lock with others of the scope, whoever erases recalls holds it alone: so none is kept
-- that lists what is being forgotten at this moment.
create function share_recalls(asked_scope bigint) returns void
    language sql return pg_advisory_xact_lock_shared(hashint8extended(asked_scope, 21));

-- Erase the kept recalls that list one of these memories, or whose cue says just what one of them said.
create function erase_recalls_of(asked_scope bigint, asked_ids uuid[], said text[]) returns void
    language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashint8extended(asked_scope, 21));
    delete from recalls where scope_id = asked_scope and id = any (array(
        select kept.id from (select id, listed from recalls where scope_id = asked_scope offset 0) kept
        cross join lateral unnest(kept.listed) as listed (memory_id)
        join unnest(asked_ids) as asked (memory_id) using (memory_id)
        union
        select kept.id from (select id, text from recalls where scope_id = asked_scope offset 0) kept
        join unnest(said) as each (content) on btrim(each.content) = btrim(kept.text)
    ));
end $$;

create function erase_recalls() returns trigger
    language plpgsql as $$
declare
    each record;
begin
    for each in select scope_id, array_agg(id) as ids, array_agg(content) as said from forgotten group by scope_id loop
        perform erase_recalls_of(each.scope_id, each.ids, each.said);
    end loop;
    return null;
end $$;
create trigger erase_recalls after delete on memories
    referencing old table as forgotten for each statement execute function erase_recalls();

-- What lost some of its evidence stays as a blank row.
create function erase_recalls_of_blank() returns trigger
    language plpgsql as $$
begin
    perform erase_recalls_of(old.scope_id, array[old.id], array[old.content]);
    return null;
end $$;
create trigger erase_recalls_of_blank after update of content on memories for each row
    when (old.content <> '' and new.content = '') execute function erase_recalls_of_blank();

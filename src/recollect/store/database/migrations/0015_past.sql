-- Reading the past: what was believed at a moment, what was true at one, and how versions that are over stay away.

-- Of versions and facts, those that the indexes of recall do not hold: superseded, or over by now.
create function past_among(asked_scope bigint, asked_ids uuid[]) returns setof uuid
    language sql stable as $$
    select id from beliefs
    where scope_id = asked_scope and id = any (asked_ids)
      and (superseded_at is not null or invalid_at <= clock_timestamp())
$$;

-- Since when and until when a version is true, and until when it was believed; null for what is no version. Two functions
-- whose plans are kept, because to plan one more join would cost every recall more than these looks do.
create function belief_of(asked_scope bigint, asked_id uuid) returns timestamptz[]
    language plpgsql stable as $$
begin
    return (select array[valid_at, invalid_at, superseded_at] from beliefs
            where scope_id = asked_scope and id between asked_id and asked_id order by id limit 1);
end $$;

-- Whether a fact or a summary is believed and not over: now, or as of a moment, or was true at one. What has no span in
-- the world goes by when it happened.
create function stands(asked_scope bigint, asked_id uuid, occurred_at timestamptz, as_of timestamptz, at timestamptz)
    returns boolean
    language plpgsql stable as $$
declare
    version record;
begin
    select valid_at, invalid_at, superseded_at, subject_id is not null or valid_at is not null as bounded into version
    from beliefs where scope_id = asked_scope and id between asked_id and asked_id order by id limit 1;
    return coalesce(version.superseded_at > as_of, version.superseded_at is null)
        and (version.invalid_at is null or version.invalid_at > coalesce(at, as_of, now()))
        and (at is null or case when version.bounded then coalesce(version.valid_at <= at, true)
                                else occurred_at <= at end);
end $$;

-- What goes with a deleted conversation is out of sight, whatever becomes of it meanwhile: it is past when it is back.
alter function withhold_memories(bigint, uuid[], text) rename to take_out_memories;
create function withhold_memories(asked_scope bigint, asked_ids uuid[], reason text) returns integer
    language plpgsql as $$
begin
    if reason = 'past' then
        asked_ids := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                             and withheld is distinct from 'deleted');
    end if;
    return take_out_memories(asked_scope, asked_ids, reason);
end $$;

-- What is past by now comes back into sight, and not into the indexes.
alter function restore_memories(bigint, uuid[]) rename to put_back_memories;
create function restore_memories(asked_scope bigint, asked_ids uuid[]) returns uuid[]
    language plpgsql as $$
begin
    update memories set withheld = 'past'
    where scope_id = asked_scope and withheld in ('archived', 'deleted')
      and id = any (array(select past_among(asked_scope, asked_ids)));
    -- Which leaves nothing of them to put back: only what is archived or deleted is.
    return put_back_memories(asked_scope, asked_ids);
end $$;

-- Facts that have come to their end while they were believed, and are still in the indexes.
create index beliefs_ending on beliefs (scope_id, invalid_at) where superseded_at is null and invalid_at is not null;

-- Of what the indexes hold, that which was true at a moment, or had happened by then.
create function true_at(asked_scope bigint, moment timestamptz) returns setof uuid
    language sql stable as $$
    select id from memories
    where scope_id = asked_scope and kind = any ('{message,event,chat,thought,summary}') and occurred_at <= moment
      and withheld is null
    union all
    select memories.id from memories
    left join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.kind = 'fact' and memories.withheld is null
      and case when beliefs.id is null then memories.occurred_at <= moment
               else (beliefs.valid_at is null or beliefs.valid_at <= moment)
                   and (beliefs.invalid_at is null or beliefs.invalid_at > moment) end
$$;

-- Versions that have left the indexes, as they were believed as of a moment (now if null), and true: at a moment, or
-- not over by then.
-- What was believed then does not change afterwards, so one that has faded since is among them.
create function past_versions(
    asked_scope bigint, as_of timestamptz, at timestamptz, kinds text[], min_trust smallint, allowed uuid[]
) returns setof uuid
    language sql stable as $$
    select memories.id from memories
    join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.withheld in ('past', 'faded')
      and (kinds is null or memories.kind = any (kinds)) and memories.trust >= min_trust
      and (allowed is null or memories.id = any (allowed))
      and (as_of is null or beliefs.created_at <= as_of)
      and (beliefs.superseded_at is null or beliefs.superseded_at > as_of)
      and (beliefs.invalid_at is null or beliefs.invalid_at > coalesce(at, as_of, now()))
      and (at is null or case when memories.kind = 'fact' then coalesce(beliefs.valid_at <= at, true)
                              else memories.occurred_at <= at end)
$$;

-- Who matches words matches those of past versions, too.
create policy of_matcher on withheld_memories for select to recollect_matcher using (true);
grant select on withheld_memories to recollect_matcher;

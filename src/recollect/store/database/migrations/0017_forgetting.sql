-- Fading: what has decayed or expired leaves the indexes of recall, says why, and can be brought back as it was.

-- Why a memory has faded, as long as it is withheld. Where a deleted conversation takes it along and brings it back, it
-- has still faded.
alter table withheld_memories
    add column faded_at timestamptz,
    add column fading_score double precision,
    add column fading_grounds text,
    add column fading_reason text;
-- When it was brought back: from then on it may fade anew.
alter table memories add column revived_at timestamptz;

-- Only what is still in the indexes can expire from them.
create index memories_expiring on memories (scope_id, expires_at) where expires_at is not null and withheld is null;
-- The running summary of a conversation does not fade.
create index conversations_by_summary on conversations (scope_id, summary_id) where summary_id is not null;

-- Let memories fade that take part in recall, each with its reason, in a scope that the caller has locked; return them.
create function fade_memories(
    asked_scope bigint, asked_ids uuid[], scores double precision[], grounds text[], reasons text[]
) returns uuid[]
    language plpgsql as $$
declare
    taken uuid[] := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                            and withheld is null order by id for update);
begin
    perform withhold_memories(asked_scope, taken, 'faded');
    update withheld_memories side
    set faded_at = clock_timestamp(), fading_score = given.score, fading_grounds = given.ground,
        fading_reason = given.reason
    from unnest(asked_ids, scores, grounds, reasons) as given (id, score, ground, reason)
    where side.scope_id = asked_scope and side.id = any (taken) and side.id = given.id;
    return taken;
end $$;

-- What had faded before its conversation went comes back into sight with it, and not into the indexes.
alter function restore_memories(bigint, uuid[]) rename to restore_unfaded;
create function restore_memories(asked_scope bigint, asked_ids uuid[]) returns uuid[]
    language plpgsql as $$
begin
    update memories set withheld = 'faded'
    where scope_id = asked_scope and withheld in ('archived', 'deleted')
      and id = any (array(
          select id from withheld_memories
          where scope_id = asked_scope and id = any (asked_ids) and faded_at is not null
          except select past_among(asked_scope, asked_ids)
      ));
    -- Which leaves nothing of them to restore: only what is archived or deleted is.
    return restore_unfaded(asked_scope, asked_ids);
end $$;

-- Bring faded memories back as they were; what had expired does so no more. Tell which, and which of them still wait
-- for a vector.
create function revive_memories(asked_scope bigint, asked_ids uuid[], out revived uuid[], out waiting uuid[])
    language plpgsql as $$
begin
    revived := array(select id from memories where scope_id = asked_scope and id = any (asked_ids)
                       and withheld = 'faded' order by id for update);
    update withheld_memories set faded_at = null where scope_id = asked_scope and id = any (revived);
    update memories
    set withheld = 'archived', revived_at = clock_timestamp(),
        expires_at = case when expires_at > clock_timestamp() then expires_at end
    where scope_id = asked_scope and id = any (revived);
    waiting := restore_unfaded(asked_scope, revived);
    -- What is past by now is so still.
    revived := array(select id from memories where scope_id = asked_scope and id = any (revived)
                       and withheld is null order by id);
end $$;

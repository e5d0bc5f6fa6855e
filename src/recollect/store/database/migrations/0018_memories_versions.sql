-- Versions of any memory: a revision takes the place of the version before it, and what was made from that is made again.

-- The revisions that follow a version, up to the next version that was made from evidence. A contested version has none: it
-- replaced nothing.
create function later_versions(asked_scope bigint, asked_id uuid) returns setof uuid
    language sql stable as $$
    select later.id from beliefs own
    join beliefs later on later.scope_id = asked_scope and later.lineage = own.lineage and later.version > own.version
    where own.scope_id = asked_scope and own.id = asked_id and not own.contested
      and not exists (
          select from beliefs made
          where made.scope_id = asked_scope and made.lineage = own.lineage and not made.revises
            and made.version > own.version and made.version <= later.version)
$$;

-- Let messages that name one as their parent, their turn or their stated parent name another one.
create function rename_message(asked_scope bigint, asked_conversation text, since bigint, former uuid, latter uuid)
    returns void
    language plpgsql as $$
begin
    update messages
    set parent_id = case when parent_id = former then latter else parent_id end,
        turn_id = case when turn_id = former then latter else turn_id end,
        stated_parent = case when stated_parent = former then latter else stated_parent end
    where scope_id = asked_scope and conversation_id = asked_conversation and number >= since
      and (parent_id = former or turn_id = former or stated_parent = former);
end $$;

-- Show a new version of a message where the version before it stood; that one is kept aside. `row_of` holds what is
-- different. Whoever follows follows the new one, and has its vector made again if that knew the old words.
create function replace_message(asked_scope bigint, elder uuid, heir uuid, row_of jsonb) returns void
    language plpgsql as $$
declare
    place record;
begin
    insert into past_messages select * from messages where scope_id = asked_scope and id = elder;
    update messages
    set id = heir, occurred_at = (row_of ->> 'occurred_at')::timestamptz, tokens = row_of -> 'tokens',
        images = (row_of ->> 'images')::smallint, parts = nullif(row_of -> 'parts', '[]')
    where scope_id = asked_scope and id = elder
    returning conversation_id, number into place;
    perform rename_message(asked_scope, place.conversation_id, place.number, elder, heir);
    insert into pending_embeddings (scope_id, id)
    select distinct asked_scope, messages.id from messages
    join context_vectors on context_vectors.scope_id = asked_scope and context_vectors.id = messages.id
    join memories on memories.scope_id = asked_scope and memories.id = messages.id and memories.withheld is null
    where messages.scope_id = asked_scope and messages.parent_id = heir
    on conflict do nothing;
end $$;

-- Keep a contested version of a message beside it.
create function keep_contested_message(asked_scope bigint, current uuid, attempt uuid, row_of jsonb) returns void
    language sql as $$
    insert into past_messages
        (scope_id, id, conversation_id, number, parent_id, turn_id, role, status, occurred_at, tokens, images, parts,
         attachments, external_id, stated_parent)
    select scope_id, attempt, conversation_id, number, parent_id, turn_id, role, status,
           (row_of ->> 'occurred_at')::timestamptz, row_of -> 'tokens', (row_of ->> 'images')::smallint,
           nullif(row_of -> 'parts', '[]'), attachments, external_id, stated_parent
    from messages where scope_id = asked_scope and id = current
$$;

-- Show an earlier version of a message again, because the one that took its place is forgotten. Tell whether the memory
-- may be in the indexes: not while its conversation is archived.
create function give_back_message(asked_scope bigint, asked_id uuid) returns boolean
    language plpgsql as $$
declare
    past past_messages%rowtype;
    shown uuid;
begin
    select * into past from past_messages where scope_id = asked_scope and id = asked_id;
    if not found then
        return true;
    end if;
    select id into shown from messages
    where scope_id = asked_scope and conversation_id = past.conversation_id and number = past.number;
    update messages
    set id = past.id, occurred_at = past.occurred_at, tokens = past.tokens, images = past.images, parts = past.parts
    where scope_id = asked_scope and id = shown;
    perform rename_message(asked_scope, past.conversation_id, past.number, shown, past.id);
    delete from past_messages where scope_id = asked_scope and id = asked_id;
    perform read_segment_again(asked_scope, past.conversation_id, past.number);
    return not exists (select from conversations
                       where scope_id = asked_scope and id = past.conversation_id and state = 'archived');
end $$;

-- Let the segment of a message be read again by the model; there is none while its topic is still running.
create function read_segment_again(asked_scope bigint, asked_conversation text, asked_number bigint) returns void
    language plpgsql as $$
declare
    touched uuid := (
        select id from (
            select id, last_number from segments
            where scope_id = asked_scope and conversation_id = asked_conversation and first_number <= asked_number
            order by first_number desc limit 1
        ) segment
        where last_number >= asked_number);
begin
    delete from extractions where scope_id = asked_scope and segment_id = touched;
    update segments set state = 'closed', label = '', reason = '', attempts = 0, enriched_at = null
    where scope_id = asked_scope and id = touched;
end $$;

-- What was derived from versions of a memory and still stands; `learned` is what segments say, which they say again.
create function derived_from_versions(asked_scope bigint, versions uuid[])
    returns table (id uuid, learned boolean)
    language sql stable as $$
    select memories.id,
           beliefs.subject_id is not null
               or exists (select from segments where segments.scope_id = asked_scope and segments.id = beliefs.lineage)
    from memories
    left join beliefs on beliefs.scope_id = asked_scope and beliefs.id = memories.id
    where memories.scope_id = asked_scope and memories.id = any (array(select derived_from(asked_scope, versions)))
      and memories.id <> all (versions) and beliefs.superseded_at is null
    order by memories.id
$$;

-- Close versions at a moment: they are past from then on. What had no versions before is the first of its own.
create function close_versions(asked_scope bigint, asked_ids uuid[], moment timestamptz) returns void
    language plpgsql as $$
begin
    insert into beliefs (scope_id, id, lineage, version, created_at)
    select scope_id, id, id, 1, created_at from memories where scope_id = asked_scope and id = any (asked_ids)
    on conflict (scope_id, id) do nothing;
    update beliefs set superseded_at = moment
    where scope_id = asked_scope and id = any (asked_ids) and superseded_at is null;
    perform withhold_memories(asked_scope, asked_ids, 'past');
end $$;

-- Add a version after the one before it; of a fact it joins the same entities for the same time.
create function add_version(
    asked_scope bigint, elder uuid, heir uuid, moment timestamptz, is_contested boolean, is_revision boolean
) returns integer
    language sql as $$
    insert into beliefs
        (scope_id, id, lineage, version, subject_id, predicate, object_id, valid_at, invalid_at, created_at,
         superseded_at, contested, revises)
    select asked_scope, heir, before.lineage,
           1 + (select max(version) from beliefs every
                where every.scope_id = asked_scope and every.lineage = before.lineage),
           before.subject_id, before.predicate, before.object_id, before.valid_at, before.invalid_at, moment,
           case when is_contested then moment end, is_contested, is_revision
    from beliefs before where before.scope_id = asked_scope and before.id = elder
    returning version
$$;

-- File a version as the one before it is filed, and let it count as accessed as often.
create function inherit_links(asked_scope bigint, elder uuid, heir uuid, with_topics boolean) returns void
    language plpgsql as $$
begin
    insert into accesses (scope_id, id, kind, last_accessed_at, access_count)
    select asked_scope, heir, memories.kind, side.last_accessed_at, side.access_count
    from withheld_memories side join memories on memories.scope_id = asked_scope and memories.id = heir
    where side.scope_id = asked_scope and side.id = elder and side.last_accessed_at is not null
      and memories.withheld is null
    on conflict do nothing;
    if with_topics then
        insert into topic_links
            (scope_id, topic_id, memory_id, activation, diffusion, independence, occurred_at, kind, trust, withheld_for)
        select asked_scope, topic_id, heir, activation, diffusion, independence, links.occurred_at, links.kind,
               memories.trust, memories.withheld
        from topic_links links join memories on memories.scope_id = asked_scope and memories.id = heir
        where links.scope_id = asked_scope and links.memory_id = elder;
        insert into related_topics (scope_id, topic_id, memory_id, related_id, place)
        select asked_scope, topic_id, heir, related_id, place from related_topics
        where scope_id = asked_scope and memory_id = elder;
    end if;
end $$;

-- The number of a message in its conversation, by the id of any version of it.
create function message_number(asked_scope bigint, asked_id uuid) returns bigint
    language sql stable as $$
    select number from messages where scope_id = asked_scope and id = asked_id
    union all
    select number from past_messages where scope_id = asked_scope and id = asked_id
$$;

-- The messages of a conversation as they were shown at a moment, with the ids that they had then; `before` is the first id
-- after it. In plpgsql, so that it is called once and not written into each step of a walk.
create function messages_as_of(asked_scope bigint, asked_conversation text, before uuid, as_of timestamptz)
    returns setof messages
    language plpgsql stable as $$
begin
    return query
    with shown as (
        select messages.id as id_now, coalesce(past.id, messages.id) as id_then, messages.number
        from messages left join lateral (
            select past_messages.id from past_messages
            join beliefs on beliefs.scope_id = asked_scope and beliefs.id = past_messages.id
            where past_messages.scope_id = asked_scope and past_messages.conversation_id = asked_conversation
              and past_messages.number = messages.number
              and beliefs.created_at <= as_of and beliefs.superseded_at > as_of
        ) past on messages.id >= before
        where messages.scope_id = asked_scope and messages.conversation_id = asked_conversation
          and (messages.id < before or past.id is not null)
    )
    select asked_scope, shown.id_then, asked_conversation, shown.number, coalesce(parent.id_then, said.parent_id),
           coalesce(turn.id_then, said.turn_id), said.role, said.status, said.occurred_at, said.tokens, said.images,
           said.parts, said.attachments, said.external_id, coalesce(stated.id_then, said.stated_parent)
    from shown
    cross join lateral (
        select * from messages where scope_id = asked_scope and id = shown.id_then
        union all
        select * from past_messages where scope_id = asked_scope and id = shown.id_then
    ) said
    join messages latest on latest.scope_id = asked_scope and latest.id = shown.id_now
    left join shown parent on parent.id_now = latest.parent_id
    left join shown turn on turn.id_now = latest.turn_id
    left join shown stated on stated.id_now = latest.stated_parent;
end $$;

-- Memories that have at least so many of these terms, those first that have nearly as many terms as expected. Whatever has
-- so many has one of the rare ones. See `match_terms` for why the matcher looks.
create function alike_terms(
    asked_scope bigint, asked_terms bigint[], rare_terms bigint[], fewest integer, asked_kind text, min_trust smallint,
    expected integer, most integer
) returns setof uuid
    language plpgsql stable security definer
    set search_path = pg_catalog, public, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
begin
    if (asked_scope between first_scope() and last_scope()) is not true then
        return;
    end if;
    if fewest = cardinality(asked_terms) then
        return query
        select t.id from memory_terms t
        where t.scope_id = asked_scope and t.terms @> asked_terms and t.kind = asked_kind and t.trust >= min_trust
        order by abs(cardinality(t.terms) - expected), t.id
        limit most;
    else
        return query
        select t.id from memory_terms t
        where t.scope_id = asked_scope and t.terms && rare_terms and t.kind = asked_kind and t.trust >= min_trust
          and (select count(*) from unnest(t.terms) as held (term) where held.term = any (asked_terms)) >= fewest
        order by abs(cardinality(t.terms) - expected), t.id
        limit most;
    end if;
end $$;
revoke execute on function alike_terms(bigint, bigint[], bigint[], integer, text, smallint, integer, integer) from public;
grant execute on function alike_terms(bigint, bigint[], bigint[], integer, text, smallint, integer, integer)
    to recollect_service;
grant create on schema public to recollect_matcher;
alter function alike_terms(bigint, bigint[], bigint[], integer, text, smallint, integer, integer)
    owner to recollect_matcher;
revoke create on schema public from recollect_matcher;

-- Vectors that have seen the utterance before: a message's vector may be made of the end of what it follows, too, and
-- must not outlive that.

-- Which vectors were made with the words of the message before, by their spaces. A caller's own vector is not among
-- them, nor one that was made before its conversation was read.
create table overheard (
    scope_id bigint not null,
    id uuid not null,
    space_id integer not null,
    primary key (scope_id, id, space_id)
);
select protect_scoped('overheard');
create trigger erase_overheard after delete on memories
    referencing old table as forgotten for each statement execute function erase_with_memory('overheard', 'id');

-- What the message said that another one follows: its last characters, up to a number.
create function said_before(asked_scope bigint, asked_id uuid, most integer)
    returns table (parent_id uuid, speaker text, content text)
    language sql stable as $$
    select parent.id, parent.speaker, right(parent.content, most)
    from (
        select messages.parent_id from messages
        where messages.scope_id = asked_scope and messages.id between asked_id and asked_id
        order by messages.id limit 1
    ) message
    cross join lateral (
        select memories.id, memories.speaker, memories.content from memories
        where memories.scope_id = asked_scope and memories.id between message.parent_id and message.parent_id
        order by memories.id limit 1
    ) parent
$$;

-- Of what followed forgotten messages, vectors that hold their words go in the same statement, withheld ones too, and
-- wait to be made anew. What is purged goes as a whole: there is nothing to make anew.
create function erase_heard_vectors() returns trigger
    language plpgsql as $$
declare
    each record;
    space integer;
    followers uuid[];
    hearers uuid[];
begin
    for each in select scope_id, array_agg(id) as ids from forgotten where kind = 'message' group by scope_id loop
        followers := array(
            select follower.id from unnest(each.ids) as gone (id)
            cross join lateral (
                select messages.id, messages.conversation_id from messages
                where messages.scope_id = each.scope_id and messages.parent_id between gone.id and gone.id
                order by messages.parent_id
            ) follower
            cross join lateral (
                select conversations.state from conversations
                where conversations.scope_id = each.scope_id
                  and conversations.id between follower.conversation_id and follower.conversation_id
                order by conversations.id limit 1
            ) talk
            where talk.state <> 'purging');
        continue when cardinality(followers) = 0;
        for space in select id from embedding_spaces loop
            hearers := array(select id from overheard
                             where scope_id = each.scope_id and id = any (followers) and space_id = space);
            continue when cardinality(hearers) = 0;
            execute format('delete from %I where scope_id = $1 and id = any ($2)', 'vectors_' || space)
                using each.scope_id, hearers;
            delete from withheld_vectors
            where scope_id = each.scope_id and id = any (hearers) and space_id = space;
            insert into pending_embeddings (scope_id, id)
            select each.scope_id, memories.id from memories
            where memories.scope_id = each.scope_id and memories.id = any (hearers) and memories.withheld is null
              and exists (select from embedding_spaces active where active.id = space and active.state = 'active')
            on conflict do nothing;
        end loop;
        delete from overheard where scope_id = each.scope_id and id = any (followers);
    end loop;
    return null;
end $$;
-- Triggers run in the order of their names: this one before `erase_messages`, which gives the followers another parent.
create trigger erase_heard_vectors after delete on memories
    referencing old table as forgotten for each statement execute function erase_heard_vectors();

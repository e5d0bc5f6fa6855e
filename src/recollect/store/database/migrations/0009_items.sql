-- Items: JSON values under a path and a key of the caller's own; the text of one can be a memory.

create table items (
    scope_id bigint not null,
    -- The segments, each closed by U+001F: what lies under a path is then one range of this order.
    path text collate "C" not null,
    key text collate "C" not null,
    value jsonb not null,
    text text not null,
    embedding vector,
    memory_id uuid,
    revision bigint not null check (revision > 0),
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (scope_id, path, key)
);
-- What callers keep is nothing for the planner's samples.
alter table items
    alter path set statistics 0, alter key set statistics 0, alter value set statistics 0,
    alter text set statistics 0, alter embedding set statistics 0;
select protect_scoped('items');
create unique index items_by_memory on items (scope_id, memory_id) where memory_id is not null;
create trigger erase_items after delete on memories
    referencing old table as forgotten for each statement execute function erase_side_rows('items', 'memory_id');

-- One by one, each by its key: joined with a list of names, all items of the scope would be read.
create function drop_items(asked_scope bigint, paths text[], keys text[]) returns void
    language plpgsql as $$
begin
    for place in 1 .. cardinality(paths) loop
        delete from items where scope_id = asked_scope and path = paths[place] and key = keys[place];
    end loop;
end $$;

-- Whether a field stands before, at or after another value: numbers by size, all else by its text. Null if one is null.
create function compare_field(field jsonb, operand jsonb) returns integer
    language sql immutable parallel safe
    return case
        when jsonb_typeof(field) = 'number' and jsonb_typeof(operand) = 'number'
            then sign(field::numeric - operand::numeric)::integer
        when (field #>> '{}') collate "C" < (operand #>> '{}') collate "C" then -1
        when (field #>> '{}') collate "C" = (operand #>> '{}') collate "C" then 0
        when (field #>> '{}') collate "C" > (operand #>> '{}') collate "C" then 1
    end;

-- Whether a field of an item's value, or of metadata, is as asked; one that is not there is like nothing. The operand
-- of `$in` and `$contains` has no lists or objects within. Immutable in all its parts, so that the planner writes it out.
create function field_meets(field jsonb, operator text, operand jsonb) returns boolean
    language sql immutable parallel safe
    return case operator
        when '$eq' then field = operand
        when '$ne' then field <> operand
        when '$gt' then compare_field(field, operand) > 0
        when '$gte' then compare_field(field, operand) >= 0
        when '$lt' then compare_field(field, operand) < 0
        when '$lte' then compare_field(field, operand) <= 0
        when '$in' then jsonb_typeof(field) not in ('array', 'object') and operand @> field
        when '$contains' then case jsonb_typeof(field)
            when 'array' then field @> operand
            when 'string' then jsonb_typeof(operand) = 'string' and strpos(field #>> '{}', operand #>> '{}') > 0
        end
        when '$exists' then (field is not null) = operand::boolean
    end;

-- Whether all fields of an item's value are as asked, each by its operator.
create function meets(value jsonb, fields text[], operators text[], operands jsonb[]) returns boolean
    language plpgsql immutable parallel safe as $$
begin
    for place in 1 .. cardinality(fields) loop
        if field_meets(value -> fields[place], operators[place], operands[place]) is not true then
            return false;
        end if;
    end loop;
    return true;
end $$;

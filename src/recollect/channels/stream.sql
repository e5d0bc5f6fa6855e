-- name: newest
select * from {rank}(
    %(scope_id)s, %(vector)s::{type}, %(kinds)s::text[], %(before)s::uuid,
    %(weights)s::double precision[], %(decay)s, %(horizon)s, %(limit)s::integer
)

-- name: near
select * from {rank}(
    %(scope_id)s, %(vector)s::{type}, %(opposite)s::{type}, %(kinds)s::text[],
    %(weights)s::double precision[], %(decay)s, %(horizon)s, %(limit)s
)

-- name: whole
select * from {rank}(
    %(scope_id)s, %(vector)s::{type}, %(kinds)s::text[], %(min_trust)s::smallint, %(before)s::uuid, {allowed},
    %(weights)s::double precision[], %(decay)s, %(mode)s, %(limit)s::integer
)

-- name: then
-- All memories are ranked first, because it is not known earlier how many of them existed at that time.
select * from ({ranking}) as ranked
where true{then}
order by score desc, id desc
limit %(most)s

// name: constrain_entities
CREATE CONSTRAINT recollect_entities_{g} IF NOT EXISTS FOR (e:Entity_{g}) REQUIRE (e.scope, e.id) IS UNIQUE

// name: index_scopes
CREATE INDEX recollect_entities_by_scope_{g} IF NOT EXISTS FOR (e:Entity_{g}) ON (e.scope)

// name: constrain_positions
CREATE CONSTRAINT recollect_positions_{g} IF NOT EXISTS FOR (p:MirrorPosition_{g}) REQUIRE p.scope IS UNIQUE

// name: constrain_facts
CREATE CONSTRAINT recollect_facts IF NOT EXISTS FOR ()-[f:FACT]-() REQUIRE (f.generation, f.scope, f.id) IS UNIQUE

// name: await_indexes
CALL db.awaitIndexes(60)

// name: show
// Others who read the graph see what has the plain label.
MATCH (e:Entity_{g}) WHERE NOT e:Entity
CALL (e) {{ SET e:Entity }} IN TRANSACTIONS OF 10000 ROWS

// name: hide
MATCH (e:Entity) WHERE NOT e:Entity_{g} AND any(label IN labels(e) WHERE label STARTS WITH "Entity_{family}")
CALL (e) {{ REMOVE e:Entity }} IN TRANSACTIONS OF 10000 ROWS

// name: remove
MATCH (e:Entity_{g})
CALL (e) {{ DETACH DELETE e }} IN TRANSACTIONS OF 10000 ROWS

// name: remove_positions
MATCH (p:MirrorPosition_{g})
CALL (p) {{ DELETE p }} IN TRANSACTIONS OF 10000 ROWS

// name: drop_entities
DROP CONSTRAINT recollect_entities_{g} IF EXISTS

// name: drop_scopes
DROP INDEX recollect_entities_by_scope_{g} IF EXISTS

// name: drop_positions
DROP CONSTRAINT recollect_positions_{g} IF EXISTS

// name: hold
// Every scope is locked until the transaction ends; one that has followed further takes nothing older.
UNWIND $scopes AS asked
MERGE (p:MirrorPosition_{g} {{scope: asked.scope}})
SET p.held = true
WITH p, asked WHERE coalesce(p.version, -1) <= asked.version
SET p.version = asked.version
RETURN p.scope AS scope

// name: delete_facts
UNWIND $rows AS row
MATCH (a)-[f:FACT {{generation: "{g}", scope: row.scope, id: row.id}}]->(b)
DELETE f
RETURN a.scope AS scope, a.id AS subject, b.id AS object

// name: merge_entities
UNWIND $rows AS row
MERGE (e:Entity_{g} {{scope: row.scope, id: row.id}})
SET e = row.values, e.scope = row.scope, e.id = row.id{label}

// name: leave_merged
UNWIND $rows AS row
MATCH (e:Entity_{g} {{scope: row.scope, id: row.id}})-[m:MERGED_INTO]->()
DELETE m

// name: lead_on
UNWIND $rows AS row
MATCH (e:Entity_{g} {{scope: row.scope, id: row.id}})
MERGE (kept:Entity_{g} {{scope: row.scope, id: row.kept}})
MERGE (e)-[:MERGED_INTO]->(kept)

// name: merge_facts
UNWIND $rows AS row
MERGE (a:Entity_{g} {{scope: row.scope, id: row.subject}})
MERGE (b:Entity_{g} {{scope: row.scope, id: row.object}})
MERGE (a)-[f:FACT {{generation: "{g}", scope: row.scope, id: row.id}}]->(b)
SET f += row.values

// name: blank_entities
UNWIND $rows AS row
MATCH (e:Entity_{g} {{scope: row.scope, id: row.id}})
SET e = {{scope: row.scope, id: row.id}}
REMOVE e:Entity

// name: sweep_entities
// A node that only an end of a fact has made goes with the last of them.
UNWIND $rows AS row
MATCH (e:Entity_{g} {{scope: row.scope, id: row.id}})
WHERE e.name IS NULL AND NOT EXISTS {{ (e)--() }}
DELETE e

// name: advance
UNWIND $scopes AS asked
MATCH (p:MirrorPosition_{g} {{scope: asked.scope}})
SET p.position = asked.position

// name: positions
UNWIND $scopes AS asked
MATCH (p:MirrorPosition_{g} {{scope: asked}})
WHERE p.position IS NOT NULL
RETURN p.scope AS scope, p.position AS position

// name: held_facts
UNWIND $ids AS id
MATCH ()-[f:FACT {{generation: "{g}", scope: $scope, id: id}}]->()
RETURN f.id AS id

// name: held_entities
UNWIND $ids AS id
MATCH (e:Entity_{g} {{scope: $scope, id: id}})
WHERE e.name IS NOT NULL
RETURN e.id AS id

// name: walk_entities
MATCH (e:Entity_{g} {{scope: $scope}})
WHERE e.name IS NOT NULL AND e.id > $after
WITH e ORDER BY e.id LIMIT $limit
OPTIONAL MATCH (e)-[:MERGED_INTO]->(kept)
RETURN e.id AS id, properties(e) AS values, kept.id AS kept
ORDER BY id

// name: walk_facts
MATCH (a:Entity_{g} {{scope: $scope}})-[f:FACT]->(b)
WHERE f.id > $after
RETURN f.id AS id, properties(f) AS values, a.id AS subject, b.id AS object
ORDER BY id LIMIT $limit

// name: starts
// What the cue names, and what that was merged into.
MATCH (e:Entity_{g} {{scope: $scope}})
WHERE any(name IN e.names WHERE name IN $names)
MATCH (e)-[:MERGED_INTO*0..4]->(start)
RETURN DISTINCT start.id AS id LIMIT $limit

// name: touching
// The newest facts that were believed and true at these times.
UNWIND $ids AS id
MATCH (e:Entity_{g} {{scope: $scope, id: id}})-[f:FACT]-(other)
WHERE f.created_at <= $as_of AND (f.superseded_at IS NULL OR f.superseded_at > $as_of)
  AND (f.valid_at IS NULL OR f.valid_at <= $at) AND (f.invalid_at IS NULL OR f.invalid_at > $at)
RETURN DISTINCT f.id AS id, other.id AS other
ORDER BY id DESC LIMIT $limit

// name: beat
MERGE (p:MirrorPosition_{g} {{scope: -1}})
SET p.position = CASE WHEN coalesce(p.position, 0) < $beats THEN $beats ELSE p.position END

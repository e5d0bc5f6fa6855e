"""A graph is written so that other programs read back exactly what was remembered, whatever that holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.core.knowledge.graph_export import ADD_ENTITIES, ADD_FACTS, UNWRITABLE, CypherText, GraphmlText
from recollect.models.knowledge import Entity, EntityType, Relation

MAY = datetime(2025, 5, 1, 12, tzinfo=UTC)
MARKUP = "{http://graphml.graphdrawing.org/xmlns}"
HOSTILE = (
    "\"quoted\" & 'single'",
    "</data></edge></graph>",
    "<![CDATA[ x ]]> <!-- y -->",
    "control \x01\x1f\x7f and \ufffe",
    "line\rreturn\nand\ttab",
    "emoji 🧠 and 李雷",
    "']) DETACH DELETE (n) //`",
    "$entities {id: 1} \\u0022",
)


def relate(number, subject, predicate, object_, text="said"):
    ends = [Entity(UUID(int=1 + hash(name) % 10**9), name, EntityType.THING) for name in (subject, object_)]
    identity = UUID(int=number)
    return Relation(identity, identity, 1, ends[0], predicate, ends[1], text, MAY, None, MAY)


def write(text, *pages):
    return text.begin() + "".join(map(text.write_page, pages)) + text.write_end()


def read_graphml(written):
    graph = ElementTree.fromstring(written).find(f"{MARKUP}graph")
    values = {each.get("id"): {data.get("key"): data.text or "" for data in each} for each in graph}
    return [each.tag.removeprefix(MARKUP) for each in graph], values


@pytest.mark.parametrize("hostile", HOSTILE)
def test_graphml_holds_any_text(hostile):
    relation = relate(7, hostile, hostile, "plain", hostile)
    _, values = read_graphml(write(GraphmlText(), [relation]))
    shown = UNWRITABLE.sub("\ufffd", hostile)
    assert values[str(relation.subject.id)] == {"node_name": shown, "node_type": "thing"}
    fact = values[str(relation.memory_id)]
    assert (fact["edge_predicate"], fact["edge_text"]) == (shown, shown)
    assert (fact["edge_valid_at"], fact["edge_version"]) == ("2025-05-01T12:00:00+00:00", "1")
    assert "edge_invalid_at" not in fact


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_graphml_gives_back_what_went_in(text):
    _, values = read_graphml(write(GraphmlText(), [relate(7, "a", "b", "c", text)]))
    assert values[str(UUID(int=7))]["edge_text"] == UNWRITABLE.sub("\ufffd", text)


def test_graphml_declares_every_field_and_names_each_entity_once_before_its_facts():
    pages = [relate(1, "ada", "knows", "bob")], [relate(2, "bob", "knows", "cem"), relate(3, "ada", "knows", "cem")]
    written = write(GraphmlText(), *pages)
    order, values = read_graphml(written)
    assert order == ["node", "node", "edge", "node", "edge", "edge"]
    declared = {key.get("id") for key in ElementTree.fromstring(written).iter(f"{MARKUP}key")}
    assert declared >= {key for each in values.values() for key in each}
    ends = {each.get("source") for each in ElementTree.fromstring(written).iter(f"{MARKUP}edge")}
    assert ends <= values.keys()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_cypher_is_always_the_same_text_and_everything_else_a_parameter(hostile):
    relation = relate(7, hostile, hostile, "plain", hostile)
    statements = json.loads(write(CypherText(), [relation], [relate(8, "plain", "p", hostile)]))["statements"]
    assert [each["statement"] for each in statements] == [ADD_ENTITIES, ADD_FACTS, ADD_FACTS]
    assert hostile in [each["name"] for each in statements[0]["parameters"]["entities"]]
    [fact] = statements[1]["parameters"]["facts"]
    assert (fact["predicate"], fact["text"], fact["version"]) == (hostile, hostile, 1)
    assert fact["valid_at"] == "2025-05-01T12:00:00+00:00"
    assert fact["invalid_at"] is None


def test_an_empty_graph_is_a_whole_document():
    assert read_graphml(write(GraphmlText())) == ([], {})
    assert json.loads(write(CypherText())) == {"statements": []}

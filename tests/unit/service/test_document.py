"""The document says what an answer always has, so that a generated client need not check for it."""

from __future__ import annotations

import re

import pytest

from recollect.core.service.positions import read_positions, write_positions
from recollect.doors.http.app import create_app
from recollect.doors.http.document import require_answers
from recollect.settings import Settings

OF_REQUESTS = {"OfScope", "RetrievalSetting", "MetadataCondition", "FieldTest"}
"""What bodies are made of."""


@pytest.fixture(scope="module")
def document():
    return create_app(Settings(embedder="fake")).openapi()


@pytest.fixture(scope="module")
def schemas(document):
    return document["components"]["schemas"]


def missing(schema):
    return {*schema.get("properties", ())} - {*schema.get("required", ())}


def test_a_memory_has_all_its_fields(schemas):
    assert {"conversation", "role", "pinned", "expires_at"} <= {*schemas["Memory"]["required"]}
    assert missing(schemas["Memory"]) == set()


def test_every_answer_requires_its_fields_and_no_request_is_changed(schemas):
    optional = {name for name, schema in schemas.items() if missing(schema) and not name.endswith("Body")}
    # The last leaves out what is null.
    assert optional == OF_REQUESTS | {"Health"}
    assert {"text", "limit", "user"} <= missing(schemas["RecallBody"])


def test_what_is_sent_as_well_stays_optional():
    both, given = {"properties": {"a": {}}}, {"properties": {"b": {"$ref": "#/components/schemas/Both"}}}
    document = {
        "components": {"schemas": {"Both": both, "Given": given}},
        "paths": {
            "/x": {
                "post": {
                    "requestBody": {"schema": {"$ref": "#/components/schemas/Both"}},
                    "responses": {"200": {"schema": {"$ref": "#/components/schemas/Given"}}},
                }
            }
        },
    }
    require_answers(document)
    assert "required" not in both
    assert given["required"] == ["b"]


def test_every_answer_describes_the_header_of_replicas(document):
    for path, operations in document["paths"].items():
        for operation in operations.values():
            done = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            shown = all("Recollect-Position" in answer.get("headers", {}) for answer in done)
            assert shown == path.startswith("/v1/"), path


def test_positions_are_described_as_they_are_read_and_written(document):
    form = re.compile(document["components"]["headers"]["Position"]["schema"]["pattern"])
    for written in ("0.1.0/16B3748", "1.2.A/0,2.1.FFFFFFFF/FFFFFFFF", "1.2.A/0, 2.1.0/1"):
        assert form.search(written) and read_positions(written)
        assert form.search(write_positions(read_positions(written)))
    for wrong in ("", "x", "1.2", "0.1.0/16b3748", "0.1.0/16B3748;", "0.1.0/16B3748,"):
        assert not form.search(wrong)

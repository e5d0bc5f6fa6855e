"""The document says what an answer always has, so that a generated client need not check for it."""

from __future__ import annotations

import pytest

from recollect.doors.http.app import create_app
from recollect.doors.http.document import require_answers
from recollect.settings import Settings

OF_REQUESTS = {"RetrievalSetting", "MetadataCondition", "FieldTest"}
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

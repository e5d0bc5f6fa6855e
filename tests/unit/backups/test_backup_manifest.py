"""A backup's manifest is read back as it was written, and what is no manifest is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.core.backups.manifest import (
    BackupFile,
    BackupManifest,
    RecordDescription,
    read_manifest,
    write_manifest,
)
from recollect.errors import InvalidInputError
from recollect.models.outside import BackupKind

RECORD = RecordDescription(UUID(int=1), "recollect", "0042", 170_002, ("owner", "reader"), {"memories": 3})
MANIFEST = BackupManifest(
    datetime(2026, 3, 1, 8, tzinfo=UTC), next(iter(BackupKind)), "1.2.3", RECORD, {"dump": BackupFile(12, "ab" * 32)},
    "/var/log/erasures", {"a": 5},
)  # fmt: skip


@pytest.mark.parametrize("kind", BackupKind)
@pytest.mark.parametrize("rows", [{"memories": 3}, None])
def test_a_manifest_is_read_back_as_it_was(kind, rows):
    manifest = replace(MANIFEST, kind=kind, record=replace(RECORD, rows=rows))
    assert read_manifest(write_manifest(manifest)) == manifest


def test_a_manifest_is_json_for_people_to_read():
    lines = write_manifest(MANIFEST).splitlines()
    assert lines[:2] == ["{", ' "format": 1,']
    assert json.loads(write_manifest(MANIFEST))["record"]["incarnation"] == str(UUID(int=1))


def without(*path: str) -> dict[str, object]:
    given = json.loads(write_manifest(MANIFEST))
    inner = given
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return given


WHOLE = json.loads(write_manifest(MANIFEST))


@pytest.mark.parametrize("path", [*((each,) for each in WHOLE), *(("record", each) for each in WHOLE["record"])])
def test_a_manifest_that_lacks_something_is_refused(path):
    with pytest.raises(InvalidInputError):
        read_manifest(json.dumps(without(*path)))


@pytest.mark.parametrize(
    "change",
    [
        *({"format": 2}, {"format": 0}, {"made_at": "soon"}, {"kind": "odd"}, {"record": []}, {"files": []}),
        *({"files": {"dump": {"bytes": 1}}}, {"position": 5}, {"record": WHOLE["record"] | {"incarnation": "x"}}),
    ],
)
def test_a_manifest_of_another_form_is_refused(change):
    with pytest.raises(InvalidInputError):
        read_manifest(json.dumps(WHOLE | change))


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_another_file_is_no_manifest(text):
    with pytest.raises(InvalidInputError):
        read_manifest(text)

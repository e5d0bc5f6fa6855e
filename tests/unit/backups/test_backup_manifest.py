"""A backup's manifest is read back as it was written, and anything else is refused."""

from __future__ import annotations

import json

import pytest

from recollect.core.backups.manifest import BackupManifest, read_manifest, write_manifest
from recollect.errors import InvalidInputError

MANIFEST = BackupManifest("1.2.3", "ab" * 32, "create role reader;\n", "/var/log/erasures", {"a": 5})
WHOLE = json.loads(write_manifest(MANIFEST))


def test_a_manifest_is_read_back_as_it_was():
    assert read_manifest(write_manifest(MANIFEST)) == MANIFEST


def test_a_manifest_is_json_for_people_to_read():
    assert write_manifest(MANIFEST).splitlines()[:2] == ["{", ' "format": 1,']


@pytest.mark.parametrize("name", WHOLE)
def test_a_manifest_that_lacks_something_is_refused(name):
    with pytest.raises(InvalidInputError):
        read_manifest(json.dumps({key: value for key, value in WHOLE.items() if key != name}))


@pytest.mark.parametrize("change", [{"format": 2}, {"format": 0}, {"position": 5}, {"position": {"a": "x"}}])
def test_a_manifest_of_another_form_is_refused(change):
    with pytest.raises(InvalidInputError):
        read_manifest(json.dumps(WHOLE | change))


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_another_file_is_no_manifest(text):
    with pytest.raises(InvalidInputError):
        read_manifest(text)

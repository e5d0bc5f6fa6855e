"""Exports are opened wherever they lie, and long lists are read entry by entry."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.doors.imports import files
from recollect.doors.imports.files import read_documents
from recollect.errors import InvalidInputError
from recollect.models.imports import Format
from support.imports.foreign_exports import chatgpt_line, zip_up


def write(folder, content, name="export.json"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def values(path, wanted=Format.CHATGPT):
    return [document.value for document in read_documents(path, wanted)]


def test_a_list_is_read_entry_by_entry_and_anything_else_whole(tmp_path):
    path = write(tmp_path, '\ufeff [ {"a": "茶"} ,\n 5, "x", null, [1, [2]], 6]')
    assert values(path) == [{"a": "茶"}, 5, "x", None, [1, [2]], 6]
    assert values(path, Format.MEM0) == [[{"a": "茶"}, 5, "x", None, [1, [2]], 6]]
    assert values(write(tmp_path, '{"mapping": {}}')) == [{"mapping": {}}]
    assert values(write(tmp_path, "[]")) == []


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(entries=st.lists(JSON_VALUES, max_size=8), chunk=st.integers(1, 40), indent=st.none() | st.integers(0, 2))
def test_where_the_pieces_end_makes_no_difference(tmp_path_factory, entries, chunk, indent):
    path = write(tmp_path_factory.mktemp("lists"), json.dumps(entries, ensure_ascii=False, indent=indent))
    before, files.CHUNK = files.CHUNK, chunk
    try:
        assert values(path) == entries
    finally:
        files.CHUNK = before


@pytest.mark.parametrize("content", ["", "[", "[{]", '[{"a": 1}', "[1 2", "no", b"\xff\xfe[", '{"a": ', "[" * 200_000])
@pytest.mark.parametrize("wanted", [Format.CHATGPT, Format.MEM0])
def test_what_is_no_json_is_said_in_one_sentence(tmp_path, content, wanted):
    with pytest.raises(InvalidInputError) as refused:
        values(write(tmp_path, content), wanted)
    assert str(refused.value) == files.NO_JSON


def test_a_zip_gives_the_conversations_that_are_in_it(tmp_path):
    one, two = chatgpt_line("one", ["a"]), chatgpt_line("two", ["b"])
    inside = {
        "export/conversations-001.json": [two], "export/conversations-000.json": [one], "export/user.json": {},
        "__MACOSX/export/conversations-000.json": "junk", "export/shared_conversations.json": [1],
    }  # fmt: skip
    documents = list(read_documents(write(tmp_path, zip_up(inside), "x.zip"), Format.CHATGPT))
    assert [document.value for document in documents] == [one, two]
    assert documents[-1].done == documents[-1].total
    claude = {"conversations.json": [{"uuid": "x"}], "memories.json": [{"m": 1}], "users.json": [2]}
    assert values(write(tmp_path, zip_up(claude), "c.zip"), Format.CLAUDE) == [{"uuid": "x"}, {"m": 1}]
    with pytest.raises(InvalidInputError, match="No chatgpt export in this zip file"):
        values(write(tmp_path, zip_up({"photo.txt": "x"}), "y.zip"))


def test_a_long_list_is_not_held_at_once(tmp_path):
    path = tmp_path / "long.json"
    with path.open("w") as opened:
        opened.write("[" + ",".join(json.dumps({"text": "x" * 100_000}) for _ in range(300)) + "]")
    tracemalloc.start()
    assert sum(1 for _ in read_documents(path, Format.CHATGPT)) == 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 3

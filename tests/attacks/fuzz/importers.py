"""Importers: whatever a file of another system holds, what is found in it can be stored, each thing once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

from attacks.fuzz.edits import Choices, edit
from recollect.core.conversations.appends import check_message
from recollect.core.imports import parsed
from recollect.core.imports.formats import READERS, guess, refuse
from recollect.core.imports.parsed import ImportedData
from recollect.core.knowledge.new_facts import check_new_fact
from recollect.core.memories.checks import check_metadata, check_new_memory
from recollect.doors.imports.files import Member, read_list
from recollect.errors import InvalidInputError
from recollect.models.imports import FileImport, Format
from recollect.models.service import is_scope_name
from support.imports.foreign_exports import (
    chatgpt_conversation,
    chatgpt_line,
    chatgpt_node,
    claude_conversation,
    claude_message,
    graphiti_edge,
    graphiti_episode,
    graphiti_node,
    letta_block,
    letta_file,
    letta_message,
    letta_passage,
    letta_user,
    mem0_memory,
    mem0_point,
    zep_message,
    zep_thread,
)

WATCHED = "recollect.core.imports recollect.core.conversations.threads recollect.doors.imports.files"
BRANCHES = [
    chatgpt_node("root", None),
    chatgpt_node("q", "root", "user", "q", 0),
    chatgpt_node("old", "q", "assistant", "old answer", 1),
    chatgpt_node("new", "q", "assistant", "new answer", 2),
    chatgpt_node("call", "new", "assistant", "print(1)", 3, recipient="python"),
    chatgpt_node("result", "call", "tool", "1", 4),
]
BLOCKS = [{"type": "text", "text": "hm"}, {"type": "tool_use", "name": "search", "input": {"q": "tea"}}]
DOCUMENTS = (
    (Format.MEM0, {"results": [mem0_memory("likes tea"), mem0_memory("is late", run_id="r", agent_id="a")]}),
    (Format.MEM0, {"points": [mem0_point("likes tea"), mem0_point("is late")]}),
    (
        Format.LETTA,
        letta_file([letta_user("hello"), letta_message("assistant", "hi", 1)], [letta_block("human", "Li")]),
    ),
    (Format.LETTA, [letta_passage("likes tea", "tag")]),
    (Format.ZEP, {"threads": [zep_thread("t", [zep_message("hi", "user", "Li"), zep_message("ho", "ai", "Ada", 1)])]}),
    (
        Format.GRAPHITI,
        {
            "nodes": [graphiti_node("Ann", "a gardener", "Person"), graphiti_node("Rome")],
            "edges": [graphiti_edge("Ann", "LIVES_IN", "Rome", "Ann lives in Rome")],
            "episodes": [graphiti_episode("Ann: I live in Rome"), graphiti_episode("more", 1)],
        },
    ),
    (Format.CHATGPT, chatgpt_conversation("t", BRANCHES, current="new")),
    (Format.CHATGPT, chatgpt_line("t", ["喝什么茶？", "乌龙。", "谢谢"])),
    (Format.CLAUDE, claude_conversation("t", [claude_message("q"), claude_message("a", "assistant", 1, BLOCKS)])),
)
AS_BYTES = len(DOCUMENTS)


def list_seeds() -> Iterator[bytes]:
    for number, (_, document) in enumerate(DOCUMENTS):
        yield bytes([number, 0, 0, 0, 1, 0, 2, 0, 3, 0])
        yield bytes([AS_BYTES, 0]) + json.dumps([document]).encode()[:2_000]


def check(data: bytes) -> None:
    choices = Choices(data)
    number = choices.number(AS_BYTES + 1)
    if number == AS_BYTES:
        check_file(choices.rest())
        return
    wanted, document = DOCUMENTS[number]
    document = edit(document, choices)
    try:
        read = READERS[wanted].read(document)
    except InvalidInputError:
        assert isinstance(refuse(FileImport(wanted, "ada"), document), InvalidInputError)
        return
    guess(document)
    check_found(read, len(repr(document)))


def check_file(data: bytes) -> None:
    try:
        documents = list(read_list(Member(io.BytesIO(data), 0, len(data))))
    except (InvalidInputError, UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        # The one caller turns the others into the first.
        return
    assert len(documents) <= len(data)
    assert all(each.done <= each.total == len(data) for each in documents)


def check_found(read: ImportedData, size: int) -> None:
    assert len(read.memories) + len(read.facts) + sum(len(each.messages) for each in read.conversations) <= size
    for each in read.memories:
        check_new_memory(each.memory)
    for each in read.facts:
        check_new_fact(each.fact)
    for each in (*read.memories, *read.facts, *read.conversations):
        assert all(isinstance(value, str) for value in each.owner.values())
    for conversation in read.conversations:
        assert is_scope_name(conversation.id)
        check_metadata(conversation.metadata)
        before: set[str | None] = {None}
        for each in conversation.messages:
            check_message(each.message)
            assert each.parent in before
            assert each.key not in before
            before.add(each.key)
    assert all(count >= 0 for count in (*read.seen.values(), *read.remarks.values()))


def plant() -> None:
    """Keep what cannot be stored."""
    parsed.clean = lambda text, _: text
    parsed.check_new_memory = parsed.check_message = lambda _: None

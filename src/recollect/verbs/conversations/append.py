"""Append: write messages, their order, their costs and their memories in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.core.conversations.appends import (
    Linked,
    check_conversation,
    check_messages,
    compare_context,
    find_before,
    fingerprint_messages,
    follow,
    link,
    texts_before,
    to_memory,
)
from recollect.core.conversations.messages import count_tokens
from recollect.core.text.checks import check_idempotency_key
from recollect.llm.tokens.count import Tokenizer
from recollect.models.conversations import LEGACY, Appended, ConversationState, NewMessage
from recollect.models.service import Caller, Scope
from recollect.store.conversations import conversations, lifecycle
from recollect.store.database.pool import Connection
from recollect.store.memories.columns import MessagePlace, Row
from recollect.store.service import jobs
from recollect.verbs.memories.remember import share, write_in_bulk
from recollect.verbs.memories.rows import (
    AlsoAsk,
    AlsoStore,
    Prepared,
    StoredBeside,
    Together,
    Write,
    embed_missing,
    prepare_all,
    prepare_in_time,
)
from recollect.verbs.parts import Parts

Counts = Sequence[Mapping[str, int]]


async def append(
    parts: Parts, caller: Caller, scope: Scope, conversation: str, new: Sequence[NewMessage], key: str = ""
) -> list[Appended]:
    """Append messages to a conversation, making it if it is new; the same key appends them once."""
    check_conversation(conversation)
    check_idempotency_key(key)
    # In a thread: the first count reads a vocabulary, and a long text takes time.
    counted = await asyncio.to_thread(check_and_count, parts.tokenizers, new)
    remembered = [to_memory(message) for message in new]
    prepared = await prepare_in_time(remembered)
    # The newest message is not read before the transaction: a vector that lacks it is made again by a job.
    vectors = await embed_missing(parts, remembered, texts_before(remembered, find_before(new)))
    linked: list[Linked] = []
    write = Write(
        caller,
        scope,
        prepared,
        vectors,
        key,
        fingerprint_messages(conversation, new) if key else b"",
        also_store(scope, conversation, new, counted, linked, enriching="segment" in parts.steps),
    )
    receipts = await share(parts, write)
    ids, position = [receipt.id for receipt in receipts], next((each.position for each in receipts), "")
    name = parts.tokenizers[0].name if parts.tokenizers else ""
    if not linked:
        # Only a repeated key links nothing.
        again = replay(await conversations.fetch_appended(parts.database, scope, ids), ids, name)
        return [replace(each, position=position) for each in again]
    return [
        Appended(each.id, each.number, each.parent, tokens.get(name, 0), position)
        for each, tokens in zip(linked, counted, strict=True)
    ]


async def append_each(
    parts: Parts, caller: Caller, scope: Scope, asked: Sequence[tuple[str, Sequence[NewMessage]]]
) -> list[list[UUID]]:
    """Append to several conversations in one bulk transaction and return the ids; vectors follow by a job."""
    for conversation, _ in asked:
        check_conversation(conversation)
    ready = await asyncio.to_thread(lambda: [count_and_prepare(parts.tokenizers, new) for _, new in asked])
    enriching = "segment" in parts.steps
    writes = [
        Write(caller, scope, prepared, None, "", b"", also_store(scope, name, new, counted, [], enriching=enriching))
        for (name, new), (counted, prepared) in zip(asked, ready, strict=True)
    ]
    return [[receipt.id for receipt in receipts] for receipts in await write_in_bulk(parts, writes)]


def count_and_prepare(tokenizers: Sequence[Tokenizer], new: Sequence[NewMessage]) -> tuple[Counts, list[Prepared]]:
    """Check messages, count what they cost, and analyse them."""
    return check_and_count(tokenizers, new), prepare_all([to_memory(message) for message in new])


def check_and_count(tokenizers: Sequence[Tokenizer], new: Sequence[NewMessage]) -> Counts:
    """Check everything one call wants appended, and count what it costs."""
    check_messages(new)
    return count_all(tokenizers, new)


def count_all(tokenizers: Sequence[Tokenizer], new: Sequence[NewMessage]) -> Counts:
    """Count what every message costs by every tokenizer."""
    return [
        {each.name: count_tokens(message, each.count, each.frame, each.naming) for each in tokenizers}
        for message in new
    ]


def also_store(
    scope: Scope,
    conversation: str,
    new: Sequence[NewMessage],
    counted: Counts,
    linked: list[Linked],
    *,
    enriching: bool,
) -> AlsoAsk:
    """Prepare what is written together with the memories; `linked` holds it when it is done."""
    named = [message.parent for message in new if isinstance(message.parent, UUID) and message.parent != LEGACY]

    async def ask(connection: Connection) -> AlsoStore:
        asked = await conversations.ask_opened(connection, scope, conversation, named)

        async def store(connection: Connection, scope_id: int, rows: Sequence[Row], together: Together) -> StoredBeside:
            found = await conversations.read_opened(asked)
            before_us = together.conversations.get(conversation)
            opened = replace(before_us, named=found.named) if before_us else found
            # Another attempt may have been made before this one.
            linked[:] = link(new, [row.id for row in rows], opened)
            together.conversations[conversation] = follow(opened, linked)
            moments: list[datetime] = [row.occurred_at for row in rows]
            await conversations.store(connection, scope_id, conversation, linked, counted, moments)
            if opened.state is not ConversationState.ACTIVE:
                # The next message restores an archived conversation: its memories follow by a job.
                await lifecycle.defer_sync(connection, scope_id)
            if enriching:
                await jobs.defer_enrichment(connection, scope_id)
            before = find_before(new)
            heard = compare_context(linked, before, texts_before([row.memory for row in rows], before))
            return StoredBeside([stand(row, conversation, each) for row, each in zip(rows, linked, strict=True)], heard)

        return store

    return ask


def stand(row: Row, conversation: str, linked: Linked) -> Row:
    """Tell of a row where its message stands."""
    return replace(row, place=MessagePlace(conversation, linked.message.role, linked.number))


def replay(rows: Sequence[Mapping[str, Any]], ids: Sequence[UUID], tokenizer: str) -> list[Appended]:
    """Answer a repeated key as the first time; what was forgotten meanwhile is left out."""
    found = {row["id"]: row for row in rows}
    return [
        Appended(identity, row["number"], row["parent_id"], row["tokens"].get(tokenizer, 0))
        for identity in ids
        if (row := found.get(identity))
    ]

"""Append: write messages, their order, their costs and their memories in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from recollect.core.conversations.appends import (
    PositionedMessage,
    advance_conversation,
    check_conversation,
    check_messages,
    compare_context,
    find_before,
    fingerprint_messages,
    link,
    texts_before,
    to_memory,
)
from recollect.core.conversations.messages import count_tokens
from recollect.core.conversations.repeats import sort_out
from recollect.core.text.checks import check_idempotency_key
from recollect.errors import ConflictError, InvalidInputError
from recollect.llm.tokens.count import Tokenizer
from recollect.models.conversations import LEGACY, ConversationState, MessageReceipt, NewMessage
from recollect.models.memories import Receipt
from recollect.models.service import Caller, Scope
from recollect.store.conversations import conversations, lifecycle
from recollect.store.database.pool import Connection
from recollect.store.memories.columns import MessagePlace, Row
from recollect.store.service import jobs
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.memories.remember import write_in_bulk, write_shared
from recollect.verbs.memories.rows import (
    BatchState,
    ExtraQuery,
    ExtraWrite,
    LinkedRows,
    PreparedMemory,
    Write,
    embed_missing,
    merge_receipts,
    prepare_all,
    prepare_in_time,
)

Counts = Sequence[Mapping[str, int]]


async def append(
    parts: Dependencies, caller: Caller, scope: Scope, conversation: str, new: Sequence[NewMessage], key: str = ""
) -> list[MessageReceipt]:
    """Append messages to a conversation, creating it if needed; a known key or `external_id` stores nothing again."""
    check_conversation(conversation)
    check_idempotency_key(key)
    # In a thread: the first count reads a vocabulary, and a long text takes time.
    counted = await asyncio.to_thread(check_and_count, parts.tokenizers, new)
    write = Write(caller, scope, [], None, key, fingerprint_messages(conversation, new) if key else b"")
    fetch = partial(conversations.fetch_stored, parts.database, scope, conversation, list_external_ids(new))
    stored = await fetch()
    while True:
        try:
            fresh, known = sort_out(new, stored)
            return await append_new(parts, replace(write, known=known), conversation, fresh, counted)
        except (ConflictError, InvalidInputError):
            # Another call may have stored or forgotten one of the messages since they were read.
            before, stored = stored, await fetch()
            if stored == before:
                raise


def list_external_ids(messages: Sequence[NewMessage]) -> list[str]:
    """List the external IDs of messages, each once."""
    return [*dict.fromkeys(message.external_id for message in messages if message.external_id)]


async def append_new(
    parts: Dependencies, write: Write, conversation: str, fresh: Mapping[int, NewMessage], counted: Counts
) -> list[MessageReceipt]:
    """Append the new messages, and return the receipts of all."""
    new, counted = [*fresh.values()], [counted[place] for place in fresh]
    remembered = [to_memory(message) for message in new]
    prepared = await prepare_in_time(remembered)
    # The newest message is not read before the transaction: a job replaces a vector that lacks it.
    vectors = await embed_missing(parts, remembered, texts_before(remembered, find_before(new)))
    linked: list[PositionedMessage] = []
    ask = link_messages(write.scope, conversation, new, counted, linked, enriching="segment" in parts.steps)
    write = replace(write, prepared=prepared, vectors=vectors, also_ask=ask)
    receipts = await write_shared(parts, write) if new else merge_receipts([], write.known)
    name = parts.tokenizers[0].name if parts.tokenizers else ""
    if linked and not write.known:
        return [
            MessageReceipt(each.id, each.number, each.parent, tokens.get(name, 0))
            for each, tokens in zip(linked, counted, strict=True)
        ]
    rows = await conversations.fetch_appended(parts.database, write.scope, [each.id for each in receipts])
    found = {row["id"]: row for row in rows}
    return [to_appended(each, found.get(each.id), name) for each in receipts]


async def append_each(
    parts: Dependencies, caller: Caller, scope: Scope, asked: Sequence[tuple[str, Sequence[NewMessage]]]
) -> list[list[UUID]]:
    """Append to several conversations in one bulk transaction and return the IDs; a job adds the vectors."""
    for conversation, _ in asked:
        check_conversation(conversation)
    ready = await asyncio.to_thread(lambda: [count_and_prepare(parts.tokenizers, new) for _, new in asked])
    enriching = "segment" in parts.steps
    writes = [
        Write(caller, scope, prepared, None, "", b"", link_messages(scope, name, new, counted, [], enriching=enriching))
        for (name, new), (counted, prepared) in zip(asked, ready, strict=True)
    ]
    return [[receipt.id for receipt in receipts] for receipts in await write_in_bulk(parts, writes)]


def count_and_prepare(
    tokenizers: Sequence[Tokenizer], new: Sequence[NewMessage]
) -> tuple[Counts, list[PreparedMemory]]:
    """Check messages, count their tokens, and analyze them."""
    return check_and_count(tokenizers, new), prepare_all([to_memory(message) for message in new])


def check_and_count(tokenizers: Sequence[Tokenizer], new: Sequence[NewMessage]) -> Counts:
    """Check all messages of one call, and count the tokens of each with every tokenizer."""
    check_messages(new)
    return [
        {each.name: count_tokens(message, each.count, each.frame, each.naming) for each in tokenizers}
        for message in new
    ]


def link_messages(
    scope: Scope,
    conversation: str,
    new: Sequence[NewMessage],
    counted: Counts,
    linked: list[PositionedMessage],
    *,
    enriching: bool,
) -> ExtraQuery:
    """Prepare the rows that are written together with the memories; fills `linked` on execution."""
    named = [message.parent for message in new if isinstance(message.parent, UUID) and message.parent != LEGACY]

    async def query_conversation(connection: Connection) -> ExtraWrite:
        asked = await conversations.ask_opened(connection, scope, conversation, named, list_external_ids(new))

        async def store_linked_messages(
            connection: Connection, scope_id: int, rows: Sequence[Row], together: BatchState
        ) -> LinkedRows:
            found = await conversations.read_opened(asked)
            before_us = together.conversations.get(conversation)
            opened = replace(before_us, named=found.named) if before_us else found
            # There may have been an earlier attempt.
            linked[:] = link(new, [row.id for row in rows], opened)
            together.conversations[conversation] = advance_conversation(opened, linked)
            moments: list[datetime] = [row.occurred_at for row in rows]
            await conversations.store_messages(connection, scope_id, conversation, linked, counted, moments)
            if opened.state is not ConversationState.ACTIVE:
                # The next message restores an archived conversation: a job restores its memories.
                await lifecycle.defer_sync(connection, scope_id)
            if enriching:
                await jobs.defer_enrichment(connection, scope_id)
            before = find_before(new)
            heard = compare_context(linked, before, texts_before([row.memory for row in rows], before))
            return LinkedRows(
                [place_message(row, conversation, each) for row, each in zip(rows, linked, strict=True)], heard
            )

        return store_linked_messages

    return query_conversation


def place_message(row: Row, conversation: str, linked: PositionedMessage) -> Row:
    """Set the position of a row's message."""
    return replace(row, place=MessagePlace(conversation, linked.message.role, linked.number))


def to_appended(receipt: Receipt, row: Mapping[str, Any] | None, tokenizer: str) -> MessageReceipt:
    """Return the receipt of a message that was stored before; without a row, it was forgotten."""
    if row is None:
        return MessageReceipt(receipt.id, 0, None, 0, forgotten=True)
    tokens = row["tokens"].get(tokenizer, 0)
    return MessageReceipt(receipt.id, row["number"], row["parent_id"], tokens, receipt.known)

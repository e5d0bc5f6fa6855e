"""Thirty-two writers append to one conversation at once: nothing is lost, and the order and the tree stay whole."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import asynccontextmanager, suppress
from uuid import UUID, uuid4

import pytest

from conftest import http_client, new_key
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.memories import Role
from recollect.wiring import connected
from support.measuring.sizes import Sizes
from support.service.made_settings import make_settings

WRITERS, READERS = 32, 3
TURNS = Sizes("turns by each of 32 writers", ci=4, long=50)


class Ledger:
    """What the writers were told, and what the readers saw."""

    def __init__(self):
        self.acknowledged, self.keys, self.known = {}, {}, []
        self.errors, self.broken, self.cancelled, self.replayed, self.reads = [], [], 0, 0, 0

    def note(self, nonce, appended, key=""):
        """Keep an acknowledged turn; a repeated key must say what it said before."""
        told = [(str(each[0]), each[1], str(each[2] or "")) for each in appended]
        if key and self.keys.setdefault(key, told) != told:
            self.errors.append(f"the key {key} was answered differently")
        self.acknowledged[nonce] = told
        self.known.append(told[-1][0])
        del self.known[:-2_000]


@asynccontextmanager
async def doors(addresses):
    """Two services with a pool each; one is asked over HTTP, the other in this process."""
    settings = make_settings(
        embedder="fake", pool_size=8, postgres__max_requests=2 * WRITERS, request_timeout_seconds=60
    )
    async with (
        connected(settings, addresses, FakeEmbedder()) as near,
        connected(settings, addresses, FakeEmbedder()) as far,
    ):
        _, secret = await new_key(far)
        async with http_client(far, secret) as client:
            yield near, client


def in_process(conversation):
    async def append(nonce, parent, key):
        turn = [
            NewMessage(Role.USER, f"question {nonce}", parent=UUID(parent) if parent else None),
            NewMessage(Role.ASSISTANT, f"answer {nonce}"),
        ]
        return [(each.id, each.number, each.parent) for each in await conversation.append(turn, idempotency_key=key)]

    return append


def over_http(client):
    async def append(nonce, parent, key):
        messages = [
            {"role": "user", "content": f"question {nonce}", "parent": parent},
            {"role": "assistant", "content": f"answer {nonce}"},
        ]
        body = {"agent": "ada", "conversation": "busy", "messages": messages}
        answer = await client.post("/v1/messages", json=body, headers={"Idempotency-Key": key})
        assert answer.status_code == 201, answer.text
        return [(each["id"], each["number"], each["parent"]) for each in answer.json()["messages"]]

    return append


async def write(append, ledger, chance):
    """Append turn after turn: to the newest message or a known one, with and without a key, given up or repeated."""
    for _ in range(TURNS.now):
        nonce = uuid4().hex
        parent = chance.choice(ledger.known) if ledger.known and chance.random() < 0.5 else ""
        key = nonce if chance.random() < 0.4 else ""
        try:
            if chance.random() < 0.15:
                # Mostly at once, so that some give up however fast the machine is.
                async with asyncio.timeout(0.4 * chance.random() ** 3):
                    ledger.note(nonce, await append(nonce, parent, key), key)
            else:
                ledger.note(nonce, await append(nonce, parent, key), key)
        except TimeoutError:
            ledger.cancelled += 1
        except Exception as problem:
            ledger.errors.append(repr(problem))
            continue
        if key and chance.random() < 0.6:
            await repeat(append, ledger, (nonce, parent, key))


async def repeat(append, ledger, call):
    """Send a call again, twice at once, as clients do that got no answer."""
    for answer in await asyncio.gather(append(*call), append(*call), return_exceptions=True):
        if isinstance(answer, BaseException):
            ledger.errors.append(repr(answer))
        else:
            ledger.note(call[0], answer, call[2])
            ledger.replayed += 1


async def read_until(over, conversation, ledger, chance):
    """Read histories, each of which must be the end of one path."""
    while not over.is_set():
        leaf = UUID(chance.choice(ledger.known)) if ledger.known and chance.random() < 0.7 else None
        with suppress(LookupError):
            history = await conversation.history(HistoryOptions(chance.choice([0, 60, 400, 4_000]), leaf=leaf))
            ledger.reads += 1
            if not is_path(history) or (leaf and history.messages[-1].id != leaf):
                ledger.broken.append(history)
        await asyncio.sleep(0.01)


def is_path(history):
    """Each message follows the one before it, the first begins a turn, and roles alternate as they were written."""
    pairs = zip(history.messages, history.messages[1:], strict=False)
    linked = all(later.parent == earlier.id and later.number > earlier.number for earlier, later in pairs)
    first = history.messages[0]
    roles = [message.role for message in history.messages]
    return linked and first.turn == first.id and roles == [Role.USER, Role.ASSISTANT] * (len(roles) // 2)


@pytest.mark.promise("Writers of one conversation lose nothing, and keep its order and its tree", TURNS)
async def test_writers_of_one_conversation_lose_nothing_and_keep_its_order(addresses, owner, figure):
    ledger, chance, over = Ledger(), random.Random(4), asyncio.Event()
    async with doors(addresses) as (near, client):
        conversation = (await near.mind("ada")).conversation("busy")
        await conversation.append([NewMessage(Role.USER, "question first"), NewMessage(Role.ASSISTANT, "answer first")])
        ways = [in_process(conversation), over_http(client)]
        async with asyncio.TaskGroup() as readers:
            for _ in range(READERS):
                readers.create_task(read_until(over, conversation, ledger, chance))
            writers = [write(ways[number % 2], ledger, random.Random(number)) for number in range(WRITERS)]
            await asyncio.gather(*writers)
            over.set()
        stored = await conversation.get()
    rows = read_tree(owner)
    figure(
        f"{len(rows)} messages, {ledger.cancelled} turns given up, {ledger.replayed} repeated, "
        f"{ledger.reads} histories read, {len(ledger.errors)} errors"
    )
    assert (ledger.errors, ledger.broken) == ([], [])
    assert_whole(rows, ledger)
    assert stored.message_count == len(rows)
    assert len(rows) > WRITERS
    assert min(ledger.reads, ledger.replayed, ledger.cancelled) > 0
    deadlocks = owner.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone()
    assert deadlocks == (0,)


def read_tree(owner):
    found = owner.execute(
        "select messages.id::text, number, coalesce(parent_id::text, ''), turn_id::text, role, content "
        "from messages join memories using (scope_id, id) where conversation_id = 'busy' order by number"
    )
    return found.fetchall()


def assert_whole(rows, ledger):
    """Everything acknowledged is there once and as it was told, in dense order, every parent older than its child."""
    assert [number for _, number, *_ in rows] == list(range(1, len(rows) + 1))
    by_id = {row[0]: row for row in rows}
    for identity, number, parent, turn, role, _ in rows:
        assert parent == "" or by_id[parent][1] < number
        assert turn == (identity if role == "user" else by_id[parent][3])
    assert [row[0] for row in rows if not row[2]] == [rows[0][0]]
    times = Counter(content for *_, content in rows)
    assert max(times.values()) == 1
    for nonce, told in ledger.acknowledged.items():
        assert [by_id.get(each[0], ("gone",))[:3] for each in told] == told
        assert [by_id[each[0]][5] for each in told] == [f"question {nonce}", f"answer {nonce}"]
    # What was given up is there as a whole turn, or not at all.
    assert all(times[content.replace("question", "answer")] == 1 for *_, content in rows if content[0] == "q")

"""Store public question sets through the library on a server of their own, and ask their questions of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from datasets import DIALOGUES, OWNERS, Conversation, Question, Turn, read_moments
from ground import OUT, open_folder
from recollect import Mind, Recollect, Settings
from recollect.core.service.batches import divide
from recollect.core.text.terms import embedded_text, utterance_before
from recollect.llm.embedder import Embedder
from recollect.mind.service import Addresses
from recollect.models.agents import Profile
from recollect.models.conversations import NewMessage
from recollect.models.memories import Kind, NewMemory, Role
from recollect.models.recall import Cue
from recollect.setting_groups import RecallSettings
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.verbs.memories import rows
from recollect.wiring import connected, prepare

Vectors = NDArray[np.float32]
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
ONE_CALL = 500
MOST_HITS, MOST_WITH_LEARNED = 30, 60
"""So many hits are asked for; more where facts and summaries stand among the messages."""
LONGEST = 200_000
"""What a message may hold, and here a call; one turn of BEAM has more."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One conversation in a scope of its own: which memory is which turn, and how its questions are asked."""

    conversation: Conversation
    mind: Mind
    turns: dict[UUID, str]
    """Of learned memories there is none: they are no turn."""
    cues: tuple[tuple[Question, Cue], ...]


@asynccontextmanager
async def serving(embedder: Embedder | None, **more: Any) -> AsyncIterator[Recollect]:  # noqa: ANN401 - any setting
    """Serve an empty database whose space is the embedder's; vectors are given with every write and cue."""
    # No plan changes on the way, and no sum is taken in another order: figures repeat to the last digit.
    steady = {"autovacuum": "off", "max_parallel_workers_per_gather": "0"}
    options = {"fsync": "off", "max_wal_size": "4GB", **steady}
    with open_folder("quality") as folder, Cluster(folder / "postgres", settings=options) as cluster:
        await ensure_database(cluster.dsn(), "quality")
        addresses = Addresses(cluster.dsn("quality", "recollect_service"), cluster.dsn("quality"))
        await prepare(addresses, embedder)
        # Nothing is learned from the messages: what is measured is recall without any model but the embedder.
        # No channel is given up, however busy the machine is: its speed must not show in the figures.
        settings = Settings(
            request_timeout_seconds=300, recall=RecallSettings(channel_timeout_seconds=60), enrich_steps="", **more
        )
        # Ids by the same chance each time: the same memories, stored again, must rank the same.
        with patch.object(rows.os, "urandom", Random(7).randbytes):
            async with connected(settings, addresses, None) as recollect:
                yield recollect


async def store(
    recollect: Recollect, name: str, conversations: Sequence[Conversation], embedder: Embedder | None, bar: Progress
) -> AsyncIterator[Stored]:
    """Store a set, each conversation in a scope of its own, and give them one by one."""
    turns, cues = await embed_set(name, conversations, embedder, bar)
    task = bar.add_task(f"{name}: storing", total=sum(len(conversation.turns) for conversation in conversations))
    turn_at = cue_at = 0
    for conversation in conversations:
        mind = await recollect.mind(f"{name}-{re.sub('[^A-Za-z0-9]', '-', conversation.id)}")
        if conversation.id in OWNERS:
            await mind.set_profile(Profile(names=(OWNERS[conversation.id],)))
        vectors = None if turns is None else turns[turn_at : turn_at + len(conversation.turns)]
        ids = await (store_conversation if name in DIALOGUES else store_records)(mind, conversation, vectors)
        await store_learned(mind, conversation, ids, embedder, bar)
        asked = ask(conversation, None if cues is None else cues[cue_at : cue_at + len(conversation.questions)])
        yield Stored(
            conversation, mind, dict(zip(ids, (turn.id for turn in conversation.turns), strict=True)), tuple(asked)
        )
        turn_at, cue_at = turn_at + len(conversation.turns), cue_at + len(conversation.questions)
        bar.advance(task, len(conversation.turns))
    bar.remove_task(task)


async def store_conversation(mind: Mind, conversation: Conversation, vectors: Vectors | None) -> list[UUID]:
    """Append the turns, a conversation for each session."""
    given = vectors if vectors is not None else [None] * len(conversation.turns)
    said = zip(conversation.turns, read_moments(conversation.turns), given, strict=True)
    messages = [
        (
            turn.session,
            NewMessage(role_of(turn), turn.content[:LONGEST], name_of(turn), occurred_at=moment, embedding=vector),
        )
        for turn, moment, vector in said
    ]
    ids: list[UUID] = []
    for session, group in groupby(messages, key=lambda each: each[0]):
        together = [message for _, message in group]
        for part in divide(together, lambda message: len(message.content), ONE_CALL, LONGEST):
            ids += [each.id for each in await mind.conversation(f"session-{session}").append(part)]
    return ids


async def store_records(mind: Mind, conversation: Conversation, vectors: Vectors | None) -> list[UUID]:
    """Load the turns as events at their moments."""
    given = vectors if vectors is not None else [None] * len(conversation.turns)
    return await mind.load(
        [
            NewMemory(turn.content, Kind.EVENT, speaker=name_of(turn), occurred_at=moment, embedding=vector)
            for turn, moment, vector in zip(conversation.turns, read_moments(conversation.turns), given, strict=True)
        ]
    )


async def store_learned(
    mind: Mind, conversation: Conversation, ids: Sequence[UUID], embedder: Embedder | None, bar: Progress
) -> None:
    """Load what was learned from the turns, at the moment of the last of its evidence."""
    if not conversation.learned:
        return
    moments = read_moments(conversation.turns)
    learned = [
        NewMemory(
            each.content,
            each.kind,
            occurred_at=moments[max(each.evidence)],
            evidence=tuple(ids[place] for place in each.evidence),
        )
        for each in conversation.learned
    ]
    if embedder is not None:
        vectors = await embed_cached([embedded_text(each) for each in learned], embedder, bar)
        learned = [replace(each, embedding=vector) for each, vector in zip(learned, vectors, strict=True)]
    await mind.load(learned)


def ask(conversation: Conversation, vectors: Vectors | None) -> Iterator[tuple[Question, Cue]]:
    """Ask every question after the last turn of the conversation, and leave no trace."""
    # A record of the first minute of the next year does not move the year that is asked about.
    now = max(read_moments(conversation.turns)) - timedelta(minutes=1)
    limit = MOST_WITH_LEARNED if conversation.learned else MOST_HITS
    for place, question in enumerate(conversation.questions):
        vector = None if vectors is None else vectors[place]
        yield question, Cue(question.text[:8_000], embedding=vector, limit=limit, now=now, touch=False)


def role_of(turn: Turn) -> Role:
    """Say who speaks; where two people do, both are users."""
    return ROLES.get(turn.speaker, Role.USER)


def name_of(turn: Turn) -> str:
    """Say by which name, where it is not only a role."""
    return "" if turn.speaker in {*ROLES, "memory"} else turn.speaker


async def embed_set(
    name: str, conversations: Sequence[Conversation], embedder: Embedder | None, bar: Progress
) -> tuple[Vectors | None, Vectors | None]:
    """Embed turns and questions, if the embedder reads them; a dialogue's turn is embedded as the service does it."""
    questions = [question.text for conversation in conversations for question in conversation.questions]
    if embedder is None or not any(map(embedder.reads, questions)):
        return None, None
    texts = [text for conversation in conversations for text in to_embed(conversation, together=name in DIALOGUES)]
    return await embed_cached(texts, embedder, bar), await embed_cached(questions, embedder, bar)


def to_embed(conversation: Conversation, *, together: bool) -> Iterator[str]:
    """Give what is embedded for each turn."""
    for before, turn in zip((None, *conversation.turns), conversation.turns, strict=False):
        known = before if together and before is not None and before.session == turn.session else None
        seen = "" if known is None else utterance_before(name_of(known), known.content)
        yield embedded_text(NewMemory(turn.content, speaker=name_of(turn)), seen)


async def embed_cached(texts: list[str], embedder: Embedder, bar: Progress) -> Vectors:
    """Embed texts, or take their vectors from bench/out where the same ones were embedded before."""
    digest = hashlib.sha256("\0".join((embedder.model, *texts)).encode()).hexdigest()[:20]
    path = OUT / f"vectors-{digest}.npy"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        np.save(path, await _embed(texts, embedder, bar))
    vectors: Vectors = np.load(path)
    return vectors


async def _embed(texts: Sequence[str], embedder: Embedder, bar: Progress) -> Vectors:
    task = bar.add_task("embedding", total=len(texts))
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    vectors = np.empty((len(texts), embedder.dimensions), dtype=np.float32)
    for start in range(0, len(order), 128):
        places = order[start : start + 128]
        vectors[places] = await embedder.embed([texts[place] for place in places])
        bar.advance(task, len(places))
    bar.remove_task(task)
    return vectors

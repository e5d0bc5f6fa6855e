"""Scopes with everything in them: steps that hypothesis draws, carried out by the verbs themselves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID, uuid4

from hypothesis import strategies as st

from recollect.errors import ConflictError, NotFoundError
from recollect.jobs.embed import embed_pending
from recollect.models.agents import Profile
from recollect.models.conversations import Attachment, ConversationState, NewMessage
from recollect.models.items import PutItem
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, Role, Triple
from recollect.models.recall import Cue
from recollect.models.topics import NewTopicLink
from recollect.verbs.knowledge.enrich import enrich
from support.models.scripted_extractions import Script, entity, fact
from support.service.accesses import with_access

START = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
STEPS = (
    "remember", "think", "say", "branch", "learn", "state", "end", "put", "recall", "rate", "archive", "delete",
    "purge", "fade", "forget", "pin", "link", "block", "tune", "merge", "split", "embed", "revise",
)  # fmt: skip
WHOLE_LIVES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), WORDS), min_size=1, max_size=14)
ENDINGS = {"archive", "delete", "purge", "forget", "fade"}
EVERYTHING = [
    *((name, number, f"the {name} of 茶 {number}") for number in range(10) for name in STEPS if name not in ENDINGS),
    *(("fade", 0, ""), ("forget", 2, ""), ("purge", 0, ""), ("delete", 1, ""), ("archive", 2, "")),
    *((name, 3, f"more {name}") for name in STEPS if name not in ENDINGS),
]
"""A life that has every step, and something of everything at its end: chats in every state, versions, receipts."""


class Talks:
    """What a life says in its conversations."""

    async def say(self, number, text, **more):
        name = f"chat-{number % 3}"
        if await self.gone(name):
            return
        attachments = (Attachment("image", upload_id=f"file-{number}"),) if number == 8 else ()
        new = NewMessage(
            Role.USER if number % 2 else Role.ASSISTANT, f"{text} said", occurred_at=self.now(), name="Li",
            attachments=attachments, metadata={"mood": text}, external_id=uuid4().hex, **more,
        )  # fmt: skip
        for made in await self.mind.conversation(name).append([new]):
            self.messages.append((name, made.id))

    async def branch(self, number, text):
        mine = [identity for name, identity in self.messages if name == f"chat-{number % 3}"]
        await self.say(number, text, **({"parent": mine[0]} if mine else {"root": True}))

    async def learn(self, number, text):
        await self.say(number, text)
        name = f"chat-{number % 3}"
        if await self.gone(name):
            return
        # Segments with revised messages are read again as well.
        for _ in self.messages:
            self.script.extraction(
                [entity("Ann", "person", "Annie"), entity(f"Town {number}", "place", description="a town")],
                [fact("Ann", "lives in", f"Town {number}", "2024-01-01")],
            )
        await self.mind.conversation(name).update(close_segment=True)
        await enrich(self.mind.access.parts, (await self.mind.access.locate()).scope_id)
        self.script.extractions.clear()

    async def gone(self, name):
        hidden = await self.mind.conversations(ConversationState.DELETED)
        return name in [each.id for each in hidden.conversations]

    async def archive(self, number, _):
        await self.move(number, "archive")

    async def delete(self, number, _):
        await self.move(number, "delete")

    async def purge(self, number, _):
        if number % 3 == 0:
            await self.move(number, "purge")

    async def move(self, number, how):
        name = f"chat-{number % 3}"
        there = (await self.mind.conversations()).conversations
        if name in [each.id for each in there]:
            conversation = self.mind.conversation(name)
            await (conversation.update(state="archived") if how == "archive" else getattr(conversation, how)())
            alive = {each.id for each in (await self.mind.list(limit=200)).memories}
            self.ids = [each for each in self.ids if each in alive]
            self.messages = [each for each in self.messages if each[0] != name or how == "archive"]

    async def revise(self, number, text):
        """Revise what was said or remembered; who is trusted less only contests."""
        mine = [each for _, each in self.messages] if number % 2 else self.ids
        standing = {each.id for each in (await self.mind.list(limit=200)).memories}
        chosen = self.pick(number, [each for each in mine if each in standing])
        if chosen is None:
            return
        trust = 20 if number in {3, 4} else self.mind.access.caller.trust
        writer = with_access(self.mind, caller=replace(self.mind.access.caller, trust=trust))
        revised = await writer.update(chosen, content=f"{text} revised", importance=1 + number / 1.1)
        if not revised.contested:
            self.ids = [revised.id if each == chosen else each for each in self.ids]
            self.messages = [(name, revised.id if each == chosen else each) for name, each in self.messages]

    async def block(self, number, text):
        if not await self.gone(f"chat-{number % 3}"):
            await self.mind.blocks.show(Cue(f"{text} tea"), conversation=f"chat-{number % 3}")


class Names:
    """What a life makes of its entities."""

    async def merge(self, number, _):
        alone = [each.id for each in (await self.mind.knowledge.entities(limit=200)).entities]
        if len(alone) > number + 1:
            await self.mind.knowledge.merge(alone[0], alone[number + 1])
            self.absorbed.append(alone[number + 1])

    async def split(self, number, _):
        for each in self.absorbed if number % 2 else ():
            with suppress(NotFoundError):
                await self.mind.knowledge.split(each)
                return

    async def embed(self, _, __):
        place, parts = await self.mind.access.locate(), self.mind.access.parts
        if place.scope_id is not None:
            await embed_pending(parts.database, parts.embedder, 8, place.scope_id)


@dataclass
class Life(Talks, Names):
    """One scope that is lived in, step by step."""

    mind: object
    script: Script
    ids: list[UUID] = field(default_factory=list)
    messages: list[tuple[str, UUID]] = field(default_factory=list)
    facts: list[UUID] = field(default_factory=list)
    absorbed: list[UUID] = field(default_factory=list)
    moments: count = field(default_factory=count)

    async def live(self, steps):
        for name, number, text in steps:
            await getattr(self, name)(number, text)

    def now(self):
        return START + timedelta(hours=next(self.moments), microseconds=7)

    def pick(self, number, among):
        return among[number % len(among)] if among else None

    async def remember(self, number, text):
        kind = (Kind.EVENT, Kind.CHAT, Kind.EVENT)[number % 3]
        expires = datetime(2030 if number % 2 else 2025, 1, 1, tzinfo=UTC) if number > 6 else None
        topic = ("", "travel->Japan", "work->tea->green")[number % 3]
        new = NewMemory(
            f"{text} remembered", kind, importance=1 + number / 1.1, occurred_at=self.now(), expires_at=expires,
            keywords=("tea", f"word {number}"), metadata={"n": [1.10, 1e30, number, None], "ü": text}, topic=topic,
            related_topics=("food",) if topic else (), triple=Triple("Ann", "drinks", f"tea {number}"),
            embedding_text="other words" if number == 4 else "", pinned=number == 5,
        )  # fmt: skip
        self.ids += [made.id for made in await self.mind.remember(new)]

    async def think(self, number, text):
        sources = tuple(dict.fromkeys(self.ids[number:][:3]))
        made = await self.mind.remember(NewMemory(f"{text} thought", Kind.THOUGHT, evidence=sources, speaker="ada"))
        self.ids += [each.id for each in made]

    async def state(self, number, _):
        stated = await self.mind.knowledge.add(
            NewFact("Bo", "knows", f"Zoe {number}", valid_at=self.now(), evidence=tuple(self.ids[:1]))
        )
        self.facts += [each.id for each in stated]

    async def end(self, number, _):
        standing = [each.id for each in (await self.mind.knowledge.facts()).facts]
        if chosen := self.pick(number, standing):
            # What is said again by a segment that was read again may already hold at that time.
            with suppress(ConflictError):
                await self.mind.knowledge.end(chosen, datetime.now(UTC) + timedelta(days=number + 1))

    async def put(self, number, text):
        vector = [0.1, -0.7, number / 3] if number % 2 else None
        new = PutItem(("notes", f"n{number}"), text[:8], {"v": text, "n": 1.50}, f"{text} noted", embedding=vector)
        await self.mind.items.batch([new])

    async def recall(self, _, text):
        await self.mind.recall(Cue(f"{text} tea", keep=True))

    async def rate(self, number, _):
        found = await self.mind.recall(Cue("tea", channels=("stream",), limit=3))
        if found.hits:
            await self.mind.feedback(found, [found.hits[number % len(found.hits)].memory.id])

    async def fade(self, _, __):
        await self.mind.fade()

    async def forget(self, number, _):
        if chosen := self.pick(number, self.ids):
            said = [identity for name, identity in self.messages if name == f"chat-{number % 3}"]
            gone = {*await self.mind.forget([chosen, *said[:1]])}
            self.ids = [each for each in self.ids if each not in gone]
            self.messages = [each for each in self.messages if each[1] not in gone]

    async def pin(self, number, _):
        if chosen := self.pick(number, self.ids):
            await self.mind.update(chosen, pinned=number % 2 == 0)

    async def link(self, number, _):
        if chosen := self.pick(number, self.ids):
            await self.mind.topics.link("travel->Norway", NewTopicLink(chosen, related=("food",)))

    async def tune(self, number, _):
        await self.mind.set_profile(Profile(limit=number + 1, names=("Ada",)))

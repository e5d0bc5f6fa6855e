"""Vectors of messages on the real store: they see the utterance before, and do not outlive it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest

from recollect.core.text.terms import BEFORE, embedded_text
from recollect.errors import EmbedderError
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.imports import DifyImport
from recollect.models.memories import NewMemory, Role
from recollect.models.recall import Cue
from recollect.store.conversations import lifecycle
from recollect.store.memories import embeddings
from recollect.store.service.scopes import BEGINNING
from support.dify.dify_database import made_dify
from support.programs.waiting import until_blocked
from support.service.known_numbers import SPACE


class RecordingEmbedder(FakeEmbedder):
    """Keep what was to be embedded; refuse a text, or let something happen while it is."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.texts: list[str] = []
        self.refused = ""
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def embed(self, texts):
        self.texts += texts
        if self.refused and any(self.refused in text for text in texts):
            raise EmbedderError("a text that cannot be embedded", lasting=True)
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            await act()
        return await super().embed(texts)


@pytest.fixture
def embedder():
    return RecordingEmbedder()


@pytest.fixture
def conversation(mind):
    return mind.conversation("tea")


def user(content, **more):
    return NewMessage(Role.USER, content, name="Ada", **more)


def assistant(content, **more):
    return NewMessage(Role.ASSISTANT, content, name="Li", **more)


async def say(conversation, *messages):
    return [each.id for each in await conversation.append(list(messages))]


def vector_of(owner, identity, space=SPACE):
    row = owner.execute(f"select embedding::real[] from vectors_{space} where id = %s", [identity]).fetchone()
    return None if row is None else np.array(row[0], dtype=np.float32)


async def sees(owner, identity, text, space=SPACE, dimensions=64):
    """Whether a message's vector is that of a text."""
    found = vector_of(owner, identity, space)
    [wanted] = await FakeEmbedder(dimensions).embed([text])
    return found is not None and float(found @ wanted) > 0.999


def waiting(owner):
    return {identity for (identity,) in owner.execute("select id from pending_embeddings").fetchall()}


def with_context(owner):
    return {identity for (identity,) in owner.execute("select id from context_vectors").fetchall()}


async def test_in_one_call_each_sees_the_one_before(conversation, owner):
    one, two, three = await say(conversation, user("Tea?"), assistant("With milk."), user("Here it is."))
    assert await sees(owner, one, "Ada: Tea?")
    assert await sees(owner, two, "Ada: Tea?\nLi: With milk.")
    assert await sees(owner, three, "Li: With milk.\nAda: Here it is.")
    assert waiting(owner) == set()
    assert with_context(owner) == {two, three}


async def test_over_several_calls_it_is_found_at_once_and_sees_the_one_before_by_a_job(
    conversation, mind, recollect, owner
):
    [one] = await say(conversation, user("Tea?"))
    assert waiting(owner) == set()
    [two] = await say(conversation, assistant("With milk."))
    assert await sees(owner, two, "Li: With milk.")
    found = await mind.recall(Cue("Li: With milk.", channels=("vector",), limit=1))
    assert found.hits[0].memory.id == two
    assert waiting(owner) == {two}
    await recollect.work(until_empty=True)
    assert await sees(owner, one, "Ada: Tea?")
    assert await sees(owner, two, "Ada: Tea?\nLi: With milk.")
    assert (waiting(owner), with_context(owner)) == (set(), {two})


async def test_a_branch_sees_its_own_parent_and_a_root_nobody(conversation, recollect, owner):
    one, _ = await say(conversation, user("Tea?"), assistant("With milk."))
    other, root = await say(conversation, assistant("With lemon.", parent=one), user("Good night.", root=True))
    beside = await say(conversation, user("And you?"), assistant("Coffee.", parent=0), assistant("Water.", parent=0))
    await recollect.work(until_empty=True)
    assert await sees(owner, other, "Ada: Tea?\nLi: With lemon.")
    assert await sees(owner, root, "Ada: Good night.")
    assert await sees(owner, beside[0], "Ada: Good night.\nAda: And you?")
    assert await sees(owner, beside[1], "Ada: And you?\nLi: Coffee.")
    assert await sees(owner, beside[2], "Ada: And you?\nLi: Water.")


async def test_other_conversations_and_other_memories_are_not_seen(mind, recollect, owner):
    await say(mind.conversation("one"), user("Tea?"))
    [alone] = await say(mind.conversation("two"), user("Hello."))
    [event] = await mind.remember(NewMemory("It rained."))
    await recollect.work(until_empty=True)
    assert await sees(owner, alone, "Ada: Hello.")
    assert await sees(owner, event.id, "It rained.")
    assert with_context(owner) == set()


async def test_a_long_utterance_is_not_seen(conversation, recollect, owner):
    spoken = [user("x" * (BEFORE + 1)), assistant("I see.")]
    _, in_time = await say(conversation, *spoken)
    await say(conversation, spoken[0])
    [later] = await say(conversation, spoken[1])
    await recollect.work(until_empty=True)
    assert await sees(owner, in_time, "Li: I see.")
    assert await sees(owner, later, "Li: I see.")
    assert not {in_time, later} & with_context(owner)


async def test_where_nothing_was_said_before_it_stands_alone(conversation, recollect, owner):
    _, silent, one = await say(conversation, user("Tea?"), assistant(""), user("Hello?"))
    await say(conversation, assistant(""))
    [two] = await say(conversation, user("Anybody?"))
    await recollect.work(until_empty=True)
    assert vector_of(owner, silent) is None
    assert await sees(owner, one, "Ada: Hello?")
    assert await sees(owner, two, "Ada: Anybody?")
    assert (waiting(owner), with_context(owner)) == (set(), set())


async def test_a_callers_own_vector_stays_whatever_becomes_of_the_one_before(conversation, mind, recollect, owner):
    own = np.random.default_rng(1).standard_normal(64)
    first, given = await say(conversation, user("Tea?"), assistant("With milk.", embedding=own.tolist()))
    [later] = await say(conversation, user("Here.", embedding=own.tolist()))
    assert (waiting(owner), with_context(owner)) == (set(), set())
    await mind.forget([first])
    await mind.forget([given])
    await recollect.work(until_empty=True)
    kept = vector_of(owner, later)
    assert kept is not None
    assert kept @ (own / np.linalg.norm(own)) > 0.999


async def test_what_waited_for_the_embedder_sees_the_one_before(conversation, recollect, embedder, owner):
    embedder.fail()
    _, two = await say(conversation, user("Tea?"), assistant("With milk."))
    assert vector_of(owner, two) is None
    embedder.recover()
    await recollect.work(until_empty=True)
    assert await sees(owner, two, "Ada: Tea?\nLi: With milk.")
    assert with_context(owner) == {two}


async def test_another_model_sees_the_one_before_too(conversation, mind, recollect, owner):
    one, two, three = await say(conversation, user("Tea?"), assistant("With milk."), user("Here it is."))
    changed = replace(recollect, parts=replace(recollect.parts, embedder=RecordingEmbedder(128)))
    space, _ = await changed.operator.spaces.change(lambda _: None)
    await changed.work(until_empty=True)
    assert await sees(owner, one, "Ada: Tea?", space.id, 128)
    assert await sees(owner, two, "Ada: Tea?\nLi: With milk.", space.id, 128)
    await mind.forget([two])
    assert vector_of(owner, three) is None
    assert vector_of(owner, three, space.id) is None
    await changed.work(until_empty=True)
    assert await sees(owner, three, "Ada: Tea?\nAda: Here it is.", space.id, 128)
    assert vector_of(owner, three) is None
    await changed.operator.spaces.drop(SPACE)
    await mind.forget([one])
    await changed.work(until_empty=True)
    assert await sees(owner, three, "Ada: Here it is.", space.id, 128)


async def test_what_comes_from_dify_sees_the_one_before(cluster, recollect, owner):
    with made_dify(cluster) as dify:
        dify.conversation("t")
        one = dify.turn("t", "1", None, query="Where to?", answer="To the lake.")
        two = dify.turn("t", "2", "1", query="By bus?", answer="On foot.")
        three = dify.turn("t", "3", "1", query="By boat?", answer="If it floats.")
        await recollect.operator.imports.dify(DifyImport(dify.dsn, "assistant"), "default", lambda *_: None)
    await recollect.work(until_empty=True)
    ids = dict(owner.execute("select external_id, id from messages").fetchall())
    assert await sees(owner, ids[f"{one}:user"], "Where to?")
    assert await sees(owner, ids[f"{one}:assistant"], "Where to?\nTo the lake.")
    assert await sees(owner, ids[f"{two}:user"], "To the lake.\nBy bus?")
    assert await sees(owner, ids[f"{three}:user"], "To the lake.\nBy boat?")


async def test_forgetting_takes_its_words_from_what_followed_at_once(conversation, mind, recollect, embedder, owner):
    one, secret, three, four = await say(
        conversation, user("Tea?"), assistant("My code is 1234."), user("Noted."), assistant("Good.")
    )
    [branch] = await say(conversation, user("Not heard.", parent=secret))
    await recollect.work(until_empty=True)
    assert await sees(owner, branch, "Li: My code is 1234.\nAda: Not heard.")
    embedder.texts.clear()
    await mind.forget([secret])
    assert vector_of(owner, three) is vector_of(owner, branch) is None
    assert waiting(owner) == {three, branch}
    assert with_context(owner) == {four}
    await recollect.work(until_empty=True)
    assert await sees(owner, three, "Ada: Tea?\nAda: Noted.")
    assert await sees(owner, branch, "Ada: Tea?\nAda: Not heard.")
    assert await sees(owner, four, "Ada: Noted.\nLi: Good.")
    await mind.forget([one, three])
    await recollect.work(until_empty=True)
    assert await sees(owner, four, "Li: Good.")
    assert await sees(owner, branch, "Ada: Not heard.")
    assert not [text for text in embedder.texts if "1234" in text]
    assert (waiting(owner), with_context(owner)) == (set(), set())


async def test_what_is_forgotten_while_a_job_embeds_what_followed_is_not_kept(
    conversation, mind, recollect, embedder, owner
):
    [secret] = await say(conversation, user("My code is 1234."))
    [two] = await say(conversation, assistant("Noted."))

    async def forget():
        await mind.forget([secret])

    embedder.meanwhile = forget
    await recollect.work(until_empty=True)
    assert "Ada: My code is 1234.\nLi: Noted." in embedder.texts
    assert await sees(owner, two, "Li: Noted.")
    assert (waiting(owner), with_context(owner)) == (set(), set())


async def test_forgetting_waits_for_a_vector_that_is_being_written_and_takes_it(
    conversation, mind, recollect, embedder, owner
):
    [secret] = await say(conversation, user("My code is 1234."))
    [two] = await say(conversation, assistant("Noted."))
    database = recollect.parts.database
    scope_id = owner.execute("select scope_id from messages limit 1").fetchone()[0]
    batch = await embeddings.list_pending(database, scope_id, BEGINNING, 9)
    space = next(each for each, _ in await embeddings.list_spaces(database) if each.state == "active")
    async with database.transaction(mind.access.scope.tenant_id) as connection:
        rows = await embedder.embed([embedded_text(memory, memory.before) for memory in batch])
        assert await embeddings.store_buffered(connection, space, batch, rows) == [two]
        forgetting = asyncio.create_task(mind.forget([secret]))
        await until_blocked(owner, forgetting)
    await forgetting
    assert vector_of(owner, two) is None
    await recollect.work(until_empty=True)
    assert await sees(owner, two, "Li: Noted.")


async def test_an_archived_conversation_forgets_as_well(conversation, mind, recollect, owner):
    _, secret, three = await say(conversation, user("Tea?"), assistant("My code is 1234."), user("Noted."))
    await conversation.update(state="archived")
    assert owner.execute("select count(*) from withheld_vectors where id = %s", [three]).fetchone() == (1,)
    await mind.forget([secret])
    assert owner.execute("select count(*) from withheld_vectors where id = %s", [three]).fetchone() == (0,)
    assert waiting(owner) == set()
    await conversation.update(state="active")
    await recollect.work(until_empty=True)
    assert await sees(owner, three, "Ada: Tea?\nAda: Noted.")


async def test_a_purge_leaves_nothing_behind(conversation, mind, recollect, embedder, owner, monkeypatch):
    monkeypatch.setattr(lifecycle, "CHUNK", 2)
    await say(conversation, *(user(f"word {number}") for number in range(7)))
    _, other = await say(mind.conversation("other"), user("Stay."), assistant("I do."))
    embedder.texts.clear()
    receipt = await conversation.purge()
    await recollect.work(until_empty=True)
    assert receipt.removed["vectors"] == 7
    assert embedder.texts == []
    assert (waiting(owner), with_context(owner)) == (set(), {other})
    assert await sees(owner, other, "Ada: Stay.\nLi: I do.")


async def test_what_the_model_refuses_for_what_was_before_is_embedded_alone(conversation, recollect, embedder, owner):
    embedder.refused = "unspeakable"
    one, two = await say(conversation, user("unspeakable"), assistant("Noted."))
    await recollect.work(until_empty=True)
    assert await sees(owner, two, "Li: Noted.")
    assert vector_of(owner, one) is None
    assert (waiting(owner), with_context(owner)) == ({one}, set())

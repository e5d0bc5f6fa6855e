"""What a re-run leaves behind: entities that past facts need, and no trace of what is purged after it or beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from integration.knowledge.test_rerun import (
    ANN,
    BERGEN,
    BOB,
    NEW,
    NOON,
    OSLO,
    TEXTS,
    entity,
    extraction,
    fact,
    learn,
    mind,
    new,
    old,
    read,
    reruns,
    running,
    say,
    texts_of,
)
from recollect.errors import ChatModelError
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import EnrichRequest
from recollect.models.memories import Role

__all__ = ["mind", "new", "old", "running"]
TABLES = (
    "memories",
    "beliefs",
    "entities",
    "mentions",
    "segments",
    "extractions",
    "evidence",
    "messages",
    "runs",
    "ledger",
    "topics",
    "topic_links",
    "related_topics",
)


def traces(owner, *words):
    """Name the tables that still hold a word."""
    return [
        (table, word)
        for table in TABLES
        for word in words
        if owner.execute(f"select 1 from {table} each where each::text ilike %s", [f"%{word}%"]).fetchone()
    ]


async def test_an_entity_that_past_facts_need_stays_and_one_that_nothing_needs_goes(mind, running, old, new, owner):
    old.answers["likes tea"] = extraction(
        "Old.",
        [ANN, entity("Paris", "place", "the City of Light", description="A town."), entity("Rex", "other")],
        [fact("Ann", "lives in", "Paris")],
    )
    await say(mind, TEXTS[0])
    await learn(mind, owner)
    moment = datetime.now(UTC)
    [before] = (await mind.knowledge.entities("paris")).entities
    await reruns(running, new).run(EnrichRequest(model=NEW))
    found = {each.name: each for each in (await mind.knowledge.entities()).entities}
    assert sorted(found) == ["Ann", "Oslo", "Paris"]
    assert (found["Paris"].id, found["Paris"].aliases, found["Paris"].description) == (before.id, (), "")
    [past] = (await mind.knowledge.facts(before.id, as_of=moment)).facts
    assert past.text == "Ann lives in Paris." and past.object == before.id
    assert owner.execute("select count(*) from mentions where mentioned_at = '-infinity'").fetchone() == (0,)


async def test_a_purge_after_a_run_takes_both_readings(mind, running, old, new, owner):
    old.answers["has a boat"] = extraction("Old: Zorro.", [entity("Zorro"), ANN], [fact("Zorro", "knows", "Ann")])
    new.answers["has a boat"] = extraction("New: Zelda.", [entity("Zelda"), ANN], [fact("Zelda", "knows", "Ann")])
    await say(mind, TEXTS[0])
    other = await say(mind, TEXTS[1], conversation="d", begin=1)
    await learn(mind, owner)
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert traces(owner, "Zorro") and traces(owner, "Zelda")
    await other.purge()
    await running.work(until_empty=True)
    assert traces(owner, "Zorro", "Zelda", "has a boat") == []
    assert await texts_of(mind) == ["Ann lives in Oslo."]


async def test_a_message_that_only_the_run_took_names_from_leaves_none_behind(mind, running, new, owner):
    new.answers["has a boat"] = extraction("New: Zelda.", [entity("Zelda", "person", "Zee"), ANN], [])
    [kept] = await mind.conversation("c").append([NewMessage(Role.USER, TEXTS[0], occurred_at=NOON)])
    [gone, _] = await mind.conversation("d").append(
        [
            NewMessage(Role.USER, TEXTS[1], occurred_at=NOON + timedelta(minutes=1)),
            NewMessage(Role.ASSISTANT, "Fine.", occurred_at=NOON + timedelta(minutes=2)),
        ]
    )
    for name in ("c", "d"):
        await mind.conversation(name).update(close_segment=True)
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert traces(owner, "Zelda")
    await mind.forget([gone.id])
    assert traces(owner, "Zelda", "Zee", "boat") == []
    assert (await mind.get(kept.id)).progress == "enriched"


async def test_what_is_forgotten_before_a_run_has_taken_over_does_not_come_back_by_it(mind, running, new, owner):
    new.answers["likes tea"] = extraction("New: Zelda.", [entity("Zelda", "person", "Zee"), OSLO], [])
    new.answers["has a boat"] = extraction("New.", [entity("Zee"), BERGEN], [fact("Zee", "visits", "Bergen")])
    conversation = mind.conversation("c")
    [gone, *_] = await conversation.append(
        [
            NewMessage(Role.USER, TEXTS[0], occurred_at=NOON),
            NewMessage(Role.ASSISTANT, "Noted.", occurred_at=NOON),
            NewMessage(Role.USER, TEXTS[1], occurred_at=NOON + timedelta(days=1)),
        ]
    )

    def away():
        if new.count() == 2:
            raise ChatModelError("away")

    new.before = away
    await conversation.append([NewMessage(Role.USER, "Bye has moved", occurred_at=NOON + timedelta(days=2))])
    await conversation.update(close_segment=True)
    with pytest.raises(ChatModelError):
        await reruns(running, new).run(EnrichRequest(model=NEW))
    await mind.forget([gone.id])
    assert traces(owner, "Zelda") == []
    new.before = lambda: None
    new.answers |= {"has moved": extraction("New: moved.", [ANN], []), "Noted.": extraction("New: noted.")}
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert traces(owner, "Zelda") == []
    assert await texts_of(mind) == ["Zee visits Bergen."] and "New: noted." in await read(mind)


async def test_what_a_run_ended_is_open_again_when_the_end_is_forgotten(mind, running, new, owner):
    await say(mind, TEXTS[0])
    other = await say(mind, TEXTS[2], conversation="d", begin=2)
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert await texts_of(mind) == ["Ann lives in Bergen."]
    await other.purge()
    await running.work(until_empty=True)
    assert await texts_of(mind) == ["Ann lives in Oslo."]
    assert await read(mind) == ["New: Ann, Oslo."]


async def test_what_the_caller_corrected_meanwhile_stays_corrected(mind, running, old, new, owner):
    old.answers["likes tea"] = extraction("Old.", [ANN, OSLO, BOB], [fact("Ann", "lives in", "Oslo")])
    await say(mind, TEXTS[0])
    await learn(mind, owner)
    [home] = (await mind.knowledge.facts()).facts
    await mind.knowledge.end(home.id, NOON + timedelta(days=1))
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert await texts_of(mind) == []
    [known] = (await mind.knowledge.facts(at=NOON)).facts
    assert known.id == home.id and known.span.invalid_at == NOON + timedelta(days=1)

"""Any memory can be revised: the new version takes its place, the old one can be read as of its time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.agents import EnrichSource, Profile
from recollect.models.filters import Filter
from recollect.models.knowledge import NewFact
from recollect.models.memories import Kind, NewMemory, RecallState
from recollect.models.recall import Cue
from support.memories.past import versions_of
from support.service.accesses import with_access


async def store(mind, *given):
    return [each.id for each in await mind.remember(list(given))]


async def wait():
    """Let the clock of ids go on: they tell milliseconds apart."""
    await asyncio.sleep(0.005)
    moment = datetime.now(UTC)
    await asyncio.sleep(0.005)
    return moment


async def found(mind, **bounds):
    cue = Cue("dentist", channels=("text",), touch=False, **bounds)
    return [hit.memory.content for hit in (await mind.recall(cue)).hits]


async def count_topics(mind):
    return {each.path: each.memories for each in (await mind.topics.tree()).topics}


def trusted_less(mind):
    return with_access(mind, caller=replace(mind.access.caller, trust=20, origin="stranger"))


def rows(owner, source):
    return owner.execute(f"select count(*) from {source}").fetchone()[0]


@pytest.mark.parametrize("kind", list(Kind))
async def test_every_kind_can_be_revised_and_read_as_of_its_time(mind, kind):
    [first] = await store(mind, NewMemory("The dentist is at four.", kind))
    before = await wait()
    revised = await mind.update(first, content="The dentist is at five.")
    assert (revised.version, revised.changed, revised.contested) == (2, True, False) and revised.id != first
    assert await found(mind, kinds=(kind,)) == ["The dentist is at five."]
    assert await found(mind, kinds=(kind,), as_of=before) == ["The dentist is at four."]
    assert await found(mind, kinds=(kind,), as_of=await wait()) == ["The dentist is at five."]
    assert await found(mind, kinds=(kind,), state=RecallState.PAST) == ["The dentist is at four."]
    old, new = (await mind.evidence(first)).versions
    assert (old.id, new.id) == (first, revised.id) and (await mind.evidence(new.id)).versions == (old, new)
    assert old.superseded_at == new.created_at and new.superseded_at is None
    assert (await mind.get(first)).content == "The dentist is at four."
    assert [each.id for each in (await mind.list()).memories] == [revised.id]
    assert [each.id for each in (await mind.list(filter=Filter(as_of=before))).memories] == [first]
    assert (await mind.overview()).memories == 1


async def test_what_is_not_named_is_carried_over(mind, owner):
    given = NewMemory(
        "The dentist is at four.", speaker="Ann", importance=7.3, keywords=("teeth",), metadata={"a": 1},
        topic="health->teeth", related_topics=("pain",), pinned=True, occurred_at=datetime(2025, 5, 1, tzinfo=UTC),
    )  # fmt: skip
    [first] = await store(mind, given)
    await mind.recall(Cue("dentist", channels=("text",)))
    await mind.recall(Cue("dentist", channels=("text",)))
    second = (await mind.update(first, content="The dentist is at five.")).id
    old, new = (await mind.evidence(first)).versions
    for field in ("speaker", "importance", "keywords", "metadata", "pinned", "occurred_at", "kind", "triple", "trust"):
        assert getattr(new, field) == getattr(old, field), field
    assert (await count_topics(mind))["health->teeth"] == 1
    links = "select related_id from related_topics where memory_id = %s"
    assert owner.execute(links, [second]).fetchall() == owner.execute(links, [first]).fetchall() != []
    assert owner.execute("select id, access_count from accesses").fetchall() == [(second, 2)]
    assert owner.execute("select keyword, strength from keyword_strengths").fetchall() == [("teeth", 1)]
    third = (await mind.update(second, keywords=("tooth",), topic="body", pinned=False, importance=2)).id
    now = await mind.get(third)
    assert (now.keywords, now.pinned, now.importance, now.content) == (
        ("tooth",),
        False,
        2.0,
        "The dentist is at five.",
    )
    assert await count_topics(mind) == {"body": 1}
    assert [each.id for each in (await mind.list(filter=Filter(topics=("health->teeth",)))).memories] == []


async def test_a_version_that_sounds_the_same_keeps_its_vector(mind, embedder, owner):
    [first] = await store(mind, "The dentist is at four.")
    asked = len(embedder.asked) if hasattr(embedder, "asked") else None
    second = await mind.update(first, importance=9)
    assert second.progress == "embedded" and rows(owner, "pending_embeddings") == 0
    assert asked is None or len(embedder.asked) == asked
    by_vector = Cue("The dentist is at four.", channels=("vector",))
    assert [hit.memory.id for hit in (await mind.recall(by_vector)).hits] == [second.id]
    third = await mind.update(second.id, content="Ann plays chess.")
    [hit] = (await mind.recall(Cue("Ann plays chess.", channels=("vector",)))).hits
    assert hit.memory.id == third.id and third.progress == "embedded"


async def test_nothing_changed_writes_nothing(mind, owner):
    [first] = await store(mind, NewMemory("The dentist is at four.", importance=7.3, keywords=("teeth",)))
    same = {"content": "The dentist is at four.", "importance": 7.3, "keywords": ("teeth",), "pinned": False}
    revised = await mind.update(first, **same)
    assert (revised.id, revised.changed, revised.version, revised.progress) == (first, False, 1, "embedded")
    assert (rows(owner, "memories"), rows(owner, "beliefs"), rows(owner, "changes")) == (1, 0, 1)
    with pytest.raises(InvalidInputError):
        await mind.update(first)


async def test_a_revision_that_is_sent_again_is_made_once(mind, owner):
    [first] = await store(mind, "The dentist is at four.")
    asked = {"content": "The dentist is at five.", "topic": "health"}
    second = await mind.update(first, **asked)
    again = await mind.update(first, **asked)
    assert (again.id, again.version, again.changed) == (second.id, 2, False)
    assert rows(owner, "memories") == 2


async def test_only_the_current_version_can_be_revised(mind, recollect):
    [first] = await store(mind, "The dentist is at four.")
    second = (await mind.update(first, content="at five")).id
    third = (await mind.update(second, content="at six")).id
    for old in (first, second):
        with pytest.raises(ConflictError, match=str(third)):
            await mind.update(old, content="at seven")
    assert [each.content for each in (await mind.evidence(second)).versions] == [
        "The dentist is at four.",
        "at five",
        "at six",
    ]
    for refused in ({"content": " "}, {"importance": 11}, {"related_topics": ("a",)}):
        with pytest.raises(InvalidInputError):
            await mind.update(third, **refused)
    foreign = await recollect.mind("bob", "li")
    for asked in (foreign.update(third, content="x"), foreign.evidence(third)):
        with pytest.raises(NotFoundError):
            await asked


async def test_a_memory_that_faded_is_in_recall_again(mind, owner):
    [first] = await store(mind, NewMemory("The dentist is at four.", expires_at=datetime.now(UTC) + timedelta(days=1)))
    owner.execute("select fade_memories(scope_id, array[id], '{1}', '{decayed}', '{old}') from memories")
    assert await found(mind) == []
    await mind.update(first, importance=8)
    assert await found(mind) == ["The dentist is at four."]
    assert (await mind.list(filter={"state": "faded"})).memories == ()


async def test_what_waits_to_be_derived_again_and_items_are_refused(mind, owner):
    [first, other] = await store(mind, "The dentist is at four.", NewMemory("It hurts.", Kind.THOUGHT))
    owner.execute("update memories set withheld = 'to_rederive' where id = %s", [other])
    with pytest.raises(ConflictError, match="derived again"):
        await mind.update(other, content="x")
    owner.execute(
        "insert into items (scope_id, path, key, value, text, memory_id, revision, created_at, updated_at) "
        "select scope_id, 'a', 'b', '{}', '', id, 1, now(), now() from memories where id = %s", [first]
    )  # fmt: skip
    with pytest.raises(ConflictError, match="item"):
        await mind.update(first, content="x")


async def test_who_is_trusted_less_only_contests(mind, owner):
    [first] = await store(mind, NewMemory("The dentist is at four.", topic="health"))
    stranger = trusted_less(mind)
    attempt = await stranger.update(first, content="The dentist is dead.")
    assert attempt.contested and attempt.version == 2 and attempt.outdated == ()
    assert await found(mind) == ["The dentist is at four."] == await found(mind, as_of=await wait())
    old, tried = (await mind.evidence(first)).versions
    assert (old.contested, old.superseded_at, tried.contested, tried.trust) == (False, None, True, 20)
    assert await found(mind, state=RecallState.PAST) == ["The dentist is dead."]
    with pytest.raises(ConflictError, match=str(first)):
        await mind.update(attempt.id, content="x")
    third = await mind.update(first, content="The dentist is at five.")
    assert third.version == 3
    # The attempt goes alone, and a version that replaced the one before it gives way to that.
    assert await mind.forget([attempt.id]) == [attempt.id]
    await stranger.update(third.id, content="The dentist is gone.")
    assert await mind.forget([third.id]) != []
    assert await found(mind) == ["The dentist is at four."]
    assert rows(owner, "beliefs where contested") == 0


async def test_who_is_trusted_more_gives_a_version_more_trust(mind):
    stranger = trusted_less(mind)
    [first] = await store(stranger, "The dentist is at four.")
    second = await mind.update(first, content="The dentist is at five.")
    old, new = (await mind.evidence(second.id)).versions
    assert old.trust == 20 < new.trust and old.origin != new.origin
    assert await found(mind, min_trust=50) == ["The dentist is at five."]


async def test_one_lineage_however_many_revise_at_once(recollect, mind, owner):
    [first] = await store(mind, "The dentist is at four.")
    others = [await recollect.mind("ada", "li") for _ in range(8)]
    asked = [each.update(first, content=f"The dentist is at {number}.") for number, each in enumerate(others)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    [won] = [each for each in answers if not isinstance(each, Exception)]
    assert all(isinstance(each, ConflictError) and str(won.id) in str(each) for each in answers if each is not won)
    assert [each.id for each in (await mind.evidence(first)).versions] == [first, won.id]
    assert rows(owner, "memories") == 2


async def test_forgetting_a_version_gives_back_the_one_before_and_the_first_takes_all(mind, owner):
    [first] = await store(mind, NewMemory("The dentist is at four.", topic="health", keywords=("teeth",)))
    second = (await mind.update(first, content="The dentist is at five.")).id
    third = (await mind.update(second, content="The dentist is at six.")).id
    assert {*await mind.forget([third])} == {third}
    assert await found(mind) == ["The dentist is at five."]
    assert {*await mind.forget([second], dry_run=True)} == {second}
    again = (await mind.update(second, content="The dentist is at seven.")).id
    assert {*await mind.forget([first])} == {first, second, again}
    for table in (
        "memories",
        "beliefs",
        "memory_features",
        "memory_terms",
        "withheld_memories",
        "topics",
        "topic_links",
    ):
        assert rows(owner, table) == 0, table
    assert owner.execute("select memory_count, term_count from scopes").fetchone()[0] == 0


async def test_a_filter_forgets_all_versions(mind, owner):
    [first] = await store(mind, NewMemory("The dentist is at four.", speaker="Ann"))
    await mind.update(first, content="The dentist is at five.")
    assert len(await mind.forget(filter=Filter(speakers=("Ann",)))) == 2
    assert rows(owner, "memories") == 0


async def test_a_fact_is_revised_in_its_own_lineage(mind):
    [fact] = await mind.knowledge.add(NewFact("Ann", "lives in", "Oslo", text="Ann lives in Oslo."))
    revised = await mind.update(fact.memory_id, content="Ann has a flat in Oslo.", importance=8)
    [now] = (await mind.knowledge.facts()).facts
    assert (now.id, now.version, now.memory_id, now.text) == (fact.id, 2, revised.id, "Ann has a flat in Oslo.")
    assert (now.subject, now.object, now.span) == (fact.subject, fact.object, fact.span)
    assert [each.version for each in await versions_of(mind.knowledge, fact.id)] == [1, 2]
    ended = await mind.knowledge.end(fact.id, datetime.now(UTC))
    with pytest.raises(ConflictError, match=str(ended.memory_id)):
        await mind.update(revised.id, content="x")
    over = await mind.update(ended.memory_id, content="Ann had a flat in Oslo.")
    assert (await mind.recall("flat in Oslo")).hits == () and over.version == 4
    await mind.forget([fact.memory_id])
    assert (await mind.list(filter=Filter(state=RecallState.PAST))).memories == ()


async def test_a_revision_is_logged(mind, owner):
    [first] = await store(mind, "The dentist is at four.")
    second = (await mind.update(first, content="The dentist is at five.")).id
    assert owner.execute("select ids from changes where operation = 'revised'").fetchall() == [([first, second],)]


async def test_the_rules_rate_new_words_and_no_one_elses_importance(mind):
    [rated, scored] = await store(mind, "Hello!", NewMemory("Hello, Ann!", importance=4))
    for first, expected in ((rated, (8.0, "rule")), (scored, (4.0, "caller"))):
        now = await mind.get((await mind.update(first, content="Her mother died.")).id)
        assert (now.importance, now.importance_from) == expected
    now = await mind.get((await mind.update((await mind.list()).memories[0].id, importance=9)).id)
    assert (now.importance, now.importance_from) == (9.0, "caller")


async def test_an_event_keeps_its_place_in_the_journal(mind, owner):
    await mind.set_profile(Profile(enrich=EnrichSource.ALL))
    [first] = await store(mind, "The dentist is at four.")
    journal = "select id, number from messages where conversation_id = ''"
    assert owner.execute(journal).fetchall() == [(first, 1)]
    second = (await mind.update(first, content="The dentist is at five.")).id
    assert owner.execute(journal).fetchall() == [(second, 1)]
    await mind.forget([second])
    assert owner.execute(journal).fetchall() == [(first, 1)]

"""Reading the past on the real store: what was believed as of a moment, and what was true at one."""

from __future__ import annotations

import psycopg
import pytest

from recollect.core.text.terms import analyse, hash_term, slot_of
from recollect.errors import InvalidInputError, NotFoundError
from recollect.jobs.worker import build_app
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.filters import Filter
from recollect.models.memories import Kind, MemoryProgress, NewMemory, Role, Triple
from recollect.models.recall import Cue, StreamWeights
from recollect.store.knowledge import facts
from recollect.store.memories import memories
from support.memories.past import LONG_AGO, amend, end, last_chat, moment, scope_of, state, year
from support.service.known_numbers import VECTORS

HOT = ("memory_terms", VECTORS, "memory_keywords", "pending_embeddings")


async def remind(mind, text, **more):
    return [hit.memory.content for hit in (await mind.recall(Cue(text, **{"limit": 200, **more}))).hits]


async def read(mind, **times):
    return [memory.content for memory in (await mind.list(limit=200, filter=Filter(**times))).memories]


async def moved(mind, owner):
    """Somebody lived in Paris and moved to Berlin; the first version knew of no end."""
    first = await state(mind, owner, "Ann lives in Paris.", year(2020))
    before = moment(owner)
    ended = await amend(mind, owner, first, "Ann lived in Paris.", year(2020), year(2024))
    second = await state(mind, owner, "Ann lives in Berlin.", year(2024))
    return first, ended, second, before


async def test_usual_reads_know_only_what_is_believed_and_not_over(mind, owner):
    await moved(mind, owner)
    assert await remind(mind, "Where does Ann live?") == ["Ann lives in Berlin."]
    assert await read(mind) == ["Ann lives in Berlin."]


async def test_as_of_gives_what_was_believed_then(mind, owner):
    first, _, _, before = await moved(mind, owner)
    assert await remind(mind, "Where does Ann live?", as_of=before) == ["Ann lives in Paris."]
    assert await read(mind, as_of=before) == ["Ann lives in Paris."]
    [hit] = (await mind.recall(Cue("Ann Paris", as_of=before))).hits
    assert (hit.memory.id, set(hit.channels)) == (first, {"text", "vector"})
    assert hit.memory.superseded_at > before


async def test_at_gives_what_was_true_then(mind, owner):
    await moved(mind, owner)
    for when, known in ((year(2019), []), (year(2020), ["Ann lived in Paris."]), (year(2023), ["Ann lived in Paris."])):
        assert await remind(mind, "Where does Ann live?", at=when) == known
        assert await read(mind, at=when) == known
    # Half open: at the moment of the move the old one is over.
    assert await remind(mind, "Where does Ann live?", at=year(2024)) == ["Ann lives in Berlin."]


async def test_both_times_go_together(mind, owner):
    _, _, _, before = await moved(mind, owner)
    now = moment(owner)
    # Before the move was heard of, she was thought to live in Paris for good.
    assert await remind(mind, "Ann", as_of=before, at=year(2025)) == ["Ann lives in Paris."]
    assert await remind(mind, "Ann", as_of=now, at=year(2025)) == ["Ann lives in Berlin."]
    assert await read(mind, as_of=now, at=year(2022)) == ["Ann lived in Paris."]


async def test_every_version_is_read_by_its_id(mind, owner):
    first, ended, second, _ = await moved(mind, owner)
    versions = [await mind.get(each) for each in (first, ended, second)]
    assert [each.content for each in versions] == ["Ann lives in Paris.", "Ann lived in Paris.", "Ann lives in Berlin."]
    assert [each.valid_at for each in versions] == [year(2020), year(2020), year(2024)]
    assert [each.invalid_at for each in versions] == [None, year(2024), None]
    assert [each.superseded_at for each in versions] == [versions[1].created_at, None, None]


async def test_the_past_is_ranked_as_it_was(mind, owner):
    ids = [await state(mind, owner, f"Ann likes {what} and rain.", year(2020)) for what in ("tea", "music", "trains")]
    await mind.remember([NewMemory("It rains on Ann."), NewMemory("A train leaves.")])
    then = moment(owner)
    cues = [Cue("Ann likes music", channels=channels, touch=False) for channels in (("vector",), ("text",), ())]
    before = [(await mind.recall(cue)).hits for cue in cues]
    for each in ids:
        await amend(mind, owner, each, "Ann likes nothing any more.", year(2020))
    for cue, hits in zip(cues, before, strict=True):
        later = (await mind.recall(Cue(cue.text, channels=cue.channels, as_of=then))).hits
        assert [hit.memory.id for hit in later] == [hit.memory.id for hit in hits]
        if cue.channels == ("vector",):
            assert [hit.score for hit in later] == pytest.approx([hit.score for hit in hits], abs=1e-3)


async def test_what_is_yet_to_come_is_believed_but_not_true(mind, owner):
    await state(mind, owner, "Ann moves to Rome.", year(2100))
    assert await remind(mind, "Ann") == ["Ann moves to Rome."]
    assert await remind(mind, "Ann", at=moment(owner)) == []
    assert await remind(mind, "Ann", at=year(2101)) == ["Ann moves to Rome."]


async def test_a_fact_is_hidden_the_moment_it_ends_and_leaves_the_indexes_with_the_sweep(
    recollect, mind, owner, addresses, monkeypatch
):
    ids = [await state(mind, owner, f"The ticket {number} is valid.", year(2020), year(2100)) for number in range(5)]
    lasting = await state(mind, owner, "The ticket 9 is valid.", year(2020))
    assert len(await remind(mind, "ticket")) == 6
    then = moment(owner)
    end(owner, ids)
    assert await remind(mind, "ticket") == await read(mind) == ["The ticket 9 is valid."]
    assert len(await remind(mind, "ticket", as_of=then)) == 6
    assert rows_of(owner, ids) == {"memory_terms": 5, VECTORS: 5, "memory_keywords": 0, "pending_embeddings": 0}

    monkeypatch.setattr(facts, "CHUNK", 2)
    app = build_app(recollect.parts)
    async with app.open_async():
        await app.tasks["sweep"](None, 0)
    assert rows_of(owner, ids) == dict.fromkeys(HOT, 0)
    assert rows_of(owner, [lasting])[VECTORS] == 1
    assert len(await remind(mind, "ticket", at=year(2021))) == 6
    assert len(await read(mind, as_of=then)) == 6


def rows_of(owner, ids):
    return {
        table: owner.execute(f"select count(*) from {table} where id = any (%s)", [ids]).fetchone()[0] for table in HOT
    }


@pytest.mark.parametrize("channels", [("vector",), ("text",), ()])
async def test_what_was_true_then_is_found_among_many_that_were_not(mind, owner, channels):
    await remember_all(mind, [NewMemory(f"Ann has the ticket {number}.", Kind.FACT) for number in range(150)])
    owner.execute(
        "insert into beliefs (scope_id, id, lineage, version, valid_at, created_at) "
        "select scope_id, id, id, 1, %s, created_at from memories",
        [year(2024)],
    )
    await state(mind, owner, "Somebody called Ann, whose name is longer, had a card for the theatre.", year(2020))
    found = await remind(mind, "Ann ticket", at=year(2022), channels=channels, limit=5)
    assert found == ["Somebody called Ann, whose name is longer, had a card for the theatre."]


async def remember_all(mind, new, together=25):
    """Remember so few at a time that all have their vectors at once."""
    for start in range(0, len(new), together):
        receipts = await mind.remember(new[start : start + together])
        assert {receipt.progress for receipt in receipts} == {MemoryProgress.EMBEDDED}


@pytest.mark.parametrize("channels", [("stream",), ("vector",), ("text",)])
async def test_what_had_happened_by_then_is_found_among_much_that_had_not(mind, channels):
    later = [NewMemory(f"Ann feeds cat {number}.", occurred_at=year(2024)) for number in range(150)]
    await remember_all(mind, [*later, NewMemory("Once there was a cat that Ann did not feed.", occurred_at=year(2020))])
    found = await remind(mind, "Ann feeds a cat", at=year(2022), channels=channels, limit=5)
    assert found == ["Once there was a cat that Ann did not feed."]


async def test_a_version_that_never_had_a_vector_is_found_by_its_words(mind, owner, embedder):
    embedder.fail()
    first = await state(mind, owner, "Ann lives in Paris.", year(2020))
    before = moment(owner)
    await amend(mind, owner, first, "Ann lives in Rome.", year(2020))
    embedder.recover()
    assert "Ann lives in Paris." in await remind(mind, "Who lives in Paris?", as_of=before)
    embedder.fail()
    found = await mind.recall(Cue("Who lives in Paris?", as_of=before))
    assert [hit.memory.content for hit in found.hits] == ["Ann lives in Paris."]
    assert found.methods["past"] == "exact"


async def test_kinds_and_trust_bind_the_past_as_they_do_the_present(mind, owner):
    first = await state(mind, owner, "Ann lives in Paris.", year(2020))
    told = await state(mind, owner, "They spoke of Ann.", kind=Kind.SUMMARY)
    before = moment(owner)
    await amend(mind, owner, first, "Ann lives in Rome.", year(2020))
    await amend(mind, owner, told, "They spoke of Ann, and of Rome.", kind=Kind.SUMMARY)
    both = ["Ann lives in Paris.", "They spoke of Ann."]
    assert sorted(await remind(mind, "Ann", as_of=before)) == both
    assert await remind(mind, "Ann", as_of=before, kinds=(Kind.FACT,)) == both[:1]
    assert await remind(mind, "Ann", as_of=before, kinds=(Kind.SUMMARY,)) == both[1:]
    assert await remind(mind, "Ann", as_of=before, kinds=(Kind.EVENT,)) == []
    assert sorted(await remind(mind, "Ann", as_of=before, min_trust=50)) == both
    owner.execute("update memories set trust = 20 where id = %s", [first])
    assert await remind(mind, "Ann", as_of=before, min_trust=50) == both[1:]


async def test_the_past_of_others_is_nobodys(recollect, mind, owner, addresses):
    first, _, _, before = await moved(mind, owner)
    for other in (await recollect.mind("ada", "wu"), await recollect.mind("ada", "li", tenant="other")):
        await other.remember("something of their own")
        before = moment(owner)
        assert "Paris" not in str(await remind(other, "Ann lives in Paris", as_of=before, at=year(2022)))
        assert await read(other, as_of=before) == ["something of their own"]
        with pytest.raises(NotFoundError):
            await other.get(first)
    hashes = [hash_term(scope_of(mind, owner), term) for term in analyse("Paris")]
    with psycopg.connect(addresses.service) as connection:
        theirs = await recollect.mind("ada", "li", tenant="other")
        for tenant, found in ((mind.access.scope.tenant_id, 1), (theirs.access.scope.tenant_id, 0), ("", 0)):
            connection.execute("select set_config('recollect.tenant', %s, true)", [str(tenant)])
            asked = [scope_of(mind, owner), hashes, [slot_of(term) for term in analyse("Paris")], [first]]
            query = (
                "select count(*) from match_terms(%s, %s, %s, null, 0::smallint, null, null, %s, 10, null) where past"
            )
            assert connection.execute(query, asked).fetchone()[0] == found


async def test_cues_on_one_snapshot_are_each_answered_as_of_their_own_time(mind, owner):
    _, _, _, before = await moved(mind, owner)
    cues = [Cue("Ann"), Cue("Ann", as_of=before), Cue("Ann", at=year(2022)), Cue("Ann", as_of=LONG_AGO)]
    for isolated in (False, True):
        answers = await mind.recall_each(cues, isolated=isolated)
        contents = [[hit.memory.content for hit in answer.hits] for answer in answers]
        assert contents == [["Ann lives in Berlin."], ["Ann lives in Paris."], ["Ann lived in Paris."], []]


async def test_only_what_is_in_the_indexes_counts_as_accessed(mind, owner):
    first, _, _, before = await moved(mind, owner)
    found = await mind.recall(Cue("Ann", as_of=before))
    assert ([hit.memory.id for hit in found.hits], found.accessed) == ([first], ())


async def test_the_stream_knows_of_no_versions(mind, owner):
    _, _, _, before = await moved(mind, owner)
    cue = Cue("Ann", channels=("stream",), weighing=StreamWeights(), as_of=before)
    found = await mind.recall(cue)
    assert (found.hits, set(found.methods)) == ((), {"stream"})
    alone = await mind.recall(Cue("Ann", channels=("past",)))
    assert alone.message == "past: skipped: the cue names no time"


async def test_a_memory_that_is_no_belief_is_as_old_as_it_says(mind, owner):
    await mind.remember(NewMemory("Ann was born.", occurred_at=year(1990)))
    before = moment(owner)
    await mind.remember([NewMemory("Ann went to school.", Kind.FACT, occurred_at=year(1996))])
    assert await remind(mind, "Ann", as_of=before) == ["Ann was born."]
    assert await remind(mind, "Ann", at=year(1991)) == await read(mind, at=year(1991)) == ["Ann was born."]
    assert len(await remind(mind, "Ann", at=year(1997))) == 2
    assert await read(mind, at=year(1980)) == []


async def test_keywords_and_chats_of_then(mind, owner):
    filed = {"keywords": ("ann",)}
    early = [NewMemory("An event", occurred_at=year(2020), **filed), NewMemory("A talk", Kind.CHAT, **filed)]
    await mind.remember(early)
    before = moment(owner)
    many = [NewMemory(f"Event {number}", occurred_at=year(2023), **filed) for number in range(60)]
    await mind.remember([*many, NewMemory("A later talk", Kind.CHAT, occurred_at=year(2024), **filed)])
    triple = Triple("ann", "", "")
    [found] = await mind.associate(triple, as_of=before)
    assert [memory.content for memory in found.events] == ["An event"]
    [found] = await mind.associate(triple, at=year(2021), limit=3)
    assert [memory.content for memory in found.events] == ["An event"]
    [found] = await mind.associate(triple)
    assert len(found.events) == 30
    assert (await last_chat(mind, "Ann", as_of=before)).content == "A talk"
    assert (await last_chat(mind, "Ann")).content == "A later talk"
    assert await last_chat(mind, "Ann", as_of=LONG_AGO) is None
    assert await last_chat(mind, "Ann", at=year(2024)) is not None
    assert await last_chat(mind, "Ann", at=year(2023)) is None


async def test_a_prompt_as_of_then(mind, owner):
    conversation = mind.conversation("c")
    early = await conversation.append(
        [NewMessage(Role.USER, "I live in Paris."), NewMessage(Role.ASSISTANT, "Nice.")], idempotency_key="a"
    )
    fact = await state(mind, owner, "Ann lives in Paris.", year(2020), evidence=(early[0].id,))
    told = await state(mind, owner, "It was about Paris.", kind=Kind.SUMMARY, evidence=(early[0].id,))
    then = moment(owner)
    late = await conversation.append([NewMessage(Role.USER, "I moved to Rome."), NewMessage(Role.ASSISTANT, "Oh.")])
    await amend(mind, owner, fact, "Ann lives in Rome.", year(2020), evidence=(late[0].id,))
    await amend(mind, owner, told, "It was about Rome.", kind=Kind.SUMMARY, evidence=(late[0].id,))
    now = await conversation.context("Where does Ann live?")
    before = await conversation.context(Cue("Where does Ann live?", as_of=then))
    assert "Rome" in now.block
    assert "Rome" not in str(before.messages)
    assert [message.content for message in before.history.messages] == ["I live in Paris.", "Nice."]
    assert before.summary.content == "It was about Paris."
    assert "Ann lives in Paris." in before.block
    nothing = await conversation.context(Cue("Where does Ann live?", as_of=LONG_AGO))
    assert (nothing.history.messages, nothing.hits, nothing.summary) == ((), (), None)


async def test_a_history_of_then(mind, owner):
    conversation = mind.conversation("c")
    said = [
        NewMessage(Role.USER, "first", occurred_at=year(2020)),
        NewMessage(Role.ASSISTANT, "1", occurred_at=year(2020)),
    ]
    stored = await conversation.append(said)
    then = moment(owner)
    more = [
        NewMessage(Role.USER, "second", occurred_at=year(2022)),
        NewMessage(Role.ASSISTANT, "2", occurred_at=year(2022)),
    ]
    later = await conversation.append(more)
    for window in (
        HistoryOptions(as_of=then),
        HistoryOptions(at=year(2021)),
        HistoryOptions(as_of=then, upstream=True),
        HistoryOptions(at=year(2021), upstream=True),
    ):
        assert [each.content for each in (await conversation.history(window)).messages] == ["first", "1"]
    assert len((await conversation.history(HistoryOptions(as_of=moment(owner)))).messages) == 4
    assert (await conversation.history(HistoryOptions(as_of=LONG_AGO))).messages == ()
    assert [
        each.id for each in (await conversation.history(HistoryOptions(leaf=stored[1].id, as_of=then))).messages
    ] == [each.id for each in stored]
    with pytest.raises(NotFoundError):
        await conversation.history(HistoryOptions(leaf=later[1].id, as_of=then))
    with pytest.raises(InvalidInputError, match="as_of"):
        await conversation.history(HistoryOptions(as_of=then.replace(tzinfo=None)))


async def test_what_has_faded_is_readable_and_not_recalled(mind, owner):
    [made] = await mind.remember("A cat slept.")
    owner.execute("select withhold_memories(%s, %s, 'faded')", [scope_of(mind, owner), [made.id]])
    assert (await mind.get(made.id)).content == "A cat slept."
    assert await read(mind) == await read(mind, as_of=moment(owner)) == ["A cat slept."]
    assert await remind(mind, "cat") == await remind(mind, "cat", as_of=moment(owner)) == []
    [derived] = await mind.remember(NewMemory("Cats sleep.", Kind.THOUGHT, evidence=(made.id,)))
    assert (await mind.get(derived.id)).evidence == (made.id,)


async def test_versions_are_looked_up_by_their_keys(mind, owner, addresses):
    """Beside many memories of the scope, the past costs what it holds, and a fetch one look for each version."""
    await mind.load([NewMemory(f"Ann sees thing {number}", Kind.FACT) for number in range(5_000)])
    owner.execute(
        "insert into beliefs (scope_id, id, lineage, version, created_at) "
        "select scope_id, id, id, 1, created_at from memories"
    )
    ids = [await state(mind, owner, f"Ann lives in town {number}.", year(2020)) for number in range(4)]
    for each in ids[:2]:
        await amend(mind, owner, each, "Ann lives nowhere.", year(2020))
    owner.execute("vacuum analyze")
    with psycopg.connect(addresses.service, autocommit=True, prepare_threshold=None) as service:
        service.execute("select set_config('recollect.tenant', %s, false)", [str(mind.access.scope.tenant_id)])
        scope_id = scope_of(mind, owner)
        versions = f"select * from past_versions({scope_id}, now(), null, null, 0::smallint, null)"
        assert "memories_withheld_in_time" in plan(service, versions, {})
        asked = memories.RowQuery(ids)
        fetching = plan(service, asked.compose().as_string(), asked.bind(mind.access.scope))
        assert "Seq Scan on beliefs" not in fetching
        assert "Seq Scan on memories" not in fetching


def plan(service, query, parameters):
    return "\n".join(line for (line,) in service.execute(f"explain (costs off) {query}", parameters).fetchall())

"""Re-runs: history is read again beside what stands, and takes its place at once, for scopes as they were asked for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.core.knowledge.entities import AnyNameMatches
from recollect.core.knowledge.extractions import AnyExtraction
from recollect.errors import BudgetError, ChatModelError, ConflictError, InvalidInputError, NotFoundError
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.knowledge import EnrichRequest, NewFact, ValidTime
from recollect.models.memories import Kind, Role
from recollect.settings import Settings
from recollect.verbs.knowledge import rerun as verb
from recollect.verbs.knowledge.enrich import enrich
from recollect.wiring import connected
from support.memories.past import versions_of
from support.models.fake_chat import FakeChatModel
from support.models.scripted_extractions import entity, fact

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
OLD, NEW = "old@1", "new@1"
TEXTS = (
    "Ann lives in Oslo and likes tea",
    "Bob has a boat in Bergen",
    "Ann has moved to Bergen, she lives there now",
)


def extraction(summary, entities=(), facts=(), label="Talk"):
    parts = {"summary": summary, "label": label, "paths": [], "importance": 6, "keywords": ["talk"]}
    return json.dumps(parts | {"entities": list(entities), "facts": list(facts)})


ANN, BOB = entity("Ann"), entity("Bob")
OSLO, BERGEN, BOAT = entity("Oslo", "place"), entity("Bergen", "place"), entity("boat", "thing")


class Model(FakeChatModel):
    """Answers by what is said, and not by how often it was asked."""

    def __init__(self, model, answers, matches=None):
        super().__init__(self.answer)
        self.model, self.answers, self.matches = model, answers, matches or {"matches": []}
        self.asked = []
        self.before = lambda: None

    def answer(self, prompt, answer):
        self.before()
        self.asked.append(answer)
        if answer is AnyNameMatches:
            return json.dumps(self.matches)
        conversation = prompt.partition("<conversation>\n")[2].partition("</conversation>")[0]
        for words, said in self.answers.items():
            if words in conversation:
                return said(prompt) if callable(said) else said
        raise AssertionError("nobody scripted an answer")

    def count(self):
        return sum(asked is AnyExtraction for asked in self.asked)


def number_of(prompt, text):
    """Find under which number a prompt shows a fact."""
    shown = prompt.partition("<facts>\n")[2].partition("</facts>")[0]
    [line] = [line for line in shown.splitlines() if text in line]
    return int(line.partition(".")[0])


def old_answers():
    """The old model takes Bob for a friend of Ann's, and does not notice that she has moved."""
    return {
        "likes tea": extraction("Old: Ann, Oslo.", [ANN, OSLO], [fact("Ann", "lives in", "Oslo")]),
        "has a boat": extraction("Old: Bob.", [BOB, ANN], [fact("Bob", "is a friend of", "Ann")]),
        "has moved": extraction("Old: Ann, Bergen.", [ANN, BERGEN], [fact("Ann", "visits", "Bergen")]),
    }


def new_answers():
    """The new one does: it replaces a fact that only the run itself has stated so far."""

    def moved(prompt):
        replaced = [number_of(prompt, "Ann lives in Oslo.")]
        return extraction("New: Ann, Bergen.", [ANN, BERGEN], [fact("Ann", "lives in", "Bergen", replaces=replaced)])

    return {
        "likes tea": extraction("New: Ann, Oslo.", [ANN, OSLO], [fact("Ann", "lives in", "Oslo")]),
        "has a boat": extraction("New: Bob.", [BOB, BOAT], [fact("Bob", "owns", "boat")], label="Boats"),
        "has moved": moved,
    }


@pytest.fixture
def old():
    return Model(OLD, old_answers())


@pytest.fixture
def new():
    return Model(NEW, new_answers())


@pytest.fixture
async def running(addresses, embedder, old):
    settings = Settings(embedder="fake", chat_prices=f"{NEW}=10/100")
    async with connected(settings, addresses, embedder, old) as recollect:
        yield recollect


@pytest.fixture
async def mind(running):
    return await running.mind("ada", "li")


def reruns(running, new):
    return replace(running.reruns, build=lambda model: new if model == NEW else None)


async def say(mind, *texts, conversation="c", begin=0):
    """Say each text in a segment of its own, a day after the other."""
    view = mind.conversation(conversation)
    for day, text in enumerate(texts, begin):
        at = NOON + timedelta(days=day)
        await view.append(
            [
                NewMessage(Role.USER, text, occurred_at=at),
                NewMessage(Role.ASSISTANT, "I see.", occurred_at=at + timedelta(seconds=9)),
            ]
        )
        await view.update(close_segment=True)
    return view


async def learn(mind, owner):
    [(number,)] = owner.execute(
        'select id from scopes where agent = %s and "user" = %s', [mind.access.scope.agent, mind.access.scope.user]
    ).fetchall()
    return await enrich(mind.access.parts, number)


@pytest.fixture
async def enriched(mind, owner):
    """Three segments as the old model read them."""
    await say(mind, *TEXTS)
    await learn(mind, owner)
    return mind


async def read(mind, kind=Kind.SUMMARY, **times):
    """The memories of one kind that can be seen."""
    page = await mind.list(limit=200, filter=Filter(**times))
    return sorted(each.content for each in page.memories if each.kind is kind)


async def state(mind, **times):
    """All that a caller can read of what was learned."""
    facts = sorted((each.text, each.span) for each in (await mind.knowledge.facts(**times)).facts)
    summaries = await read(mind, **times)
    if times:
        return facts, summaries
    entities = sorted((each.name, each.aliases) for each in (await mind.knowledge.entities()).entities)
    labels = [(each.label, each.state.value, each.summary_id) for each in await mind.conversation("c").segments()]
    hits = [hit.memory.content for hit in (await mind.recall("Where does Ann live?")).hits]
    return facts, summaries, entities, labels, hits


def checksum(owner):
    """One line for each table that a dry run could have changed."""
    tables = (
        "segments",
        "runs",
        "extractions",
        "memories",
        "beliefs",
        "mentions",
        "entities",
        "ledger",
        "conversations",
        "evidence",
        "topics",
        "topic_links",
        "procrastinate_jobs",
    )
    asked = "select coalesce(md5(string_agg(each::text, '' order by each::text)), '') from {} each"
    return {table: owner.execute(asked.format(table)).fetchone()[0] for table in tables}


OLD_FACTS = ["Ann lives in Oslo.", "Ann visits Bergen.", "Bob is a friend of Ann."]
NEW_FACTS = ["Ann lives in Bergen.", "Bob owns boat."]


async def texts_of(mind, **times):
    return sorted(each.text for each in (await mind.knowledge.facts(**times)).facts)


async def test_a_dry_run_counts_calls_and_tokens_and_changes_nothing(enriched, running, new, owner):
    before = checksum(owner)
    [plan] = await reruns(running, new).plan(EnrichRequest(model=NEW))
    assert checksum(owner) == before and new.calls == 0
    assert (plan.agent, plan.user, plan.segments, plan.messages, plan.cost.calls) == ("ada", "li", 3, 6, 3)
    assert plan.cost.price == pytest.approx(plan.cost.prompt_tokens / 1e5 + plan.cost.completion_tokens / 1e4)
    [done] = await reruns(running, new).run(EnrichRequest(model=NEW))
    assert (done.segments, done.left, done.cost.calls) == (3, 0, 3)
    # The estimate carries the schema of the answer as well, which this model is not sent.
    assert done.cost.prompt_tokens < plan.cost.prompt_tokens < 3 * done.cost.prompt_tokens
    assert plan.cost.completion_tokens / 2 < done.cost.completion_tokens < plan.cost.completion_tokens * 2
    assert done.cost.price == pytest.approx(done.cost.prompt_tokens / 1e5 + done.cost.completion_tokens / 1e4)


async def test_without_a_price_none_is_told_and_without_history_there_is_no_plan(enriched, running):
    [plan] = await running.reruns.plan(EnrichRequest())
    assert plan.cost.price is None and plan.cost.calls == 3
    assert await running.reruns.plan(EnrichRequest(agent="nobody")) == []
    assert await running.reruns.run(EnrichRequest(since=NOON + timedelta(days=9))) == []


async def test_a_run_builds_beside_and_then_switches(enriched, running, new, owner):
    before, reports = await state(enriched), []
    assert before[1] == ["Old: Ann, Bergen.", "Old: Ann, Oslo.", "Old: Bob."]
    moment = datetime.now(UTC)
    [done] = await reruns(running, new).run(EnrichRequest(model=NEW), lambda *progress: reports.append(progress))
    assert reports == [("ada and li", number, 3) for number in range(4)]
    assert (done.segments, done.left, done.replaced) == (3, 0, 3)
    assert await texts_of(enriched) == NEW_FACTS
    _, summaries, entities, labels, hits = await state(enriched)
    assert summaries == ["New: Ann, Bergen.", "New: Ann, Oslo.", "New: Bob."]
    assert [label for label, *_ in labels] == ["Talk", "Boats", "Talk"]
    assert not any(hit.startswith("Old") for hit in hits) and any("Bergen" in hit for hit in hits)
    assert [name for name, _ in entities] == ["Ann", "Bergen", "Bob", "Oslo", "boat"]
    assert await state(enriched, as_of=moment) == (before[0], before[1])
    versions = owner.execute("select version from beliefs where subject_id is null order by version").fetchall()
    assert versions == [(1,)] * 3 + [(2,)] * 3
    # Believed from one moment on: nobody can ask as of a moment at which the switch was half done.
    moments = owner.execute("select distinct created_at from beliefs where created_at > %s", [moment]).fetchall()
    ended = owner.execute("select distinct superseded_at from beliefs where superseded_at is not null").fetchall()
    assert moments == ended and len(moments) == 1


async def test_nothing_readable_changes_while_a_run_is_built(enriched, running, new, owner):
    before, looks = await state(enriched), []
    asked = FakeChatModel.complete

    async def complete_and_look(self, prompt, answer):
        looks.append(await state(enriched))
        return await asked(self, prompt, answer)

    new.complete = complete_and_look.__get__(new)
    switching = verb.switch

    async def look_and_switch(*given):
        looks.append(await state(enriched))
        return await switching(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verb, "switch", look_and_switch)
        await reruns(running, new).run(EnrichRequest(model=NEW))
    assert len(looks) == 4 and all(look == before for look in looks)
    assert await state(enriched) != before


async def test_what_the_run_ended_is_over_since_then(enriched, running, new):
    await reruns(running, new).run(EnrichRequest(model=NEW))
    found = {each.text: each.span for each in (await enriched.knowledge.facts(at=NOON + timedelta(days=1))).facts}
    assert found["Ann lives in Oslo."] == ValidTime(NOON, NOON + timedelta(days=2))
    assert "Ann lives in Bergen." not in found


async def test_a_reader_sees_only_the_old_or_only_the_new(enriched, running, new):
    seen, over = [], asyncio.Event()

    async def watch():
        while not over.is_set():
            seen.append(tuple(await texts_of(enriched)))
            seen.append(tuple(sorted({content[:3] for content in await read(enriched)})))

    watching = asyncio.create_task(watch())
    await reruns(running, new).run(EnrichRequest(model=NEW))
    over.set()
    await watching
    assert set(seen) <= {tuple(OLD_FACTS), tuple(NEW_FACTS), ("Old",), ("New",)}
    assert seen[0] == tuple(OLD_FACTS)


async def test_a_run_that_was_killed_goes_on_and_pays_no_segment_twice(enriched, running, new, owner):
    before = await state(enriched)

    def die():
        if new.count() == 2:
            raise asyncio.CancelledError

    new.before = die
    with pytest.raises(asyncio.CancelledError):
        await reruns(running, new).run(EnrichRequest(model=NEW))
    assert await state(enriched) == before
    new.before = lambda: None
    [plan] = await reruns(running, new).plan(EnrichRequest(model=NEW))
    assert (plan.segments, plan.cost.calls) == (3, 1)
    [done] = await reruns(running, new).run(EnrichRequest(model=NEW))
    assert (done.segments, done.cost.calls, new.count()) == (3, 1, 3)
    assert await texts_of(enriched) == NEW_FACTS
    assert owner.execute("select state from runs").fetchall() == [("switched",)]


async def test_a_run_that_dies_in_the_switch_leaves_everything_as_it_was(enriched, running, new, monkeypatch):
    before = await state(enriched)

    async def die(*_):
        raise ChatModelError("gone")

    with monkeypatch.context() as patch, pytest.raises(ChatModelError):
        patch.setattr("recollect.verbs.knowledge.switch.sum_up", die)
        await reruns(running, new).run(EnrichRequest(model=NEW))
    assert await state(enriched) == before
    [done] = await reruns(running, new).run(EnrichRequest(model=NEW))
    assert (done.segments, done.cost.calls, new.count()) == (3, 0, 3)
    assert await texts_of(enriched) == NEW_FACTS


async def test_what_callers_stated_survives_and_what_the_old_model_ended_is_open_again(mind, running, old, new, owner):
    [stated] = await mind.knowledge.add([NewFact("Ann", "drinks", "tea", valid_at=NOON)])
    [home] = await mind.knowledge.add([NewFact("Ann", "lives in", "Rome", valid_at=NOON - timedelta(days=9))])

    def ending(prompt):
        replaced = [number_of(prompt, "Ann lives in Rome")]
        return extraction("Old.", [ANN, OSLO], [fact("Ann", "lives in", "Oslo", replaces=replaced)])

    old.answers["likes tea"] = ending
    new.answers["likes tea"] = extraction("New.", [ANN, OSLO], [fact("Ann", "visits", "Oslo")])
    await say(mind, TEXTS[0])
    await learn(mind, owner)
    assert (await versions_of(mind.knowledge, home.id))[-1].span.invalid_at == NOON
    moment = datetime.now(UTC)
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert await texts_of(mind) == ["Ann drinks tea", "Ann lives in Rome", "Ann visits Oslo."]
    [only] = await versions_of(mind.knowledge, stated.id)
    assert only == stated
    versions = await versions_of(mind.knowledge, home.id)
    assert [each.span.invalid_at for each in versions] == [None, NOON, None]
    assert await texts_of(mind, as_of=moment) == ["Ann drinks tea", "Ann lives in Oslo."]
    assert "Ann lives in Rome" in {hit.memory.content for hit in (await mind.recall("Rome")).hits}


async def test_facts_of_other_segments_stay_and_what_a_run_ends_of_them_is_ended(enriched, running, new, owner):
    await reruns(running, new).run(EnrichRequest(model=NEW, since=NOON + timedelta(days=2)))
    assert new.count() == 1
    assert await texts_of(enriched) == ["Ann lives in Bergen.", "Bob is a friend of Ann."]
    assert await read(enriched) == ["New: Ann, Bergen.", "Old: Ann, Oslo.", "Old: Bob."]
    # Read again once more, by a model that does not notice: what was ended is open again.
    again = Model("third@1", old_answers())
    third = replace(running.reruns, build=lambda _: again)
    await third.run(EnrichRequest(model="third@1", since=NOON + timedelta(days=2)))
    assert await texts_of(enriched) == OLD_FACTS


async def test_two_runs_one_after_the_other(enriched, running, new, owner):
    await reruns(running, new).run(EnrichRequest(model=NEW))
    between = datetime.now(UTC)
    await running.reruns.run(EnrichRequest())
    assert await texts_of(enriched) == OLD_FACTS
    assert await texts_of(enriched, as_of=between) == NEW_FACTS
    assert [run for (run,) in owner.execute("select state from runs").fetchall()] == ["switched", "switched"]
    [segment, *_] = await enriched.conversation("c").segments()
    assert (await enriched.get(segment.summary_id)).content == "Old: Ann, Oslo."
    # Whatever is asked for again after a switch is another run, and is paid for again.
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert new.count() == 6


async def test_a_segment_that_lost_a_message_meanwhile_is_left_out(enriched, running, new, owner):
    switching = verb.switch
    page = await enriched.list(limit=200)
    [bob] = [each.id for each in page.memories if each.kind is Kind.MESSAGE and "boat" in each.content]

    async def forget_and_switch(*given):
        await enriched.forget([bob])
        return await switching(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verb, "switch", forget_and_switch)
        [done] = await reruns(running, new).run(EnrichRequest(model=NEW))
    assert (done.segments, done.left) == (2, 1)
    assert await texts_of(enriched) == ["Ann lives in Bergen."]
    for table in ("extractions", "mentions", "entities", "memories", "beliefs"):
        rows = owner.execute(f"select each::text from {table} each").fetchall()
        assert not [row for row in rows if "boat" in row[0].lower() and "in Bergen" in row[0]], table
    assert [each.state.value for each in await enriched.conversation("c").segments()][1] == "closed"


async def test_a_conversation_that_was_deleted_meanwhile_is_left_out(mind, running, new, owner):
    await say(mind, TEXTS[0])
    other = await say(mind, TEXTS[1], conversation="d", begin=1)
    await learn(mind, owner)
    switching = verb.switch

    async def delete_and_switch(*given):
        await other.delete()
        return await switching(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verb, "switch", delete_and_switch)
        [done] = await reruns(running, new).run(EnrichRequest(model=NEW))
    assert (done.segments, done.left) == (1, 1)
    await other.update(state="active")
    assert await texts_of(mind) == ["Ann lives in Oslo.", "Bob is a friend of Ann."]


async def test_the_budget_stops_a_run_which_goes_on_later_or_at_once_if_told_so(enriched, running, new, owner):
    used = (await running.ledger()).budget.used
    await running.ledger.allow("default", used + 10)
    before = await state(enriched)
    with pytest.raises(BudgetError, match=r"resumes at .* UTC\. Run the same command again"):
        await reruns(running, new).run(EnrichRequest(model=NEW))
    assert new.count() == 1 and await state(enriched) == before
    with pytest.raises(BudgetError):
        await reruns(running, new).run(EnrichRequest(model=NEW))
    assert new.count() == 1
    [done] = await reruns(running, new).run(EnrichRequest(model=NEW, ignore_budget=True))
    assert (done.segments, new.count()) == (3, 3)


async def test_scopes_are_read_as_they_are_asked_for_and_never_together(running, old, new, owner):
    minds = [await running.mind(*names) for names in (("ada", "li"), ("ada", "mo"), ("eve", "li"))]
    stranger = await running.mind("ada", "li", tenant="other")
    for each in (*minds, stranger):
        await say(each, TEXTS[0])
    for (number,) in owner.execute("select id from scopes").fetchall():
        await enrich(running.parts, number)
    reader = reruns(running, new)
    assert len(await reader.plan(EnrichRequest(model=NEW))) == 3
    assert [each.user for each in await reader.plan(EnrichRequest(agent="ada", model=NEW))] == ["li", "mo"]
    [done] = await reader.run(EnrichRequest(agent="ada", user="mo", model=NEW))
    assert (done.agent, done.user, new.count()) == ("ada", "mo", 1)
    summaries = [await read(mind) for mind in (*minds, stranger)]
    assert summaries == [["Old: Ann, Oslo."], ["New: Ann, Oslo."], ["Old: Ann, Oslo."], ["Old: Ann, Oslo."]]
    with pytest.raises(InvalidInputError):
        await reader.plan(EnrichRequest(user="li", model=NEW))
    with pytest.raises(InvalidInputError):
        await reader.plan(EnrichRequest(model="unheard of"))
    with pytest.raises(NotFoundError):
        await reader.plan(EnrichRequest(tenant="nobody", model=NEW))


async def test_a_segment_of_which_nothing_can_be_made_stays_as_it_was(enriched, running, new):
    new.answers["has a boat"] = "no idea"
    [done] = await reruns(running, new).run(EnrichRequest(model=NEW))
    assert (done.segments, done.left, new.count()) == (2, 1, 5)
    assert await texts_of(enriched) == ["Ann lives in Bergen.", "Bob is a friend of Ann."]


async def test_what_was_said_meanwhile_is_believed_beside_the_run(enriched, running, old, new, owner):
    old.answers = {"two cats": extraction("Old: cats.", [ANN, entity("cats", "thing")], [fact("Ann", "has", "cats")])}
    switching = verb.switch

    async def learn_and_switch(*given):
        await say(enriched, "Ann has two cats", begin=7)
        await learn(enriched, owner)
        return await switching(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verb, "switch", learn_and_switch)
        await reruns(running, new).run(EnrichRequest(model=NEW))
    assert await texts_of(enriched) == sorted([*NEW_FACTS, "Ann has cats."])


async def test_names_are_found_among_what_the_run_itself_met_and_old_names_are_not(mind, running, old, new, owner):
    old.answers = {
        "likes tea": extraction("Old.", [entity("Ann", "person", "Bob", description="A sailor."), OSLO], []),
        "has a boat": extraction("Old.", [BOAT], []),
    }
    new.answers = {
        "likes tea": extraction("New.", [entity("Ann", "person", "Annie"), OSLO], [fact("Ann", "lives in", "Oslo")]),
        "has a boat": extraction("New.", [entity("Bob"), BOAT], [fact("Bob", "owns", "boat")]),
        "has moved": extraction("New.", [entity("Annie"), BERGEN], [fact("Annie", "lives in", "Bergen")]),
    }
    await say(mind, *TEXTS[:2])
    await learn(mind, owner)
    old.answers |= old_answers()
    await say(mind, TEXTS[2], begin=2)
    await reruns(running, new).run(EnrichRequest(model=NEW))
    found = {each.name: (each.aliases, each.description) for each in (await mind.knowledge.entities()).entities}
    assert found["Ann"] == (("Annie",), "") and found["Bob"] == ((), "")
    assert "Annie" not in found
    [ann] = (await mind.knowledge.entities("ann")).entities
    assert {each.subject for each in (await mind.knowledge.facts(ann.id)).facts} == {ann.id}


async def test_names_that_only_the_run_met_are_one_entity(mind, running, new):
    new.answers = {
        "likes tea": extraction("New.", [entity("Ann", "person", "Annie"), OSLO], [fact("Ann", "likes", "Oslo")]),
        "has moved": extraction("New.", [entity("Annie"), BERGEN], [fact("Annie", "lives in", "Bergen")]),
    }
    await say(mind, TEXTS[0])
    await say(mind, TEXTS[2], conversation="d", begin=1)
    await reruns(running, new).run(EnrichRequest(model=NEW))
    names = sorted(each.name for each in (await mind.knowledge.entities()).entities)
    assert names == ["Ann", "Bergen", "Oslo"]


async def test_doubts_about_names_are_asked_once_although_the_run_is_killed(mind, running, old, new, owner):
    old.answers = {"likes tea": extraction("Old.", [entity("Jonathan Smith"), OSLO], [])}
    new.answers = {
        "likes tea": extraction("New.", [entity("Jonathan Smith"), OSLO], []),
        "has a boat": extraction("New.", [entity("Jonathon Smith"), BOAT], [fact("Jonathon Smith", "owns", "boat")]),
    }
    new.matches = {"matches": [{"name": 1, "known": 1}]}
    await say(mind, *TEXTS[:1])
    await learn(mind, owner)
    await say(mind, TEXTS[1], begin=1)

    async def die(*_):
        raise asyncio.CancelledError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(asyncio.CancelledError):
        patch.setattr(verb, "switch", die)
        await reruns(running, new).run(EnrichRequest(model=NEW))
    assert new.asked.count(AnyNameMatches) == 1
    await reruns(running, new).run(EnrichRequest(model=NEW))
    assert new.asked.count(AnyNameMatches) == 1 and new.count() == 2
    assert [each.subject_name for each in (await mind.knowledge.facts()).facts] == ["Jonathon Smith"]
    [one] = (await mind.knowledge.entities("jonath")).entities
    assert one.name == "Jonathan Smith"


async def test_two_processes_let_a_run_take_over_once(enriched, running, new, owner):
    reader = reruns(running, new)
    results = await asyncio.gather(
        reader.run(EnrichRequest(model=NEW)), reader.run(EnrichRequest(model=NEW)), return_exceptions=True
    )
    assert [isinstance(each, ConflictError) for each in results].count(True) <= 1
    assert await texts_of(enriched) == NEW_FACTS
    assert await read(enriched) == ["New: Ann, Bergen.", "New: Ann, Oslo.", "New: Bob."]
    assert owner.execute("select state from runs where state <> 'abandoned'").fetchall() == [("switched",)]

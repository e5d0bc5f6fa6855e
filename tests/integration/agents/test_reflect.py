"""Reflection on a real PostgreSQL: thoughts with evidence, all of them or none, by a caller or by a job."""

from __future__ import annotations

import asyncio
import random
import re
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from conftest import http_client, new_key
from recollect.core.agents.reflection import Insight, Insights, Questions
from recollect.core.agents.scoring import STREAM_KINDS
from recollect.errors import ChatModelError, ForbiddenError, InvalidInputError, NotFoundError, UnavailableError
from recollect.llm.fake import FakeEmbedder
from recollect.models.agents import NOTHING_NEW, NOTHING_THERE, Reflection, ReflectionProgress
from recollect.models.memories import Kind, NewMemory, Triple
from recollect.models.recall import Cue
from recollect.models.service import JobState, Right
from recollect.settings import Settings
from recollect.store.agents import reflections
from recollect.verbs.agents.reflect import ReflectOptions, reflect
from recollect.wiring import connected
from support.models.fake_chat import FakeChatModel

QUESTIONS = ["What does Ann grow?", "Whom does Ann help?", "What does Bob repair?"]
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
NUMBERS = count(1)
ACCESS = {
    "accesses": """insert into accesses (last_accessed_at, id, kind, scope_id, access_count)
        select %s, %s, %s, id, 1 from scopes where agent = %s""",
    "access_log": """insert into access_log (accessed_at, ids, kinds, scope_id)
        select %s, array[%s::uuid], array[%s::text], id from scopes where agent = %s""",
}


def notes_of(prompt: str) -> list[str]:
    return re.findall(r"^\d+\. (.*)$", prompt, re.MULTILINE)


def think(prompt: str, answer: type) -> object:
    """Ask three questions, and draw two insights from the first notes and one from no note at all."""
    if answer is Questions:
        return Questions(questions=QUESTIONS)
    number = next(NUMBERS)
    values = {"subject": "Ann", "predicate": "cares for", "object": "plants", "importance": 7}
    return Insights(
        insights=[
            Insight(text=f"Ann is a gardener, {number}", notes=[1, 2], **values),
            Insight(text=f"Ann is patient, {number}", notes=[2, 99], **values),
            Insight(text=f"Ann can fly, {number}", notes=[0, 31], **values),
        ]
    )


@pytest.fixture
def chat():
    return FakeChatModel(think)


@pytest.fixture
async def thinking(addresses, embedder, chat):
    """A running Recollect with a chat model."""
    async with connected(Settings(embedder="fake"), addresses, embedder, chat) as running:
        yield running


@pytest.fixture
async def ann(thinking):
    mind = await thinking.mind("ada", "ann")
    await mind.remember([f"Ann waters plant number {number}" for number in range(8)])
    return mind


async def thoughts_of(mind):
    return [memory for memory in (await mind.list(limit=200)).memories if memory.kind is Kind.THOUGHT]


async def work_off(recollect, owner, rounds=1):
    """Run what waits, so many times over; what would wait for its next attempt does not."""
    for _ in range(rounds):
        owner.execute("update procrastinate_jobs set scheduled_at = null where status = 'todo'")
        await recollect.work(until_empty=True)


async def test_thoughts_carry_evidence_triple_importance_and_question(ann, chat):
    reflection = await ann.reflect()
    assert isinstance(reflection, Reflection)
    assert reflection.questions == tuple(QUESTIONS)
    assert chat.calls == 4
    thoughts = await thoughts_of(ann)
    assert [thought.id for thought in thoughts] == [receipt.id for receipt in reflection.thoughts]
    assert len(thoughts) == 6
    events = {memory.id for memory in (await ann.list()).memories if memory.kind is Kind.EVENT}
    for thought in thoughts:
        assert set(thought.evidence) <= events
        assert thought.triple == Triple("Ann", "cares for", "plants")
        assert (thought.importance, thought.depth, thought.idle) == (7, 1, False)
        assert thought.keywords == ("ann", "cares for", "plants")
    assert [len(thought.evidence) for thought in thoughts] == [2, 1] * 3
    assert [thought.metadata["question"] for thought in thoughts[::2]] == QUESTIONS


async def test_evidence_is_what_the_prompt_showed_under_the_number(ann, chat):
    await ann.reflect()
    for prompt, thought in zip(chat.prompts[1:], (await thoughts_of(ann))[::2], strict=True):
        sources = [(await ann.get(source)).content for source in thought.evidence]
        assert set(sources) == set(notes_of(prompt)[:2])
        assert str(thought.metadata["question"]) in prompt


async def test_depth_grows_when_thoughts_are_reflected_upon(thinking, chat):
    mind = await thinking.mind("ada")
    [event] = await mind.remember("Ann waters the plants")
    await mind.remember(NewMemory("Ann is a gardener", Kind.THOUGHT, evidence=(event.id,)))
    await mind.reflect()
    [first, *_] = [thought for thought in await thoughts_of(mind) if "gardener," in thought.content]
    assert len(first.evidence) == 2
    assert first.depth == 2


async def test_a_thought_is_trusted_as_the_least_of_its_evidence(thinking, chat):
    _, secret = await new_key(thinking, trust=20)
    doubtful = await thinking.authorize(secret, "test", "ada", "")
    mind = await thinking.mind("ada")
    await doubtful.remember("Ann says that she can fly")
    await mind.remember("Ann waters the plants")
    await mind.reflect()
    assert {thought.trust for thought in await thoughts_of(mind) if len(thought.evidence) == 2} == {20}


@pytest.mark.parametrize("call", range(4))
async def test_garbage_in_any_answer_leaves_nothing_behind(ann, chat, call):
    def stumble(prompt: str, answer: type) -> object:
        if chat.calls == call + 1:
            raise ChatModelError("nonsense", answered=True)
        return think(prompt, answer)

    chat.script = stumble
    before = await ann.overview()
    with pytest.raises(ChatModelError) as caught:
        await ann.reflect()
    assert caught.value.answered
    assert await thoughts_of(ann) == []
    after = await ann.overview()
    assert (after.unreflected_memories, after.memories) == (before.unreflected_memories, before.memories) == (8, 8)


@pytest.mark.parametrize(
    "answer",
    [Insights(insights=[]), Insights(insights=[Insight(**dict.fromkeys(("text", "subject", "predicate", "object"), "x"),
                                                       importance=1, notes=[0])])],
)  # fmt: skip
async def test_insights_without_evidence_are_an_answer_of_no_use(ann, chat, answer):
    chat.script = {Questions: Questions(questions=QUESTIONS), Insights: answer}
    with pytest.raises(ChatModelError) as caught:
        await ann.reflect()
    assert caught.value.answered
    assert await thoughts_of(ann) == []


async def test_no_question_is_an_answer_of_no_use(ann, chat):
    chat.script = {Questions: Questions(questions=["  "])}
    with pytest.raises(ChatModelError, match="no question"):
        await ann.reflect()


async def test_it_begins_with_as_many_memories_as_events_have_gathered(ann, chat):
    await ann.reflect()
    assert len(notes_of(chat.prompts[0])) == 8
    assert (await ann.overview()).unreflected_memories == 0
    await ann.remember(["Bob mends the fence", "Bob paints the fence"])
    await ann.reflect()
    assert len(notes_of(chat.prompts[4])) == 2


async def test_what_happens_while_it_thinks_goes_on_counting(ann, chat):
    started, go_on = asyncio.Event(), asyncio.Event()
    ask = chat.ask

    async def dawdle(prompt: str, answer: type, *noting: object) -> object:
        started.set()
        await go_on.wait()
        return await ask(prompt, answer, *noting)

    chat.ask = dawdle
    reflecting = asyncio.create_task(ann.reflect())
    await started.wait()
    await ann.remember(NewMemory("a late event", importance=3))
    go_on.set()
    await reflecting
    overview = await ann.overview()
    assert (overview.unreflected_memories, overview.unreflected_importance) == (1, 3)


async def test_prompts_stay_within_what_the_model_can_take(ann, chat):
    chat.characters = 70
    await ann.reflect()
    assert [len(notes_of(prompt)) for prompt in chat.prompts] == [2] * 4


async def test_the_newest_are_those_accessed_last_without_idle_ones_and_chats(thinking):
    mind = await thinking.mind("ada")
    at = [NOW + timedelta(hours=hour) for hour in range(6)]
    await mind.remember(
        [
            NewMemory("the oldest", occurred_at=at[0]),
            NewMemory("the oven is idle", triple=Triple("oven", "is", "idle"), occurred_at=at[4]),
            NewMemory("we talked", Kind.CHAT, occurred_at=at[4]),
            NewMemory("in between", Kind.THOUGHT, occurred_at=at[2]),
            NewMemory("the newest", occurred_at=at[3]),
        ]
    )
    newest = await reflections.fetch_newest(thinking.parts.database, mind.access.scope, 2)
    assert [memory.content for memory in newest] == ["the newest", "in between"]
    await mind.recall(Cue("the oldest", limit=1, channels=("stream",), now=at[5]))
    newest = await reflections.fetch_newest(thinking.parts.database, mind.access.scope, 2)
    assert [memory.content for memory in newest] == ["the oldest", "the newest"]
    await mind.forget([newest[0].id])
    newest = await reflections.fetch_newest(thinking.parts.database, mind.access.scope, 1)
    assert [memory.content for memory in newest] == ["the newest"]


@pytest.mark.parametrize("seed", range(3))
async def test_the_newest_are_found_whatever_is_folded_and_what_is_not(thinking, owner, seed):
    chance = random.Random(seed)
    mind = await thinking.mind("ada")
    new = [
        NewMemory(
            f"memory {number}",
            chance.choice([Kind.EVENT, Kind.THOUGHT, Kind.CHAT]),
            triple=Triple("x", "is", chance.choice(["idle", "busy"])),
            occurred_at=NOW + timedelta(minutes=chance.randrange(1000)),
        )
        for number in range(60)
    ]
    ids = await mind.load(new)
    accessed = {identity: memory.occurred_at for identity, memory in zip(ids, new, strict=True)}
    for table in ("accesses", "access_log"):
        for number in chance.sample([place for place in range(60) if new[place].triple.object != "idle"], 15):
            moment = NOW + timedelta(minutes=chance.randrange(1200))
            accessed[ids[number]] = max(accessed[ids[number]], moment)
            owner.execute(ACCESS[table], [moment, ids[number], new[number].kind, mind.access.scope.agent])
    wanted = [
        identity
        for identity, memory in zip(ids, new, strict=True)
        if memory.kind is not Kind.CHAT and memory.triple.object != "idle"
    ]
    expected = sorted(wanted, key=lambda identity: (accessed[identity], identity), reverse=True)
    for limit in (1, 7, 60):
        newest = await reflections.fetch_newest(thinking.parts.database, mind.access.scope, limit)
        assert [memory.id for memory in newest] == expected[:limit]


async def test_finding_the_newest_reads_indexes_alone_however_large_the_scope(thinking, owner):
    mind = await thinking.mind("ada")
    ids = await mind.load([NewMemory(f"memory {number}") for number in range(5_000)])
    for identity in ids[:2_000]:
        owner.execute(ACCESS["accesses"], [NOW, identity, "event", "ada"])
    for identity in ids[-40:]:
        owner.execute(ACCESS["access_log"], [NOW, identity, "event", "ada"])
    owner.execute("vacuum analyze memories, accesses, access_log")
    with owner.transaction(force_rollback=True):
        owner.execute("set local role recollect_service")
        owner.execute("select set_config('recollect.tenant', %s, true)", [str(mind.access.scope.tenant_id)])
        asked = {"agent": "ada", "user": "", "kinds": [*STREAM_KINDS], "limit": 50}
        lines = owner.execute(f"explain (analyze, costs off) {reflections.QUERIES['newest']}", asked).fetchall()
    scans = [line for (line,) in lines if " on memories" in line or " on accesses" in line]
    assert len(scans) == 2
    assert all("Index" in line for line in scans)
    assert max(float(re.search(r"rows=([\d.]+)", line)[1]) for line in scans) <= 200


async def test_the_moment_can_be_given(ann):
    await ann.reflect(NOW)
    assert {thought.occurred_at for thought in await thoughts_of(ann)} == {NOW}


async def test_nothing_to_reflect_upon_costs_no_call(thinking, chat):
    mind = await thinking.mind("nobody")
    assert await mind.reflect() == Reflection((), (), NOTHING_THERE)
    assert chat.calls == 0


async def test_an_embedder_that_is_away_costs_no_call(ann, chat, embedder):
    embedder.fail()
    with pytest.raises(UnavailableError, match="embedder"):
        await ann.reflect()
    assert chat.calls == 0


async def test_where_no_embedder_will_ever_be_words_must_do(addresses, chat):
    async with connected(Settings(embedder="none"), addresses, None, chat) as recollect:
        mind = await recollect.mind("ada")
        await mind.remember(["Ann waters the plants", "Ann grows beans", NewMemory("Ann waters", Kind.CHAT)])
        assert len((await mind.reflect()).thoughts) > 0
        kinds = {(await mind.get(source)).kind for thought in await thoughts_of(mind) for source in thought.evidence}
        assert Kind.EVENT in kinds


async def test_it_needs_a_chat_model_and_the_right_to_write(recollect, thinking):
    mind = await recollect.mind("ada")
    for asked in (mind.reflect, mind.reflect_later):
        with pytest.raises(InvalidInputError, match="RECOLLECT_CHAT_URL"):
            await asked()
    _, secret = await new_key(thinking, rights=(Right.READ,))
    reader = await thinking.authorize(secret, "test", "ada", "")
    for asked in (reader.reflect, reader.reflect_later):
        with pytest.raises(ForbiddenError):
            await asked()


async def test_enough_importance_sets_a_reflection_off(thinking, chat, owner):
    mind = await thinking.mind("ada", "ann")
    await mind.remember([NewMemory(f"event {number}", importance=10) for number in range(14)])
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'reflect'").fetchone() == (0,)
    await mind.remember(NewMemory("event 14", importance=10))
    await work_off(thinking, owner)
    thoughts = await thoughts_of(mind)
    assert len(notes_of(chat.prompts[0])) == 15
    assert {(thought.origin, thought.trust, thought.depth) for thought in thoughts} == {("reflect", 100, 1)}
    assert len(thoughts) == 6
    overview = await mind.overview()
    assert (overview.unreflected_memories, overview.unreflected_importance) == (0, 0)


async def test_a_job_acts_for_the_tenant_of_its_scope(thinking, owner):
    theirs = await thinking.mind("ada", tenant="theirs")
    ours = await thinking.mind("ada", tenant="ours")
    await theirs.remember("a secret of theirs")
    await ours.remember("a secret of ours")
    await theirs.reflect_later()
    await work_off(thinking, owner)
    assert len(await thoughts_of(theirs)) > 0
    assert await thoughts_of(ours) == []


async def test_a_job_that_is_run_again_asks_and_writes_nothing_again(ann, thinking, chat, owner):
    job_id = await ann.reflect_later()
    columns = "select queue_name, task_name, lock, args::text from procrastinate_jobs where id = %s"
    row = owner.execute(columns, [job_id]).fetchone()
    await work_off(thinking, owner)
    before = await thoughts_of(ann)
    calls = chat.calls
    assert len(before) == 6
    # As if its worker had died after the write and before it could end the job.
    owner.execute(
        "insert into procrastinate_jobs (id, queue_name, task_name, lock, args) values (%s, %s, %s, %s, %s)",
        [job_id, *row],
    )
    await work_off(thinking, owner)
    assert owner.execute("select count(*) from procrastinate_jobs where task_name = 'reflect'").fetchone() == (0,)
    assert await thoughts_of(ann) == before
    assert chat.calls == calls


async def test_a_reflection_that_found_nothing_to_think_about_has_succeeded_all_the_same(thinking, chat, owner):
    mind = await thinking.mind("ada", "ann")
    await mind.forget([(await mind.remember(["Hello."]))[0].id])
    job_id = await mind.reflect_later()
    assert (await mind.reflection(job_id)).state is JobState.WAITING
    await work_off(thinking, owner)
    assert await mind.reflection(job_id) == ReflectionProgress(job_id, JobState.SUCCEEDED, 0, "", Reflection((), ()))
    assert chat.calls == 0
    for elsewhere in (await thinking.mind("bob", "ann"), await thinking.mind("ada", "ann", tenant="other")):
        with pytest.raises(NotFoundError):
            await elsewhere.reflection(job_id)


async def test_two_jobs_of_one_scope_write_their_own_thoughts(ann, thinking, owner):
    first = await ann.reflect_later()
    await work_off(thinking, owner)
    second = await ann.reflect_later()
    await work_off(thinking, owner)
    assert first != second
    assert len(await thoughts_of(ann)) == 12


async def test_two_runs_of_one_job_at_once_write_the_thoughts_of_one(ann, thinking):
    occasion = ReflectOptions(count=8, key="reflect-job-7")
    runs = [reflect(thinking.parts, ann.access.caller, ann.access.scope, occasion) for _ in range(2)]
    one, two = await asyncio.gather(*runs)
    assert one.thoughts == two.thoughts
    assert [thought.id for thought in await thoughts_of(ann)] == [receipt.id for receipt in one.thoughts]


async def test_a_model_that_answers_nonsense_fails_the_job_for_all_to_see(ann, thinking, chat, owner):
    job = await ann.reflect_later()
    chat.garble(100)
    await work_off(thinking, owner)
    [waiting] = await thinking.jobs.unfinished()
    assert (waiting.task, waiting.state, waiting.newest, waiting.attempts) == ("reflect", "waiting", job, 1)
    assert "nonsense" in waiting.reason
    await work_off(thinking, owner, rounds=12)
    [failed] = await thinking.jobs.unfinished()
    assert (failed.state, failed.jobs, failed.newest, failed.attempts) == ("failed", 1, job, 9)
    assert "nonsense" in failed.reason
    assert failed.failed_at is not None
    assert ("reflect", "failed", 1) in await thinking.jobs.counts()
    assert await thoughts_of(ann) == []


async def test_a_model_that_is_away_is_waited_for(ann, thinking, chat, owner):
    await ann.reflect_later()
    chat.fail()
    await work_off(thinking, owner, rounds=12)
    [waiting] = await thinking.jobs.unfinished()
    assert (waiting.state, waiting.attempts) == ("waiting", 12)
    assert "switched off" in waiting.reason
    chat.recover()
    await work_off(thinking, owner)
    assert await thinking.jobs.unfinished() == []
    assert len(await thoughts_of(ann)) == 6


async def test_a_worker_without_a_chat_model_leaves_the_job_to_another(ann, thinking, recollect, owner):
    await ann.reflect_later()
    await work_off(recollect, owner, rounds=10)
    [waiting] = await recollect.jobs.unfinished()
    assert waiting.state == "waiting"
    assert "no chat model" in waiting.reason
    await work_off(thinking, owner)
    assert len(await thoughts_of(ann)) == 6


async def test_the_reason_of_a_failure_never_quotes_what_it_does_not_know(ann, thinking, chat, owner):
    def burst(prompt: str, answer: type) -> object:
        raise RuntimeError(prompt)

    chat.script = burst
    await ann.reflect_later()
    await work_off(thinking, owner)
    [waiting] = await thinking.jobs.unfinished()
    assert waiting.reason == "RuntimeError"


async def test_old_failures_go_with_their_jobs(ann, thinking, chat, owner):
    await ann.reflect_later()
    chat.garble(1)
    await work_off(thinking, owner)
    assert owner.execute("select count(*) from job_failures").fetchone() == (1,)
    await work_off(thinking, owner)
    assert len(await thoughts_of(ann)) == 6
    assert owner.execute("select count(*) from job_failures").fetchone() == (0,)


async def test_http_leaves_it_to_a_job(thinking, ann, chat, owner):
    _, secret = await new_key(thinking)
    async with http_client(thinking, secret) as http:
        answer = await http.post("/v1/reflections", json={"agent": "ada", "user": "ann"})
        assert answer.status_code == 202
        again = await http.post("/v1/reflections", json={"agent": "ada", "user": "ann"})
        assert again.json() == answer.json()
        assert chat.calls == 0
        unknown = await http.post("/v1/reflections", json={"agent": "ada", "user": "nobody"})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    jobs = owner.execute(
        "select id::text, args ->> 'count' from procrastinate_jobs where task_name = 'reflect'"
    ).fetchall()
    assert jobs == [(answer.json()["job"], "8")]
    assert (await ann.overview()).unreflected_memories == 0
    await work_off(thinking, owner)
    assert len(await thoughts_of(ann)) == 6


async def test_http_says_what_is_missing(http, recollect):
    await (await recollect.mind("ada")).remember("hello")
    answer = await http.post("/v1/reflections", json={"agent": "ada"})
    assert answer.status_code == 422
    assert "RECOLLECT_CHAT_URL" in answer.json()["detail"]


async def test_other_scripts_than_the_embedders_are_reflected_upon_by_words(addresses, chat):
    embedder = FakeEmbedder()
    embedder.reads = lambda text: False
    async with connected(Settings(embedder="fake"), addresses, embedder, chat) as recollect:
        mind = await recollect.mind("ada")
        await mind.remember(["安在浇花", "安种了豆子"])
        chat.script = lambda prompt, answer: (
            Questions(questions=["安在种什么？"]) if answer is Questions else think(prompt, answer)
        )
        assert len((await mind.reflect()).thoughts) == 2


async def test_the_same_thought_is_written_once(addresses, embedder):
    def repeat(prompt, answer):
        if answer is Questions:
            return Questions(questions=QUESTIONS)
        values = {"subject": "Ann", "predicate": "is", "object": "a gardener", "importance": 7}
        return Insights(
            insights=[
                Insight(text="Ann is a gardener.", notes=[1, 2], **values),
                Insight(text="ANN is a  gardener", notes=[3], **values),
            ]
        )

    async with connected(Settings(embedder="fake"), addresses, embedder, FakeChatModel(repeat)) as running:
        mind = await running.mind("ada", "twice")
        await mind.remember([f"Ann waters plant number {number}" for number in range(8)])
        first = await mind.reflect()
        assert (len(first.thoughts), first.reason) == (1, "")
        await mind.remember("Ann waters plant number 9")
        second = await mind.reflect()
        assert (second.questions, second.thoughts, second.reason) == (tuple(QUESTIONS), (), NOTHING_NEW)
        assert len(await thoughts_of(mind)) == 1
        assert (await mind.overview()).unreflected_memories == 0

"""A hundred days of a Chinese life, replayed through HTTP: what is asked is answered by what is true, or was then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from conftest import new_key
from recollect.core.text.terms import script_of
from recollect.doors.http.app import create_app
from recollect.llm.build import build_chat_model
from recollect.llm.fake import FakeEmbedder
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.models.recall import Script
from recollect.settings import Settings
from recollect.wiring import connected
from support.models import zereker_script as script
from support.models.scripted_chat import chatting
from support.service.serving import serving

SET = "data/zereker_memory/test_data_complete.json"
SCOPE = {"agent": "jarvis", "user": "axin"}
BETWEEN = timedelta(minutes=20)
EATING = {script.LIKES_PORK, script.LIKES_BELLY}
PLAYING = {script.LIKES_GAME, script.DUSTY}
SPORT = {script.RUNS, script.SWIMS}
OUTDATED = EATING | PLAYING | SPORT | {script.JUNIOR, script.STRICT, script.COLD, script.CRITICAL, script.ILL}
OUTDATED |= {script.COLLEAGUES}
CURRENT = (script.NO_PORK, script.SOLD, script.DOES_YOGA)
"""What the three temporal questions of the set are to be answered by."""
MOVED, NO_MORE_PORK, YOGA, GONE = "刚搬到这个城市", "决定以后不吃猪肉了", "开始尝试瑜伽课", "把游戏机卖了"
CHANGES = (MOVED, NO_MORE_PORK, YOGA, GONE)


@dataclass(frozen=True)
class Replay:
    """The set once it was replayed: how to ask, what to ask, and the moments before something changed."""

    http: httpx.AsyncClient
    questions: list[str]
    before: dict[str, str]
    """By what was said then: the moment before."""
    asked: list[str]

    async def recall(self, text: str, **times: str) -> set[str]:
        cue = {"text": text, "kinds": ["fact"], "limit": 100, **times}
        answer = await self.http.post("/v1/recall", json=SCOPE | cue)
        assert answer.status_code == 200, answer.text
        return {hit["memory"]["content"] for hit in answer.json()["hits"]}

    async def context(self, text: str, **times: str) -> set[str]:
        cue = {"text": text, "conversation": "life", "kinds": ["fact"], "budget": 6_000, **times}
        answer = await self.http.post("/v1/context", json=SCOPE | cue)
        assert answer.status_code == 200, answer.text
        contents = {hit["memory"]["content"] for hit in answer.json()["hits"]}
        assert all(content in answer.json()["block"] for content in contents)
        return contents

    async def both(self, text: str, **times: str) -> set[str]:
        """Ask both ways; what either gives counts."""
        recalled, shown = await self.recall(text, **times), await self.context(text, **times)
        assert recalled & OUTDATED == shown & OUTDATED
        assert recalled & set(CURRENT) == shown & set(CURRENT)
        return recalled | shown


@pytest.fixture(params=["none", "fake"], ids=["words", "vectors"])
async def replay(request, shared, addresses, embedder):
    """Replay all batches, with a worker that learns from them.

    The local embedder reads no Chinese: recall goes by words alone, or by the vectors of a stand-in beside them.
    """
    path = shared / SET
    if not path.is_file():
        pytest.skip("the set is not among the shared data")
    data = json.loads(path.read_text(encoding="utf-8"))
    asked: list[str] = []

    def answering(shape, prompt):
        asked.append(shape)
        return script.answer(shape, prompt)

    with chatting(answering=answering) as url:
        settings = Settings(embedder=request.param, chat_url=url, chat_model="scripted")
        chat, used = build_chat_model(settings), embedder if request.param == "fake" else None
        async with connected(settings, addresses, used, chat) as recollect:
            _, secret = await new_key(recollect)
            async with serving(create_app(recollect=recollect)) as door, client(door, secret) as http:
                moments = await tell_all(recollect, http, data["conversations"])
                answer = await http.patch("/v1/conversations/life", json=SCOPE | {"close_segment": True})
                assert answer.status_code == 200
                await recollect.work(until_empty=True)
                questions = [each["message"] for each in data["test_questions"]["temporal"]]
                yield Replay(http, questions, moments, asked)
        await chat.close()


def client(url, secret):
    return httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=30)


def date(batches):
    """Give every message a moment: batches of one day follow each other in minutes."""
    at = None
    for batch in batches:
        noon = datetime.fromisoformat(batch["session_date"]).replace(hour=12, tzinfo=UTC)
        at = max(noon, at + BETWEEN) if at else noon
        yield [
            {**message, "occurred_at": (at + timedelta(seconds=30 * number)).isoformat()}
            for number, message in enumerate(batch["messages"])
        ]


async def tell_all(recollect, http, batches):
    """Append batch by batch; a worker learns from what came before a change, before the change is told."""
    moments = {}
    for messages in date(batches):
        said = messages[0]["content"]
        for change in CHANGES:
            if change in said:
                await recollect.work(until_empty=True)
                moments[change] = datetime.now(UTC).isoformat()
        answer = await http.post("/v1/messages", json=SCOPE | {"conversation": "life", "messages": messages})
        assert answer.status_code == 201, answer.text
    return moments


class EnglishOnly(FakeEmbedder):
    """An embedder to which every Chinese sentence is the same, as it is to the local one, almost."""

    def reads(self, text):
        return script_of(text) is Script.WORDS

    def _place(self, text):
        return [1.0] * self.dimensions


async def test_messages_that_the_embedder_cannot_read_are_cut_by_their_words(addresses):
    boats = ["我们周末去西湖划船吧", "西湖划船需要租一条小船", "西湖划船租一条小船多少钱"]
    taxes = ["今年的个人所得税怎么申报", "个人所得税申报需要发票吗", "发票和个人所得税申报表放在一起"]
    taxes += ["个人所得税申报还缺一张发票", "发票要和个人所得税申报一起交", "个人所得税的发票已经申报了"]
    async with connected(Settings(embedder="fake"), addresses, EnglishOnly()) as recollect:
        conversation = (await recollect.mind("jarvis", "axin")).conversation("c")
        await conversation.append([NewMessage(Role.USER, text) for text in (*boats, *taxes)])
        await recollect.work(until_empty=True)
        assert [(each.first_number, each.last_number) for each in await conversation.segments()] == [(1, 3)]


@pytest.mark.slow
async def test_the_temporal_questions_are_answered_by_what_is_true_now_and_was_then(replay):
    for question, current in zip(replay.questions, CURRENT, strict=True):
        found = await replay.both(question)
        assert current in found
        assert not found & OUTDATED
    await check_then(replay)
    await check_belief(replay)
    await check_versions(replay)
    await check_cost(replay)


async def check_then(replay):
    """By world time: what was true at a moment, as it is known today."""
    pork, game, sport = replay.questions
    found = await replay.both(pork, at="2024-01-10T00:00:00Z")
    assert found >= EATING and script.NO_PORK not in found
    found = await replay.both(game, at="2024-01-10T00:00:00Z")
    assert script.LIKES_GAME in found and not found & {script.DUSTY, script.SOLD}
    for moment, doing in (("2024-01-11", script.RUNS), ("2024-02-01", script.SWIMS), ("2024-03-01", script.DOES_YOGA)):
        found = await replay.both(sport, at=f"{moment}T00:00:00Z")
        assert found & {*SPORT, script.DOES_YOGA} == {doing}
    # Half-open: on the day itself the new one holds, and not the old one.
    found = await replay.both(sport, at="2024-02-24T00:00:00Z")
    assert found & {*SPORT, script.DOES_YOGA} == {script.DOES_YOGA}


async def check_belief(replay):
    """By belief time: what was known before the change was learned."""
    pork, game, sport = replay.questions
    found = await replay.both(pork, as_of=replay.before[NO_MORE_PORK])
    assert found >= EATING and script.NO_PORK not in found
    found = await replay.both(game, as_of=replay.before[GONE])
    assert script.LIKES_GAME in found and script.SOLD not in found
    found = await replay.both(sport, as_of=replay.before[YOGA])
    assert found & {*SPORT, script.DOES_YOGA} == {script.SWIMS}
    found = await replay.both(pork, as_of=replay.before[MOVED])
    assert not found


async def check_versions(replay):
    """The timeline of a person has every version of every fact, each closed where the next one begins."""
    found = (await replay.http.get("/v1/entities", params=SCOPE | {"search": script.AXIN})).json()["entities"]
    [axin] = [entity for entity in found if entity["name"] == script.AXIN]
    every = {"about": axin["id"], "at": "any", "limit": 200}
    versions = (await replay.http.get("/v1/facts", params=SCOPE | every)).json()["facts"]
    told = {}
    for version in versions:
        told.setdefault(version["text"], []).append(version)
    expected = {rule.text for rule in script.RULES if script.AXIN in (rule.subject, rule.object)}
    assert set(told) == expected
    for text, listed in told.items():
        first, *later = sorted(listed, key=lambda version: version["version"])
        assert first["span"]["invalid_at"] is None
        assert [version["span"]["invalid_at"] is not None for version in later] == ([True] if text in OUTDATED else [])
        assert [version["superseded_at"] for version in listed if version["version"] == 1 + len(later)] == [None]
    ended = {text: listed[-1]["span"]["invalid_at"][:10] for text, listed in told.items() if text in OUTDATED}
    assert (ended[script.LIKES_PORK], ended[script.LIKES_GAME]) == ("2024-01-25", "2024-03-05")
    assert (ended[script.RUNS], ended[script.SWIMS]) == ("2024-01-12", "2024-02-24")


async def check_cost(replay):
    """One question per segment, and next to none about who is who."""
    answer = await replay.http.get("/v1/conversations/life/segments", params=SCOPE | {"limit": 200})
    segments = answer.json()["segments"]
    assert {segment["state"] for segment in segments} == {"enriched"}
    assert segments[-1]["last_number"] == 66
    extractions, resolutions = replay.asked.count("AnyExtraction"), replay.asked.count("AnyMatches")
    print(f"66 messages, {len(segments)} segments, {extractions} extractions, {resolutions} resolutions")
    assert extractions == len(segments)
    assert resolutions <= 0.2 * len(segments)

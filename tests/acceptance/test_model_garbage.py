"""Whatever a model says: no crash, nothing of others is touched, nothing deleted, and what is true in it is kept."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.knowledge import extractions
from recollect.core.knowledge.entities import AmbiguousMention, EntityCandidate, MatchMethod, match_entity, read_matches
from recollect.core.knowledge.extractions import parse_extraction
from recollect.core.text.names import normalize_name
from recollect.errors import ChatModelError
from recollect.llm.chat import ModelAnswer, Usage
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import Entity, EntityType, Mention, NewFact
from recollect.models.memories import Role
from recollect.verbs.knowledge.enrich import enrich
from support.measuring.sizes import Sizes
from support.models.fake_chat import FakeChatModel
from support.models.garbage import Garbage, draw

READ = Sizes("answers", ci=90, long=10_000)
LEARNED = Sizes("answers", ci=18, long=10_000)
MOST = 100
"""One scope learns from so many."""
SHOWN = 5
FOREIGN = tuple(UUID(int=number << 64 | 0x7000_8000_0000_0000) for number in range(1, 6))
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NUMBERED = re.compile(r"answer number (\d+)")
FAILED = "the chat model returned nothing usable for this segment"
ANN = Entity(FOREIGN[0], "Ann", EntityType.PERSON)
DOUBTS = (AmbiguousMention(Mention("Anne"), (ANN,)), AmbiguousMention(Mention("阿信"), (replace(ANN, id=FOREIGN[1]),)))
KNOWN = (ANN, replace(ANN, id=FOREIGN[1]), replace(ANN, id=FOREIGN[2]))


@pytest.mark.promise("What is true in an answer of a model is kept, however broken the rest of it is", READ)
def test_what_is_parsed_is_within_bounds_and_loses_nothing_true(figure):
    planted = 0
    for number in range(READ.now):
        garbage = draw(number, FOREIGN)
        parsed = parse_extraction(garbage.text, SHOWN)
        check_bounds(parsed)
        if garbage.planted:
            planted += 1
            assert garbage.planted in {stated.object for stated in parsed.statements}, (number, garbage.text[:500])
        check_resolution(garbage, parsed)
    figure(f"{planted} true facts planted, all found")
    assert planted > 0.5 * READ.now


def check_bounds(parsed):
    assert len(parsed.summary) <= extractions.MAX_SUMMARY_LENGTH and len(parsed.label) <= extractions.MAX_LABEL_LENGTH
    assert parsed.importance is None or 1 <= parsed.importance <= 10
    assert len(parsed.mentions) <= extractions.MAX_MENTIONS
    assert len(parsed.statements) <= extractions.MAX_STATEMENTS
    assert len(parsed.keywords) <= extractions.MAX_KEYWORDS and len(parsed.paths) <= extractions.MAX_PATHS
    names = {mention.name for mention in parsed.mentions}
    texts = [
        parsed.summary,
        parsed.label,
        *parsed.keywords,
        *(level for path in parsed.paths for level in path),
    ]
    for mention in parsed.mentions:
        assert normalize_name(mention.name) and len(mention.name) <= 200
        texts += [mention.name, mention.description, *mention.aliases]
    for stated in parsed.statements:
        assert {stated.subject, stated.object} <= names and stated.subject != stated.object
        assert set(stated.replaces) <= set(range(1, SHOWN + 1))
        begun, over = stated.span.valid_at, stated.span.invalid_at
        assert not begun or not over or begun < over
        texts += [stated.predicate, stated.text]
    for text in texts:
        text.encode()
        assert "\0" not in text


def check_resolution(garbage, parsed):
    matched = read_matches(garbage.text, DOUBTS, KNOWN)
    assert all(entity in DOUBTS[number].candidates for number, entity in matched.items())
    candidates = [EntityCandidate(0, entity, way) for entity in KNOWN for way in MatchMethod]
    for mention in parsed.mentions:
        chosen = match_entity(mention, candidates, candidates)
        assert chosen is None or isinstance(chosen, AmbiguousMention) or chosen in KNOWN


@pytest.mark.promise("What a model says reaches nobody else's memory and deletes nothing, whatever it says", LEARNED)
async def test_garbage_reaches_nobody_else_and_deletes_nothing(recollect, owner, figure):
    foreign = await make_neighbours(recollect)
    chat = FakeChatModel(lambda prompt, answer: garble(prompt, answer.__name__, foreign))
    running = replace(recollect, parts=replace(recollect.parts, chat=chat))
    before = checksum(owner, foreign)
    found = {"enriched": 0, "failed": 0}
    for first in range(0, LEARNED.now, MOST):
        numbers = range(first, min(first + MOST, LEARNED.now))
        for state, count in (await feed(running, owner, numbers, foreign)).items():
            found[state] += count
        assert checksum(owner, foreign) == before
    figure(f"{found['enriched']} segments learned from, {found['failed']} given up, {chat.calls} questions")
    assert sum(found.values()) == LEARNED.now
    assert found["enriched"] > 0.7 * LEARNED.now


async def make_neighbours(recollect):
    """Let another tenant, and another user of the same agent, know something; give the ids of all of it."""
    ids = []
    for tenant, user in (("neighbour", "li"), ("default", "neighbour")):
        mind = await recollect.mind("ada", user, tenant=tenant)
        await mind.conversation("c").append([NewMessage(Role.USER, "Ann lives in Oslo and the planted pear grows.")])
        await mind.conversation("c").update(close_segment=True)
        await mind.remember("Ann likes tea.")
        stated = [NewFact("Ann", "lives in", "Oslo"), NewFact("Planted Pear", "grows in", "Oslo")]
        for fact in await mind.knowledge.add(stated):
            ids += [fact.id, fact.subject, fact.object]
    await recollect.work(until_empty=True)
    return tuple(dict.fromkeys(ids))


def garble(prompt, shape, foreign):
    """Say what was drawn for the number that the conversation mentions; of names, whatever comes."""
    numbered = NUMBERED.search(prompt)
    garbage = draw(int(numbered[1]) if numbered else len(prompt), foreign)
    if shape == "AnyMatches" and len(prompt) % 2:
        garbage = Garbage('{"matches": [{"name": 1, "known": 1}, {"name": 2, "known": 99}, {"name": 1, "known": -1}]}')
    # Counted: to estimate what a megabyte costs takes longer than everything else.
    return ModelAnswer(garbage.text, garbage.whole, Usage(1_000, 1_000))


async def feed(running, owner, numbers, foreign):
    """Let a scope learn from its share of the answers, as a worker would, and see what is there after every few."""
    user = f"user-{numbers.start}"
    mind = await running.mind("ada", user)
    said = [
        NewMessage(
            Role.USER, f"The planted pear, answer number {number}.", occurred_at=NOON + timedelta(hours=2 * number)
        )
        for number in numbers
    ]
    receipts = await mind.conversation("c").append(said)
    await mind.conversation("c").update(close_segment=True)
    [(scope_id,)] = owner.execute('select id from scopes where "user" = %s', [user]).fetchall()
    kept = count_rows(owner, scope_id)
    while await learn_on(running, scope_id):
        rows = count_rows(owner, scope_id)
        assert all(rows[table] >= kept[table] for table in kept), (kept, rows)
        kept = rows
    listed = await mind.conversation("c").segments(limit=200)
    assert {segment.reason for segment in listed} <= {"", FAILED}
    assert [(await mind.get(receipt.id)).content for receipt in receipts] == [message.content for message in said]
    check_planted(owner, scope_id, numbers, foreign)
    states = [segment.state.value for segment in listed]
    return {state: states.count(state) for state in ("enriched", "failed")}


async def learn_on(running, scope_id):
    """Run the job once; tell whether it has to come back: after an answer that says nothing, or where more may wait."""
    try:
        return await enrich(running.parts, scope_id) > 0
    except ChatModelError as problem:
        assert problem.answered, problem
        return True


def check_planted(owner, scope_id, numbers, foreign):
    """Every true fact is a memory with a belief, and rests on the message that it was drawn for."""
    asked = "select memories.object from memories join beliefs using (scope_id, id) where memories.scope_id = %s"
    stored = {row[0] for row in owner.execute(asked, [scope_id]).fetchall()}
    drawn = {garbage.planted for number in numbers if (garbage := draw(number, foreign)).planted}
    assert drawn <= stored, drawn - stored
    entities = {row[0] for row in owner.execute("select id from entities where scope_id = %s", [scope_id]).fetchall()}
    assert not entities & set(foreign)


def tables_with(owner, column):
    asked = """select table_name from information_schema.columns join information_schema.tables
                   using (table_schema, table_name)
               where table_schema = 'public' and table_type = 'BASE TABLE' and column_name = %s order by 1"""
    return [row[0] for row in owner.execute(asked, [column]).fetchall()]


def count_rows(owner, scope_id):
    """Count what must never become less."""
    tables = ("memories", "messages", "beliefs", "entities", "mentions", "segments", "evidence", "ledger")
    counted = {}
    for table in tables:
        counted[table] = owner.execute(f"select count(*) from {table} where scope_id = %s", [scope_id]).fetchone()[0]
    return counted


def checksum(owner, foreign):
    """Sum up every row of the neighbours in every table there is."""
    asked = "select distinct scope_id from beliefs where id = any (%s)"
    scopes = [row[0] for row in owner.execute(asked, [list(foreign)]).fetchall()]
    assert len(scopes) == 2
    sums = {}
    for table, column in [*((table, "scope_id") for table in tables_with(owner, "scope_id")), ("scopes", "id")]:
        rows = "string_agg(row::text, '|' order by row::text)"
        asked = f"select count(*), md5({rows}) from {table} row where {column} = any (%s)"
        sums[table] = owner.execute(asked, [scopes]).fetchone()
    assert sums["beliefs"][0] >= 4 and sums["entities"][0] >= 4
    return sums

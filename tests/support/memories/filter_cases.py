"""Memories of every sort, filters drawn at random, and plain SQL that says what each filter admits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from recollect.core.recall.cues import parse_cue
from recollect.core.topics.paths import encode, find_topics
from recollect.models.conversations import NewMessage
from recollect.models.filters import Filter
from recollect.models.knowledge import NewFact
from recollect.models.memories import FadingRules, Kind, NewMemory, RecallState, Role, Triple
from recollect.models.recall import Cue, Period
from recollect.store.service.scopes import locate
from recollect.verbs.recall.channels import PlannedCue, ask_channels
from support.service.accesses import with_access

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MANY = 200
METADATA = (
    {"project": "alpha", "size": 1, "tags": ["red", "blue"]}, {"project": "beta", "size": 2, "done": True}, {},
    {"tags": ["blue"], "size": 3, "project": "alpha"}, {"done": False, "tags": []},
)  # fmt: skip
SPEAKERS = ("Ann", "Bob", "")
CONDITIONS = {
    "kinds": "m.kind = any (%(kinds)s)",
    "conversations": "s.conversation_id = any (%(conversations)s)",
    "roles": "s.role = any (%(roles)s)",
    "speakers": "m.speaker = any (%(speakers)s)",
    "origins": "m.origin = any (%(origins)s)",
    "topics": "exists (select from topic_links l join topics t on t.id = l.topic_id where l.memory_id = m.id "
    "and t.path::text ~ ('^(' || array_to_string(%(topics)s::text[], '|') || ')' || %(deeper)s))",
    "since": "m.occurred_at >= %(since)s",
    "until": "m.occurred_at < %(until)s",
    "min_trust": "m.trust >= %(min_trust)s",
    "min_importance": "m.importance >= %(min_importance)s",
    "pinned": "(select pinned from memory_features f where f.id = m.id) = %(pinned)s",
    "state": "case m.withheld when 'archived' then 'in_archived' when 'to_rederive' then 'withheld' "
    "else coalesce(m.withheld, 'current') end = %(state)s",
}
"""What each field of a filter means, in terms of the tables that hold the record."""
WHERE = {
    "project == alpha": "m.metadata->>'project' = 'alpha'",
    'project == "beta"': "m.metadata->>'project' = 'beta'",
    "project != beta": "m.metadata->>'project' <> 'beta'",
    "size >= 2": "(m.metadata->>'size')::int >= 2",
    "size < 2": "(m.metadata->>'size')::int < 2",
    "size <= 1.0": "(m.metadata->>'size')::int <= 1",
    "project > alpha": "m.metadata->>'project' = 'beta'",
    'project in ["beta", "gamma", 3]': "m.metadata->>'project' = 'beta'",
    "tags contains red": "m.metadata->'tags' ? 'red'",
    "project contains lph": "m.metadata->>'project' like '%%lph%%'",
    "size exists": "m.metadata ? 'size'",
    "size exists false": "not m.metadata ? 'size'",
    "done == true": "m.metadata->'done' = 'true'",
    "done == 1": "false",
    "tags in [1]": "false",
    "tags contains 1": "false",
}
"""Conditions on metadata, and what each means in plain SQL."""
VALUES = {
    "kinds": ((Kind.EVENT,), (Kind.MESSAGE,), (Kind.FACT, Kind.THOUGHT), (Kind.CHAT, Kind.MESSAGE)),
    "conversations": (("c0",), ("c1", "c2"), ("c2",), ("nothing",)),
    "roles": ((Role.USER,), (Role.ASSISTANT,), (Role.USER, Role.TOOL)),
    "speakers": (("Ann",), ("Bob", "Eve"), ("Eve",)),
    "origins": (("library",), ("import:old",), ("import:old", "http")),
    "topics": (("travel",), ("food", "travel->Japan"), ("nowhere",)),
    "since": tuple(NOW - timedelta(days=days) for days in (1, 4, 9, 400)),
    "until": tuple(NOW - timedelta(days=days) for days in (-1, 2, 7, 300)),
    "min_trust": (10, 50, 100),
    "min_importance": (2.0, 5.0, 9.5),
    "pinned": (True, False),
    "where": (*((each,) for each in WHERE), ("size >= 2", "project != beta")),
}


@dataclass(frozen=True)
class Case:
    """A filter: what a channel is asked for without limit, and what restricts that."""

    base: Filter
    rest: Filter

    @property
    def whole(self):
        return join(self.base, self.rest)


def join(one, other):
    return replace(one, **{name: getattr(other, name) for name in (*other.named, "below", "topics_only")})


def draw_cases(chance, count, as_of):
    """Draw filters: a state or a time, or neither, and one to four other fields."""
    bases = (Filter(), Filter(), *(Filter(state=each) for each in RecallState), Filter(as_of=as_of), Filter(at=NOW))
    for _ in range(count):
        names = chance.sample(sorted(VALUES), chance.randint(1, 4))
        given = {name: chance.choice(VALUES[name]) for name in names}
        if {"since", "until"} <= given.keys() and given["since"] >= given["until"]:
            del given["until"]
        if "topics" in given:
            given |= {"topics_only": True, "below": chance.random() < 0.5}
        yield Case(chance.choice(bases), Filter(**given))


def admit(owner, only):
    """Ask plain SQL which memories a filter admits, apart from its two times."""
    named = [name for name in only.named if name not in {"as_of", "at"}]
    bound = {name: plain(getattr(only, name)) for name in named} | {"deeper": r"($|\.)" if only.below else "$"}
    bound["topics"] = [encode(names) for names in find_topics(only.topics)]
    where = " and ".join(
        ["true", *(CONDITIONS[name] for name in named if name != "where"), *(WHERE[each] for each in only.where)]
    )
    query = f"select m.id from memories m left join messages s using (scope_id, id) where {where}"
    return {row[0] for row in owner.execute(query, bound).fetchall()}


def plain(value):
    """Write a value of a filter as SQL takes it."""
    return [str(each) for each in value] if isinstance(value, tuple) else value


async def fill(mind, owner):
    """Write memories of every kind and state, by two writers; return a moment between two of them."""
    wary = with_access(mind, caller=replace(mind.access.caller, trust=20, origin="import:old"))
    kinds = (Kind.EVENT, Kind.THOUGHT, Kind.CHAT, Kind.FACT)
    for writer, who in enumerate((mind, wary)):
        await who.remember(
            [
                NewMemory(
                    f"river number {writer} {number}",
                    kinds[number % 4],
                    SPEAKERS[number % 3],
                    1 + number % 10,
                    triple=Triple("Ann", "sees", f"river {number}"),
                    keywords=("river",),
                    occurred_at=NOW - timedelta(days=number % 12, hours=writer, minutes=number),
                    topic=("travel", "travel->Japan", "food")[number % 5 % 3],
                    pinned=number % 7 == 0,
                    metadata=METADATA[number % len(METADATA)],
                )
                for number in range(36)
            ]
        )
        await talk(who, writer)
        stated = [
            NewFact("Ann", "visits", f"place {writer} {number}", valid_at=NOW - (number + 1) * DAY, occurred_at=NOW)
            for number in range(8)
        ]
        facts = await who.knowledge.add(stated)
    [as_of] = owner.execute("select max(created_at) from memories").fetchone()
    for fact in facts[::2]:
        await mind.knowledge.end(fact.id, NOW - DAY / 2)
    await mind.conversation("c2").update(state="archived")
    await erase(mind)
    await fade(mind, owner)
    return as_of


async def erase(mind):
    """Delete a conversation, and purge another; a thought rests on both."""
    [other] = await mind.remember(NewMemory("river of its own", occurred_at=NOW))
    for name in ("deleted", "purged"):
        [said] = await mind.conversation(name).append([NewMessage(Role.USER, "a secret river", occurred_at=NOW)])
        thought = NewMemory(
            f"river {name}", Kind.THOUGHT, evidence=(said.id, other.id), topic="travel", occurred_at=NOW
        )
        await mind.remember(thought)
        await mind.conversation(name).delete()
    await mind.conversation("purged").purge()


async def talk(mind, writer):
    for number in range(3):
        said = [
            NewMessage(
                (Role.USER, Role.ASSISTANT)[turn % 2],
                f"what of the river, Ann? {writer} {number} {turn}",
                name=SPEAKERS[turn % 3],
                importance=1 + 2 * (turn % 5),
                occurred_at=NOW - timedelta(days=number * 3, minutes=9 - turn, hours=writer),
            )
            for turn in range(6)
        ]
        await mind.conversation(f"c{number}").append(said)


async def fade(mind, owner):
    """Let every sixth of what is remembered have been stored long ago, and fade."""
    long_ago = datetime.now(UTC) - 900 * DAY
    owner.execute(
        "update memories set created_at = %s, importance = 1 where id = any (array("
        "select id from (select id, row_number() over (order by id) n from memories where kind in ('event', 'chat')) x "
        "where n %% 6 = 0))",
        [long_ago],
    )
    await mind.fade(FadingRules(days=30))


async def propose(mind, channel, only, limit, **more):
    """Put a cue to one channel, as recall does; it names a time in its text, so that every channel can answer."""
    named = {"topics": ("travel",)} | {name: getattr(only, name) for name in (*only.named, "below", "topics_only")}
    cue = Cue("river visits of Ann", **named, **more)
    parts = mind.access.parts
    [vector] = await parts.embedder.embed([cue.text])
    reading = parse_cue(cue, vector, now=NOW)
    facets = replace(reading.facets, topics=("travel",), periods=(Period(NOW - 900 * DAY, NOW + 2 * DAY),))
    reading = replace(reading, facets=facets, below=True)
    asked = PlannedCue(cue, reading, [channel], limit)
    [found] = await ask_channels(parts, await locate(parts.database, mind.access.scope), [asked])
    return found[channel.name]

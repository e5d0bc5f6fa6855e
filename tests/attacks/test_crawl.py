"""Every operation is asked for every id of somebody else: it answers as it answers a made-up one, and nothing is shown.

The operations and the places in them where something can be named come from the OpenAPI document, so that a new one is
crawled without being listed here. The victim has one of everything; attackers are another tenant with the same names, a
reader there, a key that is bound to another user of the same agent, and a child key of that user.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from attacks.places import NOBODY, OWN, Place, list_places, put
from conftest import http_client, new_key
from recollect.models.service import KeyBinding, KeyRequest, Right
from recollect.store.memories import memories
from support.measuring.sizes import Sizes

PROBES = Sizes("probes", ci=200, long=40_000)
SECRET = "zebracanary"
"""Stands in all that the victim has said, and in no request of an attacker."""
VICTIM = {"agent": "ada", "user": "li"}
NEW_ATTACKERS = 50
"""After so many probes: what attackers make in their own scopes by an id of the victim tells it from any other, too."""
KINDS = {
    "memory_id": "memory", "ids": "memory", "evidence": "memory", "leaf": "message", "parent": "message",
    "fact_id": "fact", "about": "fact", "entity_id": "entity", "start": "entity", "end": "entity",
    "absorbed": "entity", "recall_id": "recall", "key_id": "key", "job_id": "job", "short_id": "short",
    "conversation": "conversation", "conversations": "conversation", "path": "topic", "topics": "topic", "key": "item",
    "cursor": "cursor",
}  # fmt: skip
"""Which kind of id a place is made for: half of the probes take that one, the others any."""
SOUGHT = {"search", "text", "cursor"}
"""The number of a job means something of the attacker's own to these: a digit of a name, a place in a list."""
CONFLICT = 409
TABLES = """select c.oid::regclass::text from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'scope_id' and not a.attisdropped
    where c.relkind = 'r' and not c.relispartition order by 1"""
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass
class Lair:
    """The victim's ids by kind, the attackers, and what the crawl has found."""

    ids: dict[str, list[str]]
    attackers: dict[str, tuple[object, str, dict[str, str]]]
    places: list[Place]
    arm: Callable[[int], Awaitable[None]]
    """Take other attackers, who have nothing yet."""
    statuses: Counter[int] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


@pytest.fixture
async def lair(recollect, embedder):
    operator = await recollect.operator.act_for("default")
    _, secret = await new_key(recollect)
    async with http_client(recollect, secret) as victim:
        ids = await settle(victim)
        document = (await victim.get("/openapi.json")).json()
    async with http_client(recollect, "") as client:

        async def arm(number: int) -> None:
            keys = await make_keys(recollect, operator, number)
            held.attackers = {name: (client, secret, scope) for name, (secret, scope) in keys.items()}

        held = Lair(ids, {}, list_places(document), arm)
        await arm(0)
        yield held


async def make_keys(recollect, operator, number: int):
    """Make the attackers' keys, each with the scope that it names; another number gives others, with empty scopes."""
    own = {"agent": "ada", "user": f"zoe{number}"}
    bound = KeyBinding(**own)
    _, bound_secret = await recollect.create_key(operator, f"bound {number}", tuple(Right), 50, bound)
    maker = await recollect.authenticate(bound_secret, "http", bound=True)
    until = datetime.now(UTC) + timedelta(hours=9)
    wanted = KeyRequest(f"phone {number}", frozenset({Right.READ, Right.WRITE}), 20, bound, until)
    _, child = await recollect.make_key(maker, wanted)
    _, other = await new_key(recollect, f"others{number}")
    _, reader = await new_key(recollect, f"others{number}", (Right.READ,))
    keys = {"other tenant": (other, VICTIM), "reader": (reader, VICTIM), "bound": (bound_secret, own)}
    return keys | {"child": (child, own), "bound, naming the victim": (bound_secret, VICTIM)}


async def settle(victim) -> dict[str, list[str]]:
    """Let the victim have one of everything, and list its ids by kind."""

    async def send(path, **body):
        answer = await victim.post(path, json=VICTIM | body)
        assert answer.is_success, answer.text
        return answer.json()

    async def fetch(path, **query):
        answer = await victim.get(path, params=VICTIM | query)
        assert answer.is_success, answer.text
        return answer.json()

    said = {"content": f"{SECRET} likes tea", "topic": "teas->green", "keywords": ["tea"], "metadata": {"a": SECRET}}
    told = await send("/v1/memories", memories=[said, {"content": f"{SECRET} is late", "pinned": True}])
    talk = await send("/v1/messages", conversation="dinner", question=f"{SECRET}?", answer=f"{SECRET}!")
    closed = await victim.patch("/v1/conversations/dinner", json=VICTIM | {"close_segment": True})
    assert closed.is_success, closed.text
    stated = {"subject": f"{SECRET} Ann", "predicate": "likes", "object": f"{SECRET} tea"}
    facts = await send("/v1/facts", facts=[stated])
    recall = await send("/v1/recall", text="tea", keep=True)
    block = await send("/v1/blocks", text="tea", conversation="dinner")
    await send("/v1/items", operations=[{"op": "put", "path": ["vault"], "key": "code", "value": {"v": SECRET}}])
    await send("/v1/messages", conversation="lunch", question=f"{SECRET}?", answer=f"{SECRET}!")
    await send("/v1/messages", conversation="gone", question=f"{SECRET}?", answer=f"{SECRET}!")
    purged = await send("/v1/conversations/gone/purge")
    page = await fetch("/v1/memories", limit=1)
    jobs = (await victim.get("/v1/jobs")).json()["jobs"]
    return {
        "memory": [each["id"] for each in told["memories"]],
        "message": [each["id"] for each in talk["messages"]],
        "fact": [each["id"] for each in facts["facts"]],
        "entity": [each["id"] for each in (await fetch("/v1/entities"))["entities"]],
        "recall": [recall["recall_id"]],
        "key": [each["id"] for each in (await victim.get("/v1/keys")).json()["keys"]],
        "conversation": ["dinner"],
        "topic": ["teas->green", "teas"],
        "job": [str(each["id"]) for each in jobs],
        "short": re.findall(r"\[([a-z]\w+)\]", json.dumps(block)),
        "item": ["code"],
        "receipt": [purged["id"]],
        "cursor": [page["next_cursor"], (await fetch("/v1/conversations", limit=1))["next_cursor"]],
    }


def make_up(known: str, seed: int) -> str:
    """Make up an id of the same form that never was, of the same time and with the same parents: always the same one.

    So both have the same history: what an attacker makes by one name in its own scope, it makes by the other, too.
    """
    if UUID.fullmatch(known):
        return known[:24] + f"{random.Random(f'{seed} {known}').getrandbits(48):012x}"
    if known.isdigit():
        return str(10**8 + int(known))
    root, below, path = known.partition("->")
    lots = random.Random(f"{seed} {root}")
    time, between, name = root.rpartition("_")
    made = name[0] + "".join(lots.choice("bcdef") if each.isalnum() else each for each in name[1:])
    return time + between + made + below + path


async def ask(attacker, place: Place, value: str):
    """Send a request with a value in one place; with nothing else in the body where the example does not go with it."""
    client, secret, scope = attacker
    path, query = place.path, {name: scope[name] for name in place.scoped} | dict(place.query)
    if place.where == "path":
        path = path.replace(f"{{{place.name}}}", value)
    elif place.where == "query":
        query[place.name] = value
    path = re.sub(r"\{(\w+)\}", lambda found: "m0123" if found[1] == "short_id" else NOBODY, path)
    headers = {"Authorization": f"Bearer {secret}"}
    answer = await client.request(place.method, path, params=query, json=fill(place, scope, value), headers=headers)
    if answer.status_code == 422 and place.where == "body":
        few = replace(place, body={name: place.body[name] for name in place.body.keys() & place.required})
        answer = await client.request(place.method, path, params=query, json=fill(few, scope, value), headers=headers)
    return answer


def fill(place: Place, scope: dict[str, str], value: str):
    """Write the body of a request for a scope, with a value in one place."""
    if place.body is None:
        return None
    body = put(place.body, place.keys, value) if place.where == "body" else place.body
    whose = scope | {"knowledge_id": "/".join(scope.values())}
    return body | {name: whose[name] for name in OWN & place.known}


async def probe(lair: Lair, number: int, seed: int) -> None:
    """Ask one operation for an id of the victim and for one that never was, and compare."""
    lots = random.Random(f"{seed} {number}")
    places = lair.places
    operations = sorted({(place.path, place.method) for place in places})
    # By turns, so that as many probes as there are operations try each of them.
    chosen = operations[(number + seed) % len(operations)]
    place = lots.choice([each for each in places if (each.path, each.method) == chosen])
    kind = KINDS.get(place.name) if lots.random() < 0.5 else None
    kinds = [kind] if kind else [name for name in lair.ids if name != "job" or place.name not in SOUGHT]
    known = [each for name in kinds for each in lair.ids[name]]
    value = lots.choice([each for each in known if UUID.fullmatch(each) or not place.uuid] or known)
    made = make_up(value, seed)
    role = lots.choice(sorted(lair.attackers))
    answers = [await ask(lair.attackers[role], place, each) for each in (value, made)]
    told = f"{role}: {place.method} {place.path} with {value} as {place.name}"
    for answer in answers:
        lair.statuses[answer.status_code] += 1
        if SECRET in answer.text:
            lair.findings.append(f"{told}: shows {answer.text[:300]}")
        if answer.status_code >= 500:
            lair.findings.append(f"{told}: {answer.status_code} {answer.text[:300]}")
    if answers[0].is_success and answers[1].status_code == CONFLICT:
        return  # The first took the name in the attacker's own scope that the second wanted.
    one, other = ((answer.status_code, plain(answer.text, value, made)) for answer in answers)
    if one[0] != other[0] or ((one[0] >= 400 or place.method == "GET") and one[1] != other[1]):
        lair.findings.append(f"{told} is told from {made}: {one} and {other}")


def plain(text: str, *named: str) -> str:
    """Leave out what differs between any two answers: what was asked for, times and new ids."""
    for each in named:
        text = text if each.isdigit() else text.replace(each, "<id>")
    return re.sub(r"\d+", "#", UUID.sub("<id>", text))


def checksum(owner) -> dict[str, str]:
    """Sum up all rows of the victim's scope, by table."""
    tables = [name for (name,) in owner.execute(TABLES).fetchall()]
    scope = owner.execute("""select s.id from scopes s join tenants t on t.id = s.tenant_id
        where t.name = 'default' and s.agent = 'ada' and s."user" = 'li'""").fetchone()[0]
    query = "select coalesce(md5(string_agg(t::text, '' order by t::text)), '') from {} t where scope_id = {}"
    return {table: owner.execute(query.format(table, scope)).fetchone()[0] for table in tables}


@pytest.mark.promise("No operation shows, changes or confirms what belongs to somebody else", PROBES, part="crawl")
async def test_a_foreign_id_is_as_unknown_as_a_made_up_one(lair, owner, rounds, seed, figure):
    before = checksum(owner)
    count = 0
    for number in rounds(PROBES):
        if number % NEW_ATTACKERS == NEW_ATTACKERS - 1:
            await lair.arm(number)
        await probe(lair, number, seed)
        count += 1
    operations = {(place.path, place.method) for place in lair.places}
    told = ", ".join(f"{count} x {status}" for status, count in sorted(lair.statuses.items()))
    figure(
        f"{2 * count} requests to {len(operations)} operations with {len(lair.places)} places; {told}; "
        f"{len(lair.findings)} told apart or shown"
    )
    assert not lair.findings, "\n".join(lair.findings[:20])
    assert checksum(owner) == before
    assert min(map(len, lair.ids.values())) > 0
    # Where every request was refused for its form, nothing was tried.
    assert lair.statuses[200] + lair.statuses[201] + lair.statuses[404] > lair.statuses[422]


@pytest.mark.promise("The crawl notices a memory that is found by its id in any scope", part="crawl")
async def test_a_planted_fault_is_noticed(lair, owner, seed, figure, monkeypatch):
    mine = memories.fetch_one

    async def everywhere(database, scope, memory_id):
        found = await mine(database, scope, memory_id)
        row = owner.execute("select content from memories where id = %s", [memory_id]).fetchone()
        if found is None and row is not None:
            raise RuntimeError(row[0])
        return found

    monkeypatch.setattr(memories, "fetch_one", everywhere)
    # Those that the fault is in; the others would only take their time.
    lair.places = [place for place in lair.places if place.path.startswith("/v1/memories/{memory_id}")]
    for number in range(PROBES.now):
        await probe(lair, number, seed)
        if lair.findings:
            break
    figure(f"noticed after {number + 1} probes: {lair.findings[0][:80] if lair.findings else ''}")
    assert lair.findings

"""Scopes for the tests of the console: a small mind with everything in it, and one whose contents are hostile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import httpx

START = datetime(2026, 3, 2, 18, 0, tzinfo=UTC)
Said: TypeAlias = Sequence[tuple[str, str, int]]
TALKS: dict[str, Said] = {
    "dinner-on-friday": (
        ("user", "Shall we cook on Friday? Bo and Mei are coming.", 0),
        ("assistant", "Gladly. Is there anything that somebody must not eat?", 1),
        ("user", "I am allergic to peanuts, and Mei eats no meat.", 2),
        ("assistant", "Then a vegetable curry with rice, and no peanuts in it.", 3),
        ("user", "Good. Bo brings the rice, and we eat at seven.", 4),
        ("user", "Or rather something Norwegian: could we bake salmon?", 4),
        ("assistant", "Salmon for three, and a potato gratin for Mei.", 6),
        ("user", "Perfect, with dill, please. Mei likes dill very much.", 7),
        ("assistant", "Noted: dill, and candles on the table.", 5),
    ),
    "moving-house": (
        ("user", "I moved from Oslo to Bergen in February, because of the new job.", 0),
        ("assistant", "How is the new flat?", 1),
        ("user", "Small, but I see the harbour. The climbing hall is five minutes away.", 2),
        ("assistant", "So you can climb before work.", 3),
        ("user", "Every Tuesday, with Mei. She started at the university last autumn.", 4),
        ("assistant", "What does she study there?", 5),
        ("user", "Marine biology. She writes about cold water corals.", 6),
    ),
    "mountains": (
        ("user", "Mei and I want to climb Stetind in July.", 0),
        ("assistant", "That is a serious wall. Have you climbed in the north before?", 1),
        ("user", "Once, in Lofoten, two years ago. It rained for a week.", 2),
        ("assistant", "Then take a week more than you need.", 3),
        ("user", "I bought a new rope, sixty metres, and a blue helmet.", 4),
    ),
    "wan-fan": (
        ("user", "我对花生过敏，做菜时请不要放。", 0),
        ("assistant", "好的，不放花生。", 1),
        ("user", "梅在卑尔根大学读海洋生物学。", 2),
    ),
}
EVENTS = (
    ("Li ran ten kilometres along the harbour in fifty minutes.", 6),
    ("The landlord repaired the window of Li's flat.", 3),
    ("Li forgot the keys at the climbing hall.", 4),
    ("Mei gave Li a book about corals for her birthday.", 7),
    ("Li watched the northern lights from the balcony.", 8),
    ("Li bought a red bicycle at the flea market.", 5),
    ("Bo called from the airport: his flight was cancelled.", 4),
    ("Li paid the deposit for the flat in Bergen.", 5),
)
FACTS = (
    ("Li", "person", "lives in", "Oslo", "place", "2021-08-01", None),
    ("Li", "person", "lives in", "Bergen", "place", "2026-02-01", None),
    ("Li", "person", "is allergic to", "peanuts", "thing", None, None),
    ("Li", "person", "works for", "Harbour Robotics", "organization", "2026-02-15", None),
    ("Li", "person", "climbs with", "Mei", "person", "2025-09-01", None),
    ("Li", "person", "owns", "red bicycle", "thing", "2026-03-10", None),
    ("Mei", "person", "studies", "marine biology", "skill", "2025-08-15", None),
    ("Mei", "person", "attends", "University of Bergen", "organization", "2025-08-15", None),
    ("Mei", "person", "likes", "dill", "thing", None, None),
    ("Mei", "person", "writes about", "cold water corals", "thing", "2026-01-01", None),
    ("Bo", "person", "is a friend of", "Li", "person", None, None),
    ("Bo", "person", "brings", "rice", "thing", "2026-03-06", "2026-03-07"),
    ("University of Bergen", "organization", "is in", "Bergen", "place", None, None),
    ("Harbour Robotics", "organization", "is in", "Bergen", "place", None, None),
    ("Mei", "person", "plans to climb", "Stetind", "place", "2026-07-01", "2026-07-14"),
    ("Li", "person", "plans to climb", "Stetind", "place", "2026-07-01", "2026-07-14"),
    ("Mei Lin", "person", "lent a book to", "Li", "person", "2026-03-12", None),
)
HOSTILE = (
    '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script> peanuts',
    "\u202eevil si siht\u202c peanuts \u2066\u2067",
    "[click](javascript:window.pwned=1) ![x](https://example.com/x.png) peanuts https://example.com/peanuts",
    "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1} peanuts",
    "peanuts " + "A" * 31_000,
    "</textarea></title><svg onload=window.pwned=1> peanuts",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞ peanuts",
)
HOSTILE_NAME = '"><img src=x onerror=window.pwned=1>'


class Seeder:
    """Fill scopes over HTTP, as a program does."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)

    def post(self, path: str, method: str = "POST", **body):
        answer = self.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def talk(self, scope: dict[str, str], name: str, said: Said, since: datetime) -> list[str]:
        """Append messages one by one, each below the one that is numbered; 0 is the beginning."""
        ids: list[str] = []
        for place, (role, content, parent) in enumerate(said):
            at = (since + timedelta(minutes=place)).isoformat()
            message = {"role": role, "content": content, "occurred_at": at}
            message |= {"parent": ids[parent - 1]} if parent else {}
            appended = self.post("/v1/messages", **scope, conversation=name, messages=[message])["messages"]
            ids += [one["id"] for one in appended]
        return ids


def fill(url: str, key: str, agent: str = "ada", user: str = "li") -> None:
    """Make a mind with conversations, events, thoughts, facts in versions, topics and a kept recall."""
    seeder, scope = Seeder(url, key), {"agent": agent, "user": user}
    talks = {
        name: seeder.talk(scope, name, said, START + timedelta(days=9 * number))
        for number, (name, said) in enumerate(TALKS.items())
    }
    topics = ("sport", "home", "sport", "friends", "nature", "sport", "friends", "home")
    events = [
        {
            "content": content,
            "importance": importance,
            "occurred_at": (START + timedelta(days=3 * number)).isoformat(),
            "topic": f"life->{topic}",
        }
        for number, ((content, importance), topic) in enumerate(zip(EVENTS, topics, strict=True))
    ]
    stored = [one["id"] for one in seeder.post("/v1/memories", **scope, memories=events)["memories"]]
    dinner, moving, trip = (talks[name] for name in list(TALKS)[:3])
    thoughts = [
        ("Li settles in Bergen and is at home there.", 8, [moving[0], moving[2], stored[7]]),
        ("Climbing is what joins Li and Mei.", 7, [moving[4], trip[0], stored[2]]),
        ("Whoever cooks for Li and Mei needs neither peanuts nor meat.", 9, [dinner[2]]),
    ]
    made = [{"content": text, "kind": "thought", "importance": how, "evidence": ids} for text, how, ids in thoughts]
    first = [one["id"] for one in seeder.post("/v1/memories", **scope, memories=made)["memories"]]
    above = {"content": "Li's life turns to the sea and the mountains.", "kind": "thought", "importance": 8}
    seeder.post("/v1/memories", **scope, memories=[above | {"evidence": first[:2]}])
    evidence = {0: moving[0], 1: moving[0], 2: dinner[2], 3: moving[0], 4: moving[4], 6: moving[6], 8: dinner[7]}
    stated = [fact_of(row, evidence.get(number)) for number, row in enumerate(FACTS)]
    facts = seeder.post("/v1/facts", **scope, facts=stated)["facts"]
    seeder.post(f"/v1/facts/{facts[0]['id']}", "PATCH", **scope, invalid_at="2026-02-01T00:00:00Z")
    seeder.post("/v1/recall", **scope, text="What must Li not eat?", keep=True, touch=False)
    seeder.post("/v1/recall", **scope, text="Who climbs with Li?", keep=True, touch=False)
    for name in list(TALKS)[:3]:
        seeder.post(f"/v1/conversations/{name}", "PATCH", **scope, close_segment=True)


def fill_others(url: str, key: str) -> None:
    """Make a few small scopes beside it, for the list."""
    seeder = Seeder(url, key)
    for user, content in (("mei", "Mei found a coral that nobody had seen."), ("", "Ada keeps a diary of her own.")):
        seeder.post("/v1/memories", agent="ada", user=user, memories=[{"content": content}])


def fact_of(row: tuple, evidence: str | None) -> dict:
    """Give a fact as the API takes it."""
    subject, subject_type, predicate, thing, thing_type, since, until = row
    fact = {"subject": subject, "subject_type": subject_type, "predicate": predicate}
    fact |= {"object": thing, "object_type": thing_type}
    fact |= {"valid_at": f"{since}T00:00:00Z"} if since else {}
    fact |= {"invalid_at": f"{until}T00:00:00Z"} if until else {}
    return fact | ({"evidence": [evidence]} if evidence else {})


def fill_hostile(url: str, key: str, agent: str = "evil") -> None:
    """Make a scope of markup, marks that turn text round, and contents without end: also in its names."""
    seeder, scope = Seeder(url, key), {"agent": agent, "user": HOSTILE_NAME}
    memories = [{"content": text, "topic": HOSTILE_NAME} for text in HOSTILE]
    seeder.post("/v1/memories", **scope, memories=memories)
    fact = {"subject": HOSTILE_NAME, "predicate": "<b>is</b>", "object": HOSTILE[1]}
    seeder.post("/v1/facts", **scope, facts=[fact])
    seeder.talk(scope, "evil", [("user", text[:5000], place) for place, text in enumerate(HOSTILE)], START)
    named = seeder.http.patch("/v1/conversations/evil", json={**scope, "name": HOSTILE_NAME})
    assert named.is_success, named.text

"""Many clients do everything at once in one scope: nothing fails, nothing is left behind, and all counts are right."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from support.measuring.sizes import Sizes
from support.service.known_numbers import VECTORS

CALLS = Sizes("calls", ci=96, long=20_000)
CLIENTS = 12
SCOPE = {"agent": "chaos", "user": "x"}
ORPHANS = {
    "evidence": "select count(*) from evidence e where not exists (select from memories m "
    "where (m.scope_id, m.id) = (e.scope_id, e.source_id)) or not exists (select from memories m "
    "where (m.scope_id, m.id) = (e.scope_id, e.memory_id))",
    **{
        table: f"select count(*) from {table} t where not exists (select from memories m "
        f"where (m.scope_id, m.id) = (t.scope_id, t.{column}))"
        for table, column in (
            *(("memory_terms", "id"), ("memory_features", "id"), (VECTORS, "id"), ("memory_keywords", "id")),
            *(("topic_links", "memory_id"), ("messages", "id"), ("accesses", "id"), ("pending_embeddings", "id")),
        )
    },
    "withheld and hot": "select count(*) from memory_terms t join memories m using (scope_id, id) "
    "where m.withheld is not null",
    "hot without terms": "select count(*) from memories m where withheld is null and not exists "
    "(select from memory_terms t where (t.scope_id, t.id) = (m.scope_id, m.id))",
    "miscounted": "select count(*) from scopes s where memory_count <> (select count(*) from memories m "
    "where m.scope_id = s.id and withheld is null)",
    "numbers of messages": "select count(*) from (select conversation_id from messages group by scope_id, "
    "conversation_id having count(*) <> count(distinct number)) doubled",
    "deadlocks": "select deadlocks from pg_stat_database where datname = current_database()",
    "failed jobs": "select count(*) from procrastinate_jobs where status = 'failed'",
}


class Hand:
    """One client: it draws what it does next, and remembers what it and the others have stored."""

    def __init__(self, http, stored: list[str], seed: int) -> None:
        self.http, self.stored, self.chance = http, stored, random.Random(seed)

    def topic(self) -> str:
        return "/".join(f"t{self.chance.randint(0, 2)}" for _ in range(self.chance.randint(1, 3)))

    def known(self) -> list[str]:
        return [self.chance.choice(self.stored[-30:])] if self.stored else []

    def conversation(self) -> str:
        return f"c{self.chance.randint(0, 2)}"

    async def act(self):
        """Do something; give the answer."""
        name = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        place, body = getattr(self, name)()
        method, _, path = place.rpartition(" ")
        content = {"params": SCOPE} if method == "DELETE" else {"json": SCOPE | body}
        answer = await self.http.request(method or "POST", path, **content)
        made = answer.json() if answer.status_code == 201 else {}
        self.stored += [each["id"] for each in made.get("memories", []) + made.get("messages", [])]
        return answer

    def remember(self):
        new = {"topic": self.topic(), "keywords": ["k1"], "evidence": self.known()}
        return "/v1/memories", {"memories": [{"content": f"m {self.chance.random()}"} | new for _ in range(2)]}

    def append(self):
        asked = {"question": f"q {self.chance.random()}", "answer": "a"}
        return "/v1/messages", {"conversation": self.conversation()} | asked

    def forget(self):
        return "/v1/forget", {"ids": self.known()}

    def rename(self):
        return "PATCH /v1/topics", {"path": self.topic(), "name": f"t{self.chance.randint(0, 2)}"}

    def merge(self):
        return "/v1/topics", {"path": self.topic(), "into": self.topic()}

    def move(self):
        return "PATCH /v1/topics", {"path": self.topic(), "parent": self.topic()}

    def turn(self):
        place = f"/v1/conversations/{self.conversation()}"
        how = self.chance.choice(("purge", "delete", "archived", "active"))
        asked = {"purge": (f"{place}/purge", {}), "delete": (f"DELETE {place}", {})}
        return asked.get(how, (f"PATCH {place}", {"state": how}))

    def recall(self):
        return "/v1/recall", {"text": "m q", "topics": [self.topic()]}

    def fade(self):
        return "/v1/fade", {"days": 0.001}

    def revive(self):
        return "/v1/fade/restore", {"ids": self.known()}

    def state(self):
        subject, thing = (f"{sign}{self.chance.randint(0, 3)}" for sign in "so")
        return "/v1/facts", {"facts": [{"subject": subject, "predicate": "is", "object": thing}]}


WEIGHTS = {
    "remember": 25, "append": 15, "forget": 10, "rename": 8, "merge": 8, "move": 8, "turn": 6, "recall": 6, "fade": 4,
    "revive": 4, "state": 6,
}  # fmt: skip


@pytest.mark.promise("Whatever is done at once in a scope, nothing fails or is miscounted", CALLS, part="chaos")
async def test_everything_at_once_leaves_a_sound_scope(recollect, http, owner, rounds, seed, figure):
    codes, stored = Counter(), []
    hands = [Hand(http, stored, seed + number) for number in range(CLIENTS)]
    for _ in rounds(CALLS, by=CLIENTS):
        answers = await asyncio.gather(*(hand.act() for hand in hands))
        for answer in answers:
            assert answer.status_code < 500, (answer.request.url.path, answer.text)
        codes.update(answer.status_code for answer in answers)
    await recollect.work(until_empty=True)
    found = {name: owner.execute(ask).fetchone()[0] for name, ask in ORPHANS.items()}
    assert {name: count for name, count in found.items() if count} == {}
    assert codes[201] > codes.total() / 10
    figure(f"{dict(sorted(codes.items()))}, 0 of {len(found)} checks found anything")

"""Measure the everyday use of an agent's memory over HTTP: small talk, plain questions, changes and wishes.

    uv run python bench/everyday.py --url http://127.0.0.1:7077 --key rec_... --set dev-en.json --sizes 50,500
    uv run python bench/everyday.py --set dev-en.json --pretend everything

It fills a scope for each part of a set, asks its questions, and computes shares, means and a score. It knows only the
routes below, so it can be run against any build. A second run with the same --tag stores nothing twice within two days.
--pretend asks no server: it shows how a cheat would score. The sets are not part of this repository.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx

from everyday_measures import MEASURES, Door, Figures, Found, Part, Prompt, find_scope, score_parts
from everyday_set import Values, list_memories


@dataclass(frozen=True, slots=True)
class Route:
    """A route: its path, and the fields that hold the items of a request and of a response."""

    path: str
    sends: str = ""
    rows: str = ""
    row: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where a value is in an item of the response: names of fields, separated by dots."""
    whole: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where a value is in the response as a whole."""


HIT = {"id": "memory.id", "duplicates": "duplicates", "text": "memory.content", "relevance": "relevance"}
ROUTES: Mapping[str, Route] = {
    "append": Route("/v1/messages", "messages", "messages", {"id": "id"}),
    "remember": Route("/v1/memories", "memories", "memories", {"id": "id"}),
    "load": Route("/v1/load", "memories", "ids", {"id": ""}),
    "add_facts": Route("/v1/facts", "facts", "facts", {"id": "id", "memory": "memory_id"}),
    "recall": Route("/v1/recall", "", "hits", HIT),
    "context": Route(
        *("/v1/context", "", "lines", {"id": "memory_id", "tokens": "tokens"}),
        whole={"block": "block", "tokens": "spending.memories"},
    ),
    "status": Route("/v1/status", "", "jobs", {"waiting": "waiting", "running": "running"}),
}
FIELDS: Mapping[str, str] = {
    **{name: name for name in ("agent", "user", "conversation", "budget", "limit", "now", "touch", "keep")},
    **{name: name for name in ("role", "content", "occurred_at")},
    **{name: name for name in ("subject", "predicate", "object", "valid_at", "invalid_at", "replaces")},
    "query": "text",
    "sentence": "text",
}
"""The names of fields in requests, by those of this script: `sentence` is the text of a fact."""
NO_TRACE = {"touch": False, "keep": False}
"""No question changes the answer to the next one."""
BATCH, LOADED_BATCH, MAX_REMEMBERED = 40, 1_000, 1_500
"""Memories in one call; above the last number, filler memories are loaded."""
ATTEMPTS, BUSY = 8, {429, 503, 504}
WAIT_SECONDS, QUIET_POLLS, POLL_SECONDS = 1_800, 3, 0.5
NEWEST = 10


def name_fields(values: Values) -> dict[str, Any]:
    """Return values by the names that requests have for them."""
    return {FIELDS[name]: value for name, value in values.items()}


def pick(places: Mapping[str, str], answer: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the named values of a response, or of an item in it."""
    return {
        name: reduce(lambda inner, step: inner[step], path.split(".") if path else (), answer)
        for name, path in places.items()
    }


class Server:
    """A server that is measured over HTTP, one scope at a time."""

    def __init__(self, http: httpx.Client, tag: str) -> None:
        self.http, self.tag = http, tag
        self.agent = ""
        self.data: Values = {}
        self.ids: dict[str, set[str]] = {}

    def open(self, data: Values, scope: str, size: int) -> None:
        """Store the memories of a scope and wait until the server has processed them."""
        prefix = "-".join(filter(None, ("everyday", self.tag)))
        self.data, self.ids = data, {}
        self.agent = f"{prefix}-{data['half']}-{data['language']}-{scope}-{size}"
        memories = list_memories(data, scope, size)
        self._append([memory for memory in memories if memory["form"] == "message"])
        events = [memory for memory in memories if memory["form"] == "event"]
        self._remember("own", [memory for memory in events if "key" in memory])
        self._remember("other", [memory for memory in events if "key" not in memory])
        self._add_facts([memory for memory in memories if memory["form"] == "fact"])
        self._wait()

    def recall(self, query: str, limit: int) -> list[Found]:
        """Return at most `limit` hits, best first."""
        _, hits = self._ask("recall", {"query": query, **NO_TRACE, "now": self.data["now"], "limit": limit})
        return [Found({hit["id"], *hit["duplicates"]}, hit["text"], hit["relevance"]) for hit in hits]

    def context(self, query: str, budget: int) -> Prompt:
        """Return a block of at most `budget` tokens, for a conversation without messages."""
        asked = {"query": query, **NO_TRACE, "now": self.data["now"], "conversation": "fresh", "budget": budget}
        whole, lines = self._ask("context", asked)
        return Prompt(whole["block"], {line["id"]: line["tokens"] for line in lines}, whole["tokens"])

    def _append(self, memories: Sequence[Values]) -> None:
        """Append messages with their replies, a conversation for each month."""
        for month, group in groupby(memories, key=lambda memory: memory["at"][:7]):
            for start, batch in divide(list(group), BATCH):
                messages, places = list[Values](), dict[str, int]()
                for memory in batch:
                    if "key" in memory:
                        places[memory["key"]] = len(messages)
                    said = [("user", memory["text"])] + [("assistant", memory["reply"])] * bool(memory.get("reply"))
                    for role, content in said:
                        messages.append({"role": role, "content": content, "occurred_at": memory["at"]})
                stored = self._store("append", messages, f"m-{month}-{start}", conversation=f"chat-{month}")
                self.ids |= {key: {stored[place]["id"]} for key, place in places.items()}

    def _remember(self, group: str, memories: Sequence[Values]) -> None:
        """Store events."""
        large = group == "other" and len(memories) > MAX_REMEMBERED
        for start, batch in divide(memories, LOADED_BATCH if large else BATCH):
            items = [{"content": memory["text"], "occurred_at": memory["at"]} for memory in batch]
            stored = self._store("load" if large else "remember", items, f"e-{group}-{start}")
            pairs = zip(batch, stored, strict=True)
            self.ids |= {memory["key"]: {row["id"]} for memory, row in pairs if "key" in memory}

    def _add_facts(self, memories: Sequence[Values]) -> None:
        """Store facts one at a time, because one may replace another."""
        facts: dict[str, str] = {}
        for memory in memories:
            known = {name: memory[name] for name in ("subject", "predicate", "object") if name in memory}
            fact = {**known, "sentence": memory["text"]}
            fact |= {name: memory[name] for name in ("valid_at", "invalid_at") if name in memory}
            fact["occurred_at"] = memory["at"]
            if memory.get("replaces"):
                fact["replaces"] = [facts[memory["replaces"]]]
            [stored] = self._store("add_facts", [fact], f"f-{memory['key']}")
            facts[memory["key"]] = stored["id"]
            self.ids[memory["key"]] = {id_ for id_ in stored.values() if id_}

    def _store(self, route: str, items: Sequence[Values], name: str, **more: str) -> list[dict[str, Any]]:
        """Store items under a name, by which the server recognizes a repetition."""
        body = {**name_fields(more), ROUTES[route].sends: [name_fields(item) for item in items]}
        return self._post(route, body, {"Idempotency-Key": f"{self.agent}-{name}"})[1]

    def _ask(self, route: str, asked: Values) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return self._post(route, name_fields(asked), {})

    def _post(
        self, route: str, body: Values, headers: Mapping[str, str]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Send a request for the open scope and return its response as a whole and its items."""
        scope = name_fields({"agent": self.agent, "user": self.data["user"]})
        place = ROUTES[route]
        answer = self.http.post(place.path, json={**scope, **body}, headers=headers)
        for attempt in range(1, ATTEMPTS):
            if answer.status_code not in BUSY:
                break
            time.sleep(attempt)
            answer = self.http.post(place.path, json={**scope, **body}, headers=headers)
        if not answer.is_success:
            raise SystemExit(f"{place.path} returned {answer.status_code}: {answer.text[:600]}")
        return pick(place.whole, answer.json()), [pick(place.row, row) for row in answer.json()[place.rows]]

    def _wait(self) -> None:
        """Wait until no job is waiting or running, several times in succession."""
        end, quiet, place = time.monotonic() + WAIT_SECONDS, 0, ROUTES["status"]
        while quiet < QUIET_POLLS:
            if time.monotonic() > end:
                raise SystemExit(f"the jobs did not end in {WAIT_SECONDS // 60} minutes")
            time.sleep(POLL_SECONDS)
            jobs = self.http.get(place.path).raise_for_status().json()[place.rows]
            quiet = 0 if any(any(pick(place.row, job).values()) for job in jobs) else quiet + 1


def choose_none(memories: Sequence[Values]) -> Sequence[Values]:
    """Return no memory."""
    return memories[:0]


def choose_all(memories: Sequence[Values]) -> Sequence[Values]:
    """Return all memories, newest first."""
    return sorted(memories, key=lambda memory: memory["at"], reverse=True)


def choose_newest(memories: Sequence[Values]) -> Sequence[Values]:
    """Return the newest ten."""
    return choose_all(memories)[:NEWEST]


CHEATS: Mapping[str, Callable[[Sequence[Values]], Sequence[Values]]] = {
    "empty": choose_none,
    "everything": choose_all,
    "newest": choose_newest,
}


class Pretender:
    """A cheat, which answers every question with the same memories, whatever the budget."""

    def __init__(self, cheat: str) -> None:
        self.cheat = CHEATS[cheat]
        self.ids: dict[str, set[str]] = {}
        self.shown: Sequence[Values] = ()

    def open(self, data: Values, scope: str, size: int) -> None:
        """Choose the memories; the ID of a memory is its key, and all filler memories share one."""
        memories = list_memories(data, scope, size)
        self.ids = {memory["key"]: {memory["key"]} for memory in memories if "key" in memory}
        self.shown = self.cheat(memories)

    def recall(self, query: str, limit: int) -> list[Found]:  # noqa: ARG002
        """Return the first memories."""
        return [Found({memory.get("key", "")}, memory["text"], None) for memory in self.shown[:limit]]

    def context(self, query: str, budget: int) -> Prompt:  # noqa: ARG002
        """Return all memories, each with the day of its time."""
        lines = [f"{memory['at'][:10]}: {memory['text']}" for memory in self.shown]
        ids = {memory.get("key", ""): 10 for memory in self.shown}
        return Prompt("\n".join(lines), ids, sum(len(line) // 4 for line in lines))


def divide(items: Sequence[Values], size: int) -> Iterator[tuple[int, Sequence[Values]]]:
    """Yield the items in batches, each with the place of its first item."""
    return ((start, items[start : start + size]) for start in range(0, len(items), size))


@contextmanager
def open_door(arguments: argparse.Namespace) -> Iterator[Door]:
    """Connect to the server, or pretend."""
    if arguments.pretend:
        yield Pretender(arguments.pretend)
        return
    headers = {"Authorization": f"Bearer {arguments.key}"}
    with httpx.Client(base_url=arguments.url, headers=headers, timeout=120) as http:
        yield Server(http, arguments.tag)


def measure(data: Values, names: Sequence[str], door: Door, size: int) -> dict[str, Any]:
    """Measure parts of a set, scope by scope, and print the figures of each."""
    label = f"{data['half']}-{data['language']} {size:5}"
    measures: dict[str, Figures] = {}
    notes: dict[str, list[dict[str, Any]]] = {}
    ordered = sorted(names, key=lambda name: find_scope(data, name))
    for scope, group in groupby(ordered, key=lambda name: find_scope(data, name)):
        door.open(data, scope, size)
        for name in group:
            part = Part(name, data, door)
            measures[name], notes[name] = MEASURES[name](part), part.notes
            print(f"{label} {name:9} {write_figures(measures[name])}", flush=True)
    measures["score"] = score_parts(measures)
    print(f"{label} {'SCORE':9} {write_figures(measures['score'])}", flush=True)
    return {"measures": measures, "notes": notes}


def write_figures(figures: Figures) -> str:
    """Format figures for a line of output."""
    return " ".join(f"{name}={value}" for name, value in figures.items())


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default=os.environ.get("RECOLLECT_URL", "http://127.0.0.1:7077"))
    parser.add_argument("--key", default=os.environ.get("RECOLLECT_KEY", ""))
    parser.add_argument("--set", required=True, type=Path, help="the JSON file of a set")
    parser.add_argument("--sizes", default="50,500", help="numbers of filler memories in each scope")
    parser.add_argument("--parts", default=",".join(MEASURES), help="only these parts")
    parser.add_argument("--tag", default="", help="part of the agents' names: another tag has other scopes")
    parser.add_argument("--out", default="", help="file for all figures and answers as JSON")
    parser.add_argument("--pretend", choices=CHEATS, help="ask no server, answer as a cheat would")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts.split(",")) - MEASURES.keys():
        parser.error(f"argument --parts: unknown part {sorted(unknown)[0]!r} (choose from {', '.join(MEASURES)})")
    return arguments


def main() -> None:
    """Measure each size, and write the figures and the notes."""
    arguments = read_arguments()
    data: dict[str, Any] = json.loads(arguments.set.read_text(encoding="utf-8"))
    names = [name for name in MEASURES if name in arguments.parts.split(",")]
    with open_door(arguments) as door:
        sizes = {size: measure(data, names, door, size) for size in map(int, arguments.sizes.split(","))}
    whole = {"half": data["half"], "language": data["language"], "pretend": arguments.pretend, "sizes": sizes}
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(whole, ensure_ascii=False, indent=1), encoding="utf-8")
    else:
        print(json.dumps({size: found["measures"] for size, found in sizes.items()}))


if __name__ == "__main__":
    main()

"""Count what enrichment asks of a model, on a Chinese and an English conversation, beside what other systems would ask.

    uv run python bench/enrichment.py                        # data/zereker_memory and one conversation of LoCoMo
    uv run python bench/enrichment.py --messages 60          # the short form that CI runs

The model is scripted: it says what the sets' own notes say was learned, so every system is counted by the same facts.
The others are counted by what their code does: Graphiti asks 3 questions a message and 1 or 2 an edge, mem0 one for
each call of `add`, Hindsight one for 3,000 characters and one for 8 facts.

The other tables cut the same messages at other thresholds. Nobody has said where their topics end, so some are made up
as well, of stretches of one speaker's turns from different sessions: there it is known.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias
from uuid import UUID

import psycopg
import uvloop
from pydantic import BaseModel
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from datasets import DATA, FILES, load
from ground import OUT, open_folder
from recollect import Recollect, Settings
from recollect.core.knowledge.segments import USUAL, SegmentRules, segment, to_turn
from recollect.core.text.phrases import find_keywords
from recollect.llm.build import build_embedder, has_minilm
from recollect.llm.embedder import Embedder
from recollect.llm.fake import FakeChatModel
from recollect.mind.service import Addresses
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import Ending, Turn
from recollect.models.memories import Role
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.store.knowledge import segments
from recollect.store.service import scopes
from recollect.wiring import connected, prepare

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))
import zereker_script

console = Console()
ZEREKER = DATA.parents[1] / "data" / "zereker_memory" / "test_data_complete.json"
CONVERSATION = "life"
THRESHOLDS = (0.3, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8)
MADE_UP, STRETCHES, JUDGED = 100, 6, 5
MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
LINE = re.compile(r"\d+\. \[[^\]]*\] (.+?) \((?:user|assistant)\): (.*)")
GRAPHITI_PER_MESSAGE, HINDSIGHT_CHARACTERS, HINDSIGHT_FACTS = 3, 3_000, 8
GOAL_PER_SEGMENT, GOAL_RESOLVING = 1.0, 0.2
Figures: TypeAlias = dict[str, dict[str, float]]


@dataclass(frozen=True)
class ScriptedConversation:
    """A conversation to be enriched: what is said in which session, and what each line of it teaches."""

    name: str
    sessions: Sequence[Sequence[NewMessage]]
    script: Any
    """Gives an answer for the name of a shape and a prompt."""

    @property
    def messages(self) -> list[NewMessage]:
        """Give all messages."""
        return [message for session in self.sessions for message in session]


def read_zereker() -> ScriptedConversation:
    """Read the Chinese set; batches of one day are one session."""
    days: dict[str, list[NewMessage]] = {}
    for batch in json.loads(ZEREKER.read_text(encoding="utf-8"))["conversations"]:
        said = days.setdefault(batch["session_date"], [])
        for message in batch["messages"]:
            noon = datetime.fromisoformat(batch["session_date"]).replace(hour=12, tzinfo=UTC)
            at = noon + timedelta(minutes=5 * len(said))
            said.append(NewMessage(Role(message["role"]), message["content"], message["name"], occurred_at=at))
    return ScriptedConversation("zereker_memory", list(days.values()), zereker_script.answer)


def read_locomo(number: int) -> ScriptedConversation:
    """Read a conversation of LoCoMo; one of the two speakers is taken for the user, the other one for the assistant."""
    conversation = load("locomo")[number]
    raw = json.loads((DATA / FILES["locomo"]).read_text(encoding="utf-8"))[number]
    sessions: dict[str, list[NewMessage]] = {}
    for turn in conversation.turns:
        said = sessions.setdefault(turn.session, [])
        begun = datetime.strptime(turn.when, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        role = Role.USER if turn.speaker == raw["conversation"]["speaker_a"] else Role.ASSISTANT
        said.append(NewMessage(role, turn.content, turn.speaker, occurred_at=begun + timedelta(minutes=len(said))))
    learned: dict[str, list[tuple[str, str]]] = {}
    texts = {turn.id: flatten(turn.content) for turn in conversation.turns}
    for session in raw["observation"].values():
        for speaker, notes in session.items():
            for note, source in notes:
                named = source if isinstance(source, str) else source[0]
                learned.setdefault(texts.get(named, ""), []).append((speaker, note))
    return ScriptedConversation(f"LoCoMo {conversation.id}", list(sessions.values()), Observations(learned))


def flatten(text: str) -> str:
    """Bring a text to the form in which a prompt shows it."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Observations:
    """Answer by the notes that a set has of each line: one fact for each, of its speaker and what it is about."""

    learned: dict[str, list[tuple[str, str]]]

    def __call__(self, shape: str, prompt: str) -> object:
        """Say what a model would that was asked in this shape."""
        if shape == "AnyMatches":
            return {"matches": []}
        conversation = prompt.partition("<conversation>\n")[2].partition("\n</conversation>")[0]
        said = [found[2] for line in conversation.splitlines() if (found := LINE.fullmatch(line))]
        facts, entities = [], []
        for speaker, note in (each for line in said for each in self.learned.get(line, ())):
            objects = [word for word in find_keywords([note]) if word.casefold() != speaker.casefold()]
            if objects:
                kind = "organization" if objects[0] in note and objects[0][:1].isupper() else "thing"
                entities += [{"name": speaker, "type": "person"}, {"name": objects[0], "type": kind}]
                facts.append({"subject": speaker, "predicate": "speaks of", "object": objects[0], "text": note})
        return {"summary": " ".join(said)[:300], "label": "Talk", "entities": entities, "facts": facts}


async def enrich_all(
    recollect: Recollect, conversation: ScriptedConversation, user: str, progress: Progress
) -> dict[str, float]:
    """Append a conversation session by session, let a worker learn from it, and read what that took."""
    mind = await recollect.mind("bench", user)
    task = progress.add_task(conversation.name, total=len(conversation.sessions) + 1)
    for session in conversation.sessions:
        await mind.conversation(CONVERSATION).append(session)
        await recollect.work(until_empty=True)
        progress.advance(task)
    closed = await mind.conversation(CONVERSATION).close_segment()
    await recollect.work(until_empty=True)
    progress.advance(task)
    closed = await mind.conversation(CONVERSATION).segments(limit=200)
    sizes = [each.last_number - each.first_number + 1 for each in closed]
    figures = read_figures(recollect, user) | {
        "messages": len(conversation.messages),
        "sessions": len(conversation.sessions),
        "characters": sum(len(message.content) for message in conversation.messages),
        "segments": len(closed),
        "by_topic": sum(1 for each in closed if each.ending is Ending.TOPIC),
        "messages_per_segment": median(sizes),
        "longest_segment": max(sizes),
    }
    return figures | ask_elsewhere(conversation, figures)


def read_figures(recollect: Recollect, user: str) -> dict[str, float]:
    """Add up a scope's ledger, and count its facts."""
    with psycopg.connect(recollect.addresses.owner) as connection:
        found = connection.execute('select id from scopes where agent = %s and "user" = %s', ["bench", user]).fetchone()
        scope = [found[0] if found else 0]
        asked = """select step, count(*), sum(prompt_tokens), sum(completion_tokens) from ledger
                   where scope_id = %s and model <> '' group by step"""
        rows = {row[0]: row[1:] for row in connection.execute(asked, scope).fetchall()}
        facts = connection.execute(
            "select count(distinct lineage) from beliefs where scope_id = %s and subject_id is not null", scope
        ).fetchone()
        entities = connection.execute("select count(*) from entities where scope_id = %s", scope).fetchone()
    return {
        "extractions": rows.get("summarise", (0,))[0],
        "resolutions": rows.get("resolve", (0,))[0],
        "tokens": float(sum(row[1] + row[2] for row in rows.values())),
        "facts": facts[0] if facts else 0,
        "entities": entities[0] if entities else 0,
    }


def ask_elsewhere(conversation: ScriptedConversation, figures: dict[str, float]) -> dict[str, float]:
    """Count the questions that other systems would ask on the same messages, characters and facts."""
    messages, facts = len(conversation.messages), figures["facts"]
    pieces = (
        sum(len(message.content) for message in session) / HINDSIGHT_CHARACTERS for session in conversation.sessions
    )
    return {
        "graphiti_least": GRAPHITI_PER_MESSAGE * messages + facts,
        "graphiti_most": GRAPHITI_PER_MESSAGE * messages + 2 * facts,
        "mem0_turns": sum(1 for message in conversation.messages if message.role is Role.USER),
        "mem0_messages": messages,
        "hindsight": sum(map(ceil, pieces)) + ceil(facts / HINDSIGHT_FACTS),
    }


async def cut_elsewhere(recollect: Recollect, user: str) -> dict[str, dict[str, float]]:
    """Cut the same messages at other thresholds: how many segments, how many end by topic, how long they are."""
    mind = await recollect.mind("bench", user)
    place = await scopes.locate(recollect.parts.database, mind.access.scope)
    scope_id, turns = place.scope_id or 0, list[Turn]()
    first, whole = 1, False
    while not whole:
        spoken = await segments.read_messages(recollect.parts.database, scope_id, CONVERSATION, first, 2**62)
        said = [message for message in spoken.messages if message.role is Role.USER]
        vectors = {}
        if place.space is not None:
            ids = [message.id for message in said if is_read(recollect, message.content)]
            vectors = await segments.read_vectors(recollect.parts.database, scope_id, place.space, ids)
        turns += [to_turn(each.id, each.occurred_at, each.content, vectors.get(each.id)) for each in said]
        first, whole = spoken.last_number + 1, spoken.whole
    with_vectors = any(turn.embedding is not None for turn in turns)
    return {f"{threshold:g}": cut(turns, threshold) for threshold in (THRESHOLDS if with_vectors else (0.7,))}


def is_read(recollect: Recollect, text: str) -> bool:
    """Tell whether the embedder reads a text, as the step asks before it takes a vector."""
    embedder = recollect.parts.embedder
    return embedder is None or embedder.reads(text)


def cut(turns: list[Turn], threshold: float) -> dict[str, float]:
    """Cut turns by the usual rules but for the threshold."""
    rules: SegmentRules = replace(USUAL, threshold=threshold)
    closed, running = segment(turns, rules)
    sizes = [len(each.turns) for each in closed] + ([len(running.turns)] if running.turns else [])
    by_topic = sum(1 for each in closed if each.ending is Ending.TOPIC)
    return {"segments": len(sizes), "by_topic": by_topic, "turns_per_segment": median(sizes), "longest": max(sizes)}


async def judge_cuts(embedder: Embedder) -> Figures:
    """Cut conversations that are made up of six stretches each, and count how many cuts lie where a stretch ends."""
    speakers: list[list[list[str]]] = []
    for conversation in load("locomo")[:JUDGED]:
        sessions: dict[str, list[str]] = {}
        for turn in conversation.turns:
            if turn.speaker == conversation.turns[0].speaker:
                sessions.setdefault(turn.session, []).append(f"{turn.speaker}: {turn.content}")
        speakers.append(list(sessions.values()))
    texts = [text for sessions in speakers for session in sessions for text in session]
    vectors = dict(zip(texts, await embedder.embed(texts), strict=True))
    lots = random.Random(7)
    conversations = [make_up(lots, lots.choice(speakers)) for _ in range(MADE_UP)]
    return {f"{threshold:g}": judge(conversations, vectors, threshold) for threshold in THRESHOLDS}


def make_up(lots: random.Random, sessions: list[list[str]]) -> list[list[str]]:
    """Take a few turns each from some sessions."""
    chosen = lots.sample(sessions, min(STRETCHES, len(sessions)))
    return [session[: lots.randint(4, 8)] for session in chosen]


def judge(conversations: list[list[list[str]]], vectors: dict[str, Any], threshold: float) -> dict[str, float]:
    """Say which part of the cuts is right, and which part of the ends is found."""
    cuts = ends = right = 0
    for conversation in conversations:
        texts = [text for stretch in conversation for text in stretch]
        turns = [to_turn(UUID(int=number + 1), MIDNIGHT, text, vectors[text]) for number, text in enumerate(texts)]
        closed, _ = segment(turns, replace(USUAL, threshold=threshold))
        found = set(accumulate(len(each.turns) for each in closed))
        true = set(accumulate(map(len, conversation[:-1])))
        cuts, ends, right = cuts + len(found), ends + len(true), right + len(found & true)
    return {"cuts": cuts, "ends": ends, "right": right / max(cuts, 1), "found": right / ends}


def shorten(conversation: ScriptedConversation, messages: int) -> ScriptedConversation:
    """Keep the first so many messages."""
    kept, left = list[Sequence[NewMessage]](), messages
    for session in conversation.sessions:
        if left > 0:
            kept.append(session[:left])
            left -= len(session)
    return replace(conversation, sessions=kept)


async def measure(
    cluster: Cluster, embedder: Embedder | None, conversations: Sequence[ScriptedConversation]
) -> tuple[Figures, dict[str, Figures]]:
    """Enrich every conversation in a scope of its own."""
    await ensure_database(cluster.dsn(), "enrichment")
    addresses = Addresses(cluster.dsn("enrichment", "recollect_service"), cluster.dsn("enrichment"))
    await prepare(addresses, embedder)
    settings = Settings(deadline_seconds=120, embed_wait_seconds=60)
    figures, cuts = Figures(), dict[str, Figures]()
    with Progress(console=console) as progress:
        for number, conversation in enumerate(conversations):

            def answer(prompt: str, shape: type[BaseModel], conversation: ScriptedConversation = conversation) -> str:
                return json.dumps(conversation.script(shape.__name__, prompt), ensure_ascii=False)

            async with connected(settings, addresses, embedder, FakeChatModel(answer)) as recollect:
                figures[conversation.name] = await enrich_all(recollect, conversation, f"user-{number}", progress)
                cuts[conversation.name] = await cut_elsewhere(recollect, f"user-{number}")
    return figures, cuts


def print_calls(figures: Figures) -> None:
    """Print who asks how often, for a hundred messages."""
    table = Table("", *figures)
    plain = ("messages", "sessions", "segments", "by_topic", "messages_per_segment", "longest_segment", "facts")
    for key in (*plain, "extractions", "resolutions"):
        table.add_row(key.replace("_", " "), *(f"{row[key]:.0f}" for row in figures.values()))
    table.add_row("tokens a message", *(f"{row['tokens'] / row['messages']:.0f}" for row in figures.values()))
    table.add_section()
    named = {
        "Recollect": ("extractions", "resolutions"), "Hindsight": ("hindsight",),
        "mem0, a turn an add": ("mem0_turns",),
        "mem0, a message an add": ("mem0_messages",), "Graphiti, at least": ("graphiti_least",),
        "Graphiti, at most": ("graphiti_most",),
    }  # fmt: skip
    for name, keys in named.items():
        calls = (100 * sum(row[key] for key in keys) / row["messages"] for row in figures.values())
        table.add_row(f"calls for 100 messages: {name}", *(f"{each:.0f}" for each in calls))
    console.print(table)
    for name, row in figures.items():
        asked, resolved = row["extractions"] / row["segments"], row["resolutions"] / row["segments"]
        goal = f"goal {GOAL_PER_SEGMENT:g} + {GOAL_RESOLVING:g}"
        console.print(f"{name}: {asked:.2f} questions a segment + {resolved:.2f} to tell who is who; {goal}")


def print_cuts(cuts: dict[str, Figures], judged: Figures) -> None:
    """Print where the same messages would be cut at other thresholds, and how right that is where it is known."""
    keys = ("segments", "by_topic", "turns_per_segment", "longest")
    for name, rows in cuts.items():
        table = Table("threshold", "segments", "ended by topic", "median turns", "longest", title=name)
        for threshold, row in rows.items():
            table.add_row(threshold, *(f"{row[key]:g}" for key in keys))
        console.print(table)
    if judged:
        table = Table("threshold", "cuts", "ends", "cuts that are right", "ends that are found", title="made up")
        for threshold, row in judged.items():
            table.add_row(threshold, f"{row['cuts']}", f"{row['ends']}", f"{row['right']:.2f}", f"{row['found']:.2f}")
        console.print(table)


async def main() -> None:
    """Count everything and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=1, help="how many conversations of LoCoMo")
    parser.add_argument("--messages", type=int, default=0, help="only the first so many of each; 0 = all")
    parser.add_argument("--text-only", action="store_true", help="leave the embedder alone")
    asked = parser.parse_args()
    conversations = [read_zereker(), *(read_locomo(number) for number in range(asked.conversations))]
    if asked.messages:
        conversations = [shorten(conversation, asked.messages) for conversation in conversations]
    embedder = build_embedder(Settings(embedder="local")) if has_minilm() and not asked.text_only else None
    with open_folder("enrichment") as folder, Cluster(folder / "postgres") as cluster:
        figures, cuts = await measure(cluster, embedder, conversations)
    judged = await judge_cuts(embedder) if embedder is not None and not asked.messages else {}
    if embedder is not None:
        await embedder.close()
    OUT.mkdir(exist_ok=True)
    (OUT / "enrichment.json").write_text(json.dumps({"calls": figures, "cuts": cuts, "judged": judged}, indent=1))
    print_calls(figures)
    print_cuts(cuts, judged)


if __name__ == "__main__":
    uvloop.run(main())  # the loop that the server runs on

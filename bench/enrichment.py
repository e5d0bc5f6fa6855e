"""Count what enrichment asks of a model, on a Chinese and an English conversation, beside what other systems would ask.

    uv run python bench/enrichment.py                        # data/zereker_memory and one conversation of LoCoMo
    uv run python bench/enrichment.py --messages 60          # the short form that CI runs

The model is scripted: it says what the sets' own notes say was learned, so every system is counted by the same facts.
The others are counted by what their code does: Graphiti asks 3 questions a message and 1 or 2 an edge, mem0 one for
each call of `add`, Hindsight one for 3,000 characters and one for 8 facts.

Where the messages are cut is judged by bench/segments.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import psycopg
import uvloop
from pydantic import BaseModel
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from datasets import DATA, FILES, load
from ground import OUT, open_folder
from recollect import Recollect, Settings
from recollect.core.text.phrases import find_keywords
from recollect.llm.build import build_embedder, has_minilm
from recollect.llm.embedder import Embedder
from recollect.mind.service import Addresses
from recollect.models.conversations import NewMessage
from recollect.models.knowledge import SegmentEnd
from recollect.models.memories import Role
from recollect.setting_groups import EmbeddingSettings
from recollect.store.database.ownership import ensure_database
from recollect.store.embedded.cluster import Cluster
from recollect.wiring import connected, prepare

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.models import zereker_script
from support.models.fake_chat import FakeChatModel

console = Console()
ZEREKER = DATA.parents[1] / "data" / "zereker_memory" / "test_data_complete.json"
CONVERSATION = "life"
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
    await mind.conversation(CONVERSATION).update(close_segment=True)
    await recollect.work(until_empty=True)
    progress.advance(task)
    closed = await mind.conversation(CONVERSATION).segments(limit=200)
    sizes = [each.last_number - each.first_number + 1 for each in closed]
    figures = read_figures(recollect, user) | {
        "messages": len(conversation.messages),
        "sessions": len(conversation.sessions),
        "characters": sum(len(message.content) for message in conversation.messages),
        "segments": len(closed),
        "by_topic": sum(1 for each in closed if each.ending is SegmentEnd.TOPIC),
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
) -> Figures:
    """Enrich every conversation in a scope of its own."""
    await ensure_database(cluster.dsn(), "enrichment")
    addresses = Addresses(cluster.dsn("enrichment", "recollect_service"), cluster.dsn("enrichment"))
    await prepare(addresses, embedder)
    settings = Settings(request_timeout_seconds=120, embedding=EmbeddingSettings(wait_timeout_seconds=60))
    figures = Figures()
    with Progress(console=console) as progress:
        for number, conversation in enumerate(conversations):

            def answer(prompt: str, shape: type[BaseModel], conversation: ScriptedConversation = conversation) -> str:
                return json.dumps(conversation.script(shape.__name__, prompt), ensure_ascii=False)

            async with connected(settings, addresses, embedder, FakeChatModel(answer)) as recollect:
                figures[conversation.name] = await enrich_all(recollect, conversation, f"user-{number}", progress)
    return figures


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


async def main() -> None:
    """Count everything and print a table."""
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
        figures = await measure(cluster, embedder, conversations)
    if embedder is not None:
        await embedder.close()
    OUT.mkdir(exist_ok=True)
    (OUT / "enrichment.json").write_text(json.dumps({"calls": figures}, indent=1))
    print_calls(figures)


if __name__ == "__main__":
    uvloop.run(main())  # the loop that the server runs on

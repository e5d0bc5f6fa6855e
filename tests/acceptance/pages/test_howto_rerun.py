"""The page on reading history again: its commands run in their order, and print what the page shows."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.verbs.knowledge.enrich import enrich
from support.models.scripted_chat import chatting
from support.programs.command_line import call, settings_of

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "rerun-enrichment.md"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TEXTS = {
    "li": (
        "I live in Oslo and work for Acme.",
        "We have bought a boat.",
        "We live in Bergen now, because of the boat.",
    ),
    "mo": ("My sister Ann plays the cello.", "Ann will play in Bergen in May."),
}
ANSWER = {
    "summary": "They speak of where somebody lives.",
    "label": "Homes",
    "paths": ["People -> Homes"],
    "entities": [{"name": "Bergen", "type": "place", "aliases": [], "description": ""}],
    "facts": [],
    "importance": 5,
    "keywords": ["home"],
}
ROW = re.compile(r"│ (\w+) +│ (\w+) +│ +(\d+) │ +(\d+) │ +\d+ │ +\d+ │ +[\d,]+ │ +[\d,]+ │ [\d. ]+│$", re.MULTILINE)
"""A row of what came of it: agent, user, segments read again and left."""
USAGE = {"prompt_tokens": 1_738, "completion_tokens": 216}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands():
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("recollect ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def show(command, settings):
    ended = call(*command, settings=settings, typed="y\n")
    assert ended.code == 0, ended.said
    return ended.stdout


async def test_the_page_runs_and_shows_what_is_printed(recollect, addresses, owner):
    for user, texts in TEXTS.items():
        conversation = (await recollect.mind("ada", user)).conversation("c")
        for day, text in enumerate(texts):
            said = NOON + timedelta(days=day)
            answer = NewMessage(Role.ASSISTANT, "I see.", occurred_at=said + timedelta(seconds=9))
            await conversation.append([NewMessage(Role.USER, text, occurred_at=said), answer])
            await conversation.update(close_segment=True)
    for (number,) in owner.execute("select id from scopes").fetchall():
        await enrich(recollect.parts, number)
    prices = "qwen3-8b=0.05/0.40 qwen3-32b=0.20/0.80"
    with chatting(answering=lambda *_: ANSWER, usage=USAGE) as url:
        settings = settings_of(addresses, chat_model="qwen3-8b", chat_prices=prices, chat_url=url)
        dry, run, *_ = [show(command, settings | {"COLUMNS": "120"}) for command in commands()]
    [plan] = blocks("text")
    assert tidy(dry) == tidy(plan)
    # The same plan, the question, and then what came of it.
    assert tidy(run).startswith(tidy(plan))
    assert [cells for cells in ROW.findall(run) if cells[0] == "ada"] == [
        ("ada", "li", "3", "0"),
        ("ada", "mo", "2", "0"),
    ]


def tidy(table):
    """Leave the numbers of tokens out: they change with every word of the prompt."""
    return re.sub(r"[━─ ]+", "", re.sub(r"\d[\d,.]{3,}", "n", table))

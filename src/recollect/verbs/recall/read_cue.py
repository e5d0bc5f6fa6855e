"""Read a cue with the chat model, once: in any case the reading by rules stays."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace

from recollect.channels.channel import SKIPPED
from recollect.core.dates.periods import find_zone
from recollect.core.recall.cues import Reading
from recollect.core.recall.model_cues import MOST_FOUND, Matches, choose_shown, describe, extend
from recollect.core.topics.paths import grow
from recollect.errors import RecollectError
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.recall import Cue
from recollect.store.service.scopes import Place
from recollect.store.topics.topics import read_tree
from recollect.verbs.parts import Parts
from recollect.verbs.recall.channels import AskedCue
from recollect.verbs.recall.judge import LAST_WORDS_SECONDS, LONGEST_CUE, NO_CHAT_MODEL
from recollect.verbs.service.costs import metered

STEP = PROMPT = "read"
DEADLINE_SHARE = 0.4
"""The most that this may take of a request's time: the channels are still to be asked."""
TREE_SHARE = 0.5
"""The share of a prompt that topics may take."""
LOG = logging.getLogger("recollect.read_cue")


async def consult_each(parts: Parts, place: Place, asked: Sequence[AskedCue]) -> list[AskedCue]:
    """Let the chat model read the cues that say so, all at once."""
    return list(await asyncio.gather(*(let_consult(parts, place, each) for each in asked)))


async def let_consult(parts: Parts, place: Place, asked: AskedCue) -> AskedCue:
    """Let the chat model read one cue if it says so."""
    if not asked.cue.consult:
        return asked
    reading, consulted = await consult(parts, place, asked.cue, asked.reading)
    return replace(asked, reading=reading, consulted=consulted)


async def consult(parts: Parts, place: Place, cue: Cue, reading: Reading) -> tuple[Reading, str]:
    """Extend a reading by the topics and days that the chat model finds, and say how many, or why there are none."""
    if parts.chat is None:
        return reading, NO_CHAT_MODEL
    if not cue.text.strip():
        return reading, SKIPPED + "there is no text to read"
    seconds = min(parts.judge_seconds, DEADLINE_SHARE * parts.database.deadline_seconds)
    task = asyncio.create_task(ask(parts, place, cue, reading))
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        late = task.cancel()
    if late:
        await asyncio.wait([task], timeout=LAST_WORDS_SECONDS)
        return reading, SKIPPED + "it did not answer in time"
    return take(reading, cue, task)


def take(reading: Reading, cue: Cue, asked: asyncio.Task[Matches]) -> tuple[Reading, str]:
    """Add what was answered, or leave the reading as it is."""
    problem = asyncio.CancelledError() if asked.cancelled() else asked.exception()
    if problem is None:
        extended = extend(reading, cue, asked.result().matches)
        return extended, describe(reading, extended)
    if not isinstance(problem, RecollectError):
        # Only the type of the error certainly quotes nothing.
        LOG.warning(json.dumps({"event": "cue_not_consulted", "problem": type(problem).__name__}))
    return reading, SKIPPED + "it gave no answer of use"


async def ask(parts: Parts, place: Place, cue: Cue, reading: Reading) -> Matches:
    """Ask what a cue is about, among the existing topics."""
    scope_id = place.scope_id or 0
    chat = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    topics = grow(await read_tree(parts.database, scope_id))
    shown = choose_shown(topics, int(TREE_SHARE * chat.characters))
    return await chat.ask(write_question(cue, reading, shown), Matches)


def write_question(cue: Cue, reading: Reading, topics: Sequence[str]) -> str:
    """Write the question; as JSON, nothing in it can be mistaken for the question itself."""
    moment = (cue.as_of or reading.now).astimezone(find_zone(cue.zone))
    material = {
        "cue": cue.text.strip()[-LONGEST_CUE:],
        "moment": moment.isoformat(timespec="minutes"),
        "weekday": f"{moment:%A}",
        "topics": list(topics),
    }
    return fill_prompt(PROMPT, material=json.dumps(material, ensure_ascii=False, indent=1), most=MOST_FOUND)

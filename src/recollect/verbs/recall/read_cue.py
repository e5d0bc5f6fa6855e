"""Parse a query once with the chat model; the result of the rules stays in any case."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace

from recollect.channels.channel import SKIPPED
from recollect.core.dates.periods import find_zone
from recollect.core.recall.cues import ParsedCue
from recollect.core.recall.model_cues import MAX_MATCHES, Matches, choose_shown, describe_additions, extend
from recollect.core.topics.paths import grow
from recollect.errors import RecollectError
from recollect.llm.prompts import fill_prompt, version_of
from recollect.models.recall import Cue
from recollect.store.service.scopes import ScopeHandle
from recollect.store.topics.topics import read_tree
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.recall.channels import PlannedCue
from recollect.verbs.recall.judge import LAST_WORDS_SECONDS, MAX_CUE_LENGTH, NO_CHAT_MODEL
from recollect.verbs.service.costs import metered

STEP = PROMPT = "read"
DEADLINE_SHARE = 0.4
"""Maximum share of a request's time: the channels are asked afterwards."""
TREE_SHARE = 0.5
"""The maximum share of topics in a prompt."""
LOG = logging.getLogger("recollect.read_cue")


async def consult_each(parts: Dependencies, place: ScopeHandle, asked: Sequence[PlannedCue]) -> list[PlannedCue]:
    """Have the chat model parse the queries that request it, all at once."""
    return list(await asyncio.gather(*(expand_cue(parts, place, each) for each in asked)))


async def expand_cue(parts: Dependencies, place: ScopeHandle, asked: PlannedCue) -> PlannedCue:
    """Have the chat model parse one query if it requests this."""
    if not asked.cue.consult:
        return asked
    reading, consulted = await consult(parts, place, asked.cue, asked.reading)
    return replace(asked, reading=reading, consulted=consulted)


async def consult(parts: Dependencies, place: ScopeHandle, cue: Cue, reading: ParsedCue) -> tuple[ParsedCue, str]:
    """Add topics and days from the chat model to a parsed query; note how many, or why there are none."""
    if parts.chat is None:
        return reading, NO_CHAT_MODEL
    if not cue.text.strip():
        return reading, SKIPPED + "there is no text to read"
    seconds = min(parts.options.judge_seconds, DEADLINE_SHARE * parts.database.deadline_seconds)
    task = asyncio.create_task(match_cue(parts, place, cue, reading))
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        late = task.cancel()
    if late:
        await asyncio.wait([task], timeout=LAST_WORDS_SECONDS)
        return reading, SKIPPED + "it did not answer in time"
    return take(reading, cue, task)


def take(reading: ParsedCue, cue: Cue, asked: asyncio.Task[Matches]) -> tuple[ParsedCue, str]:
    """Add the model's answer, or keep the parsed query unchanged."""
    problem = asyncio.CancelledError() if asked.cancelled() else asked.exception()
    if problem is None:
        extended = extend(reading, cue, asked.result().matches)
        return extended, describe_additions(reading, extended)
    if not isinstance(problem, RecollectError):
        # Only the type of the error never quotes content.
        LOG.warning(json.dumps({"event": "query_expansion_failed", "problem": type(problem).__name__}))
    return reading, SKIPPED + "it returned no usable answer"


async def match_cue(parts: Dependencies, place: ScopeHandle, cue: Cue, reading: ParsedCue) -> Matches:
    """Ask for the topics of a query, among the existing ones."""
    scope_id = place.scope_id or 0
    chat = metered(parts, scope_id, STEP, prompt_version=version_of(PROMPT))
    topics = grow(await read_tree(parts.database, scope_id))
    shown = choose_shown(topics, int(TREE_SHARE * chat.characters))
    return await chat.ask(write_question(cue, reading, shown), Matches)


def write_question(cue: Cue, reading: ParsedCue, topics: Sequence[str]) -> str:
    """Write the question; as JSON, no text in it can be mistaken for the question."""
    moment = (cue.as_of or reading.now).astimezone(find_zone(cue.zone))
    material = {
        "cue": cue.text.strip()[-MAX_CUE_LENGTH:],
        "moment": moment.isoformat(timespec="minutes"),
        "weekday": f"{moment:%A}",
        "topics": list(topics),
    }
    return fill_prompt(PROMPT, material=json.dumps(material, ensure_ascii=False, indent=1), most=MAX_MATCHES)

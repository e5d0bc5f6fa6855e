"""Re-runs from the command line: real processes, a chat endpoint on a real socket, a plan before anything is spent."""

from __future__ import annotations

import json
import re

import pytest

from integration.knowledge.test_rerun import ANN, NOON, OSLO, extraction, fact
from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from recollect.verbs.knowledge.enrich import enrich
from support.models.scripted_chat import chatting
from support.programs import command_line
from support.programs.command_line import settings_of

ANSWER = extraction("They speak of Ann.", [ANN, OSLO], [fact("Ann", "lives in", "Oslo")])
USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100}


def answer(*_):
    return json.loads(ANSWER)


@pytest.fixture
def run(addresses):
    """Run a command against this test's own database, and answer what it asks on the terminal."""

    def call(*words, url="", typed="", fails=False):
        chat = {"chat_model": "scripted", "chat_prices": "other=1/10"} | ({"chat_url": url} if url else {})
        return command_line.run(*words, settings=settings_of(addresses, **chat), typed=typed, fails=fails)

    return call


@pytest.fixture
async def enriched(recollect, owner):
    """Two conversations, learned from without any model."""
    for user in ("li", "mo"):
        conversation = (await recollect.mind("ada", user)).conversation("c")
        await conversation.append([NewMessage(Role.USER, "Ann lives in Oslo", occurred_at=NOON)])
        await conversation.update(close_segment=True)
    for (number,) in owner.execute("select id from scopes").fetchall():
        await enrich(recollect.parts, number)
    return recollect


async def summaries(recollect):
    minds = [await recollect.mind("ada", user) for user in ("li", "mo")]
    pages = [await mind.list() for mind in minds]
    return [each.content for page in pages for each in page.memories if each.kind == "summary"]


async def test_a_plan_comes_first_and_a_refusal_spends_nothing(run, enriched):
    with chatting(answering=answer, usage=USAGE) as url:
        plan = run("admin", "enrich", "--model", "other", "--dry-run", url=url)
        assert len(re.findall(r"│ ada", plan)) == 2 and "all, estimated" in plan and "Read it again" not in plan
        refused = run("admin", "enrich", "--model", "other", url=url, typed="n\n", fails=True)
        assert "Read it again? [y/N]" in refused and "by the ledger" not in refused
        assert await summaries(enriched) == ["Ann lives in Oslo"] * 2
        done = run("admin", "enrich", "--model", "other", url=url, typed="y\n")
    assert re.search(r"by the ledger +│.*│ +2 │ +2,000 │ +200 │ +0\.0040 │", done), done
    assert await summaries(enriched) == ["They speak of Ann."] * 2


async def test_one_scope_is_read_again_without_being_asked(run, enriched):
    with chatting(answering=answer, usage=USAGE) as url:
        done = run("admin", "enrich", "--agent", "ada", "--user", "mo", "--since", "2026-03-01", "--yes", url=url)
        assert "ada and mo" in done and "100%" in done
        assert "There is nothing to read again." in run("admin", "enrich", "--since", "2026-04-01", "--yes", url=url)
    assert await summaries(enriched) == ["Ann lives in Oslo", "They speak of Ann."]


async def test_a_used_up_budget_says_when_to_go_on(run, enriched):
    await enriched.ledger.allow("default", 1_000)
    with chatting(answering=answer, usage=USAGE) as url:
        stopped = run("admin", "enrich", "--yes", url=url, fails=True)
        assert "budget" in stopped and "UTC. Run the same command again to resume" in stopped
        assert await summaries(enriched) == ["They speak of Ann.", "Ann lives in Oslo"]
        run("admin", "enrich", "--yes", "--ignore-budget", "--user", "mo", "--agent", "ada", url=url)
    assert await summaries(enriched) == ["They speak of Ann."] * 2


async def test_a_model_and_a_tenant_are_needed(run, enriched):
    assert "RECOLLECT_CHAT_URL" in run("admin", "enrich", "--dry-run", fails=True)
    assert "There is no tenant 'nobody'" in run("admin", "enrich", "--tenant", "nobody", fails=True)

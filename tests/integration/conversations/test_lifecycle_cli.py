"""What becomes of conversations, from the command line on a real PostgreSQL."""

from __future__ import annotations

from functools import partial

import pytest

from recollect.models.conversations import NewMessage
from recollect.models.memories import Role
from support.programs import command_line
from support.programs.command_line import settings_of

SCOPE = ("--agent", "ada", "--user", "li")


@pytest.fixture
def run(addresses):
    return partial(command_line.run, settings=settings_of(addresses, retention__archive_after_days="10"))


@pytest.fixture
async def conversations(mind):
    for name in ("cats", "dogs"):
        conversation = mind.conversation(name)
        await conversation.append([NewMessage(Role.USER, f"my {name}"), NewMessage(Role.ASSISTANT, "I see")])
        await conversation.update(name=f"All about {name}")


def test_a_life_on_the_command_line(run, conversations, owner):
    listed = run("mind", "conversations", "list", *SCOPE)
    assert "All about cats" in listed
    assert "active" in listed
    assert "cats is archived" in run("mind", "conversations", "archive", "cats", *SCOPE)
    assert "archived since" in run("mind", "conversations", "show", "cats", *SCOPE)
    assert "dogs" not in run("mind", "conversations", "list", *SCOPE, "--state", "archived")
    assert "cats is active" in run("mind", "conversations", "restore", "cats", *SCOPE)
    assert "2 messages would go out of sight" in run("mind", "conversations", "delete", "cats", *SCOPE, "--dry-run")
    assert "2 messages" in run("mind", "conversations", "purge", "cats", *SCOPE, "--dry-run")
    assert "cats is deleted" in run("mind", "conversations", "delete", "cats", *SCOPE)
    assert "cats" not in run("mind", "conversations", "list", *SCOPE)
    run("mind", "conversations", "purge", "cats", *SCOPE, fails=True, typed="n\n")
    assert owner.execute("select state from conversations where id = 'cats'").fetchone() == ("deleted",)
    receipt = run("mind", "conversations", "purge", "cats", *SCOPE, "--yes")
    assert "2 messages" in receipt
    assert "not_found" in run("mind", "conversations", "show", "cats", *SCOPE, fails=True)
    assert "2 messages" in run("mind", "conversations", "receipts", *SCOPE)


def test_topics_on_the_command_line(run, conversations):
    assert "No topic has ended yet" in run("mind", "conversations", "segments", "cats", *SCOPE)
    closed = run("mind", "conversations", "segments", "cats", *SCOPE, "--close")
    assert "1-2" in closed
    assert "asked" in closed
    assert "not_found" in run("mind", "conversations", "segments", "birds", *SCOPE, fails=True)
    assert "0.4" in run("mind", "profile", "--agent", "ada", "--segment-depth", "0.4")


def test_retention_and_rewriting_tables(run, conversations, owner):
    assert "Nothing is due" in run("admin", "retention", "run", "--dry-run")
    owner.execute("update conversations set idle_since = idle_since - interval '11 days' where id = 'dogs'")
    assert "archived" in run("admin", "retention", "run", "--dry-run")
    assert owner.execute("select state from conversations where id = 'dogs'").fetchone() == ("active",)
    run("admin", "retention", "run")
    assert owner.execute("select state, synced from conversations where id = 'dogs'").fetchone() == ("archived", True)
    filenode = "select pg_relation_filenode('memories')"
    before = owner.execute(filenode).fetchone()
    assert "pg_statistic" in run("admin", "vacuum-erased", "--dry-run")
    assert owner.execute(filenode).fetchone() == before
    assert "Rewritten" in run("admin", "vacuum-erased")
    assert owner.execute(filenode).fetchone() != before


def test_an_agent_keeps_its_own_days(run, conversations, owner):
    shown = run("mind", "profile", "--agent", "ada", "--archive-after-days", "0", "--purge-after-days", "2.5")
    assert "2.5" in shown
    owner.execute("update conversations set idle_since = idle_since - interval '11 days'")
    assert "Nothing is due" in run("admin", "retention", "run", "--dry-run")

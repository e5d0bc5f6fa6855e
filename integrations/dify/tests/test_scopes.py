"""Whose memory a tool works on: Dify's own ids unless others are named, and no two of them ever meet."""

from __future__ import annotations

import hashlib
import random
import re
import string
import uuid

import pytest
from daemon import Dify

ALLOWED = re.compile(r"[^/\s](?:[^/\n]{0,126}[^/\s])?")
NAMES = [
    *("li", "li@example.com", "a:b", "x:", "x:li", "x:x:li", "x::", "x:" + "0" * 64 + ":", "a.b", "~", "%"),
    *(".", "..", "..."),
    *("li+work@example.com", "li:2Bwork@example.com", "x:li:2Bwork@example.com", "李雷", "李 雷", "李雷 ", " 李雷"),
    *("a/b", "a\\b", "a b", "a\tb", "a\nb", "é", "e\u0301", "A", "a", "\ud800", "a" * 128, "a" * 129, "a" * 130),
    *("李" * 13, "李" * 14, "李" * 15, "李" * 500, "李" * 501, "\x00", "a\x00", "'; drop table memories; --"),
]


IN_PLUGIN = "from memory_tool import scope_name; made = [scope_name('user', {}, name) for name in given]"


def test_names_keep_to_what_scopes_allow_and_stay_distinct(workbench):
    chance = random.Random(7)
    alphabet = string.ascii_letters + string.digits + "._:@-" + "x:x:" + " /+%~李雷é\n"
    hashes = [hashlib.sha256(name.encode()).hexdigest() for name in (f"{number:0200}" for number in range(300))]
    lookalikes = {f"{shape}{digest}" for digest in hashes for shape in ("", "x:", "x::")}
    lookalikes |= {chr(int(digest[:2], 16)) + digest[2:] for digest in hashes} | {f"{digest}:" for digest in hashes}
    lookalikes |= {f"{number:0200}" for number in range(300)}
    made = lookalikes | {"".join(chance.choices(alphabet, k=chance.randint(1, 90))) for _ in range(3_000)} | set(NAMES)
    names = sorted(made)
    given = dict(zip(names, workbench.run(IN_PLUGIN, names), strict=True))
    assert all(ALLOWED.fullmatch(name) and name.strip(".") for name in given.values())
    assert len(set(given.values())) == len(given)
    ascii_name = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
    plain = [name for name in names if ascii_name.fullmatch(name) and name.strip(".") and not name.startswith("x:")]
    assert all(given[name] == name for name in plain)
    assert all(given[name] == name for name in ("李雷", "李 雷", "é", "li+work@example.com", "a b"))
    assert given["a/b"] == "x:a:2Fb"
    assert given["e\u0301"] == "x:e:CC:81"


def test_the_session_names_agent_user_and_conversation(dify, memory):
    dify.use("remember", content="Tea")
    dify.use("append", user_message="Hello", assistant_message="Hi")
    mind = memory.mind(dify.app, dify.user)
    assert sorted(each.content for each in mind.list().memories) == ["Hello", "Hi", "Tea"]
    assert [each.id for each in mind.conversations().conversations] == [dify.conversation]


def test_parameters_name_others(dify, memory):
    agent, user, conversation = (uuid.uuid4().hex for _ in range(3))
    named = {"agent": agent, "user": user}
    dify.use("append", user_message="Hello", assistant_message="Hi", conversation=conversation, **named)
    assert memory.mind(agent, user).conversation(conversation).get().message_count == 2
    assert memory.mind(dify.app, dify.user).list().memories == ()
    assert len(dify.use("history", conversation=conversation, **named).variables["messages"]) == 2
    assert len(dify.use("recall", cue="Hello", **named).variables["hits"]) == 2


def test_users_and_apps_do_not_see_each_other(daemon, credentials, dify):
    dify.use("remember", content="A secret")
    others = [Dify(daemon, credentials, app=dify.app), Dify(daemon, credentials, user=dify.user)]
    assert [other.use("recall", cue="secret").variables["hits"] for other in others] == [[], []]
    again = Dify(daemon, credentials, app=dify.app, user=dify.user)
    assert len(again.use("recall", cue="secret").variables["hits"]) == 1


@pytest.mark.parametrize("user", ["李雷", "li+work@example.com", "x:li", "a" * 200])
def test_users_of_any_name_have_a_memory_of_their_own(daemon, credentials, user):
    dify = Dify(daemon, credentials, user=user)
    dify.use("remember", content="Tea")
    assert len(dify.use("recall", cue="Tea").variables["hits"]) == 1
    assert len(Dify(daemon, credentials, app=dify.app).use("recall", cue="Tea", user=user).variables["hits"]) == 1


def test_without_an_id_the_tool_says_what_to_fill_in(daemon, credentials):
    nowhere = Dify(daemon, credentials, app="", conversation="")
    assert nowhere.use("recall", cue="tea").problem == "Fill in `agent`: Dify told no id to take for it here."
    told = nowhere.use("history", agent="ada").problem
    assert told == "Fill in `conversation`: Dify told no id to take for it here."


def test_a_call_repeated_for_the_same_message_writes_once(daemon, credentials):
    dify = Dify(daemon, credentials, message=str(uuid.uuid4()))
    turn = {"user_message": "Hello", "assistant_message": "Hi"}
    first, again = (dify.use("append", **turn).variables["ids"] for _ in range(2))
    assert first == again
    assert dify.use("remember", content="Tea").variables == dify.use("remember", content="Tea").variables
    assert dify.use("remember", content="Tea").variables != dify.use("remember", content="Coffee").variables
    assert len(dify.use("history").variables["messages"]) == 2
    dify.message = str(uuid.uuid4())
    assert dify.use("append", **turn).variables["ids"] != first


def test_python_and_the_plugin_mean_the_same_agent_by_a_name_with_blanks(dify, memory):
    suffix = uuid.uuid4().hex
    dify.use("remember", content="Tea", agent=f" Isabella  Rodriguez {suffix}", user="Li Wei")
    mind = memory.mind(f"Isabella Rodriguez {suffix}", "Li Wei")
    assert [each.content for each in mind.list().memories] == ["Tea"]

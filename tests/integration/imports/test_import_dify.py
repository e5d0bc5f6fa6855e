"""Conversations come over from databases with Dify's own tables: whole, once, and again where something is new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import process_time
from uuid import UUID

import psycopg
import pytest

from recollect.core.imports import dify as dify_words
from recollect.errors import NotFoundError, SetupError
from recollect.models.conversations import LEGACY, HistoryOptions, MessageStatus
from recollect.models.imports import DifyImport, DifyUserField
from recollect.models.memories import Role
from recollect.store.imports.dify import open_source
from support.dify.dify_database import ACCOUNT, APP, BEGINNING, NIL, TENANT, YEARS, fill_quickly, identify, made_dify
from support.measuring.sizes import Sizes
from support.programs import command_line
from support.programs.command_line import settings_of

PLENTY = HistoryOptions(1_000_000, unanswered=True)
MESSAGES = Sizes("messages in each of two shapes", ci=1_000, long=20_000)


@pytest.fixture
def dify(cluster):
    with made_dify(cluster) as made:
        yield made


@pytest.fixture
def bring(recollect, dify):
    async def work(report=lambda *_: None, **more):
        wanted = DifyImport(dify.dsn, "assistant", **more)
        return await recollect.operator.imports.dify(wanted, "default", report)

    return work


async def read(recollect, conversation, window=PLENTY, user="li"):
    mind = await recollect.mind("assistant", user)
    return (await mind.conversation(identify(conversation)).history(window)).messages


def numbers(arrival):
    return {line.thing: (line.found, line.imported, line.known, line.skipped) for line in arrival.brought}


def contents(messages):
    return [message.content for message in messages]


async def test_a_conversation_comes_over_with_all_it_has(bring, dify, recollect):
    dify.conversation("出游", name="周末去哪里", inputs='{"city": "杭州", "days": 2}', mode="agent-chat")
    first = dify.turn("出游", "1", None, query="明天去哪里？", answer="去西湖。", created_at=BEGINNING)
    second = dify.turn("出游", "2", "1", answer="The bus le", answer_tokens=0, status="error", error="timeout")
    dify.execute(
        "insert into upload_files values (%s, %s, 'local', 'k', '地图.pdf', 1, 'pdf', 'application/pdf', %s)",
        (identify("map"), TENANT, identify("li")),
    )
    dify.file(first, type="image", url="https://example.org/湖.png")
    dify.file(first, type="document", transfer_method="local_file", upload_file_id=identify("map"), belongs_to="user")
    dify.file(first, transfer_method="tool_file", url="/files/tools/f00.png", belongs_to="assistant")
    arrival = await bring()
    assert numbers(arrival) == {"conversations": (1, 1, 0, 0), "messages": (2, 2, 0, 0), "files": (3, 3, 0, 0)}
    assert arrival.remarks == {dify_words.FAILED: 1}
    asked, answered, again, failed = await read(recollect, "出游")
    assert contents([asked, answered, again, failed]) == ["明天去哪里？", "去西湖。", "q 2", "The bus le"]
    assert [message.role for message in (asked, answered)] == [Role.USER, Role.ASSISTANT]
    assert asked.occurred_at == answered.occurred_at == BEGINNING.replace(tzinfo=UTC)
    assert [asked.external_id, failed.external_id] == [f"{first}:user", f"{second}:assistant"]
    image, document = asked.attachments
    assert (image.type, image.url, image.upload_id) == ("image", "https://example.org/湖.png", "")
    assert (document.url, document.upload_id, document.name) == ("", identify("map"), "地图.pdf")
    assert (answered.attachments[0].url, answered.attachments[0].upload_id) == ("", "f00")
    assert (again.status, failed.status) == (MessageStatus.DONE, MessageStatus.FAILED)
    mind = await recollect.mind("assistant", "li")
    assert (await mind.get(failed.id)).metadata == {"dify": {"error": "timeout"}}
    conversation = await mind.conversation(identify("出游")).get()
    assert (conversation.name, conversation.created_at) == ("周末去哪里", BEGINNING.replace(tzinfo=UTC))
    assert conversation.metadata["dify"] == {
        "app": APP, "mode": "agent-chat", "source": "api", "invoked_from": "service-api", "session": "li",
        "end_user": identify("li"), "inputs": {"city": "杭州", "days": 2},
    }  # fmt: skip


async def test_answers_that_are_missing_empty_or_paused(bring, dify, recollect):
    dify.conversation("t")
    dify.turn("t", "1", None, answer="", answer_tokens=5)
    dify.turn("t", "2", "1", answer="", answer_tokens=0, status="error", error="boom")
    dify.turn("t", "3", "2", answer="half", status="paused")
    dify.turn("t", "4", "3", answer="", answer_tokens=0)
    arrival = await bring()
    assert arrival.remarks == {dify_words.UNANSWERED: 2}
    found = [(message.content, message.role.value, message.status.value) for message in await read(recollect, "t")]
    assert found == [
        ("q 1", "user", "done"), ("", "assistant", "done"), ("q 2", "user", "failed"),
        ("q 3", "user", "done"), ("half", "assistant", "pending"), ("q 4", "user", "pending"),
    ]  # fmt: skip


async def test_what_cannot_be_kept_is_cut_or_cleaned_and_said(bring, dify, recollect):
    dify.conversation("t", inputs=r'{"a": "x\u0000y", "b": "\ud800"}', name="two\nlines " + "长" * 240)
    dify.turn("t", "1", None, answer="字" * 200_001)
    spoken = dify.turn("t", "2", "1", query=" ")
    dify.file(spoken, url="https://example.org/" + "x" * 8_000, belongs_to="assistant")
    busy = dify.turn("t", "3", "2")
    for _ in range(66):
        dify.file(busy, url="https://example.org/a.png")
    dify.conversation("large", inputs='{"text": "' + "x" * 20_000 + '"}')
    dify.turn("large", "1", None)
    arrival = await bring()
    assert arrival.remarks == {
        dify_words.CUT: 1, dify_words.CLEANED: 2, dify_words.BLANK: 1, dify_words.FAR: 1, dify_words.TOO_MANY_FILES: 2,
        dify_words.LARGE: 1,
    }  # fmt: skip
    said = await read(recollect, "t")
    assert (len(said[1].content), said[2].content, len(said[4].attachments)) == (200_000, "[empty]", 64)
    mind = await recollect.mind("assistant", "li")
    assert (await mind.get(said[1].id)).metadata == {"dify": {"cut_from": 200_001}}
    conversation = await mind.conversation(identify("t")).get()
    assert conversation.metadata["dify"]["inputs"] == {"a": "x\ufffdy", "b": "\ufffd"}
    assert conversation.name == "two lines " + "长" * 190
    assert "inputs" not in (await mind.conversation(identify("large")).get()).metadata["dify"]


@pytest.mark.parametrize("year", YEARS)
async def test_every_version_of_the_tables_is_read(cluster, recollect, year):
    with made_dify(cluster, year) as made:
        made.conversation("t")
        for name in "123":
            made.turn("t", name, "2" if name == "3" else NIL)
        made.conversation("gone", is_deleted=True)
        wanted = DifyImport(made.dsn, "assistant")
        arrival = await recollect.operator.imports.dify(wanted, "default", lambda *_: None)
    assert contents(await read(recollect, "t")) == ["q 1", "a 1", "q 2", "a 2", "q 3", "a 3"]
    # The oldest tables do not know of deletion; there the conversation is an empty one.
    assert arrival.remarks == {dify_words.SILENT if year == 2023 else dify_words.DELETED: 1}
    assert numbers(arrival)["conversations"] == (2, 1, 0, 1)


async def test_running_it_again_brings_over_what_is_new(bring, dify, recollect):
    dify.conversation("t")
    dify.turn("t", "1", None)
    waiting = dify.turn("t", "2", "1", answer="", answer_tokens=0)
    dify.file(waiting, url="https://example.org/a.png")
    await bring()
    assert numbers(await bring()) == {
        "conversations": (1, 0, 1, 0), "messages": (2, 0, 2, 0), "files": (1, 0, 1, 0)
    }  # fmt: skip
    dify.execute("update messages set answer = 'late', answer_tokens = 2 where id = %s", (waiting,))
    dify.turn("t", "3", "2")
    dify.turn("t", "1b", "1")
    dify.conversation("other")
    dify.turn("other", "1", None)
    arrival = await bring()
    assert numbers(arrival) == {"conversations": (2, 2, 0, 0), "messages": (5, 4, 1, 0), "files": (1, 1, 0, 0)}
    assert (arrival.messages, arrival.remarks) == (7, {dify_words.LATE: 1})
    assert contents(await read(recollect, "t")) == ["q 1", "a 1", "q 1b", "a 1b"]
    mind = await recollect.mind("assistant", "li")
    leaves = {leaf.content: leaf.id for leaf in (await mind.conversation(identify("t")).get()).threads}
    older = await read(recollect, "t", HistoryOptions(1_000_000, leaf=leaves["a 3"]))
    assert contents(older) == ["q 1", "a 1", "q 2", "late", "q 3", "a 3"]
    assert {message.status for message in older} == {MessageStatus.DONE}
    assert numbers(await bring())["messages"] == (5, 0, 5, 0)


async def test_old_chains_go_on_where_they_ended(bring, dify, recollect):
    dify.conversation("t")
    dify.turn("t", "1")
    dify.turn("t", "2")
    dify.turn("t", "aside", "1")
    await bring()
    dify.turn("t", "3")
    await bring()
    assert contents(await read(recollect, "t")) == ["q 1", "a 1", "q 2", "a 2", "q 3", "a 3"]
    upstream = await read(recollect, "t", HistoryOptions(1_000_000, upstream=True))
    assert contents(upstream) == ["q 1", "a 1", "q aside", "a aside", "q 3", "a 3"]


class StoppedError(Exception):
    """What a test raises where an import is to end."""


async def test_an_interrupted_import_goes_on(bring, dify, recollect):
    fill_quickly(dify, conversations=3, turns=600)

    def stop(thing, done, total):
        if thing == "messages" and done >= 900:
            raise StoppedError

    with pytest.raises(StoppedError):
        await bring(stop)
    arrival = await bring()
    before = numbers(arrival)["messages"][2]
    assert numbers(arrival)["messages"] == (1800, 1800 - before, before, 0)
    assert 900 <= before < 1800
    mind = await recollect.mind("assistant", "li")
    conversations = (await mind.conversations()).conversations
    assert {
        (conversation.message_count, bool(conversation.name), "dify" in conversation.metadata)
        for conversation in conversations
    } == {(1200, True, True)}
    for conversation in conversations:
        said = (await mind.conversation(conversation.id).history(PLENTY)).messages
        assert [message.number for message in said] == [*range(1, 1201)]
    assert numbers(await bring())["conversations"] == (3, 0, 3, 0)


async def test_a_dry_run_says_the_same_and_writes_nothing(dify, recollect, owner):
    fill_quickly(dify, conversations=2, turns=300)
    dify.conversation("gone", is_deleted=True)

    def count():
        tables = ("tenants", "scopes", "conversations", "messages", "memories", "procrastinate_jobs")
        return [owner.execute(f"select count(*) from {table}").fetchone()[0] for table in tables]

    before = count()
    wanted = DifyImport(dify.dsn, "assistant", dry_run=True)
    told = await recollect.operator.imports.dify(wanted, "new tenant", lambda *_: None)
    assert count() == before
    done = await recollect.operator.imports.dify(DifyImport(dify.dsn, "assistant"), "new tenant", lambda *_: None)
    assert told == done
    assert numbers(done)["messages"] == (600, 600, 0, 0)


@pytest.mark.parametrize(
    ("by", "users"),
    [
        (DifyUserField.AUTO, {"a": "li", "b": identify("ü"), "c": ACCOUNT}),
        (DifyUserField.SESSION, {"a": "li", "b": identify("ü")}),
        (DifyUserField.END_USER, {"a": identify("li"), "b": identify("ü")}),
        (DifyUserField.ACCOUNT, {"c": ACCOUNT}),
        (DifyUserField.NOBODY, {"a": "", "b": "", "c": ""}),
    ],
)
async def test_the_user_is_who_wrote_in_dify(bring, dify, recollect, by, users):
    dify.execute(
        "insert into end_users (id, tenant_id, type, session_id) values (%s, %s, 'browser', 'frau/müller')",
        (identify("ü"), TENANT),
    )
    dify.conversation("a")
    dify.conversation("b", from_end_user_id=identify("ü"))
    dify.conversation("c", from_end_user_id=None, from_account_id=ACCOUNT, from_source="console")
    for name in "abc":
        dify.turn(name, "1", None)
    arrival = await bring(user_by=by)
    for name, user in users.items():
        assert contents(await read(recollect, name, user=user)) == ["q 1", "a 1"]
    assert arrival.remarks.get(dify_words.USER_NOT_NAMED, 0) == 3 - len(users)
    assert arrival.remarks.get(dify_words.RENAMED, 0) == (by in {DifyUserField.AUTO, DifyUserField.SESSION})


async def test_apps_and_dates_choose_conversations(bring, dify, recollect):
    dify.conversation("other app", app_id=identify("other"))
    dify.turn("other app", "1", None)
    dify.conversation("old")
    dify.turn("old", "1", None, created_at=BEGINNING - timedelta(days=9))
    dify.conversation("both")
    dify.turn("both", "1", None, created_at=BEGINNING - timedelta(days=9))
    dify.turn("both", "2", "1")
    arrival = await bring(app=UUID(APP), since=datetime(2025, 3, 1, tzinfo=UTC))
    assert numbers(arrival) == {"conversations": (1, 1, 0, 0), "messages": (2, 2, 0, 0), "files": (0, 0, 0, 0)}
    assert contents(await read(recollect, "both")) == ["q 1", "a 1", "q 2", "a 2"]
    with pytest.raises(NotFoundError):
        await read(recollect, "old")


async def test_a_parent_that_is_not_there_begins_a_thread(bring, dify, recollect, owner):
    dify.conversation("t")
    dify.turn("t", "1", "missing")
    dify.turn("t", "2", NIL)
    assert (await bring()).remarks == {dify_words.MISSING_PARENT: 1}
    stated = owner.execute("select stated_parent from messages where role = 'user' order by number").fetchall()
    assert [found for (found,) in stated] == [UUID(identify("t/missing")), LEGACY]


async def test_what_was_deleted_here_stays_deleted(bring, dify, owner):
    dify.conversation("t")
    dify.turn("t", "1", None)
    await bring()
    owner.execute("update conversations set state = 'deleted'")
    dify.turn("t", "2", "1")
    arrival = await bring()
    assert arrival.remarks == {dify_words.CLOSED_HERE: 1}
    assert numbers(arrival)["messages"] == (2, 0, 0, 2)


async def test_imported_messages_are_recalled_once_the_worker_ran(bring, dify, recollect):
    dify.conversation("t")
    dify.turn("t", "1", None, query="我的猫叫帕斯卡", answer="好名字")
    await bring()
    await recollect.work(until_empty=True)
    found = await (await recollect.mind("assistant", "li")).recall("帕斯卡", limit=1)
    assert found.hits[0].memory.content == "我的猫叫帕斯卡"
    assert set(found.hits[0].channels) == {"vector", "text"}


async def test_a_role_that_may_only_read_is_enough(cluster, dify, recollect):
    dify.conversation("t")
    dify.turn("t", "1", None)
    dify.execute("create role looker login")
    reader = dify.dsn.replace("user=postgres", "user=looker")
    try:
        with pytest.raises(SetupError, match="not a Dify database, or this role may not read it"):
            await recollect.operator.imports.dify(DifyImport(reader, "assistant"), "default", lambda *_: None)
        dify.execute("grant select on conversations, messages to looker")
        arrival = await recollect.operator.imports.dify(DifyImport(reader, "assistant"), "default", lambda *_: None)
    finally:
        dify.execute("drop owned by looker")
        dify.execute("drop role looker")
    assert numbers(arrival)["messages"] == (1, 1, 0, 0)
    assert contents(await read(recollect, "t", user=identify("li"))) == ["q 1", "a 1"]


async def test_nothing_can_be_written_to_dify(dify):
    async with open_source(dify.dsn) as source:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await source.snapshot.execute("delete from messages")


@pytest.mark.parametrize("dsn", ["postgresql://u:secret@127.0.0.1:1/dify", "postgres:nonsense secret"])
async def test_an_address_that_leads_nowhere_is_not_repeated(recollect, dsn):
    with pytest.raises(SetupError, match="does not answer") as raised:
        await recollect.operator.imports.dify(DifyImport(dsn, "assistant"), "default", lambda *_: None)
    assert "secret" not in str(raised.value)
    assert "secret" not in repr(DifyImport(dsn, "assistant"))


@pytest.mark.promise("Many conversations, and long ones, come over from Dify whole and once", MESSAGES)
@pytest.mark.parametrize(("conversations", "turns"), [(MESSAGES.now // 20, 10), (MESSAGES.now // 1_000, 500)])
async def test_many_messages_come_over_whole_and_once(bring, dify, conversations, turns, figure):
    fill_quickly(dify, conversations, turns)
    began = process_time()
    arrival = await bring()
    work = process_time() - began
    figure(f"{conversations} conversations of {turns} turns: {work:.0f} s of work")
    assert arrival.messages == MESSAGES.now
    # Not by the clock on the wall, which says more about what else the machine does.
    assert work < 0.003 * MESSAGES.now + 6
    assert (await bring()).messages == 0


def test_the_command_reports(addresses, dify):
    dify.conversation("t")
    dify.turn("t", "1", None)
    dify.conversation("gone", is_deleted=True)

    def call(*more):
        words = ("mind", "import", "dify", dify.dsn, "--agent", "assistant", *more)
        ended = command_line.call(*words, settings=settings_of(addresses))
        assert ended.code == 0, ended.said
        return ended.stdout, ended.stderr

    told, _ = call("--dry-run", "--app", APP, "--since", "2025-01-01", "--user-by", "end-user")
    assert "2 messages would be appended. Nothing was written." in told
    said, bars = call()
    assert "2 messages appended" in said
    assert "1  conversations deleted in Dify: skipped" in said
    assert [word in bars for word in ("conversations", "messages", "files")] == [True, True, True]
    again, _ = call()
    assert "Nothing is new." in again

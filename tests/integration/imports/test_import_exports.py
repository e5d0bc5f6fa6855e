"""Exports of other systems come over whole, once, and again where something is new."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from recollect.core.imports.parsed import MALFORMED, TWICE
from recollect.core.imports.text import RENAMED
from recollect.errors import ConflictError, InvalidInputError, NotFoundError
from recollect.models.conversations import HistoryOptions, NewMessage
from recollect.models.imports import Document, FileImport, Format, UserField
from recollect.models.memories import Kind, Role
from recollect.models.recall import Cue
from recollect.verbs.conversations.append import append_each
from recollect.verbs.imports.conversations import CLOSED_HERE
from recollect.verbs.imports.memories import CHANGED, EARLIER, OTHERWISE
from recollect.verbs.imports.progress import USER_NOT_NAMED
from support.imports.foreign_exports import (
    BEGINNING,
    chatgpt_conversation,
    chatgpt_line,
    chatgpt_node,
    claude_conversation,
    claude_message,
    graphiti_edge,
    graphiti_episode,
    graphiti_node,
    letta_block,
    letta_file,
    letta_passage,
    letta_user,
    mem0_memory,
    moment,
    name,
    zep_message,
    zep_thread,
    zip_up,
)
from support.programs import command_line
from support.programs.command_line import settings_of
from support.programs.programs import COMMAND

PLENTY = HistoryOptions(1_000_000, unanswered=True)


@pytest.fixture
def bring(recollect):
    async def work(wanted, *values, tenant="default", **more):
        order = FileImport(Format(wanted), "assistant", **{"user": "li", **more})
        documents = (Document(value) for value in values)
        return await recollect.operator.imports.file(order, tenant, documents, lambda *_: None)

    return work


@pytest.fixture
async def mine(recollect):
    return await recollect.mind("assistant", "li")


def numbers(arrival):
    return {line.thing: (line.found, line.imported, line.known, line.skipped) for line in arrival.brought}


async def recalled(mind, text, **more):
    return [hit.memory.content for hit in (await mind.recall(Cue(text, **more))).hits]


async def read(mind, key, **more):
    messages = (await mind.conversation(key).history(replace(PLENTY, **more))).messages
    return [message.content for message in messages]


async def test_a_chatgpt_export_comes_over_once_and_grows(bring, mine):
    conversations = [
        chatgpt_line("茶", ["喝什么茶？", "乌龙。"]),
        chatgpt_line("bees", ["Who keeps bees?", "Ada does."]),
        {"x": 1},
    ]
    first = await bring("chatgpt", *conversations)
    assert numbers(first) == {"conversations": (3, 2, 0, 1), "messages": (6, 4, 0, 2)}
    assert first.remarks[MALFORMED] == 1
    assert await read(mine, name("茶")) == ["喝什么茶？", "乌龙。"]
    assert (await mine.conversation(name("茶")).get()).name == "Tea"
    assert (await mine.conversation(name("茶")).get()).created_at == BEGINNING
    assert await recalled(mine, "who keeps bees", kinds=(Kind.MESSAGE,)) != []
    again = await bring("chatgpt", *conversations)
    assert numbers(again) == {"conversations": (3, 0, 2, 1), "messages": (6, 0, 4, 2)}
    grown = [chatgpt_line("茶", ["喝什么茶？", "乌龙。", "绿茶呢？", "也好。"]), chatgpt_line("new", ["hello"])]
    assert numbers(await bring("chatgpt", *grown))["messages"] == (7, 3, 2, 2)
    assert await read(mine, name("茶")) == ["喝什么茶？", "乌龙。", "绿茶呢？", "也好。"]


async def test_branches_stay_branches_and_new_ones_join_them(bring, mine):
    nodes = [
        chatgpt_node("root", None),
        chatgpt_node("q", "root", "user", "q", 0),
        chatgpt_node("a", "q", "assistant", "first answer", 1),
        chatgpt_node("b", "q", "assistant", "second answer", 2),
        chatgpt_node("c", "a", "user", "on the first", 3),
    ]
    await bring("chatgpt", chatgpt_conversation("t", nodes, current="b"))
    conversation = mine.conversation(name("t"))
    assert await read(mine, name("t")) == ["q", "second answer"]
    leaves = {leaf.content: leaf.id for leaf in (await conversation.get()).threads}
    assert set(leaves) == {"second answer", "on the first"}
    assert await read(mine, name("t"), leaf=leaves["on the first"]) == ["q", "first answer", "on the first"]
    nodes = [chatgpt_node(*args) for args in (
        ("root", None), ("q", "root", "user", "q", 0), ("a", "q", "assistant", "first answer", 1),
        ("b", "q", "assistant", "second answer", 2), ("c", "a", "user", "on the first", 3),
        ("d", "a", "user", "otherwise", 4),
    )]  # fmt: skip
    assert numbers(await bring("chatgpt", chatgpt_conversation("t", nodes, current="d")))["messages"] == (5, 1, 4, 0)
    assert await read(mine, name("t")) == ["q", "first answer", "otherwise"]


async def test_a_long_conversation_is_appended_in_pieces_that_join(bring, mine):
    texts = [f"line {number}" for number in range(600)]
    await bring("chatgpt", chatgpt_line("long", texts))
    assert await read(mine, name("long")) == texts


IMPORTED = """select memories.content, memories.importance, memories.origin, memories.trust, memories.occurred_at,
    messages.conversation_id, messages.number, messages.role, messages.tokens, parent.content,
    features.length, features.tells, features.number, features.role, features.conversation_id,
    array_length(memory_terms.terms, 1), memory_terms.draw,
    (select count(*) from pending_embeddings pending where pending.scope_id = memories.scope_id
        and pending.id = memories.id)
from memories join messages using (scope_id, id) join memory_features features using (scope_id, id)
join memory_terms using (scope_id, id)
left join memories parent on parent.scope_id = memories.scope_id and parent.id = messages.parent_id
where memories.scope_id = (select id from scopes where agent = %s)
order by memories.id"""


async def test_what_comes_over_in_bulk_is_what_one_conversation_after_the_other_would_be(recollect, bring, owner):
    said = {f"t{number}": [f"{number}: tea at {place}? 茶" for place in range(30)] for number in range(5)}
    lines = [chatgpt_line(key, texts) for key, texts in said.items()]
    await bring("chatgpt", *lines)
    for line in lines:
        order = FileImport(Format.CHATGPT, "alone", "li")
        await recollect.operator.imports.file(order, "default", iter([Document(line)]), lambda *_: None)
    together = owner.execute(IMPORTED, ["assistant"]).fetchall()
    assert len(together) == 150
    assert together == owner.execute(IMPORTED, ["alone"]).fetchall()
    # As text, weights have six digits.
    apart = (
        "select max(l1_distance(one.weights, other.weights)) from memory_terms one join memory_terms other using (draw)"
    )
    assert owner.execute(apart).fetchone()[0] < 1e-4


async def test_conversations_that_come_together_are_one_change(bring, owner):
    await bring("chatgpt", *(chatgpt_line(f"t{number}", ["tea"] * 20) for number in range(6)))
    stored = owner.execute("select number, cardinality(ids) from changes where operation = 'stored'").fetchall()
    assert [count for _, count in stored] == [120]
    gaps = "select max(number) - count(*) from changes"
    assert owner.execute(gaps).fetchone()[0] == 0


async def test_one_conversation_that_is_refused_does_not_keep_the_others_out(recollect, mine):
    said = [NewMessage(Role.USER, f"tea {place}", external_id=str(place)) for place in range(60)]
    twice = [NewMessage(Role.USER, "tea", external_id="same")] * 2
    access = mine.access
    with pytest.raises(ConflictError, match="external_id"):
        await append_each(access.parts, access.caller, access.scope, [("one", said), ("two", twice), ("three", said)])
    assert [len(await read(mine, key)) for key in ("one", "three")] == [60, 60]
    with pytest.raises(NotFoundError):
        await mine.conversation("two").get()


async def test_a_claude_export_with_its_memory(bring, mine):
    messages = [claude_message("Where is my tea?"), claude_message("在茶馆。", "assistant", 1)]
    memory = {"conversations_memory": "Li keeps tea in a tin.", "project_memories": {}, "account_uuid": "acc"}
    arrival = await bring("claude", claude_conversation("t", messages), memory)
    assert numbers(arrival) == {"conversations": (1, 1, 0, 0), "messages": (2, 2, 0, 0), "memories": (1, 1, 0, 0)}
    assert await read(mine, name("t")) == ["Where is my tea?", "在茶馆。"]
    assert "Li keeps tea in a tin." in await recalled(mine, "tea tin")
    assert numbers(await bring("claude", claude_conversation("t", messages), memory))["memories"] == (1, 0, 1, 0)


async def test_memories_of_mem0_are_recalled_and_changed_ones_stand_beside(bring, mine, owner):
    entries = [mem0_memory("Li drinks oolong in the morning", "tea"), mem0_memory("早上喝乌龙茶"), mem0_memory("")]
    assert numbers(await bring("mem0", {"results": entries})) == {"memories": (3, 2, 0, 1)}
    assert (await recalled(mine, "oolong"))[0] == "Li drinks oolong in the morning"
    found = (await mine.recall(Cue("乌龙茶"))).hits[0].memory
    assert (found.content, found.kind, found.occurred_at) == ("早上喝乌龙茶", Kind.THOUGHT, BEGINNING)
    entries[0]["memory"] = "Li drinks green tea now"
    changed = await bring("mem0", {"results": entries})
    assert (numbers(changed), changed.remarks[CHANGED]) == ({"memories": (3, 1, 1, 1)}, 1)
    hit = (await mine.recall(Cue("green tea"))).hits[0].memory
    before = await mine.get(UUID(hit.metadata["mem0"][EARLIER]))
    assert (before.content, hit.evidence) == ("Li drinks oolong in the morning", ())
    assert numbers(await bring("mem0", {"results": entries})) == {"memories": (3, 0, 2, 1)}
    assert owner.execute("select count(*) from memories").fetchone()[0] == 3
    await mine.forget([before.id])
    assert (await mine.get(hit.id)).content == "Li drinks green tea now"


async def test_a_conversation_that_is_in_a_file_twice_comes_over_once(bring, mine):
    conversations = [chatgpt_line("t", ["a", "b"]), chatgpt_line("t", ["a", "b", "c"]), chatgpt_line("u", ["d"])]
    expected = {"conversations": (4, 3, 1, 0), "messages": (12, 4, 4, 4)}
    for dry_run in (True, False):
        assert numbers(await bring("chatgpt", *conversations, conversations[0], dry_run=dry_run)) == expected
    assert await read(mine, name("t")) == ["a", "b", "c"]
    assert [leaf.content for leaf in (await mine.conversation(name("t")).get()).threads] == ["c"]


async def test_a_thread_of_zep_in_two_entries_goes_on(bring, mine):
    pages = [zep_thread("t", [zep_message(text, "user", "Li", at)]) for at, text in enumerate(("one", "two"))]
    assert numbers(await bring("zep", {"threads": pages})) == {"conversations": (1, 1, 0, 0), "messages": (2, 2, 0, 0)}
    assert await read(mine, "t") == ["one", "two"]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_entries_that_are_in_a_file_twice_are_remembered_once(bring, mine, dry_run):
    passages = [letta_passage("tea"), letta_passage("tea"), {"text": "no id"}, {"text": "no id"}]
    arrival = await bring("letta", passages, dry_run=dry_run)
    assert (numbers(arrival), arrival.remarks[TWICE]) == ({"memories": (4, 2, 0, 2)}, 2)
    sentences = {"sessions": [{"session_id": "s", "facts": ["A is b", "A is b", {"fact": "C"}, {"fact": "E"}]}]}
    arrival = await bring("zep", sentences, dry_run=dry_run)
    assert (numbers(arrival), arrival.remarks[TWICE]) == ({"memories": (4, 3, 0, 1)}, 1)
    relation = {"source": "li", "relationship": "drinks", "target": "oolong"}
    arrival = await bring("mem0", {"results": [], "relations": [relation, relation]}, dry_run=dry_run)
    assert (numbers(arrival), arrival.remarks[TWICE]) == ({"facts": (2, 1, 0, 1)}, 1)
    assert len((await mine.list()).memories) == (0 if dry_run else 6)


async def test_the_same_words_go_to_each_user_who_said_them(bring, recollect):
    entries = [mem0_memory("tea", id=None), mem0_memory("tea", id=None, user_id="mo")]
    arrival = await bring("mem0", entries, user_by=UserField.USER_ID)
    assert numbers(arrival) == {"memories": (2, 2, 0, 0)}
    for user in ("li", "mo"):
        mind = await recollect.mind("assistant", user)
        assert [memory.content for memory in (await mind.list()).memories] == ["tea"]
    together = await bring("mem0", entries, user="both")
    assert (numbers(together), together.remarks[TWICE]) == ({"memories": (2, 1, 0, 1)}, 1)


async def test_what_had_expired_there_is_not_recalled(bring, mine):
    entries = [mem0_memory("stale tea", expiration_date="2020-01-01"), mem0_memory("fresh tea")]
    assert numbers(await bring("mem0", entries)) == {"memories": (2, 2, 0, 0)}
    assert await recalled(mine, "tea") == ["fresh tea"]


async def test_ids_that_cannot_be_stored_do_not_end_an_import(bring, mine):
    nodes = [chatgpt_node("a\ud800", None, "user", "a", 0), chatgpt_node("b", "a\ud800", "assistant", "b", 1)]
    for known in (0, 2):
        arrival = await bring("chatgpt", chatgpt_conversation("t", nodes))
        assert numbers(arrival)["messages"] == (2, 2 - known, known, 0)
    assert await read(mine, name("t")) == ["a", "b"]


async def test_users_are_told_by_what_the_file_says(bring, recollect):
    entries = [
        mem0_memory("a"),
        mem0_memory("b", user_id="李雷"),
        mem0_memory("c", user_id="mo"),
        mem0_memory("e", user_id="mo/1"),
        mem0_memory("d", user_id=None),
    ]
    arrival = await bring("mem0", {"results": entries}, user="rest", user_by=UserField.USER_ID)
    assert (arrival.remarks[USER_NOT_NAMED], arrival.remarks[RENAMED]) == (1, 1)
    for user, text in (("li", "a"), ("李雷", "b"), ("mo", "c"), ("rest", "d")):
        mind = await recollect.mind("assistant", user)
        assert [memory.content for memory in (await mind.list()).memories] == [text]
    with pytest.raises(InvalidInputError, match="user-id"):
        await bring("zep", {"threads": []}, user_by=UserField.ACCOUNT)


async def test_a_letta_agent_moves_in(bring, mine):
    file = letta_file([letta_user("我叫李", 1)], [letta_block("human", "Li likes tea")])
    file["passages"] = [letta_passage("Ada keeps bees behind the school", "bees")]
    arrival = await bring("letta", file)
    assert numbers(arrival) == {"conversations": (1, 1, 0, 0), "messages": (1, 1, 0, 0), "memories": (2, 2, 0, 0)}
    assert await read(mine, "letta:ada") == ["我叫李"]
    passage = (await mine.recall(Cue("bees"))).hits[0].memory
    assert (passage.content, passage.keywords) == ("Ada keeps bees behind the school", ("bees",))
    file["agents"][0]["messages"] = [{**letta_user("再见", 5), "id": "message-0"}]
    assert numbers(await bring("letta", file))["messages"] == (1, 1, 0, 0)


GRAPH = {
    "episodes": [graphiti_episode("Ada: I moved to Suzhou")],
    "nodes": [graphiti_node("Ada", "Teaches bees.", "Person"), graphiti_node("Hangzhou"), graphiti_node("Suzhou")],
    "edges": [
        graphiti_edge(
            "Ada", "LIVES_IN", "Hangzhou", "Ada lives in Hangzhou", valid_at="2020-01-01T00:00:00Z",
            invalid_at="2024-03-01T00:00:00Z", expired_at=moment(),
        ),
        graphiti_edge(
            "Ada", "LIVES_IN", "Suzhou", "Ada lives in Suzhou", valid_at="2024-03-01T00:00:00Z",
            episodes=[name("Ada: I moved to Suzhou")],
        ),
        graphiti_edge("Ada", "LIVES_IN", "Suzhou", "Ada has a house by a canal in Suzhou"),
    ],
}  # fmt: skip


async def test_facts_lie_in_their_two_times(bring, mine):
    before = datetime.now(UTC)
    arrival = await bring("graphiti", GRAPH)
    assert numbers(arrival) == {"memories": (2, 2, 0, 0), "facts": (3, 3, 0, 0)}
    assert arrival.remarks[OTHERWISE] == 1
    now = [fact.text for fact in (await mine.knowledge.facts()).facts]
    assert now == ["Ada lives in Suzhou"]
    then = (await mine.knowledge.facts(at=datetime(2022, 1, 1, tzinfo=UTC))).facts
    assert [(fact.text, fact.span.invalid_at) for fact in then] == [
        ("Ada lives in Hangzhou", datetime(2024, 3, 1, tzinfo=UTC))
    ]
    # What was believed there before it came here is not known: belief begins with the import.
    assert (await mine.knowledge.facts(as_of=before - timedelta(seconds=1))).facts == ()
    fact = (await mine.knowledge.facts()).facts[0]
    source = (await mine.get((await mine.get(fact.memory_id)).evidence[0])).content
    assert source == "Ada: I moved to Suzhou"
    ada = (await mine.knowledge.entities("Ada")).entities[0]
    assert (ada.name, ada.type) == ("Ada", "person")
    assert "Ada has a house by a canal in Suzhou" in await recalled(mine, "canal house")


async def test_facts_come_over_once_and_an_end_follows(bring, mine, owner):
    await bring("graphiti", GRAPH)
    rows = owner.execute("select count(*) from memories").fetchone()
    again = await bring("graphiti", GRAPH)
    assert numbers(again) == {"memories": (2, 0, 2, 0), "facts": (3, 0, 3, 0)}
    assert owner.execute("select count(*) from memories").fetchone() == rows
    edges = [dict(edge) for edge in GRAPH["edges"]]
    edges[1] |= {"invalid_at": "2024-09-01T00:00:00Z", "expired_at": moment(9)}
    ended = await bring("graphiti", GRAPH | {"edges": edges})
    assert numbers(ended)["facts"] == (3, 1, 2, 0)
    assert (await mine.knowledge.facts()).facts == ()
    assert numbers(await bring("graphiti", GRAPH | {"edges": edges}))["facts"] == (3, 0, 3, 0)


async def test_a_fact_that_is_refused_does_not_take_others_with_it(bring, mine):
    nodes = [graphiti_node("Ada"), graphiti_node("ADA"), graphiti_node("tea")]
    edges = [graphiti_edge("Ada", "DRINKS", "tea", "Ada drinks tea"), graphiti_edge("tea", "IS", "Ada", "tea is Ada")]
    edges += [graphiti_edge("Ada", "IS", "tea", "Ada is tea") | {"target_node_uuid": name("ADA")}]
    arrival = await bring("graphiti", {"nodes": nodes, "edges": edges})
    assert numbers(arrival) == {"memories": (1, 1, 0, 0), "facts": (2, 2, 0, 0)}
    assert len((await mine.knowledge.facts()).facts) == 2


async def test_zep_threads_and_facts_that_rest_on_messages(bring, mine):
    messages = [zep_message("I drink oolong", "user", "Li"), zep_message("记住了", "assistant", "Ada", 1)]
    edge = {
        "uuid": "f1", "fact": "Li drinks oolong", "name": "DRINKS", "source_node_name": "Li", "valid_at": moment(),
        "target_node_name": "oolong", "created_at": moment(), "episodes": [name("I drink oolong")],
    }  # fmt: skip
    document = {"threads": [zep_thread("t1", messages)], "edges": [edge], "nodes": []}
    arrival = await bring("zep", document)
    assert numbers(arrival)["facts"] == (1, 1, 0, 0)
    fact = (await mine.knowledge.facts()).facts[0]
    assert (await mine.get((await mine.get(fact.memory_id)).evidence[0])).content == "I drink oolong"
    assert numbers(await bring("zep", document)) == {
        "conversations": (1, 0, 1, 0), "messages": (2, 0, 2, 0), "facts": (1, 0, 1, 0),
    }  # fmt: skip


async def test_a_dry_run_says_the_same_and_writes_nothing(bring, owner):
    tables = ("tenants", "scopes", "memories", "conversations", "entities")
    count = lambda: [owner.execute(f"select count(*) from {table}").fetchone()[0] for table in tables]  # noqa: E731
    before = count()
    for wanted, document in (
        ("graphiti", GRAPH),
        ("chatgpt", chatgpt_line("t", ["a", "b"])),
        ("mem0", [mem0_memory("x")]),
    ):
        told = await bring(wanted, document, tenant="new tenant", dry_run=True)
        assert count() == before
        done = await bring(wanted, document, tenant="new tenant")
        assert numbers(told) == numbers(done)
        again = await bring(wanted, document, tenant="new tenant", dry_run=True)
        assert all(line.imported == 0 for line in again.brought)
        before = count()


async def test_what_was_deleted_here_stays_deleted(bring, mine):
    conversation = chatgpt_line("t", ["a", "b"])
    await bring("chatgpt", conversation)
    await mine.conversation(name("t")).delete()
    arrival = await bring("chatgpt", conversation)
    assert numbers(arrival) == {"conversations": (1, 0, 0, 1), "messages": (3, 0, 0, 3)}
    assert arrival.remarks[CLOSED_HERE] == 1


async def test_another_systems_file_is_refused_and_nothing_is_written(bring, owner):
    with pytest.raises(InvalidInputError, match=r"no ChatGPT export.*recollect mind import claude"):
        await bring("chatgpt", claude_conversation("t", [claude_message("x")]))
    with pytest.raises(InvalidInputError, match=r"Not a mem0 export.*recollect mind import letta"):
        await bring("mem0", letta_file([], []))
    assert owner.execute("select count(*) from memories").fetchone()[0] == 0


@pytest.fixture
def environment(addresses):
    return settings_of(addresses, embedder="none") | {"COLUMNS": "100"}


def call(environment, *words):
    return command_line.call("mind", "import", *map(str, words), "--agent", "assistant", settings=environment)


def test_the_command_reports(environment, tmp_path):
    path = tmp_path / "export.zip"
    path.write_bytes(zip_up({"conversations.json": [chatgpt_line("t", ["喝茶吗？", "好。"])], "user.json": {}}))
    told = call(environment, "chatgpt", path, "--user", "li", "--dry-run")
    assert (told.code, told.stderr) == (0, told.stderr)
    assert "2 messages would be appended. Nothing was written." in told.stdout
    done = call(environment, "chatgpt", path, "--user", "li")
    assert "2 messages appended; `recollect up` or `recollect worker` makes their vectors." in done.stdout
    rows = [line.split("│")[1:-1] for line in done.stdout.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["conversations", "1", "1", "0", "0"], ["messages", "3", "2", "0", "1"],
    ]  # fmt: skip
    assert "       1  messages that ChatGPT hides, such as its system prompts: skipped" in done.stdout
    assert "Nothing is new." in call(environment, "chatgpt", path, "--user", "li").stdout
    wrong = call(environment, "claude", path)
    assert wrong.code == 1
    assert "recollect mind import chatgpt" in wrong.stderr
    (tmp_path / "x.json").write_text("nonsense")
    assert "Not valid JSON" in call(environment, "mem0", tmp_path / "x.json", "--user-by", "user-id").stderr


def test_an_import_that_is_killed_can_be_repeated(environment, tmp_path, owner):
    path = tmp_path / "conversations.json"
    conversations = [chatgpt_line(f"t{number}", [f"{number}: {place}" for place in range(20)]) for number in range(60)]
    path.write_text(json.dumps(conversations))
    command = [COMMAND, "mind", "import", "chatgpt", str(path), "--agent", "assistant"]
    killed = 0
    for _ in range(2):
        started = subprocess.Popen(
            command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        count = lambda: owner.execute("select count(*) from messages").fetchone()[0]  # noqa: E731
        begun, deadline = count(), time.monotonic() + 60
        while count() < begun + 100 and started.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        killed += started.poll() is None
        started.send_signal(signal.SIGKILL)
        started.wait()
    assert killed
    assert 0 < owner.execute("select count(*) from messages").fetchone()[0] < 1_200
    assert call(environment, "chatgpt", path).code == 0
    found = owner.execute("select count(*), count(distinct (conversation_id, external_id)) from messages").fetchone()
    assert found == (1_200, 1_200)
    broken = "select count(*) from messages where parent_id is null and number > 1"
    assert owner.execute(broken).fetchone()[0] == 0
    assert owner.execute("select count(*) from conversations where name = 'Tea'").fetchone()[0] == 60

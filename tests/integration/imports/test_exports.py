"""A scope leaves with everything it holds and comes back the same, to the byte of the next export."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from itertools import count

import pytest
from hypothesis import given, settings

from recollect.core.imports.sections import LEFT_OUT, SECTIONS
from recollect.errors import ForbiddenError, InvalidInputError, NotFoundError
from recollect.models.agents import Profile
from recollect.models.conversations import HistoryOptions
from recollect.models.imports import ExportRequest, ImportOptions
from recollect.models.memories import NewMemory
from recollect.models.recall import Cue
from recollect.models.service import KeyBinding, Right
from recollect.wiring import connected
from support.imports.whole_scopes import EVERYTHING, WHOLE_LIVES, Life
from support.measuring.sizes import Sizes
from support.models.fake_chat import FakeChatModel
from support.programs import command_line
from support.service.made_settings import PATIENT, make_settings

LIVES = Sizes("scopes", ci=12, long=500)
NUMBERS = count(1)
BACK = ImportOptions("back")
VECTORS = {"": (), "with vectors": ("all",)}


@pytest.fixture
async def recollect(addresses, embedder, script):
    async with connected(
        make_settings(embedder="fake", **PATIENT), addresses, embedder, FakeChatModel(script)
    ) as running:
        yield running


async def write(recollect, tenant="default", **order):
    file = io.BytesIO()
    caller = await recollect.operator.act_for(tenant)
    report = await recollect.operator.exports.write_export_file(caller, ExportRequest(**order), file)
    return file.getvalue(), report


async def read(recollect, data, tenant="default", order=BACK):
    caller = await recollect.operator.act_for(tenant)
    return await recollect.operator.exports.import_export_file(caller, order, io.BytesIO(data))


async def live(recollect, script, steps=EVERYTHING, agent="ada", user="li"):
    mind = await recollect.mind(agent, user)
    await Life(mind, script).live(steps)
    return mind


def unpack(data):
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name).decode() for name in packed.namelist()}


def repack(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return file.getvalue()


def stored(owner):
    tables = [section.table for section in SECTIONS]
    return {name: owner.execute(f"select count(*) from {name}").fetchone()[0] for name in tables}


@pytest.mark.parametrize("vectors", VECTORS.values(), ids=VECTORS)
async def test_a_scope_with_everything_comes_back_the_same(recollect, script, vectors):
    mind = await live(recollect, script)
    await recollect.operator.embed_waiting(mind, lambda _: None)
    first, report = await write(recollect, agent="ada", user="li", vectors=vectors)
    empty = {section.name for section in SECTIONS} - report.lines.keys()
    assert empty <= {"knowledge/runs"}, "what no test holds is not tested"
    outcome = await read(recollect, first, "elsewhere")
    assert outcome.restored and outcome.lines == report.lines and not outcome.left_out
    second, _ = await write(recollect, "elsewhere", agent="ada", user="li", vectors=vectors)
    assert unpack(second) == unpack(first)
    assert second == first
    assert (outcome.waiting == 0) == bool(vectors)
    of_vectors = "".join(text for name, text in unpack(first).items() if "/vectors/" in name)
    assert ('"with_context": true' in of_vectors) == bool(vectors)


@pytest.mark.promise("An export that is imported and exported again is the same to the byte", LIVES)
@settings(max_examples=LIVES.now)
@given(steps=WHOLE_LIVES)
async def test_any_scope_comes_back_the_same(recollect, script, steps):
    agent, script.extractions = f"agent-{next(NUMBERS)}", []
    mind = await live(recollect, script, [("remember", 1, "tea"), *steps], agent)
    first, _ = await write(recollect, agent=agent, user="li", vectors=("all",))
    await read(recollect, first, "elsewhere")
    second, _ = await write(recollect, "elsewhere", agent=agent, user="li", vectors=("all",))
    assert unpack(second) == unpack(first)
    assert second == first
    there = await recollect.mind(agent, "li", tenant="elsewhere")
    cue = Cue("tea of Ann", touch=False)
    here, again = await mind.recall(cue), await there.recall(cue)
    assert [hit.memory for hit in again.hits] == [hit.memory for hit in here.hits]
    assert [hit.score for hit in again.hits] == [hit.score for hit in here.hits]


async def test_what_came_back_goes_on(recollect, script):
    await live(recollect, script)
    data, _ = await write(recollect, agent="ada", user="li")
    await read(recollect, data, "elsewhere")
    there = await recollect.mind("ada", "li", tenant="elsewhere")
    await recollect.work(until_empty=True)
    await Life(there, script).live(
        [("remember", 2, "more"), ("say", 3, "more"), ("state", 7, ""), ("recall", 1, "tea")]
    )
    assert (await there.recall("more remembered")).hits[0].memory.content == "more remembered"
    history = await there.conversation("chat-0").history(HistoryOptions(unanswered=True))
    assert history.messages[-1].content == "more said"


async def test_what_is_read_in_words_is_found_in_another_scope(recollect):
    mind = await recollect.mind("ada", "li")
    await mind.remember("Green apples grow in the garden.")
    data, _ = await write(recollect, agent="ada", user="li")
    await read(recollect, data, order=ImportOptions("copy", agent="bea", user=""))
    there = await recollect.mind("bea")
    found = await there.recall(Cue("apples", channels=("text",)))
    assert [hit.memory.content for hit in found.hits] == ["Green apples grow in the garden."]


async def test_a_filled_scope_is_refused_and_left_as_it_is(recollect, owner):
    mind = await recollect.mind("ada", "li")
    await mind.remember("Green apples")
    data, _ = await write(recollect, agent="ada", user="li")
    before = stored(owner)
    with pytest.raises(InvalidInputError, match="import into an empty one"):
        await read(recollect, data)
    assert stored(owner) == before


async def test_a_user_over_all_agents_and_a_tenant_are_one_file_each(recollect):
    for agent, user in (("ada", "li"), ("bea", "li"), ("bea", ""), ("bea", "mo")):
        await (await recollect.mind(agent, user)).remember(f"{agent} of {user}")
    of_user, report = await write(recollect, user="li")
    assert report.scopes == 2
    named = json.loads(unpack(of_user)["manifest.json"])["scopes"]
    assert [(each["folder"], each["agent"], each["user"]) for each in named] == [("1", "ada", "li"), ("2", "bea", "li")]
    everything, report = await write(recollect)
    assert report.scopes == 4
    await read(recollect, everything, "elsewhere")
    again, _ = await write(recollect, "elsewhere")
    assert again == everything
    assert (await write(recollect, "elsewhere", user="li"))[0] == of_user


async def test_nothing_is_exported_of_nobody(recollect):
    with pytest.raises(NotFoundError):
        await write(recollect, agent="nobody", user="")


async def test_an_export_is_of_one_moment(recollect, owner):
    mind = await recollect.mind("ada", "li")
    await mind.remember([f"memory {number}" for number in range(20)])
    before, _ = await write(recollect, agent="ada", user="li")
    file, told = io.BytesIO(), []

    def disturb(step, done, total):
        told.append((step, done, total))
        owner.execute("delete from memories")

    caller = await recollect.operator.act_for("default")
    await recollect.operator.exports.write_export_file(caller, ExportRequest("ada", "li"), file, disturb)
    assert file.getvalue() == before
    assert ("memories/memories", 20, 20) in told
    assert "memories/memories" not in (await write(recollect, agent="ada", user="li"))[1].lines


async def test_the_commands(addresses, recollect, script, tmp_path):
    settings_of, path = command_line.settings_of(addresses), tmp_path / "li.zip"
    await live(recollect, script)
    said = command_line.run(
        "mind", "export", "scope", str(path), "--agent", "ada", "--user", "li", settings=settings_of
    )
    assert "memories/memories" in said and "1 scope exported to" in said
    assert path.read_bytes() == (await write(recollect, agent="ada", user="li"))[0]
    said = command_line.run("mind", "import", "scope", str(path), "--tenant", "elsewhere", settings=settings_of)
    assert "1 scope restored." in said and "wait for vectors" in said
    assert (await write(recollect, "elsewhere", agent="ada", user="li"))[0] == path.read_bytes()
    again = ("mind", "import", "scope", str(path), "--tenant", "elsewhere")
    assert "import into an empty one" in command_line.run(*again, settings=settings_of, fails=True)
    said = command_line.run(*again, "--as-new", "--name", "may", settings=settings_of)
    assert "1 scope brought as new memories." in said and "import:may" in said
    for words in (("--all-scopes",), ("--user", "li", "--all-agents", "--vectors", "all")):
        assert "1 scope exported" in command_line.run(
            "mind", "export", "scope", str(path), *words, settings=settings_of
        )
    for words in ((), ("--agent", "ada", "--all-agents"), ("--user", "li", "--all-scopes")):
        command_line.run("mind", "export", "scope", str(path), *words, settings=settings_of, fails=True)
    unknown = ("--agent", "nobody", "--vectors", "none")
    assert "No such scope" in command_line.run(
        "mind", "export", "scope", str(path), *unknown, settings=settings_of, fails=True
    )
    assert [each.name for each in tmp_path.iterdir()] == ["li.zip"]


# Who may do what.


async def act_with(recollect, rights, trust=40, bounds=KeyBinding(), tenant="default"):  # noqa: B008
    operator = await recollect.operator.act_for(tenant)
    _, secret = await recollect.create_key(operator, "phone", rights, trust, bounds)
    return await recollect.authenticate(secret, "http", bound=True)


async def test_a_key_with_write_alone_brings_new_memories_and_cannot_raise_trust(recollect, owner):
    mind = await recollect.mind("ada", "li")
    [source] = await mind.remember(NewMemory("Green apples", pinned=True, metadata={"a": 1}))
    await mind.remember(NewMemory("They like apples", evidence=(source.id,)))
    [shy] = await mind.remember("A stranger said so")
    owner.execute("update memories set trust = 7 where id = %s", [shy.id])
    data, _ = await write(recollect, agent="ada", user="li")
    for caller in (
        await act_with(recollect, [Right.WRITE]),
        await act_with(recollect, list(Right), bounds=KeyBinding("eve", "li")),
    ):
        order = ImportOptions("backup of May", agent="eve", user="li")
        outcome = await recollect.operator.exports.import_export_file(caller, order, io.BytesIO(data))
        assert not outcome.restored and outcome.lines == {"memories/memories": 3}
        assert "origin import:backup of May" in outcome.remarks[0]
        assert outcome.left_out.keys() == {"service/counters", "memories/memory_terms"}
        eve = await recollect.mind("eve", "li")
        found = (await eve.list()).memories
        assert [each.content for each in found] == ["Green apples", "They like apples", "A stranger said so"]
        assert {each.origin for each in found} == {"import:backup of May"}
        assert [each.trust for each in found] == [40, 40, 7]
        assert found[1].evidence == (found[0].id,) and found[0].pinned and found[0].metadata == {"a": 1}
        assert source.id not in {each.id for each in found}
        await eve.forget([each.id for each in found])


async def test_rights_and_bounds(recollect):
    await (await recollect.mind("ada", "li")).remember("Green apples")
    data, _ = await write(recollect, agent="ada", user="li")
    exports, file = recollect.operator.exports, io.BytesIO()
    reader, bound = (
        await act_with(recollect, [Right.READ]),
        await act_with(recollect, list(Right), 40, KeyBinding("bea")),
    )
    for caller, order in (
        (reader, ExportRequest("ada", "li")),
        (bound, ExportRequest("ada", "li")),
        (bound, ExportRequest("ada")),
    ):
        with pytest.raises(ForbiddenError):
            await exports.write_export_file(caller, order, file)
    for caller in (reader, bound):
        with pytest.raises(ForbiddenError):
            await exports.import_export_file(caller, BACK, io.BytesIO(data))
    trusted_less = await act_with(recollect, list(Right), tenant="elsewhere")
    with pytest.raises(InvalidInputError, match="trust is missing or not a valid trust"):
        await exports.import_export_file(trusted_less, BACK, io.BytesIO(data))
    admin = await act_with(recollect, list(Right), 100, tenant="elsewhere")
    assert (await exports.import_export_file(admin, BACK, io.BytesIO(data))).restored
    there = await recollect.mind("ada", "li", tenant="elsewhere")
    [back] = (await there.list()).memories
    assert (back.origin, back.trust) == ("library", 100)


# Damaged files.


def cut(data):
    return data[: len(data) // 2]


def flip(data):
    place = data.index(b"memories.jsonl") + 60
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def change(data):
    files = unpack(data)
    files["1/memories/memories.jsonl"] = files["1/memories/memories.jsonl"].replace("Green", "Brown")
    return repack(files)


def drop(data):
    return repack({name: text for name, text in unpack(data).items() if "evidence" not in name})


def add(data):
    return repack(unpack(data) | {"1/memories/more.jsonl": "{}\n"})


def age(data):
    files = unpack(data)
    return repack(files | {"manifest.json": files["manifest.json"].replace('"version": 1', '"version": 2')})


DAMAGES = {
    "cut": cut,
    "bit": flip,
    "hash": change,
    "section": drop,
    "extra": add,
    "version": age,
    "none": lambda _: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_file_is_refused_and_nothing_is_written(recollect, owner, damage):
    mind = await recollect.mind("ada", "li")
    [source] = await mind.remember("Green apples")
    await mind.remember(NewMemory("They like apples", evidence=(source.id,)))
    data, _ = await write(recollect, agent="ada", user="li")
    before, scopes = stored(owner), owner.execute("select count(*) from scopes").fetchone()
    writer = await act_with(recollect, [Right.WRITE])
    with pytest.raises(InvalidInputError):
        await read(recollect, damage(data), "elsewhere")
    with pytest.raises(InvalidInputError):
        order = ImportOptions("x", agent="eve", user="")
        await recollect.operator.exports.import_export_file(writer, order, io.BytesIO(damage(data)))
    assert stored(owner) == before
    assert owner.execute("select count(*) from scopes").fetchone() == scopes


def rewrite(data, section, old, new):
    """Change a section, and the manifest with it, as somebody would who knows the format."""
    files = unpack(data)
    text = files[f"1/{section}.jsonl"] = files[f"1/{section}.jsonl"].replace(old, new)
    manifest = json.loads(files["manifest.json"])
    held = {"lines": text.count("\n"), "bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    manifest["scopes"][0]["sections"][section] = held
    return repack(files | {"manifest.json": json.dumps(manifest)})


@pytest.mark.parametrize(
    ("section", "old", "new", "complaint"),
    [
        ("memories/memories", '"trust": 100', '"trust": 101', "line 1: trust"),
        ("memories/memories", '"trust": 100', '"trust": "much"', "line 1: trust"),
        ("memories/memories", '"speaker"', '"voice"', "speaker is missing"),
        ("memories/memories", "{", "[", "line 1: row"),
        ("agents/profile", '"limit"', '"limits": 1, "limit"', ""),
        ("agents/profile", '"profile"', '"profiles"', "profile is missing"),
    ],
)
async def test_what_does_not_fit_is_refused_as_a_whole(recollect, owner, section, old, new, complaint):
    mind = await recollect.mind("ada", "li")
    await mind.remember("Green apples")
    await mind.set_profile(Profile(limit=3))
    data = rewrite((await write(recollect, agent="ada", user="li"))[0], section, old, new)
    before = stored(owner)
    if not complaint:
        assert (await read(recollect, data, "elsewhere")).restored
        return
    with pytest.raises(InvalidInputError, match=complaint):
        await read(recollect, data, "elsewhere")
    assert stored(owner) == before


def test_every_table_of_a_scope_has_a_section_or_a_reason(owner):
    found = owner.execute(
        "select relname from pg_class join pg_attribute on attrelid = pg_class.oid and attname = 'scope_id' "
        "where relkind = 'r' and relnamespace = 'public'::regnamespace and relname !~ '^vectors_'"
    ).fetchall()
    assert {name for (name,) in found} == {*LEFT_OUT, *(section.table for section in SECTIONS)}

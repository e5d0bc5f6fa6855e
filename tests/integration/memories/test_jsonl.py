"""Files of lines hold all that they speak of: what was exported can be imported."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.doors.imports.jsonl import export_lines, import_lines
from recollect.models.items import PutItem
from recollect.models.knowledge import NewFact
from recollect.models.memories import NewMemory
from support.programs import command_line

START = datetime(2020, 1, 1, tzinfo=UTC)


async def copy(mind, there, path):
    exported = await export_lines(mind, path, lambda _: None)
    assert await import_lines(there, path, lambda _: None) == exported
    return (await there.list()).memories


async def test_a_fact_is_exported_without_the_version_that_it_came_from(recollect, mind, tmp_path):
    [stated] = await mind.knowledge.add(NewFact("Ann", "knows", "Bo", valid_at=START))
    ended = await mind.knowledge.end(stated.id, datetime.now(UTC) + timedelta(days=9))
    assert (await mind.get(ended.memory_id)).evidence == (stated.memory_id,)
    [there] = await copy(mind, await recollect.mind("copy"), tmp_path / "lines")
    assert (there.content, there.evidence) == (ended.text, ())


async def test_evidence_that_is_in_the_file_is_kept(recollect, mind, tmp_path):
    [source] = await mind.remember("a source")
    [stated] = await mind.knowledge.add(NewFact("Ann", "knows", "Bo", valid_at=START))
    await mind.knowledge.end(stated.id, datetime.now(UTC) + timedelta(days=9))
    await mind.remember(NewMemory("a thought", evidence=(source.id, stated.memory_id)))
    first, _, thought = await copy(mind, await recollect.mind("copy"), tmp_path / "lines")
    assert (first.content, thought.content, thought.evidence) == ("a source", "a thought", (first.id,))


async def test_the_command_says_what_is_not_in_the_file(addresses, mind, tmp_path):
    settings, file = command_line.settings_of(addresses), str(tmp_path / "lines")
    words = ("mind", "export", "jsonl", file, "--agent", "ada", "--user", "li")
    await mind.remember("a plain memory")
    assert "Left out" not in command_line.run(*words, settings=settings)
    [stated] = await mind.knowledge.add(NewFact("Ann", "knows", "Bo", valid_at=START))
    await mind.knowledge.end(stated.id, datetime.now(UTC) + timedelta(days=9))
    await mind.remember(NewMemory("tea in Kyoto", topic="travel->Japan"))
    await mind.conversation("c").append(["hello", {"role": "assistant", "content": "hi"}])
    await mind.items.batch([PutItem(("notes",), "one", {"a": 1})])
    ended = command_line.call(*words, settings=settings)
    assert "5 memories exported." in ended.stdout
    told = "Left out: 2 entities of facts, 1 topic link, 1 conversation, 1 item, 1 past version."
    assert told in ended.stderr

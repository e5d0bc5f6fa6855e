"""Files of lines hold all that they speak of: what was exported can be imported."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.doors.jsonl import export_lines, import_lines
from recollect.models import NewMemory
from recollect.models.knowledge import NewFact

START = datetime(2020, 1, 1, tzinfo=UTC)


async def carry(mind, there, path):
    exported = await export_lines(mind, path, lambda _: None)
    assert await import_lines(there, path, lambda _: None) == exported
    return (await there.browse()).memories


async def test_a_fact_is_exported_without_the_version_that_it_came_from(recollect, mind, tmp_path):
    [stated] = await mind.knowledge.state(NewFact("Ann", "knows", "Bo", valid_at=START))
    ended = await mind.knowledge.end(stated.id, datetime.now(UTC) + timedelta(days=9))
    assert (await mind.get(ended.memory_id)).evidence == (stated.memory_id,)
    [there] = await carry(mind, await recollect.mind("copy"), tmp_path / "lines")
    assert (there.content, there.evidence) == (ended.text, ())


async def test_evidence_that_is_in_the_file_is_kept(recollect, mind, tmp_path):
    [source] = await mind.remember("a source")
    [stated] = await mind.knowledge.state(NewFact("Ann", "knows", "Bo", valid_at=START))
    await mind.knowledge.end(stated.id, datetime.now(UTC) + timedelta(days=9))
    await mind.remember(NewMemory("a thought", evidence=(source.id, stated.memory_id)))
    first, _, thought = await carry(mind, await recollect.mind("copy"), tmp_path / "lines")
    assert (first.content, thought.content, thought.evidence) == ("a source", "a thought", (first.id,))

"""The check of an upload is a process with limits of its own: however it ends, nothing of it remains."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.client import Client
from recollect.core.imports.rows import list_fields
from recollect.core.imports.sections import SECTIONS
from recollect.doors.http.app import create_app
from recollect.errors import InvalidInputError, UnavailableError
from recollect.models.conversations import HistoryOptions, NewMessage, Part, PartType
from recollect.models.imports import ExportRequest, ImportOptions
from recollect.models.items import GetItem, PutItem
from recollect.models.memories import Role
from recollect.verbs.imports import checked
from support.imports.forged_exports import multiply, pack, sign, unpack
from support.measuring.sizes import Sizes
from support.programs.waiting import until
from support.service.serving import serving

SCOPES = Sizes("scopes", ci=60, long=20_000)


async def export(recollect, tenant="default"):
    file = io.BytesIO()
    await recollect.operator.exports.write_export_file(await recollect.operator.act_for(tenant), ExportRequest(), file)
    return file.getvalue()


async def restore(recollect, data, tenant="elsewhere"):
    caller = await recollect.operator.act_for(tenant)
    return await recollect.operator.exports.import_export_file(caller, ImportOptions("back"), io.BytesIO(data))


@pytest.fixture
async def data(mind, recollect):
    await mind.remember("Green apples")
    return await export(recollect)


@pytest.fixture
def unchanged(owner):
    """No scope and no open file of an import remain."""

    def look():
        opened = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
        return owner.execute("select count(*) from scopes").fetchone()[0], sum("(deleted)" in each for each in opened)

    before = look()
    yield
    assert look() == before


def test_the_check_imports_the_standard_library_and_pure_modules_only():
    said = "import sys, recollect.verbs.imports.checking; print([*sys.modules])"
    found = subprocess.run([sys.executable, "-I", "-c", said], capture_output=True, text=True, check=True).stdout
    for other in ("pydantic", "psycopg", "numpy", "Stemmer", "fastapi", "recollect.store", "recollect.llm"):
        assert f"'{other}'" not in found


def test_every_column_that_is_imported_is_checked(owner):
    asked = (
        "select attname from pg_attribute "
        "where attrelid = %s::regclass and attnum > 0 and attgenerated = '' and not attisdropped"
    )
    for section in SECTIONS:
        columns = {name for (name,) in owner.execute(asked, [section.table]).fetchall()}
        assert columns - {"scope_id", *section.omitted} == {*list_fields(section.name)}, section.name


ENDINGS = {
    "killed": (
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        InvalidInputError,
        "memory or processor time",
    ),
    "too long": (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass",
        InvalidInputError,
        "memory or processor time",
    ),
    "broken": ("raise OSError(28, 'no space')", UnavailableError, "could not be checked"),
    "silent": ("import time; time.sleep(600)", UnavailableError, "could not be checked"),
    "mute": ("pass", InvalidInputError, "ended early"),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_however_a_check_ends_nothing_remains(recollect, data, unchanged, monkeypatch, ending):
    program, error, complaint = ENDINGS[ending]
    monkeypatch.setattr(checked, "PROGRAM", (sys.executable, "-c", program))
    monkeypatch.setattr(checked, "PATIENCE_SECONDS", 60.0 if ending != "silent" else 0.5)
    with pytest.raises(error, match=complaint):
        await restore(recollect, data, "default")


async def test_a_full_disk_leaves_nothing(recollect, data, unchanged, monkeypatch):
    monkeypatch.setattr(
        checked,
        "TemporaryFile",
        lambda: Path("/dev/full").open("wb+", buffering=0),  # noqa: SIM115
    )
    file = os.memfd_create("upload")
    with os.fdopen(file, "wb+") as upload:
        upload.write(data)
        caller = await recollect.operator.act_for("default")
        with pytest.raises(UnavailableError, match="has room"):
            await recollect.operator.exports.import_export_file(caller, ImportOptions("back"), upload)


async def test_a_check_has_a_limit_of_memory(recollect, data, unchanged):
    files = unpack(data)
    name = next(each for each in files if each.endswith("memories/memories.jsonl"))
    line = files[name].rstrip(b"}\n") + b',"later":[' + b"[[[]]]," * 1_180_000 + b"1]}\n"
    bomb = sign(files | {name: line})
    with pytest.raises(InvalidInputError, match="more memory"):
        await restore(recollect, pack(bomb), "default")


async def test_a_system_without_limits_is_watched(monkeypatch):
    monkeypatch.setattr(checked, "MAX_MEMORY", 30_000)
    monkeypatch.setattr(checked, "WATCH_SECONDS", 0.05)
    program = "import time; held = b'x' * 100_000_000; time.sleep(600)"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await checked.watch(child, limited=False)
    assert await child.wait() < 0


def test_a_check_ends_with_its_server(data, tmp_path):
    path = tmp_path / "export.zip"
    path.write_bytes(data)
    with path.open("rb") as file, (tmp_path / "blocks").open("wb") as output:
        told, telling = os.pipe()
        os.close(told)
        child = subprocess.Popen([*checked.PROGRAM, "100", "0", "60"], stdin=file, stdout=output, stderr=telling)
        os.close(telling)
        assert child.wait() != 0


async def test_a_client_that_leaves_ends_its_import(recollect, data, owner, monkeypatch, tmp_path):
    pid, app = tmp_path / "pid", create_app(recollect=recollect)
    program = f"import os, pathlib, time; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(600)"
    monkeypatch.setattr(checked, "PROGRAM", (sys.executable, "-c", program))
    _, secret = await recollect.create_key(await recollect.operator.act_for("elsewhere"), "web", ["write"], 50)
    async with serving(app) as url, Client(url, secret) as client:
        sending = asyncio.create_task(client.import_scopes(io.BytesIO(data)))
        await until(lambda: pid.exists() and pid.read_text())
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await until(lambda: not Path(f"/proc/{pid.read_text()}").exists())
        await until(lambda: not app.state.transfers.files)
    assert owner.execute("select count(*) from scopes").fetchone()[0] == 1


@pytest.mark.promise("A tenant of 20,000 scopes is the same after an export and an import", SCOPES)
async def test_many_scopes_come_back_the_same(recollect, figure):
    minds = [await recollect.mind(f"agent {number}", "li") for number in range(SCOPES.ci)]
    await asyncio.gather(*(mind.remember(f"memory of {mind.access.scope.agent}") for mind in minds))
    # Writes are not the promise, and cost more than the rest: most scopes are the first ones under other names.
    expected = multiply(unpack(await export(recollect)), SCOPES.now)
    begun = os.times()
    outcome = await restore(recollect, pack(expected))
    restored = os.times()
    assert outcome.scopes == SCOPES.now
    found = unpack(await export(recollect, "elsewhere"))
    exported = os.times()
    checked, stored, read = (
        restored.children_user - begun.children_user,
        restored.user - begun.user,
        exported.user - restored.user,
    )
    figure(f"user time without the server's: check {checked:.0f} s, import {stored:.0f} s, export {read:.0f} s")
    [manifest, wanted] = [json.loads(files.pop("manifest.json")) for files in (found, expected)]
    assert manifest == wanted
    assert found == expected


async def test_the_largest_message_and_item_come_back_the_same(recollect, mind):
    text = "".join(chr(0x20000 + number % 0x9FFF) for number in range(200_000))
    parts = tuple(Part(PartType.TOOL_RESULT, "\x01" * 199_999 + str(number)) for number in range(4))
    await mind.conversation("c").append([NewMessage(Role.ASSISTANT, text, parts=parts)])
    value = {"text": "\U0001f600" * 249_990}
    await mind.items.batch([PutItem(("notes",), "largest", value, memory=False)])
    first = await export(recollect)
    await restore(recollect, first)
    assert await export(recollect, "elsewhere") == first
    there = await recollect.mind("ada", "li", tenant="elsewhere")
    [message] = (await there.conversation("c").history(HistoryOptions(10_000_000, unanswered=True))).messages
    assert (message.content, message.parts) == (text, parts)
    [found] = await there.items.batch([GetItem(("notes",), "largest")])
    assert found is not None

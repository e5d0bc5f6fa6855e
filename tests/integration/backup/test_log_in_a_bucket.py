"""The log of erasures in a real S3 server: a restore reads it, and nothing is erased while the server is gone."""

from __future__ import annotations

import psycopg
import pytest

from conftest import PATIENT
from recollect.errors import ErasureLogError
from recollect.wiring import connect_database, make_backup, open_recollect, restore_backup
from support.programs.folders import find_memory, open_folder
from support.service.made_settings import make_settings

pytestmark = pytest.mark.engines


def settings_in(folder, server, place):
    bucket = server.url.rsplit("/", 1)[0]
    log = {
        "operations__erasure_log": f"{bucket}/{place}/erasures",
        "cold__options": server.options,
        "cold__timeout_seconds": 5,
    }
    return make_settings(embedder="none", data_dir=folder / "data", **log, **PATIENT)


def contents(settings):
    with connect_database(settings) as addresses, psycopg.connect(addresses.owner) as connection:
        return sorted(row[0] for row in connection.execute("select content from memories").fetchall())


async def test_a_restore_reads_the_log_in_a_bucket(object_server):
    with open_folder("bucket", find_memory()) as folder:
        settings = settings_in(folder, object_server, "made")
        async with open_recollect(settings, work=False) as recollect:
            mind = await recollect.mind("ada", "li")
            await mind.remember("kept")
            receipts = [(await mind.remember(f"erased {number}"))[0] for number in range(3)]
            await mind.forget([receipts[0].id])
            made = await make_backup(settings, folder / "backups")
            for receipt in receipts[1:]:
                await mind.forget([receipt.id])
        target = settings.model_copy(update={"data_dir": folder / "restored"})
        done = await restore_backup(target, made)
        assert (done.logged, done.applied) == (2, 2)
        assert contents(target) == ["kept"]


async def test_nothing_is_erased_while_the_bucket_is_gone(object_server):
    with open_folder("bucket", find_memory()) as folder:
        settings = settings_in(folder, object_server, "gone")
        async with open_recollect(settings, work=False) as recollect:
            mind = await recollect.mind("ada", "li")
            [receipt] = await mind.remember("kept")
            object_server.stop()
            try:
                with pytest.raises(ErasureLogError, match="Nothing was erased"):
                    await mind.forget([receipt.id])
                assert len((await mind.list()).memories) == 1
            finally:
                object_server.start()
            assert await mind.forget([receipt.id]) == [receipt.id]

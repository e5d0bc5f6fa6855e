"""Backups and the log of erasures in a real S3 server: made, verified, restored, and told when the server is gone."""

from __future__ import annotations

import psycopg
import pytest

from conftest import PATIENT
from folders import find_memory, open_folder
from recollect.errors import ErasureLogError, NotFoundError
from recollect.models.outside import BackupKind
from recollect.settings import Settings
from recollect.wiring import make_backup, open_recollect, reach_database, restore_backup, verify_backup

pytestmark = pytest.mark.engines


def silent(step, done, total):
    """Report nothing."""


def settings_in(folder, server, place):
    bucket = server.url.rsplit("/", 1)[0]
    log = {"erasure_log": f"{bucket}/{place}/erasures", "cold_options": server.options, "cold_seconds": 5}
    return Settings(embedder="none", data_dir=folder / "data", **log, **PATIENT), f"{bucket}/{place}/backups"


def contents(settings):
    with reach_database(settings) as addresses, psycopg.connect(addresses.owner) as connection:
        return sorted(row[0] for row in connection.execute("select content from memories").fetchall())


@pytest.mark.parametrize("kind", [*BackupKind])
async def test_a_bucket_has_the_backup_and_the_log(object_server, kind):
    with open_folder("bucket", find_memory()) as folder:
        settings, place = settings_in(folder, object_server, f"made-{kind}")
        async with open_recollect(settings, work=False) as recollect:
            mind = await recollect.mind("ada", "li")
            await mind.remember("kept")
            receipts = [(await mind.remember(f"erased {number}"))[0] for number in range(3)]
            await mind.forget([receipts[0].id])
            made = await make_backup(settings, place, kind, silent)
            for receipt in receipts[1:]:
                await mind.forget([receipt.id])
        found = await verify_backup(settings, made.name, silent)
        assert found.rows == made.rows and found.indexes > 100
        target = settings.model_copy(update={"data_dir": folder / "restored"})
        done = await restore_backup(target, made.name, silent)
        assert (done.reapplied.logged, done.reapplied.applied) == (2, 2)
        assert contents(target) == ["kept"]
        with pytest.raises(NotFoundError, match="no backup"):
            await verify_backup(settings, f"{place}/other", silent)


async def test_nothing_is_erased_while_the_bucket_is_gone(object_server):
    with open_folder("bucket", find_memory()) as folder:
        settings, _ = settings_in(folder, object_server, "gone")
        async with open_recollect(settings, work=False) as recollect:
            mind = await recollect.mind("ada", "li")
            [receipt] = await mind.remember("kept")
            object_server.stop()
            try:
                with pytest.raises(ErasureLogError, match="nothing was erased"):
                    await mind.forget([receipt.id])
                assert len((await mind.browse()).memories) == 1
            finally:
                object_server.start()
            assert await mind.forget([receipt.id]) == [receipt.id]

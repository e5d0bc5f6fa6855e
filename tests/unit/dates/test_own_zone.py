"""Who names no time zone is asked in that of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import loading
from recollect.loading import local_timezone
from recollect.models.recall import Cue


@pytest.fixture
def machine(monkeypatch, tmp_path):
    def set_up(variable=None, link=None):
        monkeypatch.delenv("TZ", raising=False)
        if variable is not None:
            monkeypatch.setenv("TZ", variable)
        local_time = tmp_path / "localtime"
        if link:
            local_time.symlink_to(link)
        monkeypatch.setattr(loading, "LOCAL_TIME", local_time)
        local_timezone.cache_clear()

    yield set_up
    local_timezone.cache_clear()


@pytest.mark.parametrize(
    ("variable", "link", "zone"),
    [
        ("Asia/Shanghai", None, "Asia/Shanghai"),
        (":Europe/Berlin", "/usr/share/zoneinfo/Asia/Shanghai", "Europe/Berlin"),
        (None, "/usr/share/zoneinfo/Asia/Shanghai", "Asia/Shanghai"),
        ("", "/var/db/timezone/zoneinfo/America/New_York", "America/New_York"),
        (None, "/usr/share/zoneinfo/Etc/UTC", "UTC"),
        ("Etc/UTC", None, "UTC"),
        ("CST-8", None, "UTC"),
        ("/etc/passwd", None, "UTC"),
        (None, None, "UTC"),
    ],
)
def test_the_zone_of_the_machine_is_found(machine, variable, link, zone):
    machine(variable, Path(link) if link else None)
    assert local_timezone() == zone
    assert Cue("yesterday").zone == zone

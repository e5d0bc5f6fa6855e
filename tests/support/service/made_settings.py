"""Settings of a test, written as in the environment: `cold__url` is the setting `url` of the group `cold`."""

from __future__ import annotations

from typing import Any

from recollect.settings import Settings, list_settings

PATIENT = {
    "request_timeout_seconds": 60,
    "recall__channel_timeout_seconds": 30,
    "embedding__wait_timeout_seconds": 30,
}
"""Settings with which nothing is given up because the machine has much else to do."""


def make_settings(**given: Any) -> Settings:
    """Return settings with these values."""
    return Settings(**to_tables(given))


def change_settings(settings: Settings, **given: Any) -> Settings:
    """Return the settings with other values."""
    tables = to_tables(given).items()
    changed = {
        name: getattr(settings, name).model_copy(update=value) if isinstance(value, dict) else value
        for name, value in tables
    }
    return settings.model_copy(update=changed)


def to_tables(given: dict[str, Any]) -> dict[str, Any]:
    """Put the settings of each group into one table; names that start with `_` are arguments of the library."""
    unknown = {name for name in given if name[0] != "_"} - {name.replace(".", "__") for name in list_settings()}
    assert not unknown, f"no settings: {unknown}"
    found: dict[str, Any] = {}
    for name, value in given.items():
        group, _, field = name.rpartition("__")
        (found.setdefault(group, {}) if group else found)[field] = value
    return found

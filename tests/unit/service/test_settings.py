"""Where settings come from; mistyped ones are warned of, and what is ours and no setting is not."""

from __future__ import annotations

import os
import re
import subprocess
from operator import attrgetter
from pathlib import Path

import pytest
from pydantic import SecretStr

from recollect.errors import SetupError
from recollect.setting_groups import ColdSettings
from recollect.settings import (
    FILE,
    NON_SETTING_VARIABLES,
    PREFIX,
    Settings,
    check_settings,
    default_data_dir,
    find_misspelt,
    list_settings,
    to_variable,
)
from recollect.wiring import read_settings
from support.programs.programs import plain_environment

ROOT = Path(__file__).parents[3]
GONE = {"ROUNDS", "EXAMPLES", "SECONDS", "SIZE", "WALK", "RACES", "TREES"}
"""Named in the changelog only, as what was replaced."""
BEGINNINGS = {"", "CHAT", "EMBEDDER"}


@pytest.fixture
def clean(monkeypatch, tmp_path):
    """An environment without a variable of ours, and an empty folder to work in."""
    for name in [*os.environ]:
        if name not in plain_environment():
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_mistyped_variable_is_named_with_the_setting_that_was_meant(clean, monkeypatch):
    monkeypatch.setenv("RECOLLECT_POOLSIZE", "3")
    monkeypatch.setenv("RECOLLECT_ZZZ", "3")
    assert find_misspelt() == [
        "RECOLLECT_POOLSIZE is not a setting; did you mean RECOLLECT_POOL_SIZE?",
        "RECOLLECT_ZZZ is not a setting",
    ]


def test_a_mistyped_line_of_the_file_is_named_too(clean):
    (clean / ".env").write_text("RECOLLECT_EMBEDER=none\nRECOLLECT_PORT=1\nOTHER_POOLSIZE=1\n", encoding="utf-8")
    assert find_misspelt() == ["RECOLLECT_EMBEDER is not a setting; did you mean RECOLLECT_EMBEDDER?"]


def test_a_program_that_opens_without_settings_has_it_in_its_log(clean, monkeypatch, caplog):
    monkeypatch.setenv("RECOLLECT_POOLSIZE", "3")
    assert read_settings().pool_size == 10
    [record] = caplog.records
    assert (record.levelname, "did you mean RECOLLECT_POOL_SIZE?" in record.getMessage()) == ("WARNING", True)


@pytest.mark.parametrize(
    "name",
    ["URL", "KEY", "TESTS", "POOL_SIZE", "pool_size", "SERVICE_HOST", "API_SERVICE_PORT_HTTP", "PORT_7077_TCP_ADDR"],
)
def test_what_is_known_or_set_by_others_is_passed_over(clean, monkeypatch, name):
    monkeypatch.setenv(f"RECOLLECT_{name}", "x")
    assert find_misspelt() == []


def test_every_variable_that_the_tree_names_is_known():
    files = subprocess.run(["git", "ls-files"], check=True, cwd=ROOT, capture_output=True, text=True).stdout.split()
    named = set()
    for file in files:
        if Path(file).name != Path(__file__).name:
            text = (ROOT / file).read_text(encoding="utf-8", errors="ignore")
            named.update(re.findall(rf"\b{PREFIX}([A-Z_]*)\b", text))
    fields = {to_variable(name).removeprefix(PREFIX) for name in list_settings()}
    known = fields | {name + FILE for name in fields} | NON_SETTING_VARIABLES | GONE | BEGINNINGS
    assert named - known - {"POOLSIZE"} == set()


SECRETS = [name for name, field in list_settings().items() if field.annotation is SecretStr]


@pytest.mark.parametrize("name", SECRETS)
def test_every_secret_can_come_from_a_file(clean, monkeypatch, name):
    (clean / "secret").write_text("of the file\n", encoding="utf-8")
    monkeypatch.setenv(to_variable(name) + FILE, str(clean / "secret"))
    assert attrgetter(name)(Settings()).get_secret_value() == "of the file"
    assert find_misspelt() == []


def test_an_address_with_a_password_can_come_from_a_file(clean, monkeypatch):
    (clean / "dsn").write_text("postgresql://role:secret@host/name\n", encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_DATABASE_URL_FILE", str(clean / "dsn"))
    assert Settings().database_url == "postgresql://role:secret@host/name"


def test_a_file_that_is_missing_or_not_alone_is_refused(clean, monkeypatch):
    monkeypatch.setenv("RECOLLECT_CHAT_KEY_FILE", str(clean / "absent"))
    with pytest.raises(SetupError, match=r"RECOLLECT_CHAT_KEY_FILE: .*absent cannot be read"):
        check_settings()
    monkeypatch.setenv("RECOLLECT_CHAT_KEY", "sk")
    with pytest.raises(SetupError, match="Set RECOLLECT_CHAT_KEY or RECOLLECT_CHAT_KEY_FILE, not both"):
        check_settings()


def test_a_toml_file_holds_settings_and_a_variable_goes_before_it(clean, monkeypatch):
    (clean / "recollect.toml").write_text('port = 7078\nhost = "0.0.0.0"\nchat_key = "sk"\n', encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_HOST", "127.0.0.2")
    found = Settings()
    assert (found.port, found.host, found.chat_key.get_secret_value()) == (7078, "127.0.0.2", "sk")
    (clean / "other.toml").write_text("port = 7079", encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_CONFIG", str(clean / "other.toml"))
    assert (Settings().port, check_settings()) == (7079, [])


def test_a_mistyped_name_in_the_toml_file_is_named(clean):
    (clean / "recollect.toml").write_text("prot = 7078\n", encoding="utf-8")
    assert check_settings() == ["prot in recollect.toml is not a setting; did you mean port?"]
    (clean / "recollect.toml").write_text('cold_url = "x"\n[cold]\nurl = "file:///x"\nurll = "x"\n', encoding="utf-8")
    assert check_settings() == [
        "cold_url in recollect.toml is not a setting; did you mean cold.url?",
        "cold.urll in recollect.toml is not a setting; did you mean cold.url?",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("COLD_URL", "COLD__URL"),
        ("COLD__ULR", "COLD__URL"),
        ("COLD_KEY_FILE", "COLD__KEY_FILE"),
        ("CATALOG_URL", "SHARDS__CATALOG_URL"),
        ("HEALTH_PORT", "OPERATIONS__HEALTH_PORT"),
        ("ORIGINS", "CORS_ORIGINS"),
        ("STEPS", "ENRICH_STEPS"),
    ],
)
def test_a_setting_that_has_moved_to_a_group_is_named_with_its_place(clean, monkeypatch, name, meant):
    monkeypatch.setenv(f"RECOLLECT_{name}", "x")
    assert find_misspelt() == [f"RECOLLECT_{name} is not a setting; did you mean RECOLLECT_{meant}?"]


def test_a_value_for_a_group_is_refused(clean, monkeypatch):
    (clean / "recollect.toml").write_text('cold = "file:///x"\n', encoding="utf-8")
    with pytest.raises(SetupError, match="RECOLLECT_COLD: "):
        check_settings()
    (clean / "recollect.toml").unlink()
    monkeypatch.setenv("RECOLLECT_SHARDS", "north,south")
    with pytest.raises(SetupError, match="RECOLLECT_SHARDS is not a setting; did you mean RECOLLECT_SHARDS__NAMES"):
        check_settings()


def test_a_group_is_filled_from_every_source(clean, monkeypatch):
    (clean / "recollect.toml").write_text('[cold]\nurl = "file:///x"\noptions = "of the file"\n', encoding="utf-8")
    (clean / ".env").write_text("RECOLLECT_COLD__TIMEOUT_SECONDS=5\n", encoding="utf-8")
    (clean / "secret").write_text("sealed\n", encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_COLD__KEY_FILE", str(clean / "secret"))
    monkeypatch.setenv("RECOLLECT_COLD__OPTIONS", "of the environment")
    for given in ({"after_days": 9}, ColdSettings(after_days=9)):
        found = Settings(cold=given).cold
        assert (found.url, found.options, found.timeout_seconds) == ("file:///x", "of the environment", 5)
        assert (found.key.get_secret_value(), found.after_days) == ("sealed", 9)
    assert check_settings() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = ", "recollect.toml is not valid TOML"),
        ("port = -1", "RECOLLECT_PORT: "),
        ("cold.after_days = -1", "RECOLLECT_COLD__AFTER_DAYS: "),
    ],
)
def test_a_toml_file_that_cannot_be_used_is_refused(clean, text, said):
    (clean / "recollect.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SetupError, match=said):
        check_settings()


def test_a_named_toml_file_must_exist(clean, monkeypatch):
    monkeypatch.setenv("RECOLLECT_CONFIG", "nowhere.toml")
    with pytest.raises(SetupError, match=r"RECOLLECT_CONFIG names nowhere.toml, which is not a file"):
        check_settings()


def test_the_default_folder_follows_the_user(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert default_data_dir() == Path("/somewhere/recollect")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/recollect")

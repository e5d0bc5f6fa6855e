"""All configuration, read once from RECOLLECT_* variables, files of secrets and a TOML file."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from recollect import setting_groups as groups
from recollect.errors import SetupError

LOG = logging.getLogger("recollect.settings")
PREFIX = "RECOLLECT_"
NON_SETTING_VARIABLES = frozenset(
    {
        *("URL", "KEY", "AGENT", "USER", "CONFIG", "OTHER_KEY"),
        *("SEED", "TESTS", "TIMINGS", "OWNER_PASSWORD", "SERVICE_PASSWORD"),
    }
)
"""Variables that are no settings: of clients, commands and tests, of the files in `deploy/`, and the TOML's path."""
EMBEDDED = "embedded"
CONFIG_VARIABLE, CONFIG_FILE = f"{PREFIX}CONFIG", "recollect.toml"
FILE = "_FILE"
"""A variable with this ending names a file that holds the value of a setting, as Docker and Kubernetes mount it."""
NEAR = 0.7
"""How similar to an unknown name, at least, a setting is that may be meant."""
KUBERNETES_VARIABLE = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT_\d+_\w+)")
"""Variables that Kubernetes sets for a service by the name of `recollect`."""


class Settings(BaseSettings):
    """What an operator can set; every field has a default that works on one machine."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_file=".env", extra="ignore", frozen=True
    )

    database_url: str = Field(
        default=EMBEDDED, description="DSN of the service role, or `embedded` for the bundled PostgreSQL."
    )
    owner_database_url: str = Field(
        default="",
        description="DSN of the role that owns the tables. Needed for `recollect admin`, not by the API or the worker.",
    )
    data_dir: Path | None = Field(default=None, description="Data folder of the embedded PostgreSQL.")
    pool_size: int = Field(default=10, ge=1, le=500, description="Database connections per process.")
    host: str = Field(default="127.0.0.1", description="Address that `recollect serve` listens on.")
    port: int = Field(default=7077, ge=0, le=65535, description="Port that `recollect serve` listens on.")
    console: Literal["on", "off"] = Field(default="on", description="Serve the web console at `/console`.")
    cors_origins: str = Field(
        default="", description="Allowed CORS origins, separated by commas, for example `https://shop.example`."
    )
    mcp_allowed_hosts: str = Field(
        default="",
        description="Names by which clients of MCP reach the server, with commas; empty = local ones where `host` is. "
        "Needs the extra `mcp`.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum log level. Requests are logged as `info`."
    )
    request_timeout_seconds: float = Field(default=10.0, gt=0, le=300, description="Request timeout.")
    embedder: Literal["auto", "none", "local", "minilm", "openai", "fake"] = Field(
        default="auto",
        description="Embedding model: `auto`, `local` (MiniLM, with Chinese support if the database has it), "
        "`minilm` (without Chinese), `openai` (any OpenAI-compatible endpoint), `none`, or `fake` "
        "(tests). `auto` = `local` if installed, else `none`.",
    )
    embedder_url: str = Field(default="", description="Base URL of the embedding endpoint, ending in /v1.")
    embedder_key: SecretStr = Field(default=groups.NO_SECRET, description="API key of the embedding endpoint.")
    embedder_model: str = Field(
        default="", description="Model name. With `local`, a model downloaded with `recollect admin model pull`."
    )
    embedder_dimensions: int = Field(default=0, ge=0, le=4096, description="Number of vector dimensions of the model.")
    chat_url: str = Field(
        default="",
        description="Base URL of a chat endpoint, ending in /v1. Used for extraction, reflection and answers.",
    )
    chat_key: SecretStr = Field(default=groups.NO_SECRET, description="API key of the chat endpoint.")
    chat_model: str = Field(default="", description="Chat model name.")
    chat_prices: str = Field(
        default="",
        description="Price per million tokens as `model=prompt/completion`, separated by spaces. Used in cost reports.",
    )
    daily_token_limit: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000_000,
        description="Daily token budget per tenant (UTC). Enrichment waits when it is used up. 0 = unlimited.",
    )
    tokenizers: str = Field(
        default="o200k_base cl100k_base",
        description="Tokenizers to load, default first: `o200k_base`, `cl100k_base`, `qwen`, `qwen3.5`, `deepseek`, "
        "`estimate`.",
    )
    enrich_steps: str = Field(
        default="label segment summarise extract resolve link", description="Enrichment steps to run, in order."
    )
    fading_days: groups.Days = Field(default=0, description="Days until an unused memory fades from recall; 0 = never.")
    postgres: groups.PostgresSettings = groups.PostgresSettings()
    embedding: groups.EmbeddingSettings = groups.EmbeddingSettings()
    chat: groups.ChatSettings = groups.ChatSettings()
    recall: groups.RecallSettings = groups.RecallSettings()
    retention: groups.RetentionSettings = groups.RetentionSettings()
    operations: groups.OperationsSettings = groups.OperationsSettings()
    shards: groups.ShardsSettings = groups.ShardsSettings()
    cold: groups.ColdSettings = groups.ColdSettings()
    mirrors: groups.MirrorsSettings = groups.MirrorsSettings()
    opensearch: groups.OpenSearchSettings = groups.OpenSearchSettings()
    neo4j: groups.Neo4jSettings = groups.Neo4jSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's names
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments first, then the environment, files that it names, `.env`, and the TOML file."""
        given = {name: list_given(value) for name, value in init_settings().items()}
        arguments, files = (InitSettingsSource(settings_cls, values) for values in (given, read_files()))
        return arguments, env_settings, files, dotenv_settings, TomlConfigSettingsSource(settings_cls, find_toml())

    @property
    def embedded(self) -> bool:
        """Return whether the database is the embedded PostgreSQL."""
        return self.database_url == EMBEDDED and not self.shards.catalog_url

    @property
    def data_folder(self) -> Path:
        """Return the data folder of the embedded PostgreSQL, in which `recollect up` also stores its address."""
        return (self.data_dir or default_data_dir()).expanduser().resolve()

    @property
    def max_requests(self) -> int:
        """Return how many requests a process serves at a time."""
        return self.postgres.max_requests or max(2, self.pool_size * 4 // 10)


def default_data_dir() -> Path:
    """Return the default data folder: of the system for root, else of the user."""
    if os.geteuid() == 0:
        return Path("/var/lib/recollect")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "recollect"


def list_given(value: Any) -> Any:  # noqa: ANN401 - any setting
    """Return the given settings of a group, so that other sources add the rest; any other value unchanged."""
    return value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value


def list_settings() -> dict[str, FieldInfo]:
    """Return the field of each setting by its path: `port`, `cold.url`."""
    found: dict[str, FieldInfo] = {}
    for name, field in Settings.model_fields.items():
        group = field.default
        below = type(group).model_fields if isinstance(group, BaseModel) else {}
        found |= {f"{name}.{each}": below[each] for each in below} or {name: field}
    return found


def to_variable(path: str) -> str:
    """Return the environment variable of a setting: `RECOLLECT_COLD__URL` for `cold.url`."""
    return PREFIX + path.replace(".", "__").upper()


def read_files() -> dict[str, Any]:
    """Read the settings whose variable names a file, without the line end that editors add."""
    values: dict[str, Any] = {}
    for setting in list_settings():
        variable = to_variable(setting)
        if path := os.environ.get(variable + FILE):
            if variable in os.environ:
                raise SetupError(f"Set {variable} or {variable}{FILE}, not both.")
            group, _, field = setting.rpartition(".")
            try:
                text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as problem:
                raise SetupError(f"{variable}{FILE}: {path} cannot be read ({problem}).") from None
            (values.setdefault(group, {}) if group else values)[field] = text
    return values


def find_toml() -> Path | None:
    """Find the TOML file with settings: the one that RECOLLECT_CONFIG names, else `recollect.toml` in this folder."""
    named = os.environ.get(CONFIG_VARIABLE, "")
    path = Path(named or CONFIG_FILE).expanduser()
    if named and not path.is_file():
        raise SetupError(f"{CONFIG_VARIABLE} names {named}, which is not a file.")
    return path if path.is_file() else None


def check_settings() -> list[str]:
    """Refuse an invalid setting in one sentence, and warn of names that look like settings but are none."""
    try:
        Settings()
    except ValidationError as problem:
        first = problem.errors(include_input=False)[0]
        raise SetupError(f"{to_variable('.'.join(map(str, first['loc'])))}: {first['msg']}") from None
    except tomllib.TOMLDecodeError as problem:
        raise SetupError(f"{find_toml()} is not valid TOML: {problem}") from None
    except ValueError:  # a variable with the name of a group
        raise SetupError("; ".join(find_misspelt())) from None
    return find_misspelt()


def find_misspelt() -> list[str]:
    """Return sentences about variables and names in the TOML file that are no settings, with the nearest setting."""
    given = {name.upper() for source in (EnvSettingsSource, DotEnvSettingsSource) for name in source(Settings).env_vars}
    settings = list(list_settings())
    variables = {to_variable(name): name for name in (*settings, *(name + FILE.lower() for name in settings))}
    names = {name: name.removeprefix(PREFIX) for name in sorted(given) if name.startswith(PREFIX)}
    unknown = [
        (variable, find_setting(name.replace("__", ".").lower(), variables.values()))
        for variable, name in names.items()
        if variable not in variables and name not in NON_SETTING_VARIABLES and not KUBERNETES_VARIABLE.fullmatch(name)
    ]
    found = [f"{name} is not a setting{suggest(near and to_variable(near))}" for name, near in unknown]
    toml = find_toml()
    tables = TomlConfigSettingsSource(Settings, toml).toml_data if toml else {}
    written = [
        f"{name}.{each}" if each else name
        for name, table in tables.items()
        for each in (table if isinstance(table, dict) else [""])
    ]
    return found + [
        f"{name} in {toml} is not a setting{suggest(find_setting(name, settings))}"
        for name in written
        if name not in settings
    ]


def find_setting(name: str, known: Collection[str]) -> str:
    """Return the setting that an unknown name may mean: the same words in a group, or else the most similar ones."""
    words = name.replace(".", "_")
    moved = [
        each for each in known if f"_{each.replace('.', '_')}".endswith(f"_{words}") or each.startswith(f"{name}.")
    ]
    return min(moved, key=len, default="") or next(iter(get_close_matches(name, known, 1, NEAR)), "")


def suggest(near: str) -> str:
    """Ask whether the nearest setting was meant, if there is one."""
    return f"; did you mean {near}?" if near else ""


def read_settings() -> Settings:
    """Read the settings for a program that does not do so itself, and warn of unknown ones."""
    for sentence in find_misspelt():
        LOG.warning(json.dumps({"event": "unknown_setting", "message": sentence}))
    return Settings()

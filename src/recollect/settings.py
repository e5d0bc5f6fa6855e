"""All configuration, read once from RECOLLECT_* variables, files of secrets and a TOML file."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

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
KUBERNETES_VARIABLE = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT_\d+_\w+)")
"""Variables that Kubernetes sets for a service by the name of `recollect`."""


class Settings(BaseSettings):
    """What an operator can set; every field has a default that works on one machine."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_file=".env", extra="ignore", frozen=True)

    database_url: str = Field(
        default=EMBEDDED, description="DSN of the service role, or `embedded` for the bundled PostgreSQL."
    )
    owner_database_url: str = Field(
        default="",
        description="DSN of the role that owns the tables. Needed for `recollect admin`, not by the API or the worker.",
    )
    direct_url: str = Field(
        default="",
        description="DSN that bypasses the connection pooler, for LISTEN and the worker. Without it, changes are "
        "polled every second.",
    )
    catalog_url: str = Field(
        default="",
        description="DSN of the shard catalog. Replaces `database_url` when tenants are spread over several servers.",
    )
    owner_catalog_url: str = Field(
        default="", description="DSN of the role that owns the catalog. Not needed by the API or the worker."
    )
    map_file: Path | None = Field(default=None, description="Where to cache the shard map. Default: the cache folder.")
    shards: str = Field(default="", description="Shards this worker serves, by name. Default: all.")
    data_dir: Path | None = Field(default=None, description="Data folder of the embedded PostgreSQL.")
    pool_size: int = Field(default=10, ge=1, le=500, description="Database connections per process.")
    prepare_statements: bool = Field(
        default=True,
        description="Use prepared statements. Turn off behind a pooler that does not support them.",
    )
    requests_at_once: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Maximum concurrent requests per process. 0 = 40% of `pool_size`.",
    )
    start_wait_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="How long `serve` and `worker` wait for PostgreSQL at startup.",
    )
    deadline_seconds: float = Field(default=10.0, gt=0, le=300, description="Request timeout.")
    import_bytes: int = Field(
        default=268_435_456, ge=1, le=1 << 40, description="Maximum size of a file sent to `POST /v1/import`."
    )
    channel_seconds: float = Field(
        default=1.0,
        gt=0,
        le=300,
        description="How long a recall waits for one channel before it continues without it.",
    )
    embedder: Literal["auto", "none", "local", "minilm", "openai", "fake"] = Field(
        default="auto",
        description="Embedding model: `auto`, `local` (MiniLM, with Chinese support if the database has it), "
        "`minilm` (without Chinese), `openai` (any OpenAI-compatible endpoint), `none`, or `fake` "
        "(tests). `auto` = `local` if installed, else `none`.",
    )
    embedder_url: str = Field(default="", description="Base URL of the embedding endpoint, ending in /v1.")
    embedder_key: SecretStr = Field(default=SecretStr(""), description="API key of the embedding endpoint.")
    embedder_model: str = Field(
        default="", description="Model name. With `local`, a model downloaded with `recollect admin model pull`."
    )
    embedder_dimensions: int = Field(default=0, ge=0, le=4096, description="Number of vector dimensions of the model.")
    hub_url: str = Field(
        default="https://huggingface.co", description="Model hub or mirror used by `recollect admin model pull`."
    )
    models_dir: Path | None = Field(
        default=None, description="Folder for downloaded models. Default: the cache folder."
    )
    embedder_batch: int = Field(default=64, ge=1, le=2048, description="Maximum number of texts per embedding request.")
    embedder_characters: int = Field(
        default=6000, ge=100, le=100_000, description="Texts are truncated to this many characters before embedding."
    )
    embed_wait_seconds: float = Field(
        default=0.8,
        ge=0,
        le=60,
        description="How long a write or a recall waits for the embedder before it continues without it.",
    )
    chat_url: str = Field(
        default="",
        description="Base URL of a chat endpoint, ending in /v1. Used for extraction, reflection and answers.",
    )
    chat_key: SecretStr = Field(default=SecretStr(""), description="API key of the chat endpoint.")
    chat_model: str = Field(default="", description="Chat model name.")
    chat_seconds: float = Field(default=120.0, gt=0, le=3600, description="Chat request timeout.")
    chat_characters: int = Field(
        default=24_000, ge=500, le=1_000_000, description="Maximum characters of memories in one prompt."
    )
    judge_seconds: float = Field(
        default=4.0,
        gt=0,
        le=300,
        description="How long a recall waits for the chat model to judge hits. Hits not judged by then are kept.",
    )
    chat_prices: str = Field(
        default="",
        description="Price per million tokens as `model=prompt/completion`, separated by spaces. Used in cost reports.",
    )
    tokens_per_day: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000_000,
        description="Daily token budget per tenant (UTC). Enrichment waits when it is used up. 0 = unlimited.",
    )
    steps: str = Field(
        default="label segment summarise extract resolve link",
        description="Enrichment steps to run, in order.",
    )
    tokenizers: str = Field(
        default="o200k_base cl100k_base",
        description="Tokenizers to load, default first: `o200k_base`, `cl100k_base`, `qwen`, `qwen3.5`, `deepseek`, "
        "`estimate`.",
    )
    archive_after_days: float = Field(
        default=0, ge=0, le=36_500, description="Archive a conversation after this many idle days; 0 = never."
    )
    delete_after_days: float = Field(
        default=0, ge=0, le=36_500, description="Delete a conversation after this many idle days; 0 = never."
    )
    purge_after_days: float = Field(
        default=30, ge=0, le=36_500, description="Purge a deleted conversation after this many days; 0 = never."
    )
    fading_days: float = Field(
        default=0, ge=0, le=36_500, description="Days until an unused memory fades from recall; 0 = never."
    )
    keep_recalls: Literal["off", "sampled", "on"] = Field(
        default="off", description="Which recalls to save for `explain` and `replay`, unless the call decides."
    )
    keep_share: float = Field(default=0.01, ge=0, le=1, description="Share of recalls that `sampled` saves; 0.01 = 1%.")
    recall_days: float = Field(
        default=30, ge=0, le=36_500, description="Delete saved recalls after this many days; 0 = never."
    )
    ledger_days: float = Field(
        default=400, ge=0, le=36_500, description="Delete daily cost totals after this many days; 0 = never."
    )
    change_days: float = Field(default=7, gt=0, le=36_500, description="Keep the change log for this many days.")
    unread_change_days: float = Field(
        default=30,
        gt=0,
        le=36_500,
        description="Maximum days to keep the change log for a registered reader that has not read it.",
    )
    mirror_lag_seconds: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="Do not query a mirror that lags behind by more than this.",
    )
    mirror_seconds: float = Field(
        default=30.0, gt=0, le=3600, description="Timeout for one request while filling a mirror."
    )
    cold_url: str = Field(
        default="",
        description="Object storage for inactive scopes: `s3://bucket/prefix`, `gs://`, `az://` or `file:///folder`.",
    )
    cold_options: str = Field(
        default="",
        description="Options of the object storage client as `name=value`, separated by spaces.",
    )
    cold_after_days: float = Field(
        default=0, ge=0, le=36_500, description="Move a scope to object storage after this many idle days; 0 = never."
    )
    cold_seconds: float = Field(default=60.0, gt=0, le=3000, description="Object storage timeout per object.")
    cold_key: SecretStr = Field(
        default=SecretStr(""),
        description="Master key that encrypts cold scopes: 32 bytes in base64.",
    )
    cold_key_before: SecretStr = Field(
        default=SecretStr(""), description="Previous master key, until `recollect admin cold rewrap` has run."
    )
    erasure_log: str = Field(
        default="",
        description="Where to log erasures outside the database, so that a restored backup can apply them: a folder, "
        "`s3://bucket/prefix` or `off`. Default: the data folder of the embedded PostgreSQL; off for "
        "other servers.",
    )
    opensearch_url: str = Field(default="", description="URL of the OpenSearch cluster to mirror to.")
    opensearch_user: str = Field(default="", description="OpenSearch user.")
    opensearch_password: SecretStr = Field(default=SecretStr(""), description="OpenSearch password.")
    opensearch_key: SecretStr = Field(
        default=SecretStr(""), description="OpenSearch API key, instead of user and password."
    )
    opensearch_ca: Path | None = Field(default=None, description="CA certificate of the cluster, if it is private.")
    opensearch_index: str = Field(
        default="recollect",
        pattern=r"^[a-z][a-z0-9_-]{0,60}$",
        description="Alias and index name prefix. Use one per database.",
    )
    opensearch_shards: int = Field(default=4, ge=1, le=1024, description="Number of primary shards per index.")
    opensearch_replicas: int = Field(default=1, ge=0, le=10, description="Number of replicas per shard.")
    neo4j_url: str = Field(default="", description="URL of the Neo4j server to mirror to.")
    neo4j_user: str = Field(default="", description="Neo4j user.")
    neo4j_password: SecretStr = Field(default=SecretStr(""), description="OpenSearch password.")
    neo4j_key: SecretStr = Field(default=SecretStr(""), description="Neo4j bearer token, instead of user and password.")
    neo4j_ca: Path | None = Field(default=None, description="CA certificate of the server, if it is private.")
    neo4j_database: str = Field(default="neo4j", description="Database reserved for the mirror.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum log level. Requests are logged as `info`."
    )
    traces_url: str = Field(
        default="",
        description="OTLP/HTTP endpoint for traces, for example `http://127.0.0.1:4318`. Empty = no tracing.",
    )
    traces_share: float = Field(default=1.0, ge=0, le=1, description="Share of requests and jobs to trace; 0.01 = 1%.")
    host: str = Field(default="127.0.0.1", description="Address that `recollect serve` listens on.")
    mcp_hosts: str = Field(
        default="",
        description="Names by which clients of MCP reach the server, with commas; empty = local ones where `host` is. "
        "Needs the extra `mcp`.",
    )
    console: Literal["on", "off"] = Field(default="on", description="Serve the web console at `/console`.")
    origins: str = Field(
        default="",
        description="Allowed CORS origins, separated by commas, for example `https://shop.example`.",
    )
    port: int = Field(default=7077, ge=0, le=65535, description="Port that `recollect serve` listens on.")
    health_port: int = Field(default=0, ge=0, le=65535, description="Port of health and metrics alone; 0 = `port`.")
    proxies: str = Field(default="", description="Addresses of proxies whose `X-Forwarded-*` count, with commas.")

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
        files = InitSettingsSource(settings_cls, read_files(settings_cls))
        return init_settings, env_settings, files, dotenv_settings, TomlConfigSettingsSource(settings_cls, find_toml())

    @property
    def embedded(self) -> bool:
        """Return whether the database is the embedded PostgreSQL."""
        return self.database_url == EMBEDDED and not self.catalog_url

    @property
    def data_folder(self) -> Path:
        """Return the data folder of the embedded PostgreSQL, in which `recollect up` also stores its address."""
        return (self.data_dir or default_data_dir()).expanduser().resolve()

    @property
    def most_requests(self) -> int:
        """Return how many requests a process serves at a time."""
        return self.requests_at_once or max(2, self.pool_size * 4 // 10)


def default_data_dir() -> Path:
    """Return the default data folder: of the system for root, else of the user."""
    if os.geteuid() == 0:
        return Path("/var/lib/recollect")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "recollect"


def read_files(settings: type[BaseSettings]) -> dict[str, Any]:
    """Read the settings whose variable names a file, without the line end that editors add."""
    values = {}
    for field in settings.model_fields:
        name = f"{PREFIX}{field.upper()}"
        if path := os.environ.get(name + FILE):
            if name in os.environ:
                raise SetupError(f"Set {name} or {name}{FILE}, not both.")
            try:
                values[field] = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as problem:
                raise SetupError(f"{name}{FILE}: {path} cannot be read ({problem}).") from None
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
        raise SetupError(f"{PREFIX}{'_'.join(map(str, first['loc'])).upper()}: {first['msg']}") from None
    except tomllib.TOMLDecodeError as problem:
        raise SetupError(f"{find_toml()} is not valid TOML: {problem}") from None
    return find_misspelt()


def find_misspelt() -> list[str]:
    """Return sentences about variables and names in the TOML file that are no settings, with the nearest setting."""
    given = {name.upper() for source in (EnvSettingsSource, DotEnvSettingsSource) for name in source(Settings).env_vars}
    names = sorted(name.removeprefix(PREFIX) for name in given if name.startswith(PREFIX))
    settings = list(Settings.model_fields)
    variables = [name.upper() for name in settings]
    known = NON_SETTING_VARIABLES.union(variables, (name + FILE for name in variables))
    unknown = [name for name in names if name not in known and not KUBERNETES_VARIABLE.fullmatch(name)]
    found = [f"{PREFIX}{name} is not a setting{suggest(name, variables, PREFIX)}" for name in unknown]
    toml = find_toml()
    written = TomlConfigSettingsSource(Settings, toml).toml_data if toml else {}
    return found + [
        f"{name} in {toml} is not a setting{suggest(name, settings)}" for name in written if name not in settings
    ]


def suggest(name: str, known: list[str], prefix: str = "") -> str:
    """Name the known name that is most like an unknown one, if any is."""
    near = get_close_matches(name, known, 1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""


def read_settings() -> Settings:
    """Read the settings for a program that does not do so itself, and warn of unknown ones."""
    for sentence in find_misspelt():
        LOG.warning(json.dumps({"event": "unknown_setting", "message": sentence}))
    return Settings()

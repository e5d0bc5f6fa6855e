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
OF_OTHERS = frozenset(
    {"URL", "KEY", "CONFIG", "OTHER_KEY", "SEED", "TESTS", "TIMINGS", "OWNER_PASSWORD", "SERVICE_PASSWORD"}
)
"""Variables of ours that are no settings: of clients, of tests, of the files in `deploy/`, and the path of the TOML."""
EMBEDDED = "embedded"
CONFIG_VARIABLE, CONFIG_FILE = f"{PREFIX}CONFIG", "recollect.toml"
FILE = "_FILE"
"""A variable with this ending names a file that holds the value of a setting, as Docker and Kubernetes mount it."""
OF_KUBERNETES = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT_\d+_\w+)")
"""Variables that Kubernetes sets for a service by the name of `recollect`."""


class Settings(BaseSettings):
    """What an operator can set; every field has a default that works on one machine."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_file=".env", extra="ignore", frozen=True)

    database_url: str = Field(
        default=EMBEDDED, description="DSN of the service's role, or `embedded` for the PostgreSQL in the wheel."
    )
    owner_database_url: str = Field(
        default="",
        description="DSN of the role that owns the tables; the API and the worker do without it.",
    )
    direct_url: str = Field(
        default="",
        description="DSN of the service's role past a pooler such as PgBouncer, for what listens and for the worker; "
        "without one, changes are looked for once a second.",
    )
    replica_urls: str = Field(
        default="",
        description="DSNs of the service's role on replicas of the database, which read for who has seen no more than "
        "they have; several with semicolons.",
    )
    catalog_url: str = Field(
        default="",
        description="DSN of the service's role on the catalog, where several servers share the tenants; `database_url` "
        "is not used then.",
    )
    owner_catalog_url: str = Field(
        default="", description="DSN of the role that owns the catalog; the API and the worker do without it."
    )
    map_file: Path | None = Field(
        default=None, description="Where a process keeps its copy of the catalog's map; in the cache folder if not set."
    )
    shards: str = Field(default="", description="The shards that a worker works for, by name; empty = all of them.")
    data_dir: Path | None = Field(default=None, description="Where the embedded PostgreSQL keeps its data.")
    pool_size: int = Field(default=10, ge=1, le=500, description="Connections per process.")
    prepare_statements: bool = Field(
        default=True,
        description="Whether the server keeps plans of statements; behind a pooler that cannot hold them it does not.",
    )
    requests_at_once: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="Requests that a process serves at a time; others wait. 0 = four tenths of `pool_size`.",
    )
    start_wait_seconds: float = Field(
        default=60.0,
        ge=0,
        le=3600,
        description="How long `serve` and `worker` wait at start for a PostgreSQL that does not answer yet.",
    )
    deadline_seconds: float = Field(default=10.0, gt=0, le=300, description="Longest time one request may take.")
    import_bytes: int = Field(
        default=268_435_456, ge=1, le=1 << 40, description="Largest export that `POST /v1/import` takes."
    )
    channel_seconds: float = Field(
        default=1.0,
        gt=0,
        le=300,
        description="How long a recall waits for one of its channels before it goes on without it.",
    )
    embedder: Literal["auto", "none", "local", "minilm", "openai", "fake"] = Field(
        default="auto",
        description="`local` = MiniLM in this process, with Chinese where the database's space has it; `minilm` = "
        "without Chinese; `openai` = any OpenAI-compatible endpoint, `none`; `auto` = `local` where it is installed, "
        "else `none`; `fake` is for tests.",
    )
    embedder_url: str = Field(default="", description="Base URL of the endpoint, ending in /v1.")
    embedder_key: SecretStr = Field(default=SecretStr(""), description="Bearer key of the endpoint.")
    embedder_model: str = Field(
        default="", description="Model name to ask for; with `local`, a model that `recollect model pull` brought here."
    )
    embedder_dimensions: int = Field(default=0, ge=0, le=4096, description="Dimensions of that model's vectors.")
    hub_url: str = Field(
        default="https://huggingface.co", description="Address of the hub or mirror that `recollect model pull` asks."
    )
    models_dir: Path | None = Field(
        default=None, description="Folder of the models that were pulled; in the cache folder if not set."
    )
    embedder_batch: int = Field(default=64, ge=1, le=2048, description="Most texts sent to the embedder in one call.")
    embedder_characters: int = Field(
        default=6000, ge=100, le=100_000, description="Longer texts are cut to this before they are embedded."
    )
    embed_wait_seconds: float = Field(
        default=0.8,
        ge=0,
        le=60,
        description="How long a write or a recall waits for the embedder before going on without.",
    )
    chat_url: str = Field(
        default="",
        description="Base URL of a chat endpoint, ending in /v1; for facts from conversations, reflection and answers.",
    )
    chat_key: SecretStr = Field(default=SecretStr(""), description="Bearer key of the chat endpoint.")
    chat_model: str = Field(default="", description="Chat model to ask for.")
    chat_seconds: float = Field(default=120.0, gt=0, le=3600, description="Longest time to wait for one answer.")
    chat_characters: int = Field(
        default=24_000, ge=500, le=1_000_000, description="Most characters of memories in one prompt."
    )
    judge_seconds: float = Field(
        default=4.0,
        gt=0,
        le=300,
        description="How long a recall waits for the chat model to judge its hits; what is not judged by then is kept.",
    )
    chat_prices: str = Field(
        default="",
        description="What a million tokens cost, as `model=prompt/completion`, for the ledger; several with blanks.",
    )
    tokens_per_day: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000_000,
        description="Tokens that a tenant may use on a UTC day before its enrichment waits; 0 = no limit.",
    )
    steps: str = Field(
        default="label segment summarise extract resolve link",
        description="The steps of enrichment, in order; a step that is not named is not taken.",
    )
    tokenizers: str = Field(
        default="o200k_base cl100k_base",
        description="By which messages are counted, the usual one first: `o200k_base`, `cl100k_base`, `qwen`, "
        "`qwen3.5`, `deepseek`, `estimate`.",
    )
    archive_after_days: float = Field(
        default=0, ge=0, le=36_500, description="Days without use before a conversation is archived; 0 = never."
    )
    delete_after_days: float = Field(
        default=0, ge=0, le=36_500, description="Days without use before a conversation is deleted; 0 = never."
    )
    purge_after_days: float = Field(
        default=30, ge=0, le=36_500, description="Days between a conversation's deletion and its purge; 0 = never."
    )
    fading_days: float = Field(
        default=0, ge=0, le=36_500, description="Days over which a memory fades that nobody recalls; 0 = never."
    )
    keep_recalls: Literal["off", "sampled", "on"] = Field(
        default="off", description="Which recalls are kept, to be explained and replayed, where a cue does not say it."
    )
    keep_share: float = Field(
        default=0.01, ge=0, le=1, description="How many recalls `sampled` keeps; 0.01 is one in a hundred."
    )
    recall_days: float = Field(
        default=30, ge=0, le=36_500, description="Days after which a kept recall is removed; 0 = never."
    )
    ledger_days: float = Field(
        default=400, ge=0, le=36_500, description="Days after which the daily sums of costs are removed; 0 = never."
    )
    change_days: float = Field(default=7, gt=0, le=36_500, description="Days for which the change log is kept.")
    unread_change_days: float = Field(
        default=30,
        gt=0,
        le=36_500,
        description="Days for which the change log is kept at most while a registered reader has not read it.",
    )
    mirror_lag_seconds: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="How far a mirror may be behind the record; one that is further behind is not asked.",
    )
    mirror_seconds: float = Field(
        default=30.0, gt=0, le=3600, description="Longest time to wait for one answer of a mirror while it is fed."
    )
    cold_url: str = Field(
        default="",
        description="Where scopes go that nobody touched for long: `s3://bucket/prefix`, `gs://`, `az://`, `file:///folder`.",
    )
    cold_options: str = Field(
        default="",
        description="What else the client of the object storage must know, as `name=value`, several with blanks.",
    )
    cold_after_days: float = Field(
        default=0, ge=0, le=36_500, description="Days without any use before a scope goes there; 0 = never."
    )
    cold_seconds: float = Field(
        default=60.0, gt=0, le=3000, description="Longest time to wait for one object of the object storage."
    )
    cold_key: SecretStr = Field(
        default=SecretStr(""),
        description="Master key, 32 bytes in base64: objects are sealed with a key of each tenant, wrapped by it.",
    )
    cold_key_before: SecretStr = Field(
        default=SecretStr(""), description="The master key before it, until `recollect cold rewrap` was run."
    )
    erasure_log: str = Field(
        default="",
        description="Where erasures are also logged, outside the database, so that a restored backup forgets, too: a "
        "folder, `s3://bucket/prefix` and the like, or `off`; not set, the data folder of the embedded PostgreSQL, "
        "and nowhere for another.",
    )
    backup_url: str = Field(
        default="",
        description="DSN of a superuser, or of a role that may read every row, for `recollect backup`; not set, the "
        "owner's.",
    )
    opensearch_url: str = Field(default="", description="Address of an OpenSearch cluster that is to be a mirror.")
    opensearch_user: str = Field(default="", description="User of the cluster.")
    opensearch_password: SecretStr = Field(default=SecretStr(""), description="Password of that user.")
    opensearch_key: SecretStr = Field(default=SecretStr(""), description="API key, in place of a user.")
    opensearch_ca: Path | None = Field(default=None, description="Certificate authority of the cluster, if its own.")
    opensearch_index: str = Field(
        default="recollect",
        pattern=r"^[a-z][a-z0-9_-]{0,60}$",
        description="Alias of the mirror, and what its indexes' names begin with; one for each database.",
    )
    opensearch_shards: int = Field(default=4, ge=1, le=1024, description="Shards of an index of the mirror.")
    opensearch_replicas: int = Field(default=1, ge=0, le=10, description="Copies of each of its shards.")
    neo4j_url: str = Field(default="", description="Address of a Neo4j server that is to be a mirror.")
    neo4j_user: str = Field(default="", description="User of the server.")
    neo4j_password: SecretStr = Field(default=SecretStr(""), description="Password of that user.")
    neo4j_key: SecretStr = Field(default=SecretStr(""), description="Bearer token, in place of a user.")
    neo4j_ca: Path | None = Field(default=None, description="Certificate authority of the server, if its own.")
    neo4j_database: str = Field(default="neo4j", description="Database that the mirror has to itself.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="From which level on events are logged; every request is `info`."
    )
    traces_url: str = Field(
        default="",
        description="Address of a receiver of OTLP over HTTP, such as `http://127.0.0.1:4318`; empty = no traces.",
    )
    traces_share: float = Field(
        default=1.0, ge=0, le=1, description="How many requests and jobs are traced; 0.01 is one in a hundred."
    )
    host: str = Field(default="127.0.0.1", description="Address that `recollect serve` listens on.")
    mcp_hosts: str = Field(
        default="",
        description="Names by which clients of MCP reach the server, with commas; empty = local ones where `host` is.",
    )
    console: Literal["on", "off"] = Field(default="on", description="Whether the console is served at `/console`.")
    origins: str = Field(
        default="",
        description="Origins of other sites whose pages may call the API with a key, with commas, as "
        "`https://shop.example`.",
    )
    port: int = Field(default=7077, ge=0, le=65535, description="Port that `recollect serve` listens on.")

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
        """Tell whether the database is the embedded PostgreSQL."""
        return self.database_url == EMBEDDED and not self.catalog_url

    @property
    def data_folder(self) -> Path:
        """Say where the embedded PostgreSQL keeps its data, and `recollect up` its address."""
        return (self.data_dir or default_data_dir()).expanduser().resolve()

    @property
    def most_requests(self) -> int:
        """Say how many requests a process serves at a time."""
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
    """Say which variables and names in the TOML file look like settings but are none, and which were meant."""
    given = {name.upper() for source in (EnvSettingsSource, DotEnvSettingsSource) for name in source(Settings).env_vars}
    names = sorted(name.removeprefix(PREFIX) for name in given if name.startswith(PREFIX))
    settings = list(Settings.model_fields)
    variables = [name.upper() for name in settings]
    known = OF_OTHERS.union(variables, (name + FILE for name in variables))
    unknown = [name for name in names if name not in known and not OF_KUBERNETES.fullmatch(name)]
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

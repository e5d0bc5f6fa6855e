"""The groups of settings: `RECOLLECT_COLD__URL` in the environment, a table `[cold]` in the TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr

Days = Annotated[float, Field(ge=0, le=36_500)]
KeptDays = Annotated[float, Field(gt=0, le=36_500)]
NO_SECRET = SecretStr("")


class PostgresSettings(BaseModel, frozen=True):
    """Connections to PostgreSQL."""

    direct_url: str = Field(
        default="",
        description="DSN that bypasses the connection pooler, for LISTEN and the worker. Without it, changes are "
        "polled every second.",
    )
    prepare_statements: bool = Field(
        default=True, description="Use prepared statements. Turn off behind a pooler that does not support them."
    )
    start_timeout_seconds: float = Field(
        default=60.0, ge=0, le=3600, description="How long `serve` and `worker` wait for PostgreSQL at startup."
    )
    max_requests: int = Field(
        default=0, ge=0, le=10_000, description="Maximum concurrent requests per process. 0 = 40% of `pool_size`."
    )


class EmbeddingSettings(BaseModel, frozen=True):
    """Calls of the embedder, and its downloaded models."""

    max_batch_size: int = Field(default=64, ge=1, le=2048, description="Maximum number of texts per embedding request.")
    max_characters: int = Field(
        default=6000, ge=100, le=100_000, description="Texts are truncated to this many characters before embedding."
    )
    wait_timeout_seconds: float = Field(
        default=0.8,
        ge=0,
        le=60,
        description="How long a write or a recall waits for the embedder before it continues without it.",
    )
    hub_url: str = Field(
        default="https://huggingface.co", description="Model hub or mirror used by `recollect admin model pull`."
    )
    models_dir: Path | None = Field(
        default=None, description="Folder for downloaded models. Default: the cache folder."
    )


class ChatSettings(BaseModel, frozen=True):
    """Calls of the chat model."""

    timeout_seconds: float = Field(default=120.0, gt=0, le=3600, description="Chat request timeout.")
    max_characters: int = Field(
        default=24_000, ge=500, le=1_000_000, description="Maximum characters of memories in one prompt."
    )
    judge_timeout_seconds: float = Field(
        default=4.0,
        gt=0,
        le=300,
        description="How long a recall waits for the chat model to judge hits. Hits not judged by then are kept.",
    )


class RecallSettings(BaseModel, frozen=True):
    """Recalls, and which of them to save."""

    channel_timeout_seconds: float = Field(
        default=1.0, gt=0, le=300, description="How long a recall waits for one channel before it continues without it."
    )
    save: Literal["off", "sampled", "on"] = Field(
        default="off", description="Which recalls to save for `explain` and `replay`, unless the call decides."
    )
    save_ratio: float = Field(default=0.01, ge=0, le=1, description="Share of recalls that `sampled` saves; 0.01 = 1%.")
    save_days: Days = Field(default=30, description="Delete saved recalls after this many days; 0 = never.")


class RetentionSettings(BaseModel, frozen=True):
    """How long conversations, costs and changes are kept."""

    archive_after_days: Days = Field(
        default=0, description="Archive a conversation after this many idle days; 0 = never."
    )
    delete_after_days: Days = Field(
        default=0, description="Delete a conversation after this many idle days; 0 = never."
    )
    purge_after_days: Days = Field(
        default=30, description="Purge a deleted conversation after this many days; 0 = never."
    )
    cost_days: Days = Field(default=400, description="Delete daily cost totals after this many days; 0 = never.")
    change_days: KeptDays = Field(default=7, description="Keep the change log for this many days.")
    unread_change_days: KeptDays = Field(
        default=30, description="Maximum days to keep the change log for a registered reader that has not read it."
    )


class OperationsSettings(BaseModel, frozen=True):
    """Imports, erasures, traces, health checks and proxies."""

    max_import_bytes: int = Field(
        default=268_435_456, ge=1, le=1 << 40, description="Maximum size of a file sent to `POST /v1/import`."
    )
    erasure_log: str = Field(
        default="",
        description="Where to log erasures outside the database, so that a restored backup can apply them: a folder, "
        "`s3://bucket/prefix` or `off`. Default: the data folder of the embedded PostgreSQL; off for "
        "other servers.",
    )
    traces_url: str = Field(
        default="",
        description="OTLP/HTTP endpoint for traces, for example `http://127.0.0.1:4318`. Empty = no tracing.",
    )
    traces_ratio: float = Field(default=1.0, ge=0, le=1, description="Share of requests and jobs to trace; 0.01 = 1%.")
    health_port: int = Field(default=0, ge=0, le=65535, description="Port of health and metrics alone; 0 = `port`.")
    proxies: str = Field(default="", description="Addresses of proxies whose `X-Forwarded-*` count, with commas.")


class ShardsSettings(BaseModel, frozen=True):
    """The catalog of tenants on several servers."""

    catalog_url: str = Field(
        default="",
        description="DSN of the shard catalog. Replaces `database_url` when tenants are spread over several servers.",
    )
    owner_catalog_url: str = Field(
        default="", description="DSN of the role that owns the catalog. Not needed by the API or the worker."
    )
    map_file: Path | None = Field(default=None, description="Where to cache the shard map. Default: the cache folder.")
    names: str = Field(default="", description="Shards this worker serves, by name. Default: all.")


class ColdSettings(BaseModel, frozen=True):
    """Object storage for inactive scopes."""

    url: str = Field(
        default="",
        description="Object storage for inactive scopes: `s3://bucket/prefix`, `gs://`, `az://` or `file:///folder`.",
    )
    options: str = Field(
        default="", description="Options of the object storage client as `name=value`, separated by spaces."
    )
    after_days: Days = Field(
        default=0, description="Move a scope to object storage after this many idle days; 0 = never."
    )
    timeout_seconds: float = Field(default=60.0, gt=0, le=3000, description="Object storage timeout per object.")
    key: SecretStr = Field(default=NO_SECRET, description="Master key that encrypts cold scopes: 32 bytes in base64.")
    previous_key: SecretStr = Field(
        default=NO_SECRET, description="Previous master key, until `recollect admin cold rewrap` has run."
    )


class MirrorsSettings(BaseModel, frozen=True):
    """Limits for every mirror."""

    max_lag_seconds: float = Field(
        default=60.0, gt=0, le=86_400, description="Do not query a mirror that lags behind by more than this."
    )
    timeout_seconds: float = Field(
        default=30.0, gt=0, le=3600, description="Timeout for one request while filling a mirror."
    )


class OpenSearchSettings(BaseModel, frozen=True):
    """The mirror in OpenSearch."""

    url: str = Field(default="", description="URL of the OpenSearch cluster to mirror to.")
    user: str = Field(default="", description="OpenSearch user.")
    password: SecretStr = Field(default=NO_SECRET, description="OpenSearch password.")
    key: SecretStr = Field(default=NO_SECRET, description="OpenSearch API key, instead of user and password.")
    ca: Path | None = Field(default=None, description="CA certificate of the cluster, if it is private.")
    index: str = Field(
        default="recollect",
        pattern=r"^[a-z][a-z0-9_-]{0,60}$",
        description="Alias and index name prefix. Use one per database.",
    )
    shards: int = Field(default=4, ge=1, le=1024, description="Number of primary shards per index.")
    replicas: int = Field(default=1, ge=0, le=10, description="Number of replicas per shard.")


class Neo4jSettings(BaseModel, frozen=True):
    """The mirror in Neo4j."""

    url: str = Field(default="", description="URL of the Neo4j server to mirror to.")
    user: str = Field(default="", description="Neo4j user.")
    password: SecretStr = Field(default=NO_SECRET, description="Neo4j password.")
    key: SecretStr = Field(default=NO_SECRET, description="Neo4j bearer token, instead of user and password.")
    ca: Path | None = Field(default=None, description="CA certificate of the server, if it is private.")
    database: str = Field(default="neo4j", description="Database reserved for the mirror.")

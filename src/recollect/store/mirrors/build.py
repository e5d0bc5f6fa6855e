"""Build the mirrors that the settings name; the client of each engine is loaded with it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from recollect.errors import SetupError
from recollect.loading import load
from recollect.settings import Settings
from recollect.store.mirrors.mirror import Mirror

PLAIN_BOLT = {"bolt", "neo4j"}


def build_mirrors(settings: Settings) -> dict[str, Mirror]:
    """Build a mirror for each engine that has an address, by name, without connecting to it."""
    builders = {settings.opensearch_url: build_opensearch, settings.neo4j_url: build_neo4j}
    built = [build(settings) for url, build in builders.items() if url]
    return {mirror.name: mirror for mirror in built}


def build_opensearch(settings: Settings) -> Mirror:
    """Build the mirror in OpenSearch."""
    engine = load("recollect.store.mirrors.opensearch", "opensearch")
    password, key = settings.opensearch_password.get_secret_value(), settings.opensearch_key.get_secret_value()
    if key and settings.opensearch_user:
        raise SetupError("Set either RECOLLECT_OPENSEARCH_KEY or RECOLLECT_OPENSEARCH_USER, not both.")
    options: dict[str, Any] = {
        "hosts": [settings.opensearch_url],
        "timeout": settings.mirror_seconds,
        # A job tries again, when the engine has had time to recover.
        "max_retries": 0,
    }
    if settings.opensearch_user:
        options["http_auth"] = (settings.opensearch_user, password)
    if key:
        options["headers"] = {"Authorization": f"ApiKey {key}"}
    if urlsplit(settings.opensearch_url).scheme == "https":
        options |= {"use_ssl": True, "verify_certs": True, "ca_certs": str(settings.opensearch_ca or "") or None}
    layout = engine.IndexLayout(settings.opensearch_index, settings.opensearch_shards, settings.opensearch_replicas)
    mirror: Mirror = engine.OpenSearchMirror(engine.AsyncOpenSearch(**options), layout)
    return mirror


def build_neo4j(settings: Settings) -> Mirror:
    """Build the mirror in Neo4j."""
    engine, client = load("recollect.store.mirrors.neo4j", "neo4j"), load("neo4j", "neo4j")
    password, key = settings.neo4j_password.get_secret_value(), settings.neo4j_key.get_secret_value()
    if key and settings.neo4j_user:
        raise SetupError("Set either RECOLLECT_NEO4J_KEY or RECOLLECT_NEO4J_USER, not both.")
    options: dict[str, Any] = {
        "connection_timeout": settings.mirror_seconds,
        "connection_acquisition_timeout": settings.mirror_seconds,
        "max_transaction_retry_time": settings.mirror_seconds,
    }
    if settings.neo4j_user:
        options["auth"] = client.basic_auth(settings.neo4j_user, password)
    if key:
        options["auth"] = client.bearer_auth(key)
    url = settings.neo4j_url
    if settings.neo4j_ca is not None:
        if urlsplit(url).scheme not in PLAIN_BOLT:
            raise SetupError("With RECOLLECT_NEO4J_CA the address must start with bolt:// or neo4j://.")
        options |= {"encrypted": True, "trusted_certificates": client.TrustCustomCAs(str(settings.neo4j_ca))}
    driver = client.AsyncGraphDatabase.driver(url, **options)
    mirror: Mirror = engine.Neo4jMirror(driver, settings.neo4j_database, settings.mirror_seconds)
    return mirror

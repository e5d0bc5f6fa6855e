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
    builders = {settings.opensearch.url: build_opensearch, settings.neo4j.url: build_neo4j}
    built = [build(settings) for url, build in builders.items() if url]
    return {mirror.name: mirror for mirror in built}


def build_opensearch(settings: Settings) -> Mirror:
    """Build the mirror in OpenSearch."""
    engine = load("recollect.store.mirrors.opensearch", "opensearch")
    given = settings.opensearch
    password, key = given.password.get_secret_value(), given.key.get_secret_value()
    if key and given.user:
        raise SetupError("Set either RECOLLECT_OPENSEARCH__KEY or RECOLLECT_OPENSEARCH__USER, not both.")
    options: dict[str, Any] = {
        "hosts": [given.url],
        "timeout": settings.mirrors.timeout_seconds,
        # A job tries again, when the engine has had time to recover.
        "max_retries": 0,
    }
    if given.user:
        options["http_auth"] = (given.user, password)
    if key:
        options["headers"] = {"Authorization": f"ApiKey {key}"}
    if urlsplit(given.url).scheme == "https":
        options |= {"use_ssl": True, "verify_certs": True, "ca_certs": str(given.ca or "") or None}
    layout = engine.IndexLayout(given.index, given.shards, given.replicas)
    mirror: Mirror = engine.OpenSearchMirror(engine.AsyncOpenSearch(**options), layout)
    return mirror


def build_neo4j(settings: Settings) -> Mirror:
    """Build the mirror in Neo4j."""
    engine, client = load("recollect.store.mirrors.neo4j", "neo4j"), load("neo4j", "neo4j")
    given = settings.neo4j
    password, key = given.password.get_secret_value(), given.key.get_secret_value()
    if key and given.user:
        raise SetupError("Set either RECOLLECT_NEO4J__KEY or RECOLLECT_NEO4J__USER, not both.")
    seconds = settings.mirrors.timeout_seconds
    timeouts = ("connection_timeout", "connection_acquisition_timeout", "max_transaction_retry_time")
    options: dict[str, Any] = dict.fromkeys(timeouts, seconds)
    if given.user:
        options["auth"] = client.basic_auth(given.user, password)
    if key:
        options["auth"] = client.bearer_auth(key)
    if given.ca is not None:
        if urlsplit(given.url).scheme not in PLAIN_BOLT:
            raise SetupError("With RECOLLECT_NEO4J__CA the address must start with bolt:// or neo4j://.")
        options |= {"encrypted": True, "trusted_certificates": client.TrustCustomCAs(str(given.ca))}
    driver = client.AsyncGraphDatabase.driver(given.url, **options)
    mirror: Mirror = engine.Neo4jMirror(driver, given.database, seconds)
    return mirror

"""The only place where concrete parts are chosen and joined: from settings to a running Recollect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from recollect.channels.channel import Channel
from recollect.channels.date import DateChannel
from recollect.channels.graph import GraphChannel
from recollect.channels.keyword import KeywordChannel
from recollect.channels.mirror import MirrorChannel
from recollect.channels.past import PastChannel
from recollect.channels.recent import RecentChannel
from recollect.channels.stream import StreamChannel
from recollect.channels.text import TextChannel
from recollect.channels.topic import TopicChannel
from recollect.channels.vector import VectorChannel
from recollect.core.conversations.retention import save_ratio
from recollect.core.service.costs import read_prices
from recollect.core.service.erasures import ErasureLog
from recollect.core.text.tokens import ESTIMATE
from recollect.errors import ScopeMovedError, SetupError
from recollect.jobs.running import SHORT_STOP_SECONDS, worker_running
from recollect.llm.build import build_chat_model, build_embedder, choose_local
from recollect.llm.chat import ChatModel
from recollect.llm.embedder import Embedder, TracedEmbedder
from recollect.llm.local.installed import InstalledModels, open_models
from recollect.llm.tokens.count import load_tokenizers
from recollect.loading import load
from recollect.mind.operators import backups
from recollect.mind.service import Addresses, Recollect
from recollect.models.outside import RestoreReport
from recollect.models.shards import ServerAddresses, Shard
from recollect.setting_groups import ShardsSettings
from recollect.settings import Settings, read_settings
from recollect.store.backups.log import build_log
from recollect.store.cold.storage import build_storage
from recollect.store.database import ownership
from recollect.store.database.identity import ServerCheck
from recollect.store.database.migrate import migrate
from recollect.store.database.pool import Database
from recollect.store.database.probe import Probe, find_active_space
from recollect.store.memories import spaces
from recollect.store.mirrors.build import build_mirrors
from recollect.store.service.changes import ChangeFeeds
from recollect.store.shards import catalog
from recollect.store.shards.entry import add_shard
from recollect.store.shards.map import ShardMap, default_map_file, first_shard
from recollect.store.shards.probe import AnyProbe, ShardProbe, probe_shards
from recollect.store.shards.servers import Servers, ShardedServers, SingleServer, UnboundServer
from recollect.store.shards.tenants import Tenants
from recollect.tracing import Tracing
from recollect.verbs.cold.restore import ColdRestorer
from recollect.verbs.dependencies import Dependencies, EngineOptions, ProcessState
from recollect.verbs.knowledge.steps import choose_steps
from recollect.verbs.recovery import Recovery

CHANNELS: tuple[Callable[[], Channel], ...] = (
    *(VectorChannel, TextChannel, StreamChannel, GraphChannel),
    *(KeywordChannel, TopicChannel, DateChannel, RecentChannel),
    PastChannel,
)
DATABASE = "recollect"
SERVICE_ROLE = "recollect_service"
ERASURES = "erasures"
"""The folder of the embedded server's log of erasures, next to its files."""
RESTORE_SECONDS = 300.0
MOVE_PAUSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""The pauses in seconds before each new search for data that has moved to another server."""
OWN_TOOLS = (
    "This command is for the embedded server. Back up and restore your own server with its tools, then run `recollect "
    "backup replay` (docs/howto/backup.md)."
)
BACKUP_SINGLE_SERVER = (
    "Unset RECOLLECT_SHARDS__CATALOG_URL, and name each shard in turn in RECOLLECT_DATABASE_URL and "
    "RECOLLECT_OWNER_DATABASE_URL: erasures are applied on one server."
)


@asynccontextmanager
async def open_recollect(
    settings: Settings | None = None,
    *,
    work: bool = True,
    wait_seconds: float = 0,
    report: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Recollect]:
    """Open Recollect; `embedded` starts PostgreSQL and migrates first, a DSN expects both to be done.

    A worker runs in the background unless `work` is false. A PostgreSQL that does not answer yet is waited for up to
    `wait_seconds`. Each step is reported.
    """
    chosen = settings or read_settings()
    report("starting PostgreSQL" if chosen.embedded else "connecting to PostgreSQL")
    with connect_database(chosen) as addresses:
        embedded = chosen.embedded
        chat, embedder = build_chat_model(chosen), None
        try:
            if embedded:
                report("bringing the schema up to date")
                await update_schema(addresses)
            report("loading the embedder")
            embedder = await find_embedder(chosen, await find_server(addresses), wait_seconds)
            if embedded:
                await ensure_embedding_space(addresses, embedder)
            async with connected(chosen, addresses, embedder, chat, wait_seconds=wait_seconds) as recollect:
                working = worker_running(partial(recollect.work, stop_seconds=SHORT_STOP_SECONDS))
                async with working if work else nullcontext():
                    yield recollect
        finally:
            for model in (chat, embedder):
                if model is not None:
                    await model.close()


@asynccontextmanager
async def connected(
    settings: Settings,
    addresses: Addresses,
    embedder: Embedder | None,
    chat: ChatModel | None = None,
    *,
    wait_seconds: float = 0,
) -> AsyncIterator[Recollect]:
    """Join the parts around an open connection pool, for a database that fits this program."""
    async with AsyncExitStack() as stack:
        mirrors = build_mirrors(settings)
        log = build_log(addresses.erasure_log or settings.operations.erasure_log, settings)
        if addresses.catalog:
            servers, probe = await join_shards(settings, addresses.catalog, stack, log)
            database: Database = UnboundServer()
        else:
            one, probe = await join_server(settings, addresses.service, stack, wait_seconds, log)
            database, servers = one.database, one
        for mirror in mirrors.values():
            stack.push_async_callback(mirror.close_mirror)
        mirrored = (MirrorChannel(mirror, settings.mirrors.max_lag_seconds) for mirror in mirrors.values())
        feeds = ChangeFeeds(servers.home)
        stack.push_async_callback(feeds.end_followers)
        parts = Dependencies(
            database,
            servers,
            channels=(*(channel() for channel in CHANNELS), *mirrored),
            embedder=TracedEmbedder(embedder) if embedder and Tracing.tracer else embedder,
            chat=chat,
            tokenizers=load_tokenizers([*settings.tokenizers.replace(",", " ").split(), ESTIMATE]),
            steps=choose_steps(settings.enrich_steps),
            mirrors=mirrors,
            cold=build_storage(settings),
            recoveries=[follow_moves(servers)] if addresses.catalog else [],
            options=read_options(settings),
            process=ProcessState(feeds=feeds),
        )
        restorer = ColdRestorer(parts, settings.request_timeout_seconds)
        stack.push_async_callback(restorer.cancel_restores)
        whole = replace(parts, recoveries=[*parts.recoveries, restorer.recovery])
        yield Recollect(whole, settings, addresses, probe, restorer)


def read_options(settings: Settings) -> EngineOptions:
    """Return what the settings say about all calls."""
    return EngineOptions(
        embed_wait_seconds=settings.embedding.wait_timeout_seconds,
        embed_batch=settings.embedding.max_batch_size,
        prices=read_prices(settings.chat_prices),
        tokens_per_day=settings.daily_token_limit,
        fading_days=settings.fading_days,
        channel_seconds=settings.recall.channel_timeout_seconds,
        judge_seconds=settings.chat.judge_timeout_seconds,
        keep_share=save_ratio(settings),
    )


def follow_moves(servers: Servers) -> Recovery:
    """Look for the data of a tenant again after it has moved to another server."""

    async def read_anew(tenant_id: int, _met: ScopeMovedError) -> None:
        await servers.read_anew(tenant_id)

    return Recovery(ScopeMovedError, read_anew, MOVE_PAUSES)


async def join_server(
    settings: Settings, address: str, stack: AsyncExitStack, wait_seconds: float, log: ErasureLog | None
) -> tuple[SingleServer, AnyProbe]:
    """Open the connections to the one server."""
    probe = await Probe.open(address, wait_seconds)
    stack.push_async_callback(probe.disconnect)
    database = await open_pool(settings, address, ServerCheck(settings.postgres.direct_url), log)
    stack.push_async_callback(database.close)
    return SingleServer(database), probe


async def join_shards(
    settings: Settings, catalog: str, stack: AsyncExitStack, log: ErasureLog | None
) -> tuple[Servers, AnyProbe]:
    """Read the catalog's map; connections to a shard are opened when it is first needed."""
    shard_map = ShardMap(catalog, settings.shards.map_file or default_map_file())
    await shard_map.open()
    stack.push_async_callback(shard_map.stop_following)
    probe = ShardProbe(lambda: shard_map.shards)
    stack.push_async_callback(probe.disconnect)
    await probe.check()

    async def open_shard(shard: Shard) -> Database:
        return await open_pool(settings, shard.address, ServerCheck(shard.direct, shard.identity), log)

    servers = ShardedServers(shard_map, open_shard)
    stack.push_async_callback(servers.close_databases)
    return servers, probe


async def open_pool(
    settings: Settings, address: str, server: ServerCheck | None = None, log: ErasureLog | None = None
) -> Database:
    """Open connections to a server, as many as the settings say, with the log of its erasures."""
    size, seconds = settings.pool_size, settings.request_timeout_seconds
    database = await Database.open(address, size, seconds, prepared=settings.postgres.prepare_statements, server=server)
    return database.used(erasures=log)


async def prepare(
    addresses: Addresses, embedder: Embedder | None, report: Callable[[str], None] = lambda _: None
) -> None:
    """Migrate, and see that an embedder has a space; the first one becomes active."""
    await update_schema(addresses, report)
    await ensure_embedding_space(addresses, embedder)


async def update_schema(addresses: Addresses, report: Callable[[str], None] = lambda _: None) -> None:
    """Make the database if it must be made, and migrate it."""
    if not addresses.owner:
        raise SetupError("Set RECOLLECT_OWNER_DATABASE_URL: migrating needs the owner of the tables.")
    if addresses.maintenance:
        await ownership.ensure_database(addresses.maintenance, DATABASE)
    await migrate(addresses.owner, report)


async def find_server(addresses: Addresses) -> str:
    """Return the address of the server, or of one of the shards: all have the same space active."""
    return await first_shard(addresses.catalog) if addresses.catalog else addresses.service


async def find_embedder(settings: Settings, dsn: str, wait_seconds: float = 0) -> Embedder | None:
    """Build the embedder of the settings; the database says which of the local ones."""
    if choose_local(settings) is None:
        return build_embedder(settings)
    active = await find_active_space(dsn, wait_seconds)
    return build_embedder(settings, active.model if active else None)


async def ensure_embedding_space(addresses: Addresses, embedder: Embedder | None) -> None:
    """See that an embedder has a space; the first one of all becomes active."""
    if embedder is not None:
        await spaces.ensure_space(addresses.owner, embedder.model, embedder.dimensions)


async def set_up(settings: Settings, report: Callable[[str], None], first_block: int | None = None) -> None:
    """Bring the configured database to the newest schema, and number its tenants from a block on if one is named.

    With several servers: the catalog and every server.
    """
    if settings.shards.catalog_url:
        owner = require_catalog(settings)
        await catalog.create_catalog(owner)
        for each in await list_servers(settings):
            await set_up(each, report)
        return
    with connect_database(settings) as addresses:
        await update_schema(addresses, report)
        embedder = await find_embedder(settings, addresses.owner)
        try:
            await ensure_embedding_space(addresses, embedder)
            if first_block is not None:
                await ownership.number_tenants_from(addresses.owner, first_block)
        finally:
            if embedder is not None:
                await embedder.close()


def require_catalog(settings: Settings) -> str:
    """Return the DSN of the catalog's owner, or raise."""
    if not settings.shards.catalog_url:
        raise SetupError("Set RECOLLECT_SHARDS__CATALOG_URL: without a catalog there is one server.")
    return catalog.require_owner(settings.shards.owner_catalog_url)


def find_tenants(settings: Settings) -> Tenants:
    """Return what knows the tenants of the catalog by their names."""
    return Tenants(catalog=require_catalog(settings), several=True)


async def list_servers(settings: Settings) -> list[Settings]:
    """List the settings for each server: work of the tables' owner is done on one server at a time."""
    if not settings.shards.catalog_url:
        return [settings]
    shards = await catalog.list_servers(require_catalog(settings))
    return [choose_server(settings, each) for each in shards.values()]


async def look_at_shards(settings: Settings) -> list[tuple[str, str, str]]:
    """Check every shard of the catalog; return its name, its state, and its problem if it has one."""
    return await probe_shards(settings.shards.catalog_url, settings.shards.map_file or default_map_file())


def choose_server(settings: Settings, addresses: ServerAddresses) -> Settings:
    """Return the settings for one server alone."""
    alone = {"database_url": addresses.service, "owner_database_url": addresses.owner}
    return settings.model_copy(update=alone | {"shards": ShardsSettings()})


async def register_shard(
    settings: Settings, name: str, addresses: ServerAddresses, report: Callable[[str], None]
) -> None:
    """Bring a server to the newest schema, and enter it in the catalog, which is made if it is not there."""
    owner = require_catalog(settings)
    await catalog.create_catalog(owner)
    await add_shard(owner, name, addresses, lambda: set_up(choose_server(settings, addresses), report))


@contextmanager
def connect_database(settings: Settings) -> Iterator[Addresses]:
    """Return the addresses from the settings, starting the embedded PostgreSQL if it is asked for."""
    if settings.shards.catalog_url:
        yield Addresses("", "", catalog=settings.shards.catalog_url, catalog_owner=settings.shards.owner_catalog_url)
        return
    if not settings.embedded:
        yield Addresses(settings.database_url, settings.owner_database_url, erasure_log=settings.operations.erasure_log)
        return
    folder = settings.data_folder
    with load("recollect.store.embedded.cluster").Cluster(folder) as cluster:
        owner, log = cluster.dsn(DATABASE), settings.operations.erasure_log or str(folder / ERASURES)
        yield Addresses(cluster.dsn(DATABASE, SERVICE_ROLE), owner, cluster.dsn(), erasure_log=log)


def find_models(settings: Settings) -> InstalledModels:
    """Return the local models that were pulled, and what pulls more."""
    return open_models(settings.embedding.models_dir, settings.embedding.hub_url)


async def make_backup(settings: Settings, folder: Path) -> Path:
    """Dump the embedded server's database into a new file of a folder."""
    require_embedded(settings)
    with connect_database(settings) as addresses:
        return await backups.make_backup(addresses.owner, build_log(addresses.erasure_log, settings), folder)


async def restore_backup(settings: Settings, file: Path, *, logged: bool = True) -> RestoreReport:
    """Restore a dump as the embedded server."""
    require_embedded(settings)
    folder = settings.data_folder
    log = None if settings.operations.erasure_log else folder / ERASURES
    home = backups.RestoreTarget(folder, DATABASE, SERVICE_ROLE, log)
    return await join_restores(settings).restore(file, home, logged=logged)


async def replay_erasures(settings: Settings, since: datetime) -> RestoreReport:
    """Repeat the erasures since a time, in a database that was restored by other means."""
    if settings.shards.catalog_url:
        raise SetupError(BACKUP_SINGLE_SERVER)
    with connect_database(settings) as addresses:
        server, log = ServerAddresses(addresses.service, addresses.require_owner()), addresses.erasure_log
        return await join_restores(settings).replay(server, build_log(log, settings), since)


def require_embedded(settings: Settings) -> None:
    """Raise SetupError for a server that its own tools back up."""
    if not settings.embedded:
        raise SetupError(OWN_TOOLS)


def join_restores(settings: Settings) -> backups.Restores:
    """Join what a restore needs: a restored record is opened here, and before anybody else can."""
    return backups.Restores(settings, partial(join_restored, settings))


@asynccontextmanager
async def join_restored(settings: Settings, server: ServerAddresses) -> AsyncIterator[Dependencies]:
    """Migrate a restored database to the newest schema, and open it; new erasures in it are logged already."""
    await migrate(server.owner)
    patient = settings.model_copy(update={"request_timeout_seconds": RESTORE_SECONDS})
    database = await open_pool(patient, server.service)
    try:
        parts = Dependencies(database, SingleServer(database), cold=build_storage(settings))
        restorer = ColdRestorer(parts, RESTORE_SECONDS)
        try:
            yield replace(parts, recoveries=[restorer.recovery])
        finally:
            await restorer.cancel_restores()
    finally:
        await database.close()

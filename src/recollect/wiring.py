"""The only place where concrete parts are chosen and joined: from settings to a running Recollect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial

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
from recollect.core.conversations.retention import share_kept
from recollect.core.service.costs import read_prices
from recollect.core.service.erasures import ErasureLog
from recollect.core.text.tokens import ESTIMATE
from recollect.errors import ConflictError, SetupError
from recollect.jobs.running import SHORT_STOP_SECONDS, working_beside
from recollect.llm.build import build_chat_model, build_embedder, choose_local
from recollect.llm.chat import ChatModel
from recollect.llm.embedder import Embedder, TracedEmbedder
from recollect.llm.local.installed import InstalledModels, open_models
from recollect.llm.tokens.count import load_tokenizers
from recollect.loading import load
from recollect.mind.operators.backups import Backups, Home
from recollect.mind.service import Addresses, Recollect
from recollect.models.outside import BackupKind, BackupReport, RestoreReport
from recollect.models.shards import ServerAddresses
from recollect.settings import Settings, read_settings
from recollect.store.backups.copies import Progress
from recollect.store.backups.log import build_log
from recollect.store.cold.storage import build_storage
from recollect.store.database import ownership
from recollect.store.database.migrate import migrate
from recollect.store.database.pool import Database, FollowedLog
from recollect.store.database.probe import Probe, find_active_space
from recollect.store.database.replicas import REACH_SECONDS, Replicas
from recollect.store.memories import spaces
from recollect.store.mirrors.build import build_mirrors
from recollect.store.service.changes import ChangeFeeds
from recollect.store.shards import catalog, moves
from recollect.store.shards.map import ShardMap, default_map_file, first_shard
from recollect.store.shards.probe import AnyProbe, ShardProbe
from recollect.store.shards.servers import ManyServers, NoServer, OneServer, Servers
from recollect.tracing import Tracing
from recollect.verbs.cold.waking import Waker
from recollect.verbs.knowledge.steps import choose_steps
from recollect.verbs.parts import Parts

CHANNELS: tuple[Callable[[], Channel], ...] = (
    *(VectorChannel, TextChannel, StreamChannel, GraphChannel),
    *(KeywordChannel, TopicChannel, DateChannel, RecentChannel),
    PastChannel,
)
DATABASE = "recollect"
SERVICE_ROLE = "recollect_service"
ERASURES = "erasures"
"""The folder of the embedded server's log of erasures, beside its files."""
RESTORE_SECONDS = 300.0
EACH_ALONE = (
    "A backup is of one server: unset RECOLLECT_CATALOG_URL, and name each shard in turn in RECOLLECT_DATABASE_URL and "
    "RECOLLECT_OWNER_DATABASE_URL."
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

    A worker runs in the background unless told not to. A PostgreSQL that does not answer yet is waited for as told.
    What is being done is reported step by step.
    """
    chosen = settings or read_settings()
    report("starting PostgreSQL" if chosen.embedded else "connecting to PostgreSQL")
    with reach_database(chosen) as addresses:
        embedded = chosen.embedded
        chat, embedder = build_chat_model(chosen), None
        try:
            if embedded:
                report("bringing the schema up to date")
                await update_schema(addresses)
            report("loading the embedder")
            embedder = await find_embedder(chosen, await find_server(addresses), wait_seconds)
            if embedded:
                await give_space(addresses, embedder)
            async with connected(chosen, addresses, embedder, chat, wait_seconds=wait_seconds) as recollect:
                working = working_beside(partial(recollect.work, stop_seconds=SHORT_STOP_SECONDS))
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
        log = build_log(addresses.erasure_log or settings.erasure_log, settings)
        if addresses.catalog:
            servers, probe = await join_shards(settings, addresses.catalog, stack, log)
            database: Database = NoServer()
        else:
            one, probe = await join_server(settings, addresses.service, stack, wait_seconds, log)
            database, servers = one.database, one
        for mirror in mirrors.values():
            stack.push_async_callback(mirror.close)
        mirrored = (MirrorChannel(mirror, settings.mirror_lag_seconds) for mirror in mirrors.values())
        feeds = ChangeFeeds(servers.home)
        stack.push_async_callback(feeds.close)
        parts = Parts(
            database,
            servers,
            channels=(*(channel() for channel in CHANNELS), *mirrored),
            mirrors=mirrors,
            cold=build_storage(settings),
            embedder=TracedEmbedder(embedder) if embedder and Tracing.tracer else embedder,
            embed_wait_seconds=settings.embed_wait_seconds,
            embed_batch=settings.embedder_batch,
            chat=chat,
            tokenizers=load_tokenizers([*settings.tokenizers.replace(",", " ").split(), ESTIMATE]),
            prices=read_prices(settings.chat_prices),
            tokens_per_day=settings.tokens_per_day,
            fading_days=settings.fading_days,
            channel_seconds=settings.channel_seconds,
            judge_seconds=settings.judge_seconds,
            steps=choose_steps(settings.steps),
            keep_share=share_kept(settings),
            feeds=feeds,
        )
        waker = Waker(parts, settings.deadline_seconds)
        stack.push_async_callback(waker.close)
        yield Recollect(replace(parts, waker=waker), settings, addresses, probe)


async def join_server(
    settings: Settings, address: str, stack: AsyncExitStack, wait_seconds: float, log: ErasureLog | None
) -> tuple[OneServer, AnyProbe]:
    """Open the connections to the one server; those to a replica are opened when it is first needed."""
    probe = await Probe.open(address, wait_seconds)
    stack.push_async_callback(probe.close)
    database = await open_pool(settings, address, settings.direct_url, log)
    stack.push_async_callback(database.close)
    found = [each.strip() for each in settings.replica_urls.split(";") if each.strip()]
    if not found:
        return OneServer(database), probe
    replicas = Replicas(found, partial(open_replica, settings))
    stack.push_async_callback(replicas.close)
    return OneServer(database.used(log=FollowedLog()), replicas), probe


async def join_shards(
    settings: Settings, catalog: str, stack: AsyncExitStack, log: ErasureLog | None
) -> tuple[Servers, AnyProbe]:
    """Read the catalog's map; connections to a shard are opened when it is first needed."""
    shard_map = ShardMap(catalog, settings.map_file or default_map_file())
    await shard_map.open()
    stack.push_async_callback(shard_map.close)
    probe = ShardProbe(lambda: shard_map.shards)
    stack.push_async_callback(probe.close)
    await probe.check()
    open_shard = lambda shard: open_pool(settings, shard.address, shard.direct, log)  # noqa: E731 - of this place alone
    servers = ManyServers(shard_map, open_shard, partial(open_replica, settings))
    stack.push_async_callback(servers.close)
    return servers, probe


async def open_pool(settings: Settings, address: str, direct: str = "", log: ErasureLog | None = None) -> Database:
    """Open connections to a server, as many as the settings say, with the log of its erasures."""
    size, seconds = settings.pool_size, settings.deadline_seconds
    database = await Database.open(address, size, seconds, prepared=settings.prepare_statements, direct=direct)
    return database.used(erasures=log)


async def open_replica(settings: Settings, address: str) -> Database:
    """Open connections to a replica; one that does not answer soon is not waited for."""
    size, prepared = settings.pool_size, settings.prepare_statements
    return await Database.open(address, size, REACH_SECONDS, prepared=prepared)


async def prepare(
    addresses: Addresses, embedder: Embedder | None, report: Callable[[str], None] = lambda _: None
) -> None:
    """Migrate, and see that an embedder has a space; the first one becomes active."""
    await update_schema(addresses, report)
    await give_space(addresses, embedder)


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


async def give_space(addresses: Addresses, embedder: Embedder | None) -> None:
    """See that an embedder has a space; the first one of all becomes active."""
    if embedder is not None:
        await spaces.ensure_space(addresses.owner, embedder.model, embedder.dimensions)


async def set_up(settings: Settings, report: Callable[[str], None], first_block: int | None = None) -> None:
    """Bring the configured database to the newest schema, and number its tenants from a block on if one is named.

    Where there are several servers, the catalog and every server; not while a tenant is moved between two of them.
    """
    if settings.catalog_url:
        owner = require_catalog(settings)
        await catalog.create_catalog(owner)
        if await moves.list_under_way(owner):
            raise ConflictError("A tenant is being moved: let that end, or stop it with `recollect shard stop`.")
        for each in await list_servers(settings):
            await set_up(each, report)
        return
    with reach_database(settings) as addresses:
        await update_schema(addresses, report)
        embedder = await find_embedder(settings, addresses.owner)
        try:
            await give_space(addresses, embedder)
            if first_block is not None:
                await ownership.number_tenants_from(addresses.owner, first_block)
        finally:
            if embedder is not None:
                await embedder.close()


def require_catalog(settings: Settings) -> str:
    """Return the DSN of the catalog's owner, or raise."""
    if not settings.catalog_url:
        raise SetupError("Set RECOLLECT_CATALOG_URL: without a catalog there is one server.")
    return catalog.require_owner(settings.owner_catalog_url)


async def list_servers(settings: Settings) -> list[Settings]:
    """List the settings for each server alone: what the owner of the tables does is done there, one after the other."""
    if not settings.catalog_url:
        return [settings]
    shards = await catalog.list_addresses(require_catalog(settings))
    return [choose_server(settings, each) for each in shards.values()]


def choose_server(settings: Settings, addresses: ServerAddresses) -> Settings:
    """Return the settings for one server alone."""
    alone = {"database_url": addresses.service, "owner_database_url": addresses.owner}
    return settings.model_copy(update=alone | {"catalog_url": "", "owner_catalog_url": ""})


async def enter_shard(settings: Settings, name: str, addresses: ServerAddresses, report: Callable[[str], None]) -> None:
    """Bring a server to the newest schema, and enter it in the catalog, which is made if it is not there."""
    owner = require_catalog(settings)
    await catalog.create_catalog(owner)
    await set_up(choose_server(settings, addresses), report)
    await catalog.add_shard(owner, name, addresses)


@contextmanager
def reach_database(settings: Settings) -> Iterator[Addresses]:
    """Return the addresses from the settings, starting the embedded PostgreSQL if it is asked for."""
    if settings.catalog_url:
        yield Addresses("", "", catalog=settings.catalog_url, catalog_owner=settings.owner_catalog_url)
        return
    if not settings.embedded:
        yield Addresses(settings.database_url, settings.owner_database_url, erasure_log=settings.erasure_log)
        return
    folder = settings.data_folder
    with load("recollect.store.embedded.cluster").Cluster(folder) as cluster:
        owner, log = cluster.dsn(DATABASE), settings.erasure_log or str(folder / ERASURES)
        yield Addresses(cluster.dsn(DATABASE, SERVICE_ROLE), owner, cluster.dsn(), erasure_log=log)


def find_models(settings: Settings) -> InstalledModels:
    """Return the local models that were pulled, and what pulls more."""
    return open_models(settings.models_dir, settings.hub_url)


async def make_backup(settings: Settings, address: str, kind: BackupKind | None, report: Progress) -> BackupReport:
    """Make a backup: of the whole embedded server, or of another one's database, unless told otherwise."""
    with reach_one(settings) as addresses:
        usual = BackupKind.BASE if addresses.maintenance else BackupKind.DUMP
        server = ServerAddresses(addresses.service, settings.backup_url or addresses.require_owner())
        log = build_log(addresses.erasure_log, settings)
        return await join_backups(settings).make(server, log, kind or usual, address, report)


async def verify_backup(settings: Settings, address: str, report: Progress) -> BackupReport:
    """Look through a backup on a server that is made for it."""
    return await join_backups(settings).verify(address, report)


async def restore_backup(
    settings: Settings, address: str, report: Progress, *, replace: bool = False, logged: bool = True
) -> RestoreReport:
    """Restore a backup as the embedded server, or into another one's empty database."""
    backups = join_backups(settings)
    if settings.embedded:
        folder = settings.data_folder
        log = None if settings.erasure_log else folder / ERASURES
        home = Home(folder, DATABASE, SERVICE_ROLE, log, replace)
        return await backups.restore(address, home, report, logged=logged)
    with reach_one(settings) as addresses:
        server = ServerAddresses(addresses.service, addresses.require_owner())
        loader = settings.backup_url or server.owner
        return await backups.restore_dump(address, server, loader, report, logged=logged)


async def replay_erasures(settings: Settings, since: datetime, report: Progress) -> RestoreReport:
    """Erase again what was erased since a moment, in a database that was restored by other means."""
    with reach_one(settings) as addresses:
        server, log = ServerAddresses(addresses.service, addresses.require_owner()), addresses.erasure_log
        return await join_backups(settings).replay(server, build_log(log, settings), since, report)


@contextmanager
def reach_one(settings: Settings) -> Iterator[Addresses]:
    """Reach a server alone: a backup is of one."""
    if settings.catalog_url:
        raise SetupError(EACH_ALONE)
    with reach_database(settings) as addresses:
        yield addresses


def join_backups(settings: Settings) -> Backups:
    """Join what backups need: a restored record is opened here, and before anybody else can."""
    return Backups(settings, DATABASE, partial(join_restored, settings))


@asynccontextmanager
async def join_restored(settings: Settings, server: ServerAddresses) -> AsyncIterator[Parts]:
    """Bring a restored record to the newest schema, and open it; what is erased in it now is logged already."""
    await migrate(server.owner)
    patient = settings.model_copy(update={"deadline_seconds": RESTORE_SECONDS})
    database = await open_pool(patient, server.service)
    try:
        parts = Parts(database, OneServer(database), (), None, 0.0, 1, cold=build_storage(settings))
        waker = Waker(parts, RESTORE_SECONDS)
        try:
            yield replace(parts, waker=waker)
        finally:
            await waker.close()
    finally:
        await database.close()

"""A running Recollect: it authorizes callers, opens minds, keeps keys, and gives operators access to the tables."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.core.conversations.retention import default_rules
from recollect.core.service.permissions import check_right, check_unbound
from recollect.core.text.checks import check_line, check_scope
from recollect.errors import EmbedderError, InvalidInputError, SetupError
from recollect.jobs.embed import embed_pending
from recollect.jobs.maintenance import retain_now, sync_scope
from recollect.jobs.running import run_on_all_servers
from recollect.jobs.worker import STOP_SECONDS, WorkerOptions, build_app, run_worker
from recollect.llm.build import build_chat_model
from recollect.llm.chat import ChatModel
from recollect.llm.embedder import explain_not_served
from recollect.mind.access import Access, connection_for, record_caller, within
from recollect.mind.imports import Erasures, Exports
from recollect.mind.keys import KeyVerbs
from recollect.mind.mind import Mind
from recollect.mind.operators.cold import ColdScopes
from recollect.mind.operators.limits import OperatorLimits
from recollect.mind.operators.mirrors import Mirrors
from recollect.mind.operators.placements import TenantPlacements
from recollect.mind.operators.spaces import EmbeddingSpaces
from recollect.models.agents import MindSnapshot, Overview, Tuning
from recollect.models.conversations import DueConversation, PurgeReceiptPage
from recollect.models.service import (
    Caller,
    EmbeddingSpace,
    KeyBinding,
    Right,
    Scope,
    ScopePage,
    ScopeQuery,
    ServiceStatus,
)
from recollect.settings import Settings
from recollect.store.database import ownership, rewrite
from recollect.store.database.pool import Database
from recollect.store.memories import embeddings
from recollect.store.service import scopes
from recollect.store.service.jobs import nothing_ready
from recollect.store.shards.probe import AnyProbe
from recollect.store.shards.servers import OpenServer, Servers
from recollect.store.shards.tenants import Tenants
from recollect.verbs.agents.profile import tune
from recollect.verbs.cold.restore import ColdRestorer
from recollect.verbs.conversations.receipts import page_receipts
from recollect.verbs.dependencies import Dependencies
from recollect.verbs.imports.imports import Imports
from recollect.verbs.knowledge.rerun import EnrichRuns
from recollect.verbs.memories import load
from recollect.verbs.recovery import recover, recovered
from recollect.verbs.service.costs import Costs
from recollect.verbs.service.jobs import JobControl, wait_for_jobs
from recollect.verbs.service.readers import Readers
from recollect.verbs.service.tenants import list_scopes, read_status

EVERY_RIGHT = frozenset(Right)
FULL_TRUST = 100
READY_SECONDS = 1.0
"""How long the database may take to answer a readiness check."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The DSNs of the database, for the service's role and for the owner of the tables."""

    service: str
    owner: str
    maintenance: str = ""
    """Set where the database itself may have to be made: the embedded server's first database."""
    catalog: str = ""
    """Only with several servers: the catalog's DSN for the service's role, and for its owner."""
    catalog_owner: str = ""
    erasure_log: str = ""
    """Where erasures are logged outside the database; empty if they are not."""

    @property
    def tenants(self) -> Tenants:
        """Return who knows tenants by their names."""
        return Tenants(self.owner, self.catalog_owner, several=bool(self.catalog))

    def require_owner(self) -> str:
        """Return the DSN of the tables' owner, or raise."""
        return ownership.require_owner(self.owner)


@dataclass(frozen=True, slots=True)
class Recollect(KeyVerbs):
    """A running Recollect: authorizes callers, opens minds, keeps keys."""

    parts: Dependencies
    settings: Settings
    addresses: Addresses
    probe: AnyProbe
    restorer: ColdRestorer
    opened: set[Scope] = field(default_factory=set[Scope])
    """The scopes that were opened in this process by their names: those that `wait` waits for."""

    async def authorize(self, secret: str, door: str, agent: str, user: str) -> Mind:
        """Turn an API key and a scope's names into a mind, in one round trip; a bound key's names may be empty."""
        check_scope(agent or "left-out", user)
        async with within(self.settings.request_timeout_seconds):
            authorized, home = await self._authorize(secret, door, agent, user)
            if not authorized.scope.agent:
                raise InvalidInputError("agent is required: this API key is not bound to one")
            database = await self.parts.servers.for_scope(authorized.scope)
        # If the scope is on another server than the key, its place there is not known yet.
        place = authorized.place if database.is_same(home) else None
        return bind(self, authorized.caller, authorized.scope, database, place)

    async def _authorize(
        self, secret: str, door: str, agent: str, user: str
    ) -> tuple[scopes.AuthorizedScope, Database]:
        """Ask the server that has the keys of the tenant, and if they have been moved, the one that has them now."""
        servers, tenant_id = self.parts.servers, scopes.find_tenant(secret)

        async def authorize_key() -> tuple[scopes.AuthorizedScope, Database]:
            home = await servers.home(tenant_id)
            return await scopes.authorize(home, secret, door, agent, user), home

        authorized, home = await recover(self.parts.recoveries, tenant_id, authorize_key)
        record_caller(authorized.caller)
        return authorized, home

    async def mind(self, agent: str, user: str = "", *, tenant: str = "default") -> Mind:
        """Open a scope in this process, with full trust; tenants are made when first named."""
        check_scope(agent, user)
        caller = await self.operator.act_for(tenant)
        scope = Scope(caller.tenant_id, agent, user)
        self.opened.add(scope)
        return bind(self, replace(caller, origin="library"), scope, await self.parts.servers.for_scope(scope))

    async def authenticate(self, secret: str, door: str, right: Right | None = None, *, bound: bool = False) -> Caller:
        """Turn an API key into a caller, who has this right if one is named; refuse a bound key unless allowed."""
        async with within(self.settings.request_timeout_seconds):
            caller = (await self._authorize(secret, door, "", ""))[0].caller
        if not bound:
            check_unbound(caller)
        if right is not None:
            check_right(caller, right)
        return caller

    async def ready(self) -> str:
        """Raise UnavailableError or SchemaError unless requests can be served; say why recall goes by words if so."""
        async with within(READY_SECONDS):
            await self.probe.check()
            return explain_not_served(self.parts.embedder, await self.probe.active_space())

    def pool_counters(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counters of the connection pools by shard; of the one server's, under an empty name."""
        return self.parts.servers.statistics()

    async def work(
        self, concurrency: int = 4, *, until_empty: bool = False, stop_seconds: float = STOP_SECONDS
    ) -> None:
        """Run jobs until cancelled, or until none is left. When cancelled, running jobs have `stop_seconds` to end."""
        work = partial(self._work, concurrency, stop_seconds, until_empty=until_empty)
        if until_empty:
            await asyncio.gather(*map(work, await list_servers_to_work_for(self)))
        else:
            await run_on_all_servers(partial(list_servers_to_work_for, self), work)

    async def _work(self, concurrency: int, stop_seconds: float, server: OpenServer, *, until_empty: bool) -> None:
        """Run the jobs of one server."""
        parts = replace(self.parts, database=server.database)
        duties = WorkerOptions(default_rules(self.settings), cold_after_days=self.settings.cold.after_days)
        make_app = partial(build_app, parts, duties)
        until = partial(nothing_ready, parts.database) if until_empty else None
        await run_worker(make_app, concurrency, until=until, stop_seconds=stop_seconds)

    async def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until no job of the scopes opened here is ready or runs; return whether that was in time."""
        return await wait_for_jobs(self.parts.servers, self.opened, timeout_seconds)

    async def receipts(
        self,
        agent: str | None = None,
        user: str | None = None,
        *,
        conversation: str = "",
        cursor: str | None = None,
        limit: int = 50,
        tenant: str = "default",
    ) -> PurgeReceiptPage:
        """Fetch one page of what purges of conversations removed, the latest first, for an operator."""
        caller = await self.operator.act_for(tenant)
        return await self.tenant.receipts(
            caller, KeyBinding(agent, user), cursor or "", limit, conversation=conversation
        )

    @property
    def jobs(self) -> JobControl:
        """Return the view of jobs."""
        return JobControl(self.parts, self.addresses.tenants)

    @property
    def tenant(self) -> TenantView:
        """Return the view of what a tenant has."""
        return TenantView(self.parts, self.probe)

    @property
    def ledger(self) -> Costs:
        """Return the view of costs."""
        return Costs(self.parts, self.addresses.tenants)

    @property
    def reruns(self) -> EnrichRuns:
        """Return the view of re-runs over history."""
        return EnrichRuns(self.parts, self.addresses.tenants, partial(build_other, self.settings))

    @property
    def operator(self) -> Operator:
        """Return the operations for operators."""
        cold = ColdScopes(self.parts, self.settings.request_timeout_seconds)
        tenants = self.addresses.tenants
        return Operator(self, Readers(tenants), cold, OperatorLimits(tenants), TenantPlacements(tenants))


def bind(
    recollect: Recollect, caller: Caller, scope: Scope, database: Database, place: scopes.ScopeHandle | None = None
) -> Mind:
    """Return the mind of one scope in its database; a known place saves a lookup."""
    known, seconds = place if place and place.scope_id else None, recollect.settings.request_timeout_seconds
    parts = replace(recollect.parts, database=connection_for(caller, database))
    return Mind(Access(parts, caller, scope, seconds, known))


async def list_servers_to_work_for(recollect: Recollect) -> Sequence[OpenServer]:
    """List the servers that answer, of those that the settings name if they name any."""
    chosen = set(recollect.settings.shards.names.replace(",", " ").split())
    servers = [each for each in await recollect.parts.servers.answering() if not chosen or each.name in chosen]
    if not servers:
        raise SetupError("None of the shards in RECOLLECT_SHARDS__NAMES responds.")
    return servers


def build_other(settings: Settings, model: str) -> ChatModel | None:
    """Build the configured chat endpoint with another of its models."""
    return build_chat_model(settings.model_copy(update={"chat_model": model}))


@dataclass(frozen=True, slots=True)
class TenantView:
    """A tenant's view of its data; a bound key sees only its scopes."""

    parts: Dependencies
    probe: AnyProbe

    @property
    def servers(self) -> Servers:
        """Return where the tenant's rows are."""
        return self.parts.servers

    @recovered
    async def scopes(self, caller: Caller, wanted: ScopeQuery, cursor: str = "", limit: int = 50) -> ScopePage:
        """Fetch one page of the scopes of the caller's tenant."""
        return await list_scopes(self.parts, caller, wanted, cursor, limit)

    @recovered
    async def status(self, caller: Caller) -> ServiceStatus:
        """Return how the service is set up, and the work that is waiting for the caller's tenant."""
        return await read_status(self.parts, self.probe, caller)

    @recovered
    async def tune(self, caller: Caller, agent: str, *, apply: bool = False) -> list[Tuning]:
        """Learn an agent's ranking weights from feedback, and apply them if they rank better and `apply` is set."""
        return await tune(self.parts, caller, agent, apply=apply)

    @recovered
    async def receipts(
        self, caller: Caller, bounds: KeyBinding, cursor: str = "", limit: int = 50, *, conversation: str = ""
    ) -> PurgeReceiptPage:
        """Fetch one page of what purges removed, the latest first: of a conversation, of a scope, or of the tenant."""
        return await page_receipts(self.parts, caller, bounds, conversation, cursor, limit)


@dataclass(frozen=True, slots=True)
class Operator:
    """What the owner of the tables does: tenants, embedding spaces, indexes, readers, cold scopes."""

    recollect: Recollect
    readers: Readers
    cold: ColdScopes
    limits: OperatorLimits
    placements: TenantPlacements

    async def act_for(self, tenant: str) -> Caller:
        """Act for a tenant with every right, making the tenant if it is new."""
        check_line("tenant", tenant)
        tenant_id = await self.recollect.addresses.tenants.ensure(tenant)
        return Caller(tenant_id, EVERY_RIGHT, "operator", FULL_TRUST)

    async def first_key(self, tenant: str) -> str | None:
        """Make a tenant's first key, with every right; None if it has keys already."""
        caller = await self.act_for(tenant)
        if await self.recollect.list_keys(caller):
            return None
        return (await self.recollect.create_key(caller, "first", tuple(Right), FULL_TRUST))[1]

    @property
    def spaces(self) -> EmbeddingSpaces:
        """Return the embedding spaces."""
        return EmbeddingSpaces(self.recollect.parts, self.recollect.addresses.owner, self.recollect.settings)

    @property
    def mirrors(self) -> Mirrors:
        """Return the mirrors in other engines."""
        return Mirrors(self.recollect.parts.servers, self.recollect.parts.mirrors)

    async def restore(self, mind: Mind, saved: MindSnapshot) -> list[UUID]:
        """Load a whole mind into an empty scope in one transaction; return the ids of its memories."""
        return await load.restore_mind(mind.access.parts, mind.access.caller, mind.access.scope, saved)

    async def read_inventory(self, mind: Mind) -> tuple[Overview, dict[str, int]]:
        """Read a mind's overview with every keyword, and count the objects that are not memories."""
        return await load.read_inventory(mind.access.parts, mind.access.scope)

    async def read_vectors(
        self, mind: Mind, space: EmbeddingSpace, ids: Sequence[UUID]
    ) -> dict[UUID, NDArray[np.float32]]:
        """Read vectors of a mind's memories, exactly as stored; memories without one are absent."""
        return await embeddings.read_vectors(mind.access.parts.database, mind.access.scope, space, ids)

    @property
    def imports(self) -> Imports:
        """Return the imports from other systems."""
        return Imports(self.recollect.parts, self.recollect.addresses.tenants)

    @property
    def exports(self) -> Exports:
        """Return the exports of whole scopes."""
        return Exports(self.recollect.parts)

    @property
    def erasures(self) -> Erasures:
        """Return the erasures of users over all agents."""
        return Erasures(self.recollect.parts)

    async def retain(
        self, report: Callable[[int], None] = lambda _: None, *, dry_run: bool = False
    ) -> list[DueConversation]:
        """List the conversations whose state is due to change, and unless it is a dry run change it."""
        parts, rules = self.recollect.parts, default_rules(self.recollect.settings)
        return await retain_now(parts.database, rules, report, dry_run=dry_run, rederive=parts.chat is not None)

    async def sync_states(self, mind: Mind, report: Callable[[int], None]) -> None:
        """Bring a mind's memories in line with the states of its conversations, now and not by a worker."""
        place, rederive = (
            await scopes.locate(mind.access.parts.database, mind.access.scope),
            mind.access.parts.chat is not None,
        )
        await sync_scope(mind.access.parts.database, place.scope_id or 0, rederive=rederive, report=report)

    async def rewrite_tables(self, report: rewrite.Report, *, dry_run: bool = False) -> rewrite.RewriteResult:
        """Rewrite every table that can hold content, so that no erased byte stays in the data files."""
        return await rewrite.rewrite_tables(self.recollect.addresses.require_owner(), report, dry_run=dry_run)

    async def embed_waiting(self, mind: Mind, report: Callable[[int], None]) -> int:
        """Embed a mind's memories that wait for vectors, now and not by a worker; return how many."""
        embedder, batch = self.recollect.parts.embedder, self.recollect.settings.embedding.max_batch_size
        if embedder is None:
            raise EmbedderError("No embedder is configured: set RECOLLECT_EMBEDDER.", lasting=True)
        place = await recover(mind.access.parts.recoveries, mind.access.scope.tenant_id, mind.access.locate)
        if place.scope_id is None:
            return 0
        return await embed_pending(mind.access.parts.database, embedder, batch, place.scope_id, report)

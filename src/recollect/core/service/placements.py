"""Compare the catalog with its servers, number new servers, and plan the repair of a lost catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from recollect.errors import ConflictError, WrongServerError
from recollect.models.shards import (
    LAST_BUCKET,
    OWN_BUCKET,
    BucketPlacement,
    ServerAddresses,
    ServerIdentity,
    TenantPlacement,
)

REPAIR = "run `recollect admin shard check --repair`"
REPEAT = f"repeat the command that created or placed it, or {REPAIR}"
ADDRESS = "start that server, or correct its address with `recollect admin shard add`"
ASK = "find out which name is right: the catalog and a server are not of one backup"
LEFTOVER = "drop it if nothing uses it: it can fill the disk"
FENCED, CLOSED = "fenced", "closed"
OWNER = "--owner"


@dataclass(frozen=True, slots=True)
class KnownShard:
    """The name and addresses of a shard, as stored in the catalog or on a server."""

    name: str
    addresses: ServerAddresses


@dataclass(frozen=True, slots=True)
class ServerClaim:
    """A placement, as stored on a server; one that is not closed claims its buckets."""

    tenant_id: int
    first_bucket: int
    last_bucket: int
    generation: int
    state: str = "open"
    awaited: int | None = None

    @property
    def range(self) -> tuple[int, int, int, int]:
        """Return the part that the catalog stores."""
        return self.tenant_id, self.first_bucket, self.last_bucket, self.generation


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The data that a server stores about itself, its tenants and the other servers."""

    identity: ServerIdentity | None = None
    known: Mapping[int, KnownShard] = field(default_factory=dict[int, KnownShard])
    tenants: Mapping[int, str] = field(default_factory=dict[int, str])
    """The names of its tenants, by number."""
    claims: Sequence[ServerClaim] = ()
    strays: Sequence[tuple[int, str, int]] = ()
    """The number of its scopes and keys in buckets that it does not serve, by tenant and state of the placement."""
    leftovers: Sequence[str] = ()
    """Unused replication slots and subscriptions."""
    primary: bool = True
    schema: str = ""
    """The mismatch between its schema and this program."""
    problem: str = ""
    """The reason why it does not answer."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The catalog, and the answers of all servers that it or any of them knows."""

    catalog_id: str
    shards: Mapping[int, KnownShard]
    tenants: Mapping[int, str]
    placements: Mapping[int, TenantPlacement]
    answers: Mapping[str, ServerFacts]
    """By address: for owners all facts, for the role of the service only the identity."""

    def members(self) -> list[ServerFacts]:
        """List the facts of the servers in the catalog."""
        found = (each for each in self.answers.values() if each.identity is not None)
        return [each for each in found if each.identity and each.identity.catalog_id == self.catalog_id]


@dataclass(frozen=True, slots=True)
class ShardDifference:
    """A difference between the catalog and a shard, and the way to remove it."""

    shard: str
    found: str
    advice: str
    harmless: bool = False
    """Whether it is only information."""


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The contents of a repaired catalog, and the placements to change on servers before it is written."""

    catalog_id: str
    shards: Mapping[int, KnownShard]
    tenants: Mapping[int, str]
    placed: Mapping[int, TenantPlacement]
    changed: Sequence[tuple[int, Sequence[ServerClaim]]]
    """By server: the parts of claims that lost buckets to a higher generation."""
    unplaced: Sequence[str]
    left_out: Collection[int]


@dataclass(frozen=True, slots=True)
class Settlement:
    """The placements of one tenant by the claims of all servers."""

    placed: TenantPlacement
    changed: Sequence[tuple[int, Sequence[ServerClaim]]]
    ties: Sequence[str]
    gaps: Sequence[str]


def choose_number(
    name: str, catalog_id: str, shards: Mapping[int, str], entrant: ServerFacts, known: Mapping[int, str]
) -> int:
    """Return the number for a server with a given name, or raise if it is another server.

    `shards` are those of the catalog, `known` those that any server knows.
    """
    number = next((each for each, named in shards.items() if named == name), 0)
    identity = entrant.identity
    if identity is None:
        return choose_new(name, shards, entrant, known)
    if identity.catalog_id != catalog_id:
        raise WrongServerError(f"This is {identity}, and the catalog is {catalog_id}: name an empty database.")
    if identity.number == number:
        return identity.number
    if identity.number in shards:
        raise WrongServerError(f"This server is the shard {shards[identity.number]}: correct the address, or the name.")
    # An interrupted command has stored the identity, but no tenant.
    entered = entrant.known.get(identity.number)
    if not number and not entrant.tenants and entered is not None and entered.name == name:
        return identity.number
    raise WrongServerError(f"This is {identity}, and the catalog does not know it because it is older: {REPAIR}.")


def choose_new(name: str, shards: Mapping[int, str], entrant: ServerFacts, known: Mapping[int, str]) -> int:
    """Return a new number for a server without an identity."""
    if name in {*shards.values(), *known.values()}:
        raise WrongServerError(
            f"This server is empty, and {name} is the name of another: restore the backup of {name} there, or choose "
            "another name."
        )
    if entrant.tenants:
        raise ConflictError("This server has tenants that the catalog does not know: name an empty server.")
    return 1 + max([*shards, *known], default=0)


def list_differences(survey: Survey) -> list[ShardDifference]:
    """Compare the catalog with every server; list each difference with advice."""
    found = [each for number, shard in survey.shards.items() for each in compare_shard(survey, number, shard)]
    known = {number: each.name for facts in survey.members() for number, each in facts.known.items()}
    unknown = {name for number, name in known.items() if number not in survey.shards}
    told = "a server knows this shard, and the catalog does not"
    return found + [ShardDifference(name, told, REPAIR) for name in sorted(unknown)]


def compare_shard(survey: Survey, number: int, shard: KnownShard) -> list[ShardDifference]:
    """Compare the catalog with one server, as far as it answers."""
    identity, facts = ServerIdentity(survey.catalog_id, number), survey.answers[shard.addresses.owner]
    wrong = find_wrong(survey, shard, identity)
    if wrong:
        return [ShardDifference(shard.name, each, ADDRESS) for each in wrong]
    found = [*compare_placements(survey, number, shard.name, facts)]
    if facts.schema:
        found.append(ShardDifference(shard.name, facts.schema, "run `recollect admin migrate`"))
    found += [ShardDifference(shard.name, each, LEFTOVER) for each in facts.leftovers]
    if dict(facts.known) != dict(survey.shards):
        found.append(ShardDifference(shard.name, "its list of the shards is not that of the catalog", REPAIR))
    for tenant_id, state, rows in facts.strays:
        name, closed = facts.tenants[tenant_id], state == CLOSED
        advice = "nothing: closed rows are kept" if closed else "find out which server has this tenant before all else"
        told = f"{rows:,} scopes and keys of {name} " + ("are closed here" if closed else "have no placement here")
        found.append(ShardDifference(shard.name, told, advice, harmless=closed))
    return found


def find_wrong(survey: Survey, shard: KnownShard, identity: ServerIdentity) -> list[str]:
    """List the reasons why the addresses of a shard do not belong to its server."""
    found: list[str] = []
    for role, address in list_roles(shard.addresses):
        answer = survey.answers[address]
        if answer.problem:
            found.append(f"{role}: {answer.problem}")
        elif answer.identity != identity:
            found.append(f"{role}: the server there is {answer.identity or 'one without an identity'}")
        elif not answer.primary:
            found.append(f"{role}: the server there is a replica")
    return found


def list_roles(addresses: ServerAddresses) -> list[tuple[str, str]]:
    """List the addresses of a primary with the names of their options."""
    found = [(OWNER, addresses.owner), ("--service", addresses.service), ("--direct", addresses.direct)]
    return [(role, address) for role, address in found if address]


def compare_placements(survey: Survey, number: int, shard: str, facts: ServerFacts) -> Iterator[ShardDifference]:
    """Compare the placements of the catalog with those of a server."""
    placed = {
        (tenant_id, each.first_bucket, each.last_bucket, each.generation)
        for tenant_id, tenant in survey.placements.items()
        for each in tenant.placements
        if each.shard_id == number
    }
    claims = {each.range: each for each in facts.claims if each.state != CLOSED}
    for told, ranges, advice in (
        ("the catalog places {} here, and the server does not serve it", placed - claims.keys(), REPEAT),
        ("the server serves {}, and the catalog does not place it here", claims.keys() - placed, REPAIR),
    ):
        for tenant_id, first, last, generation in sorted(ranges):
            name = survey.tenants.get(tenant_id) or facts.tenants.get(tenant_id)
            what = f"{name} ({tenant_id}), buckets {first} to {last}, generation {generation}"
            yield ShardDifference(shard, told.format(what), advice)
    for tenant_id in sorted({each.tenant_id for each in claims.values() if each.state == FENCED}):
        awaited = max(each.awaited or 0 for each in claims.values() if each.tenant_id == tenant_id)
        told = f"the writes of {facts.tenants[tenant_id]} are suspended"
        told += f", and {awaited:,} memories are awaited" if awaited else ""
        yield ShardDifference(shard, told, "run `recollect admin tenants resume` when it is done", harmless=True)
    for tenant_id, name in facts.tenants.items():
        if survey.tenants.get(tenant_id, name) != name:
            told = f"tenant {tenant_id} is {name} here, and {survey.tenants[tenant_id]} in the catalog"
            yield ShardDifference(shard, told, ASK)


def plan_repair(survey: Survey, without: Collection[str] = ()) -> RepairPlan:
    """Plan the repair of the catalog from the servers.

    Raises ConflictError with all reasons if it is impossible.
    """
    shards, problems = choose_addresses(survey, without)
    problems += [f"no server knows a shard {name}" for name in {*without} - {each.name for each in shards.values()}]
    left_out = {number for number, each in shards.items() if each.name in without}
    facts = {number: survey.answers[each.addresses.owner] for number, each in shards.items() if number not in left_out}
    tenants, conflicts = join_names([survey.tenants, *(each.tenants for each in facts.values())])
    problems += conflicts
    placed, changed, unplaced = dict[int, TenantPlacement](), list[tuple[int, Sequence[ServerClaim]]](), list[str]()
    for tenant_id, name in sorted(tenants.items()):
        claims = [(number, each) for number, of in facts.items() for each in of.claims if each.tenant_id == tenant_id]
        before = survey.placements.get(tenant_id)
        if before is not None and left_out.intersection(before.shards):
            unplaced.append(name)
            continue
        if not claims:
            continue
        settled = settle(tenant_id, [(number, each) for number, each in claims if each.state != CLOSED])
        problems += [f"{name}: {each}" for each in settled.ties]
        if not settled.gaps:
            placed[tenant_id] = settled.placed
            changed += settled.changed
        elif left_out:
            unplaced.append(name)
        else:
            problems += [f"{name}: no server serves the buckets {each}" for each in settled.gaps]
    if problems:
        raise ConflictError("The catalog cannot be repaired. " + "; ".join(problems) + ".")
    return RepairPlan(survey.catalog_id, shards, tenants, placed, changed, unplaced, left_out)


def choose_addresses(survey: Survey, without: Collection[str]) -> tuple[dict[int, KnownShard], list[str]]:
    """Return all known shards with working addresses, and the problems of the others."""
    known = [pair for each in (survey.shards, *(facts.known for facts in survey.members())) for pair in each.items()]
    chosen, problems = dict[int, KnownShard](), list[str]()
    for number in sorted({number for number, _ in known}):
        # Addresses of another shard come last: they are correct if two servers were exchanged.
        options = [each for _, each in sorted(known, key=lambda pair: pair[0] != number)]
        name, identity = options[0].name, ServerIdentity(survey.catalog_id, number)
        wrong = [find_wrong(survey, each, identity) for each in options]
        place = wrong.index([]) if [] in wrong else 0
        chosen[number] = KnownShard(name, options[place].addresses)
        if wrong[place] and name not in without:
            problems.append(f"{name}: {', '.join(wrong[place])}")
    return chosen, problems


def join_names(known: Iterable[Mapping[int, str]]) -> tuple[dict[int, str], list[str]]:
    """Merge the names of tenants in the catalog and on servers, and list contradictions."""
    pairs = sorted({pair for each in known for pair in each.items()})
    numbers, names = Counter(number for number, _ in pairs), Counter(name for _, name in pairs)
    twice = [f"tenant {number} is {name}" for number, name in pairs if numbers[number] > 1 or names[name] > 1]
    return dict(pairs), ["one number has two names, or one name two numbers: " + ", ".join(twice)] if twice else []


def settle(tenant_id: int, claims: Sequence[tuple[int, ServerClaim]]) -> Settlement:
    """Assign each bucket of a tenant to the claim with the highest generation."""
    # A claim that awaits rows has none, and is left out if the others have every bucket: a move that broke off before
    # the tenant was closed where it was is undone.
    won, ties, gaps = choose_claims([pair for pair in claims if pair[1].awaited is None])
    if gaps:
        won, ties, gaps = choose_claims(claims)
    placed, changed = list[BucketPlacement](), list[tuple[int, Sequence[ServerClaim]]]()
    for number, claim in claims:
        pieces = cut(claim, [spot for spot, winner in won.items() if winner == (number, claim)])
        kept = [each for each in pieces if each.state != CLOSED]
        placed += [BucketPlacement(each.first_bucket, each.last_bucket, number, each.generation) for each in kept]
        if pieces != [claim]:
            changed.append((number, pieces))
    placed.sort(key=lambda each: each.first_bucket)
    return Settlement(TenantPlacement(tenant_id, tuple(placed)), changed, ties, gaps)


def choose_claims(
    claims: Sequence[tuple[int, ServerClaim]],
) -> tuple[dict[tuple[int, int], tuple[int, ServerClaim]], list[str], list[str]]:
    """Choose the claim with the highest generation for each range of buckets; list ties, and ranges without a claim."""
    starts = {each.first_bucket for _, each in claims} | {each.last_bucket + 1 for _, each in claims}
    ties, gaps, won = list[str](), list[str](), dict[tuple[int, int], tuple[int, ServerClaim]]()
    for first, end in pairwise(sorted(starts | {OWN_BUCKET, LAST_BUCKET + 1})):
        here = [(number, each) for number, each in claims if each.first_bucket <= first and end - 1 <= each.last_bucket]
        highest = max((each.generation for _, each in here), default=0)
        best = [(number, each) for number, each in here if each.generation == highest]
        if not best:
            gaps.append(f"{first} to {end - 1}")
        elif len(best) > 1:
            numbers = " and ".join(str(number) for number, _ in best)
            ties.append(f"servers {numbers} serve the buckets {first} to {end - 1} under one generation, {highest}")
        else:
            won[first, end - 1] = best[0]
    return won, ties, gaps


def cut(claim: ServerClaim, won: Sequence[tuple[int, int]]) -> list[ServerClaim]:
    """Split a claim into the parts that stay and the parts that are closed."""
    states = [CLOSED] * (claim.last_bucket - claim.first_bucket + 1)
    for first, last in won:
        states[first - claim.first_bucket : last + 1 - claim.first_bucket] = [claim.state] * (last - first + 1)
    pieces, first = list[ServerClaim](), claim.first_bucket
    for state, run in groupby(states):
        last = first + len([*run]) - 1
        pieces.append(replace(claim, first_bucket=first, last_bucket=last, state=state))
        first = last + 1
    return pieces

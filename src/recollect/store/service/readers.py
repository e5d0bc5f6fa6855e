"""Manage roles that read the views for other systems: each is bound to one tenant, and may read nothing else."""

from __future__ import annotations

from psycopg import AsyncConnection, errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow

from recollect.errors import ConflictError, NotFoundError, SetupError
from recollect.models.service import Reader
from recollect.store.database.ownership import owning
from recollect.store.database.pool import load_queries

QUERIES = load_queries(__file__)
METHOD = b"scram-sha-256"
STEPS = ("bound_statements", "bound_transactions", "read_only")
CLOSING_STEPS = ("grant_temporary", "revoke_temporary")
LAST_STEPS = ("become_member", "drop_owned", "drop_role")
OWNER_NEEDS_CREATEROLE = (
    "The table owner cannot create roles. Grant it CREATEROLE and, as a superuser, run `grant recollect_readers to "
    "<owner> with admin option`."
)
ROLE_OWNS_OBJECTS = "Access was revoked, but the role still owns objects on the server. Drop them first."
PLACES = ("host", "hostaddr", "port", "dbname", "sslmode")


async def create_reader(dsn: str, name: str, tenant_id: int, password: str) -> Reader:
    """Create a role that may read a tenant's views, in one transaction; no role may have this name already."""
    role = sql.Identifier(name)
    async with owning(dsn) as connection, connection.transaction():
        if await (await connection.execute(QUERIES["has_role"], {"name": name})).fetchone() is not None:
            raise ConflictError("A role with this name already exists. Choose another name.")
        # Hashed by the client, so that no log of the server can contain the password.
        scrambled = connection.pgconn.encrypt_password(password.encode(), name.encode(), METHOD).decode()
        create = sql.SQL(QUERIES["create_role"]).format(role=role, password=sql.Literal(scrambled))
        try:
            await connection.execute(create)
            await bound(connection, role)
        except errors.InsufficientPrivilege:
            raise SetupError(OWNER_NEEDS_CREATEROLE) from None
        await connection.execute(QUERIES["add_reader"], {"name": name, "tenant_id": tenant_id})
        found = await connection.execute(QUERIES["list_readers"], {"name": name})
        return to_reader(await found.fetchall())


async def bound(connection: AsyncConnection[DictRow], role: sql.Identifier) -> None:
    """Limit the resources of a reader, as far as PostgreSQL can; a session can change some limits."""
    for step in STEPS:
        await connection.execute(sql.SQL(QUERIES[step]).format(role=role))
    if await (await connection.execute(QUERIES["may_bound_files"])).fetchone() is not None:
        await connection.execute(sql.SQL(QUERIES["bound_files"]).format(role=role))
    opened = await (await connection.execute(QUERIES["find_open_database"])).fetchone()
    if opened is not None:
        database = sql.Identifier(opened["name"])
        for step in CLOSING_STEPS:
            await connection.execute(sql.SQL(QUERIES[step]).format(database=database))


async def list_readers(dsn: str) -> list[Reader]:
    """List the readers of this database, of all tenants."""
    async with owning(dsn) as connection:
        rows = await (await connection.execute(QUERIES["list_readers"], {"name": None})).fetchall()
        return [to_reader([row]) for row in rows]


async def drop_reader(dsn: str, name: str) -> None:
    """Drop a reader of this database; a logged-in reader loses access at once."""
    role = sql.Identifier(name)
    async with owning(dsn) as connection:
        removed = await (await connection.execute(QUERIES["remove_reader"], {"name": name})).fetchone()
        there = await (await connection.execute(QUERIES["has_role"], {"name": name})).fetchone()
        if removed is None:
            raise NotFoundError("No such reader.")
        if there is None:
            return
        # The next step can fail because of objects of the role; it cannot read anything any more.
        try:
            async with connection.transaction():
                for step in LAST_STEPS:
                    await connection.execute(sql.SQL(QUERIES[step]).format(role=role))
        except (errors.DependentObjectsStillExist, errors.InsufficientPrivilege):
            raise SetupError(ROLE_OWNS_OBJECTS) from None


def address(dsn: str, name: str, password: str) -> str:
    """Return the DSN of a reader: the owner's, with another user."""
    places = {place: value for place, value in conninfo_to_dict(dsn).items() if place in PLACES}
    return make_conninfo("", **places, user=name, password=password)


def to_reader(rows: list[DictRow]) -> Reader:
    """Convert the rows of a reader."""
    return Reader(rows[0]["name"], rows[0]["tenant"], rows[0]["created_at"])

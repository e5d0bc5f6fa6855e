"""Commands for readers: roles of the database server that read one tenant's views."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from recollect.doors.terminal import Tenant, out, run

app = typer.Typer(help="Make, list and drop roles that read a tenant's memories by SQL.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="What the role is called on the server.")]


@app.command("create")
def create_reader(name: Name, tenant: Tenant = "default") -> None:
    """Make a role that may read a tenant's views, and show how it logs in, this once."""
    made = run(lambda recollect: recollect.operator.readers.create(name, tenant))
    out.print(made.dsn, highlight=False, soft_wrap=True, markup=False)


@app.command("list")
def list_readers() -> None:
    """List the readers of every tenant."""
    table = Table("name", "tenant", "made")
    for reader in run(lambda recollect: recollect.operator.readers.list()):
        table.add_row(escape(reader.name), escape(reader.tenant), f"{reader.created_at:%F %T}")
    out.print(table if table.row_count else "There are no readers.")


@app.command("drop")
def drop_reader(name: Name) -> None:
    """Drop a reader; it reads nothing from now on."""
    run(lambda recollect: recollect.operator.readers.drop(name))
    out.print("dropped")

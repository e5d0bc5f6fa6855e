"""The command that says which machines an installation needs, before there is one."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from recollect.doors.cli.operators.sizing import (
    FILLED,
    IN_USE,
    LOCAL_MODEL,
    PEAK,
    SERVER_CORES,
    SERVER_DISK,
    SERVER_RAM,
    Needs,
    Workload,
    compute,
    usual_recalls,
    usual_writes,
)
from recollect.doors.cli.terminal import out

commands = typer.Typer()
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@commands.callback()
def describe() -> None:
    """Hold the one command of this module as a command of its own."""


@commands.command("plan")
def plan(
    memories: Annotated[int, typer.Option(min=1, max=10**13, help="How many memories it is to hold.")],
    tenants: Annotated[int, typer.Option(min=1, max=8_000_000, help="How many tenants share it.")] = 1,
    vectors: Annotated[int, typer.Option(min=0, max=4096, help="Dimensions of the vectors; 0 for none.")] = 384,
    writes_per_second: Annotated[
        float | None, typer.Option(min=0, help="Memories written a second at the peak.", show_default="by the memories")
    ] = None,
    recalls_per_second: Annotated[
        float | None, typer.Option(min=0, help="Recalls a second at the peak.", show_default="by the memories")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print numbers for a program.")] = False,
) -> None:
    """Say which disk, RAM and cores an installation needs, and when to use shards or replicas."""
    writes = usual_writes(memories) if writes_per_second is None else writes_per_second
    recalls = usual_recalls(memories) if recalls_per_second is None else recalls_per_second
    load = Workload(memories, tenants, vectors, writes, recalls)
    needs = compute(load)
    if as_json:
        typer.echo(json.dumps({"load": asdict(load), "needs": asdict(needs)}, indent=2))
        return
    table = Table("what", "needed", "because")
    for row in list_rows(load, needs):
        table.add_row(*row)
    out.print(table)


def list_rows(load: Workload, needs: Needs) -> list[tuple[str, str, str]]:
    """Say what is needed, row by row, and why."""
    return [
        ("recalls at the peak", f"{load.recalls:,.1f} a second", f"{PEAK} times the mean"),
        ("writes at the peak", f"{load.writes:,.1f} a second", f"{PEAK} times the mean"),
        ("disk, one copy", write_bytes(needs.disk_bytes), f"{needs.memory_bytes:,} bytes a memory"),
        ("disk to buy", write_bytes(needs.disk_to_buy_bytes), f"for each copy; {FILLED:.0%} full"),
        ("WAL a day", write_bytes(needs.log_bytes_a_day), "to archive or replicate"),
        ("database RAM", write_bytes(needs.ram_bytes), f"{IN_USE:.0%} of the memories in use"),
        ("database cores", f"{needs.database_cores:,}", "half busy at the peak"),
        ("API cores", f"{needs.api_cores:,}", "vectors by an endpoint"),
        ("for the local model", f"{needs.local_model_cores:,} more", f"{LOCAL_MODEL:g} ms a recall or write"),
        ("largest tenant", write_bytes(needs.largest_tenant_bytes), f"of {load.tenants:,}, by Zipf's law"),
        ("shards", describe_shards(needs), describe_server()),
        ("replicas for recall", describe_replicas(needs), f"beyond {SERVER_CORES} cores of a server"),
        ("standbys", "1 or more", "if downtime would hurt"),
    ]


def describe_shards(needs: Needs) -> str:
    """Say how many servers share the tenants, and if one tenant needs several."""
    if needs.shards == 1:
        return "none: one server"
    split = needs.largest_tenant_bytes > SERVER_DISK * FILLED
    return f"{needs.shards:,}{', largest tenant split' if split else ''}"


def describe_replicas(needs: Needs) -> str:
    """Say how many replicas answer recalls."""
    return f"{needs.replicas:,} for each server" if needs.replicas else "none"


def describe_server() -> str:
    """Say which server is counted with."""
    return f"each {write_bytes(SERVER_DISK)}, {write_bytes(SERVER_RAM)}, {SERVER_CORES} cores"


def write_bytes(number: float) -> str:
    """Write bytes in a unit that people read."""
    for size, unit in UNITS:
        if number >= size:
            return f"{number / size:,.3g} {unit}" if number < 1000 * size else f"{number / size:,.0f} {unit}"
    return f"{number:.0f} bytes"

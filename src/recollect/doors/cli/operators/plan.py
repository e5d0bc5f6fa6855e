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
    SizingResult,
    Workload,
    compute,
    default_recall_rate,
    default_write_rate,
)
from recollect.doors.cli.terminal import out

commands = typer.Typer()
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


@commands.command("sizing")
def size_installation(
    memories: Annotated[int, typer.Option(min=1, max=10**13, help="Number of memories.")],
    tenants: Annotated[int, typer.Option(min=1, max=8_000_000, help="Number of tenants.")] = 1,
    vectors: Annotated[int, typer.Option(min=0, max=4096, help="Vector dimensions; 0 = no vectors.")] = 384,
    writes_per_second: Annotated[
        float | None, typer.Option(min=0, help="Memories written per second at peak.", show_default="by the memories")
    ] = None,
    recalls_per_second: Annotated[
        float | None, typer.Option(min=0, help="Recalls per second at peak.", show_default="by the memories")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute the disk, RAM and cores that an installation needs, and when to use shards."""
    writes = default_write_rate(memories) if writes_per_second is None else writes_per_second
    recalls = default_recall_rate(memories) if recalls_per_second is None else recalls_per_second
    load = Workload(memories, tenants, vectors, writes, recalls)
    needs = compute(load)
    if as_json:
        typer.echo(json.dumps({"load": asdict(load), "needs": asdict(needs)}, indent=2))
        return
    table = Table("what", "needed", "because")
    for row in list_rows(load, needs):
        table.add_row(*row)
    out.print(table)


def list_rows(load: Workload, needs: SizingResult) -> list[tuple[str, str, str]]:
    """Return the needs, row by row, with their reasons."""
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
        ("standbys", "1 or more", "if downtime would hurt"),
    ]


def describe_shards(needs: SizingResult) -> str:
    """Return the number of servers for the tenants, and whether one tenant needs several."""
    if needs.shards == 1:
        return "none: one server"
    split = needs.largest_tenant_bytes > SERVER_DISK * FILLED
    return f"{needs.shards:,}{', largest tenant split' if split else ''}"


def describe_server() -> str:
    """Return the server size that the plan assumes."""
    return f"each {write_bytes(SERVER_DISK)}, {write_bytes(SERVER_RAM)}, {SERVER_CORES} cores"


def write_bytes(number: float) -> str:
    """Write bytes in a unit that people read."""
    for size, unit in UNITS:
        if number >= size:
            return f"{number / size:,.3g} {unit}" if number < 1000 * size else f"{number / size:,.0f} {unit}"
    return f"{number:.0f} bytes"

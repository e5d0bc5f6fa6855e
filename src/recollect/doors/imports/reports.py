"""Print the imported records, those left out, and the remaining work."""

from __future__ import annotations

from rich.table import Column, Table

from recollect.doors.cli.terminal import out
from recollect.models.imports import ImportReport

WRITTEN = {"messages": "appended", "memories": "remembered", "facts": "stated"}
"""How each thing comes here, as a report says it."""


def print_report(arrival: ImportReport, there: str, *, dry_run: bool) -> None:
    """Print the table, the remarks with their counts, and the number of records written."""
    out.print(tabulate(arrival, there, dry_run=dry_run))
    for remark, count in arrival.remarks.items():
        out.print(f"{count:>8}  {remark}", highlight=False, markup=False, soft_wrap=True)
    out.print(conclude(arrival, dry_run=dry_run), highlight=False)


def tabulate(arrival: ImportReport, there: str, *, dry_run: bool) -> Table:
    """Show how many of each thing were imported, known, or skipped."""
    imported = "would be imported" if dry_run else "imported"
    table = Table("", *(Column(name, justify="right") for name in (there, imported, "here already", "skipped")))
    for line in arrival.brought:
        table.add_row(line.thing, *map(str, (line.found, line.imported, line.known, line.skipped)))
    return table


def conclude(arrival: ImportReport, *, dry_run: bool) -> str:
    """Describe how much was written, and the remaining work."""
    done = {line.thing: line.imported for line in arrival.brought if line.thing in WRITTEN} | {
        "messages": arrival.messages
    }
    told = ", ".join(f"{count} {thing} {WRITTEN[thing]}" for thing, count in done.items() if count)
    if dry_run:
        would = ", ".join(f"{count} {thing} would be {WRITTEN[thing]}" for thing, count in done.items() if count)
        return f"{would or 'Nothing is new'}. Nothing was written."
    return f"{told}; `recollect up` or `recollect worker` makes their vectors." if told else "Nothing is new."

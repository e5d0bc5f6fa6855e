"""Show a recollection as a table: what came to mind, when it happened, and why it is there."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from recollect.models import ChannelScore, Hit, Recollection


def to_table(recollection: Recollection) -> Table:
    """Lay hits out, best first; where the stream channel alone was asked, with its three factors."""
    if all(set(hit.channels) == {"stream"} for hit in recollection.hits):
        return to_factors(recollection)
    table = Table("score", "why", "when", "memory")
    for hit in recollection.hits:
        why = " ".join(f"{name} {part.share:.2f}" for name, part in hit.channels.items())
        table.add_row(f"{hit.score:.3f}", why, moment(hit), escape(hit.memory.content))
    return table


def to_factors(recollection: Recollection) -> Table:
    """Lay out the three factors of the stream, each scaled from 0 to 1 over all candidates."""
    tally = recollection.tallies["stream"]
    caption = f"{tally.candidates} candidates, {recollection.methods['stream']}, {recollection.milliseconds:.1f} ms"
    table = Table("score", "recency", "relevance", "importance", "kind", "when", "memory", caption=caption)
    for hit in recollection.hits:
        part = hit.channels["stream"]
        table.add_row(
            f"{part.score:.3f}", *factors(part), hit.memory.kind.value, moment(hit), escape(hit.memory.content)
        )
    return table


def factors(part: ChannelScore) -> list[str]:
    """Write a hit's factors, as far as they are known."""
    known = part.factors
    return [f"{value:.3f}" for value in (known.recency, known.relevance, known.importance)] if known else [""] * 3


def moment(hit: Hit) -> str:
    """Write when a memory happened, to the minute."""
    return f"{hit.memory.occurred_at:%F %R}"

"""Show a recollection as a table: what came to mind, when it happened, and why it is there."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from recollect.models.recall import ChannelScore, Hit, Recollection

DIGITS = 3
SMALLEST_SHARE = 0.01


def to_table(recollection: Recollection) -> Table:
    """Lay hits out, best first; where the stream channel alone was asked, with its three factors."""
    if all(set(hit.channels) == {"stream"} for hit in recollection.hits):
        return to_factors(recollection)
    table = Table("score", "why", "when", "memory")
    for hit in recollection.hits:
        why = " ".join(f"{name} {share:.3f}" for name, share in share_out(hit).items())
        table.add_row(f"{hit.score:.3f}", why, moment(hit), escape(hit.memory.content))
    return table


def share_out(hit: Hit) -> dict[str, float]:
    """Say what a hit's score is made of, to the three digits that are shown; what is small is joined as `other`."""
    parts = {**{name: part.share for name, part in hit.channels.items()}, **hit.preferences}
    told = {name: round(share, DIGITS) for name, share in parts.items() if abs(share) >= SMALLEST_SHARE}
    # What is left over closes the sum: a reader who adds up arrives at the score that is shown.
    rest = round(round(hit.score, DIGITS) - sum(told.values()), DIGITS)
    return {**told, **({"other": rest} if rest else {})}


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

"""Nouns about mirrors: how one stands, and how it compares with the record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """How one filling of a mirror stands over all tenants."""

    name: str
    generation: int
    """The number of the filling."""
    state: str
    """`ready` answers, `building` is filled beside it, `stale` was filled from another record or embedding space."""
    scopes: int
    """How many scopes it holds."""
    behind: int
    """In how many of them it lacks a change."""
    lag_seconds: float
    """The age of the oldest change that it lacks."""
    answers: bool | None = None
    """Whether the engine answers; None where this process has no address of it."""


@dataclass(frozen=True, slots=True)
class MirrorComparison:
    """How a mirror compares with the record, by the checksums of its rows."""

    scopes: int
    missing: int
    """Rows that it lacked."""
    changed: int
    """Rows that it had otherwise."""
    extra: int
    """Rows that it should not have had."""
    mended: bool

    @property
    def differing(self) -> int:
        """Count the rows that were not equal."""
        return self.missing + self.changed + self.extra

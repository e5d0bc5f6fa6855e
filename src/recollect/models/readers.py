"""The nouns of reading by SQL."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Reader:
    """A role of the database server that may read one tenant's views, and nothing else."""

    name: str
    tenant: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewReader:
    """A fresh reader, with the address that it logs in by; the password in it is shown this once."""

    reader: Reader
    dsn: str = field(repr=False)

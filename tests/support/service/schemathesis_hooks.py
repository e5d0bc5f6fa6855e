"""What schemathesis loads: it may not make an address that the HTTP parser refuses before the service sees it."""

from __future__ import annotations

from urllib.parse import quote

import schemathesis

LONGEST_ADDRESS = 60_000
"""Bytes; beyond 65,535 the parser of the server answers by itself, in plain text."""


@schemathesis.hook
def filter_case(_context, case) -> bool:
    """Leave out a case whose address is too long."""
    return len(quote(f"{case.query}{case.path_parameters}", errors="replace")) < LONGEST_ADDRESS

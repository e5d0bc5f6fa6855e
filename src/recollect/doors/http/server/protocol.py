"""Close connections whose headers do not arrive in time; the server itself would wait forever."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_SECONDS = 10.0
"""How long the headers of a request may take, from the first byte or from the connection on."""


class BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # chosen when it is imported
    """Serve a connection as usual, but limit the time for headers."""

    cycle: Any
    transport: Any
    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - the server's signature
        """Expect the first headers."""
        super().connection_made(transport)
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        """Receive data, and expect the rest of the headers if they are incomplete."""
        super().data_received(data)
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way:
            self._stop_watching()
        elif self._header_timer is None and not self.transport.is_closing():
            self._header_timer = asyncio.get_running_loop().call_later(HEADER_SECONDS, self.transport.close)

    def _stop_watching(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

"""Connections of strangers: so many, for so long, and no longer.

Whoever opens connections and says nothing, or says it one byte at a time, costs a bounded number of
sockets and keeps out nobody but its own household.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, cast

import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS: Final = 512
# A household's browsers together; each opens one or two.
MAX_CONNECTIONS_PER_ADDRESS: Final = 32
HANDSHAKE_WITHIN_S: Final = 5.0
# From a request's first byte to its answer's last.
REQUEST_WITHIN_S: Final = 10.0
IDLE_S: Final = 30.0
# Where the system has no sockets left, those that are open may end first.
NO_SOCKETS_PAUSE_S: Final = 0.2


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with one deadline for each request, and one for the silence between two."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self._deadline: asyncio.TimerHandle | None = None
        self._busy = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came. It may take its time no longer than for a request."""
        super().connection_made(transport)
        self._within(REQUEST_WITHIN_S)

    def data_received(self, data: bytes) -> None:
        """The first byte of a request sets its deadline; no later one moves it."""
        if not self._busy:
            self._busy = True
            self._within(REQUEST_WITHIN_S)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """The request is answered."""
        self._busy = False
        self._within(IDLE_S)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)
        if not self.closed.done():
            self.closed.set_result(None)

    def _within(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)


class Acceptor:
    """Accepts connections up to its bounds, TLS handshakes included, and closes what is beyond them."""

    def __init__(
        self, listening: socket.socket, tls: ssl.SSLContext | None, make: Callable[[], BoundedProtocol]
    ) -> None:
        self._listening = listening
        self._tls = tls
        self._make = make
        self._open: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger()

    async def run(self) -> None:
        """Accepts until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(self._listening)
            except OSError as error:
                self._log.warning("web-cannot-accept", problem=str(error))
                await asyncio.sleep(NO_SOCKETS_PAUSE_S)
                continue
            household = _household(cast("tuple[str, int]", address)[0])
            if len(self._tasks) >= MAX_CONNECTIONS or self._open[household] >= MAX_CONNECTIONS_PER_ADDRESS:
                connection.close()
                continue
            self._open[household] += 1
            task = asyncio.create_task(self._serve(connection, household))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def end(self) -> None:
        """Lets go of the connections that are left."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, connection: socket.socket, household: str) -> None:
        protocol = self._make()
        timeout_s = HANDSHAKE_WITHIN_S if self._tls is not None else None
        try:
            # A handshake that fails (no TLS, another protocol, a reset) is its sender's matter.
            with contextlib.suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: protocol,
                    connection,
                    ssl=self._tls,
                    ssl_handshake_timeout=timeout_s,
                    ssl_shutdown_timeout=timeout_s,
                )
                await protocol.closed
        finally:
            self._open[household] -= 1
            if not self._open[household]:
                del self._open[household]


def _household(host: str) -> str:
    """Whose connection it is: an IPv4 address, or the /64 that a customer has for itself."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)

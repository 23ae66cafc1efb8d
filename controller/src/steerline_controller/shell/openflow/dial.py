"""Switches that listen are connected to: then how soon they are back is ours to say.

Open vSwitch waits up to 8 s between its own attempts (3.1 does not heed `max_backoff`). Each of its
bridges listens at `unix:RUNDIR/BRIDGE.mgmt` anyway.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

LOG = structlog.get_logger()

RETRY_S: Final = 0.5
_TIMEOUT_S: Final = 3.0

# ("unix", path) or (address, port).
Target = tuple[str, str | int]


class _LocalSocket(socket.socket):
    """A socket of this machine: it has no TCP_NODELAY, and needs none."""

    def setsockopt(self, level: int, *rest: Any) -> None:
        """As a socket's, but what is TCP's is left out."""
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *rest)


def _open(target: Target) -> socket.socket:
    host, port = target
    if host == "unix":
        connection = _LocalSocket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(str(port))
        except OSError:
            connection.close()
            raise
        return connection
    return socket.create_connection((host, int(port)), _TIMEOUT_S)


def keep_connected(target: Target, serve: Callable[[socket.socket, tuple[Any, ...]], None]) -> None:
    """Connects, serves to the connection's end, and again, for ever. The body of a thread."""
    said = False
    while True:
        try:
            connection = _open(target)
        except OSError as error:
            if not said:
                said = True
                LOG.error(
                    "cannot connect to a switch; trying on",
                    switch=_shown(target),
                    why=error.strerror or str(error),
                )
        else:
            said = False
            with contextlib.closing(connection):
                serve(connection, target)
        time.sleep(RETRY_S)


def _shown(target: Target) -> str:
    return f"{target[0]}:{target[1]}"

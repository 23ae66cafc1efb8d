"""Sends to one switch without ever blocking the one who decides.

What the socket takes at once leaves at once, in one call; the rest is kept for a thread of its own.
A switch that takes nothing while more than MAX_PENDING bytes wait is given up.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

MAX_PENDING: Final = 16 * 1024 * 1024


class Sender:
    """The sending half of a connection. `send` may be called by any thread."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        self._connection = connection
        self._pending = bytearray()
        self._changed = threading.Condition()
        self._closing = False
        self.overflowed = False

    def send(self, data: bytes) -> bool:
        """Sends, or keeps for sending. False when the connection is closing."""
        with self._changed:
            if self._closing:
                return False
            if not self._pending:
                try:
                    sent = self._connection.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    self._close()
                    return False
                data = data[sent:]
            if data:
                self._pending += data
                if len(self._pending) > MAX_PENDING:
                    self.overflowed = True
                    self._close()
                    return False
                self._changed.notify()
        return True

    def run(self) -> None:
        """Sends what `send` could not, until closed. The body of the sending thread."""
        while True:
            with self._changed:
                while not self._pending and not self._closing:
                    self._changed.wait()
                if self._closing:
                    return
                chunk = bytes(self._pending[:65536])
            try:
                sent = self._connection.send(chunk, socket.MSG_NOSIGNAL)
            except OSError:
                self.close()
                return
            with self._changed:
                del self._pending[:sent]

    def close(self) -> None:
        """Ends the connection both ways: whoever reads it wakes up."""
        with self._changed:
            self._close()

    def _close(self) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._changed.notify_all()

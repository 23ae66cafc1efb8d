"""What waits to go down one agent's stream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from steerline.report.v1 import report_pb2

# An agent that does not read its answers loses the oldest, and delays nobody.
MAX_WAITING: Final = 1024
# For one session of a client that asks once a second.
MAX_LETTERS: Final = 16


class Letterbox:
    """What waits for one session of a client that asks again and again, in place of a stream."""

    def __init__(self) -> None:
        self._waiting: deque[report_pb2.ReportResponse] = deque(maxlen=MAX_LETTERS)

    def put(self, response: report_pb2.ReportResponse) -> None:
        """Keeps one response, in place of the oldest where there are too many. Never waits."""
        # That a report counts, its own answer says.
        if response.WhichOneof("message") != "acknowledgement":
            self._waiting.append(response)

    def take(self) -> list[report_pb2.ReportResponse]:
        """What came since it was last taken, in order."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


class Outbox:
    """A bounded queue with one sender."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._waiting: deque[report_pb2.ReportResponse] = deque(maxlen=max_waiting)
        self._filled = asyncio.Event()
        self._closed = False

    def put(self, response: report_pb2.ReportResponse) -> None:
        """Queues one response. Never waits, never fails."""
        self._waiting.append(response)
        self._filled.set()

    def close(self) -> None:
        """Nothing more comes; the sender ends when all is sent."""
        self._closed = True
        self._filled.set()

    async def send_all(self, send: Callable[[report_pb2.ReportResponse], Awaitable[None]]) -> None:
        """Sends what comes, in order, until closed."""
        while True:
            while self._waiting:
                await send(self._waiting.popleft())
            if self._closed:
                return
            self._filled.clear()
            await self._filled.wait()

"""What waits to go down one agent's stream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from steerline.report.v1 import report_pb2

# An agent that does not read its answers loses the oldest, and delays nobody.
MAX_WAITING: Final = 1024


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

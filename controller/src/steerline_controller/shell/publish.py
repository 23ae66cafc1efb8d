"""From the deciding thread to the streams of stations: nothing blocks, a slow reader loses the oldest."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import structlog

from steerline.steering.v1.steering_pb2 import ConnectResponse

LOG = structlog.get_logger()

CAPACITY = 4096


class Stream:
    """What waits for one station."""

    def __init__(self, number: int, peer: str, wake: Callable[[], None]) -> None:
        self.number = number
        self.peer = peer
        self.dropped = 0
        self._waiting: deque[ConnectResponse] = deque()
        self._wake = wake
        self._lock = threading.Lock()

    def put(self, message: ConnectResponse) -> None:
        """Adds a message; when too many wait, the oldest goes."""
        with self._lock:
            if len(self._waiting) >= CAPACITY:
                self._waiting.popleft()
                self.dropped += 1
                if self.dropped == 1:
                    LOG.warning("a station reads too slowly: it loses the oldest messages", peer=self.peer)
            self._waiting.append(message)
            first = len(self._waiting) == 1
        if first:
            self._wake()

    def take(self) -> list[ConnectResponse]:
        """All that waits."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        return waiting


class Publisher:
    """All streams. Any thread may call."""

    def __init__(self) -> None:
        self._streams: dict[int, Stream] = {}
        self._number = 0
        self._lock = threading.Lock()

    def add(self, peer: str, wake: Callable[[], None]) -> Stream:
        """A station has come. `wake` is called, from any thread, when something waits for it."""
        with self._lock:
            self._number += 1
            stream = Stream(self._number, peer, wake)
            self._streams = {**self._streams, stream.number: stream}
        return stream

    def remove(self, stream: Stream) -> None:
        """A station is gone."""
        with self._lock:
            self._streams = {n: s for n, s in self._streams.items() if n != stream.number}

    def tell_all(self, message: ConnectResponse) -> None:
        """To every station."""
        for stream in self._streams.values():
            stream.put(message)

    @property
    def count(self) -> int:
        """How many stations are connected."""
        return len(self._streams)

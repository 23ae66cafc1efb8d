"""Between the path that must be quick and the store that may be slow: a bounded queue."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import structlog

from steerline_appstation.clock import Clock
from steerline_appstation.errors import StoreUnavailableError
from steerline_appstation.store.base import Sink
from steerline_appstation.store.records import AnyRecord

MAX_QUEUED: Final = 50_000
# Small batches: encoding one occupies the event loop that also steers.
BATCH: Final = 100
# Gathers what comes close together.
GATHER_S: Final = 0.05
LEAST_WAIT_S: Final = 0.2
MOST_WAIT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class WriterState:
    """How the writer fares. `problem` is empty while the store takes what it gets."""

    problem: str
    since_s: float
    queued: int
    dropped: int


class Writer:
    """Writes in the background, in order; when the store is away it waits, and catches up.

    A newer record of the same key replaces the one that still waits. When the queue is full the
    oldest are dropped and counted.
    """

    def __init__(self, name: str, sink: Sink, clock: Clock, max_queued: int = MAX_QUEUED) -> None:
        self._name = name
        self._sink = sink
        self._clock = clock
        self._max_queued = max_queued
        self._queue: OrderedDict[Hashable, Callable[[], AnyRecord]] = OrderedDict()
        self._batch: list[AnyRecord] = []
        self._filled = asyncio.Event()
        self._problem = ""
        self._since_s = clock.unix_s()
        self._dropped = 0
        self._log = structlog.get_logger().bind(store=name)

    @property
    def state(self) -> WriterState:
        """How it fares now."""
        return WriterState(self._problem, self._since_s, len(self._queue) + len(self._batch), self._dropped)

    def put(self, key: Hashable, make: Callable[[], AnyRecord]) -> None:
        """Takes a record that `make` builds later, off the quick path. Never waits, never fails."""
        self._queue[key] = make
        if len(self._queue) > self._max_queued:
            self._queue.popitem(last=False)
            self._dropped += 1
        self._filled.set()

    async def run(self) -> None:
        """Writes until cancelled."""
        wait_s = LEAST_WAIT_S
        while True:
            await self._filled.wait()
            if not self._batch and len(self._queue) < BATCH:
                await asyncio.sleep(GATHER_S)
            written = await self._write_batch()
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # A store's client may have taken the cancellation for its own time-out, and ended well.
                raise asyncio.CancelledError
            if written:
                wait_s = LEAST_WAIT_S
            else:
                await asyncio.sleep(wait_s)
                wait_s = min(MOST_WAIT_S, 2 * wait_s)

    async def flush(self, within_s: float) -> int:
        """Writes what waits, for at most `within_s`. Returns how many records are lost."""
        try:
            async with asyncio.timeout(within_s):
                while self._batch or self._queue:
                    if not await self._write_batch():
                        break
        except TimeoutError:
            pass
        return len(self._batch) + len(self._queue)

    async def _write_batch(self) -> bool:
        if not self._batch:
            while self._queue and len(self._batch) < BATCH:
                _, make = self._queue.popitem(last=False)
                self._batch.append(make())
        try:
            await self._sink.write(self._batch, self._clock.unix_s())
        except StoreUnavailableError as error:
            self._degraded(str(error))
            return False
        self._batch.clear()
        if not self._queue:
            self._filled.clear()
        self._recovered()
        return True

    def _degraded(self, problem: str) -> None:
        if not self._problem:
            self._since_s = self._clock.unix_s()
            self._log.warning("history-waits", problem=problem, queued=self.state.queued)
        self._problem = problem

    def _recovered(self) -> None:
        if self._problem:
            self._log.info(
                "history-goes-on", was=self._problem, queued=len(self._queue), dropped=self._dropped
            )
            self._problem = ""
            self._since_s = self._clock.unix_s()

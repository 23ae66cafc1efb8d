"""The queue between the quick path and a store that may be slow or gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from steerline_appstation.clock import Clock
from steerline_appstation.errors import StoreUnavailableError
from steerline_appstation.store.jsonl import JsonLines
from steerline_appstation.store.records import AnyRecord, LatencyRecord
from steerline_appstation.store.writer import Writer

from .support import eventually


class Troubled:
    """A sink that fails, or hangs, when told to."""

    def __init__(self) -> None:
        self.written: list[AnyRecord] = []
        self.broken = False
        self.hangs = False

    async def write(self, records: Sequence[AnyRecord], now_s: float) -> None:
        if self.hangs:
            await asyncio.sleep(3600)
        if self.broken:
            raise StoreUnavailableError("the disk is full")
        self.written += records

    def times(self) -> list[float]:
        return [r.time_s for r in self.written if isinstance(r, LatencyRecord)]


def record(number: int) -> LatencyRecord:
    return LatencyRecord(time_s=number, session_id="s", latency_ms=1.0, moved_flow_count=number)


def put(writer: Writer, number: int) -> None:
    writer.put(number, lambda: record(number))


@contextlib.asynccontextmanager
async def running(writer: Writer) -> AsyncGenerator[None]:
    task = asyncio.create_task(writer.run())
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_catches_up_in_order() -> None:
    """While the sink is away records wait; when it is back all are written, in order, once."""
    sink = Troubled()
    writer = Writer("test", sink, Clock())
    sink.broken = True
    async with running(writer):
        for number in range(500):
            put(writer, number)

        async def degraded() -> bool:
            return writer.state.problem == "the disk is full"

        await eventually(degraded)
        assert writer.state.queued == 500
        sink.broken = False

        async def done() -> bool:
            return len(sink.written) == 500

        await eventually(done)
    assert sink.times() == list(range(500))
    assert (writer.state.problem, writer.state.queued, writer.state.dropped) == ("", 0, 0)


async def test_is_bounded() -> None:
    """A queue that is full drops the oldest and counts them."""
    sink = Troubled()
    writer = Writer("test", sink, Clock(), max_queued=10)
    for number in range(25):
        put(writer, number)
    assert (writer.state.queued, writer.state.dropped) == (10, 15)
    assert await writer.flush(1.0) == 0
    assert sink.times() == list(range(15, 25))


async def test_the_newest_of_a_key_is_written_once() -> None:
    """A session that changes while it waits is written as it is in the end."""
    sink = Troubled()
    writer = Writer("test", sink, Clock())
    for number in range(5):
        writer.put("session", lambda number=number: record(number))
    await writer.flush(1.0)
    assert sink.times() == [4]


async def test_flush_ends_in_time() -> None:
    """A sink that hangs does not hold up the end; what is lost is counted."""
    sink = Troubled()
    sink.hangs = True
    writer = Writer("test", sink, Clock())
    put(writer, 1)
    async with asyncio.timeout(2):
        assert await writer.flush(0.1) == 1


async def test_ends_though_the_sink_swallows_the_cancellation() -> None:
    """A client of a store that takes the cancellation for its own does not keep the writer alive."""
    began = asyncio.Event()

    class Swallowing:
        async def write(self, records: Sequence[AnyRecord], now_s: float) -> None:
            began.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    writer = Writer("test", Swallowing(), Clock())
    put(writer, 1)
    async with asyncio.timeout(2), running(writer):
        await began.wait()


async def test_json_lines(tmp_path: Path) -> None:
    """Each record is a line; a path that cannot be written is an unavailable store that names it."""
    path = tmp_path / "record.jsonl"
    sink = JsonLines(path)
    await sink.write([record(1), record(2)], 0.0)
    await sink.write([record(3)], 0.0)
    lines = path.read_text().splitlines()
    assert [LatencyRecord.model_validate_json(x).time_s for x in lines] == [1, 2, 3]
    with pytest.raises(StoreUnavailableError, match="/dev/full: No space left"):
        await JsonLines(Path("/dev/full")).write([record(1)], 0.0)

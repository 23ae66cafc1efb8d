"""One contract for every store: the fake and a real redis-server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from steerline_appstation.store.base import Store
from steerline_appstation.store.memory import MemoryStore
from steerline_appstation.store.records import (
    AnyRecord,
    DecisionRecord,
    FlowRecord,
    LatencyRecord,
    LineRecord,
    Sample,
    SessionRecord,
)
from steerline_appstation.store.redis_child import PrivateRedis
from steerline_appstation.store.redis_store import RedisStore

NOW_S = 1_800_000_000.0
RETENTION_S = 3600.0


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(RETENTION_S)
        return
    child = PrivateRedis(tmp_path / "redis", 64)
    async with child.running():
        store = RedisStore(child.url, RETENTION_S)
        yield store
        await store.close()


def session(name: str, last_seen_s: float = NOW_S, **changes: object) -> SessionRecord:
    values: dict[str, object] = {
        "session_id": name,
        "address": "198.18.1.11",
        "live": True,
        "first_seen_s": last_seen_s,
        "last_seen_s": last_seen_s,
        "report_count": 1,
        "player_state": "PLAYING",
        "buffer_length_ms": 1000,
        "critical": False,
        **changes,
    }
    return SessionRecord.model_validate(values)


def sample(name: str, number: int, time_s: float) -> Sample:
    return Sample(
        session_id=name,
        time_s=time_s,
        sequence_number=number,
        timestamp_ms=number,
        cause="PERIODIC",
        player_state="PLAYING",
        buffer_length_ms=1000,
        encoded_bitrate_kbps=2000,
    )


def decision(number: int, session_id: str, time_s: float) -> DecisionRecord:
    return DecisionRecord(
        number=number,
        decision="STEER",
        time_s=time_s,
        site="home",
        session_id=session_id,
        reason="why",
        strategy="buffer-threshold",
    )


def line(time_s: float, down_bps: int = 0) -> LineRecord:
    return LineRecord(
        time_s=time_s,
        site="home",
        line="line1",
        capacity_bps=10_000_000,
        status="UP",
        down_bps=down_bps,
        up_bps=0,
        flow_count=0,
    )


async def test_empty_store_has_nothing(store: Store) -> None:
    """Nothing stored is nothing found, and no error."""
    assert await store.sessions(0, 10) == []
    assert await store.session("s1") is None
    assert await store.series("s1", 0, 10) == []
    assert await store.decisions(None, 0, 10) == []
    assert await store.line_series("home", "line1", 0, 10) == []
    assert await store.latencies(0, 10) == []
    await store.write([], NOW_S)


async def test_sessions_newest_first(store: Store) -> None:
    """The last word on each session, the most recent first, bounded by since and limit."""
    await store.write([session(f"s{i}", NOW_S - i) for i in range(5)], NOW_S)
    await store.write([session("s3", NOW_S + 1, critical=True)], NOW_S + 1)
    assert [s.session_id for s in await store.sessions(0, 3)] == ["s3", "s0", "s1"]
    assert [s.session_id for s in await store.sessions(NOW_S - 1, 10)] == ["s3", "s0", "s1"]
    found = await store.session("s3")
    assert found is not None
    assert found.critical


async def test_series_in_order_of_time(store: Store) -> None:
    """The newest samples of one session in order of time; a late one finds its place."""
    await store.write([sample("a", n, NOW_S + n) for n in (1, 2, 5)], NOW_S)
    await store.write([sample("a", 3, NOW_S + 3), sample("b", 4, NOW_S + 4)], NOW_S)
    assert [s.sequence_number for s in await store.series("a", 0, 10)] == [1, 2, 3, 5]
    assert [s.sequence_number for s in await store.series("a", 0, 2)] == [3, 5]
    assert [s.sequence_number for s in await store.series("a", NOW_S + 2, 10)] == [2, 3, 5]


async def test_decisions_newest_first_and_by_session(store: Store) -> None:
    """All decisions, or those of one session; two at one instant are two."""
    await store.write(
        [
            decision(1, "a", NOW_S),
            decision(2, "a", NOW_S),
            decision(3, "", NOW_S + 1),
            decision(4, "b", NOW_S + 2),
        ],
        NOW_S,
    )
    assert [d.number for d in await store.decisions(None, NOW_S + 1, 10)] == [4, 3]
    assert sorted(d.number for d in await store.decisions("a", 0, 10)) == [1, 2]
    assert [d.number for d in await store.decisions(None, 0, 1)] == [4]


async def test_lines_and_latencies(store: Store) -> None:
    """Series of lines and of latencies in order of time."""
    await store.write([line(NOW_S, 1), line(NOW_S + 1, 2)], NOW_S)
    await store.write(
        [LatencyRecord(time_s=NOW_S, session_id="a", latency_ms=1.5, moved_flow_count=2)], NOW_S
    )
    assert [x.down_bps for x in await store.line_series("home", "line1", 0, 10)] == [1, 2]
    assert await store.line_series("home", "line2", 0, 10) == []
    assert [x.latency_ms for x in await store.latencies(0, 10)] == [1.5]


async def test_writing_twice_is_writing_once(store: Store) -> None:
    """After a failure nobody knows what was written, so everything is written again."""
    records: list[AnyRecord] = [session("a"), sample("a", 1, NOW_S), decision(1, "a", NOW_S), line(NOW_S)]
    await store.write(records, NOW_S)
    await store.write(records, NOW_S)
    assert len(await store.sessions(0, 10)) == 1
    assert len(await store.series("a", 0, 10)) == 1
    assert len(await store.decisions(None, 0, 10)) == 1
    assert len(await store.line_series("home", "line1", 0, 10)) == 1


async def test_retention(store: Store) -> None:
    """What is older than the retention is gone with the next write of its kind."""
    old_s = NOW_S - RETENTION_S - 1
    await store.write([session("old", old_s), sample("a", 1, old_s), decision(1, "", old_s)], old_s)
    assert await store.session("old") is not None
    await store.write([session("new"), sample("a", 2, NOW_S), decision(2, "", NOW_S)], NOW_S)
    assert [s.session_id for s in await store.sessions(0, 10)] == ["new"]
    assert [s.sequence_number for s in await store.series("a", 0, 10)] == [2]
    assert [d.number for d in await store.decisions(None, 0, 10)] == [2]


async def test_many_at_once(store: Store) -> None:
    """A thousand records in one write, and readers beside it."""
    async with asyncio.TaskGroup() as group:
        group.create_task(store.write([sample("a", n, NOW_S + n / 1000) for n in range(1000)], NOW_S))
        for _ in range(10):
            group.create_task(store.series("a", 0, 10))
    assert len(await store.series("a", 0, 1000)) == 1000


texts = st.text(max_size=20)
numbers = st.floats(0, 4e9)
flow_records = st.builds(FlowRecord, protocol=st.integers(0, 255), client_address=texts, server_address=texts)


@given(
    st.one_of(
        st.builds(
            SessionRecord,
            first_seen_s=numbers,
            last_seen_s=numbers,
            flows=st.lists(flow_records, max_size=3),
            time_to_empty_ms=st.none() | st.integers(0, 10**9),
        ),
        st.builds(Sample, time_s=numbers, critical=st.none() | st.booleans()),
        st.builds(DecisionRecord, time_s=numbers, flow=st.none() | flow_records),
        st.builds(LineRecord, time_s=numbers),
        st.builds(LatencyRecord, time_s=numbers, latency_ms=numbers),
    )
)
def test_records_survive_json(record: AnyRecord) -> None:
    """decode(encode(x)) == x"""
    adapter: TypeAdapter[AnyRecord] = TypeAdapter(AnyRecord)
    assert adapter.validate_json(record.model_dump_json()) == record

"""The store in Redis.

Everything with a time is a sorted set scored by that time: writing twice is as writing once, late
(replayed) samples find their place, and retention is one command.

    steerline:sessions            sorted set   session id by last report
    steerline:session:<id>        string       SessionRecord
    steerline:series:<id>         sorted set   Sample by time
    steerline:decisions[:<id>]    sorted set   DecisionRecord by time
    steerline:line:<site>/<line>  sorted set   LineRecord by time
    steerline:latency             sorted set   LatencyRecord by time
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Final, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from steerline_appstation.errors import StoreUnavailableError
from steerline_appstation.store.records import (
    AnyRecord,
    DecisionRecord,
    LatencyRecord,
    LineRecord,
    Record,
    Sample,
    SessionRecord,
)

PREFIX: Final = "steerline:"
TIMEOUT_S: Final = 2.0
# No sorted set grows beyond this, whatever the retention.
MAX_MEMBERS: Final = 200_000

R = TypeVar("R", bound=Record)
T = TypeVar("T")


class RedisStore:
    """Stores through one connection pool. `url`: redis://, rediss:// or unix://."""

    def __init__(self, url: str, retention_s: float) -> None:
        self._retention_s = retention_s
        # One try: the writer repeats, and a reader shall rather hear of it than wait.
        self._redis: Any = cast(Any, Redis).from_url(
            url,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            max_connections=16,
        )

    async def write(self, records: Sequence[AnyRecord], now_s: float) -> None:
        """See `Sink.write`."""
        pipe = self._redis.pipeline(transaction=False)
        cutoff_s = now_s - self._retention_s
        expire_s = max(1, int(self._retention_s) + 60)
        touched: set[str] = set()
        for record in records:
            text = record.model_dump_json()
            for key in _sorted_set_keys(record):
                pipe.zadd(key, {text: record.time_s})  # type: ignore[union-attr]
                touched.add(key)
            if isinstance(record, SessionRecord):
                pipe.set(f"{PREFIX}session:{record.session_id}", text, ex=expire_s)
                pipe.zadd(f"{PREFIX}sessions", {record.session_id: record.last_seen_s})
                touched.add(f"{PREFIX}sessions")
        for key in touched:
            pipe.zremrangebyscore(key, "-inf", f"({cutoff_s}")
            pipe.zremrangebyrank(key, 0, -MAX_MEMBERS - 1)
            pipe.expire(key, expire_s)
        await _answer(pipe.execute())

    async def sessions(self, since_s: float, limit: int) -> list[SessionRecord]:
        """See `Store.sessions`."""
        names = await self._newest(f"{PREFIX}sessions", since_s, limit)
        if not names:
            return []
        texts = await _answer(self._redis.mget([f"{PREFIX}session:{n.decode()}" for n in names]))
        found = [SessionRecord.model_validate_json(t) for t in texts if t is not None]
        return sorted(found, key=lambda s: (-s.last_seen_s, s.session_id))

    async def session(self, session_id: str) -> SessionRecord | None:
        """See `Store.session`."""
        text = await _answer(self._redis.get(f"{PREFIX}session:{session_id}"))
        return None if text is None else SessionRecord.model_validate_json(text)

    async def series(self, session_id: str, since_s: float, limit: int) -> list[Sample]:
        """See `Store.series`."""
        return await self._in_order(Sample, f"{PREFIX}series:{session_id}", since_s, limit)

    async def decisions(self, session_id: str | None, since_s: float, limit: int) -> list[DecisionRecord]:
        """See `Store.decisions`."""
        key = f"{PREFIX}decisions" if session_id is None else f"{PREFIX}decisions:{session_id}"
        return (await self._in_order(DecisionRecord, key, since_s, limit))[::-1]

    async def line_series(self, site: str, line: str, since_s: float, limit: int) -> list[LineRecord]:
        """See `Store.line_series`."""
        return await self._in_order(LineRecord, f"{PREFIX}line:{site}/{line}", since_s, limit)

    async def latencies(self, since_s: float, limit: int) -> list[LatencyRecord]:
        """See `Store.latencies`."""
        return await self._in_order(LatencyRecord, f"{PREFIX}latency", since_s, limit)

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._redis.aclose()

    async def _newest(self, key: str, since_s: float, limit: int) -> list[bytes]:
        """Members at or after `since_s`, newest first."""
        return await _answer(self._redis.zrevrangebyscore(key, "+inf", since_s, start=0, num=limit))

    async def _in_order(self, model: type[R], key: str, since_s: float, limit: int) -> list[R]:
        members = await self._newest(key, since_s, limit)
        return [model.model_validate_json(m) for m in reversed(members)]


def _sorted_set_keys(record: AnyRecord) -> tuple[str, ...]:
    match record:
        case Sample():
            return (f"{PREFIX}series:{record.session_id}",)
        case DecisionRecord():
            everyone = f"{PREFIX}decisions"
            return (everyone, f"{everyone}:{record.session_id}") if record.session_id else (everyone,)
        case LineRecord():
            return (f"{PREFIX}line:{record.site}/{record.line}",)
        case LatencyRecord():
            return (f"{PREFIX}latency",)
        case SessionRecord():
            return ()


async def _answer(asked: Awaitable[T]) -> T:
    try:
        return await asked
    except (RedisError, OSError, TimeoutError) as error:
        raise StoreUnavailableError(f"Redis: {error or type(error).__name__}") from error

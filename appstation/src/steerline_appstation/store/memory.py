"""The store without Redis: same promises, gone with the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from steerline_appstation.store.records import (
    AnyRecord,
    DecisionRecord,
    LatencyRecord,
    LineRecord,
    Sample,
    SessionRecord,
)

R = TypeVar("R", Sample, DecisionRecord, LineRecord, LatencyRecord)


class MemoryStore:
    """Keeps everything in dictionaries. For tests, and for looking at the core without Redis."""

    def __init__(self, retention_s: float) -> None:
        self._retention_s = retention_s
        self._sessions: dict[str, SessionRecord] = {}
        self._samples: dict[str, Sample] = {}
        self._decisions: dict[str, DecisionRecord] = {}
        self._lines: dict[str, LineRecord] = {}
        self._latencies: dict[str, LatencyRecord] = {}

    async def write(self, records: Sequence[AnyRecord], now_s: float) -> None:
        """See `Sink.write`."""
        for record in records:
            match record:
                case SessionRecord():
                    self._sessions[record.session_id] = record
                case Sample():
                    _add(self._samples, record)
                case DecisionRecord():
                    _add(self._decisions, record)
                case LineRecord():
                    _add(self._lines, record)
                case LatencyRecord():
                    _add(self._latencies, record)
        self._retain(now_s - self._retention_s)

    async def sessions(self, since_s: float, limit: int) -> list[SessionRecord]:
        """See `Store.sessions`."""
        found = [s for s in self._sessions.values() if s.last_seen_s >= since_s]
        return sorted(found, key=lambda s: (-s.last_seen_s, s.session_id))[:limit]

    async def session(self, session_id: str) -> SessionRecord | None:
        """See `Store.session`."""
        return self._sessions.get(session_id)

    async def series(self, session_id: str, since_s: float, limit: int) -> list[Sample]:
        """See `Store.series`."""
        return _newest(self._samples, since_s, limit, lambda r: r.session_id == session_id)

    async def decisions(self, session_id: str | None, since_s: float, limit: int) -> list[DecisionRecord]:
        """See `Store.decisions`."""
        wanted = _newest(
            self._decisions, since_s, limit, lambda r: session_id is None or r.session_id == session_id
        )
        return wanted[::-1]

    async def line_series(self, site: str, line: str, since_s: float, limit: int) -> list[LineRecord]:
        """See `Store.line_series`."""
        return _newest(self._lines, since_s, limit, lambda r: (r.site, r.line) == (site, line))

    async def latencies(self, since_s: float, limit: int) -> list[LatencyRecord]:
        """See `Store.latencies`."""
        return _newest(self._latencies, since_s, limit, lambda _: True)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _retain(self, cutoff_s: float) -> None:
        self._sessions = {k: s for k, s in self._sessions.items() if s.last_seen_s >= cutoff_s}
        self._samples = _since(self._samples, cutoff_s)
        self._decisions = _since(self._decisions, cutoff_s)
        self._lines = _since(self._lines, cutoff_s)
        self._latencies = _since(self._latencies, cutoff_s)


def _add(records: dict[str, R], record: R) -> None:
    records[record.model_dump_json()] = record


def _since(records: dict[str, R], cutoff_s: float) -> dict[str, R]:
    return {text: r for text, r in records.items() if r.time_s >= cutoff_s}


def _newest(records: dict[str, R], since_s: float, limit: int, wanted: Callable[[R], bool]) -> list[R]:
    found = sorted((r for r in records.values() if r.time_s >= since_s and wanted(r)), key=lambda r: r.time_s)
    return found[-limit:]

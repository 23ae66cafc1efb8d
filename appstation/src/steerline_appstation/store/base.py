"""The seam of the store. The contract test runs against each implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steerline_appstation.store.records import (
    AnyRecord,
    DecisionRecord,
    LatencyRecord,
    LineRecord,
    Sample,
    SessionRecord,
)


class Sink(Protocol):
    """Takes records. Writing a record twice is as writing it once."""

    async def write(self, records: Sequence[AnyRecord], now_s: float) -> None:
        """Stores all of them, and forgets what is older than the retention at `now_s`.

        Raises StoreUnavailableError; what was written then is not known, so write it again.
        """
        ...


class Store(Sink, Protocol):
    """Keeps records for the retention time. Every read raises StoreUnavailableError."""

    async def sessions(self, since_s: float, limit: int) -> list[SessionRecord]:
        """Sessions with a report at or after `since_s`, the most recent first."""
        ...

    async def session(self, session_id: str) -> SessionRecord | None:
        """One session, or None."""
        ...

    async def series(self, session_id: str, since_s: float, limit: int) -> list[Sample]:
        """The newest `limit` samples of a session at or after `since_s`, in order of time."""
        ...

    async def decisions(self, session_id: str | None, since_s: float, limit: int) -> list[DecisionRecord]:
        """The newest `limit` decisions (of one session) at or after `since_s`, newest first."""
        ...

    async def line_series(self, site: str, line: str, since_s: float, limit: int) -> list[LineRecord]:
        """The newest `limit` states of a line at or after `since_s`, in order of time."""
        ...

    async def latencies(self, since_s: float, limit: int) -> list[LatencyRecord]:
        """The newest `limit` latency samples at or after `since_s`, in order of time."""
        ...

    async def close(self) -> None:
        """Lets go of connections."""
        ...

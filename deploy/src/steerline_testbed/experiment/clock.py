"""The one place of the experiments that reads clocks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime


def unix_s() -> float:
    """Wall time in seconds since 1970."""
    return time.time()  # noqa: TID251 - this is the clock


def monotonic_s() -> float:
    """CLOCK_MONOTONIC in seconds: the same in every namespace and process of the machine."""
    return time.monotonic()


def utc_text() -> str:
    """Now, as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Zero:
    """Time zero of a run on both clocks."""

    unix_s: float
    monotonic_s: float

    @classmethod
    def now(cls) -> Zero:
        """Time zero is now."""
        return cls(unix_s(), monotonic_s())

    def relative(self, stamp_s: float) -> float:
        """Seconds since time zero of a stamp of either clock.

        Records carry Unix time or CLOCK_MONOTONIC. A machine that has been up for 30 years would be
        needed to mistake one for the other.
        """
        return stamp_s - (self.unix_s if stamp_s > 1e9 else self.monotonic_s)

"""The only place that reads clocks."""

from __future__ import annotations

import time


class Clock:
    """The machine's clocks. Tests pass their own."""

    def unix_s(self) -> float:
        """Seconds since the epoch, for people and records."""
        return time.time()  # noqa: TID251

    def monotonic_ns(self) -> int:
        """Nanoseconds of CLOCK_MONOTONIC, for durations and deadlines."""
        return time.monotonic_ns()

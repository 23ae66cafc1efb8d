"""The one place of the controller that reads clocks."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the epoch that never run backwards: the wall clock at the start, then CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()  # noqa: TID251 - this is clock.py

    def now(self) -> float:
        """Seconds since the epoch, with fraction."""
        return self._offset_s + time.monotonic()


def monotonic_ns() -> int:
    """Nanoseconds of CLOCK_MONOTONIC."""
    return time.monotonic_ns()

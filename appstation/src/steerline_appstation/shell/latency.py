"""From a report's arrival to the switches' confirmation of what it led to."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# The newest samples, for the percentiles.
KEPT: Final = 20_000
# What is longer cannot be one enforcement: the clocks differ (a controller on another machine).
MOST_MS: Final = 60_000.0


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of the samples kept, ms; None while there are none. `max_ms` is of all since the start."""

    n: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Latency:
    """Samples of one latency in ms."""

    def __init__(self, kept: int = KEPT) -> None:
        self._samples: deque[float] = deque(maxlen=kept)
        self._max_ms: float | None = None
        self._n = 0

    def add(self, latency_ms: float) -> bool:
        """Takes a sample; False where it makes no sense."""
        if not 0 <= latency_ms <= MOST_MS:
            return False
        self._samples.append(latency_ms)
        self._n += 1
        self._max_ms = latency_ms if self._max_ms is None else max(self._max_ms, latency_ms)
        return True

    def percentiles(self) -> Percentiles:
        """n, p50, p99 and max as of now."""
        ordered = sorted(self._samples)
        return Percentiles(self._n, _nearest_rank(ordered, 50), _nearest_rank(ordered, 99), self._max_ms)


def _nearest_rank(ordered: Sequence[float], percent: int) -> float | None:
    """The least sample that at least `percent` of the samples do not exceed."""
    if not ordered:
        return None
    return ordered[-(-len(ordered) * percent // 100) - 1]

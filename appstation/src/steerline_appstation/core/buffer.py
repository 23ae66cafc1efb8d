"""What the recent buffer levels say: how fast it falls, and what the player aims at."""

from __future__ import annotations

from collections import deque
from typing import Final

# Time to empty is read from the trend of this long, s of the agent's clock.
TREND_WINDOW_S: Final = 5.0
# Shorter histories have no trend.
TREND_LEAST_SPAN_S: Final = 0.5
# Slower falls than this (media seconds per second) are noise: segments arrive in steps.
LEAST_FALL: Final = 0.02
# A change that playing cannot explain (media seconds beyond the elapsed time): a seek.
JUMP_S: Final = 1.5

# A level that stays within this band for this long is held on purpose ...
HOLD_S: Final = 10.0
HOLD_BAND_S: Final = 2.5
HOLD_BAND_SHARE: Final = 0.15
# ... if the network could have given more (measured throughput over the rate fetched), ...
SPARE_THROUGHPUT: Final = 1.2
# ... or, where throughput is not told, if the level is high enough not to be starvation.
LEAST_HELD_UNTOLD_S: Final = 8.0


class Trend:
    """Least-squares slope of the buffer over the last seconds while playing."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=64)

    def reset(self) -> None:
        """Forgets: what was before a seek or a pause says nothing about now."""
        self._samples.clear()

    def add(self, time_s: float, buffer_s: float, playback_rate: float) -> None:
        """Takes one level, at the agent's time. Times do not fall."""
        if self._samples:
            last_time_s, last_buffer_s = self._samples[-1]
            drained_s = last_buffer_s - (time_s - last_time_s) * max(1.0, playback_rate)
            if buffer_s < drained_s - JUMP_S:
                self.reset()
        self._samples.append((time_s, buffer_s))
        while time_s - self._samples[0][0] > TREND_WINDOW_S:
            self._samples.popleft()

    def slope(self) -> float | None:
        """Media seconds per second; None while the history is too short."""
        samples = self._samples
        if len(samples) < 2 or samples[-1][0] - samples[0][0] < TREND_LEAST_SPAN_S:
            return None
        count = len(samples)
        mean_t = sum(t for t, _ in samples) / count
        mean_b = sum(b for _, b in samples) / count
        spread = sum((t - mean_t) ** 2 for t, _ in samples)
        return sum((t - mean_t) * (b - mean_b) for t, b in samples) / spread

    def time_to_empty_s(self, buffer_s: float) -> float | None:
        """When the buffer is empty at the rate it has been falling; None while it does not fall."""
        slope = self.slope()
        if slope is None or slope > -LEAST_FALL:
            return None
        return buffer_s / -slope


class LearntTarget:
    """The largest buffer that this player was seen to hold, for players that do not tell theirs.

    dash.js holds 30 s by default, Shaka 10 s: with the full bounds they would be critical for ever.
    A level that only a scarce network holds down must not pass for a goal, see the constants.
    """

    def __init__(self) -> None:
        self.target_s: float | None = None
        self._since_s = 0.0
        self._least_s = 0.0
        self._most_s = -1.0

    def reset(self) -> None:
        """Begins a new level (seek, pause, stall)."""
        self._most_s = -1.0

    def add(self, time_s: float, buffer_s: float, spare: bool | None) -> None:
        """Takes one level while playing. `spare`: could the network give more; None if not told."""
        if spare is False:
            self.reset()
            return
        least, most = min(self._least_s, buffer_s), max(self._most_s, buffer_s)
        if self._most_s < 0 or most - least > max(HOLD_BAND_S, HOLD_BAND_SHARE * most):
            self._since_s, self._least_s, self._most_s = time_s, buffer_s, buffer_s
            return
        self._least_s, self._most_s = least, most
        if time_s - self._since_s < HOLD_S:
            return
        if spare is None and least < LEAST_HELD_UNTOLD_S:
            return
        self.target_s = max(self.target_s or 0.0, most)

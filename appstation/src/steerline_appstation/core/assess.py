"""From what is known of a session to bounds and rates: plain arithmetic."""

from __future__ import annotations

from steerline_appstation.core.policy import (
    DEFAULT_TOP_KBPS,
    HIGH_SHARE_OF_TARGET,
    LOW_SHARE_OF_TARGET,
    OVERHEAD,
    Policy,
)
from steerline_contract.limits import MAX_BPS


def bounds_ms(policy: Policy, target_s: float | None) -> tuple[int, int]:
    """(low, high) in ms of buffered playtime, for a player that aims at `target_s` (None: unknown)."""
    low_s, high_s = policy.low_s, policy.high_s
    if target_s is not None:
        low_s = min(low_s, LOW_SHARE_OF_TARGET * target_s)
        high_s = min(high_s, HIGH_SHARE_OF_TARGET * target_s)
    return round(low_s * 1000), round(high_s * 1000)


def need_bps(top_kbps: int, buffer_ms: int, high_ms: int, refill_s: float, playback_rate: float = 1.0) -> int:
    """The top rate, plus what refills the buffer to `high` in `refill_s`. Overhead included.

    Played faster than life, a medium is consumed faster; paused or slow, it still has to be refilled.
    """
    top_bps = (top_kbps or DEFAULT_TOP_KBPS) * 1000 * OVERHEAD
    missing_s = max(0, high_ms - buffer_ms) / 1000
    return min(MAX_BPS, round(top_bps * (max(1.0, playback_rate) + missing_s / refill_s)))


def play_bps(encoded_kbps: int, top_kbps: int, playback_rate: float = 1.0) -> int:
    """What the session consumes at the rate it plays at; its top rate where it does not tell."""
    kbps = encoded_kbps or top_kbps or DEFAULT_TOP_KBPS
    return min(MAX_BPS, round(kbps * 1000 * OVERHEAD * max(1.0, playback_rate)))

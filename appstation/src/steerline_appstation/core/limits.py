"""How much one address may say."""

from __future__ import annotations

from typing import Final

# A report is well below this; a message that is larger counts as so many more.
BYTES_OF_A_REPORT: Final = 4096


def reports_in(size_bytes: int) -> int:
    """As how many reports a message of this size counts."""
    return 1 + size_bytes // BYTES_OF_A_REPORT


class ReportBudget:
    """A token bucket: `per_s` reports a second, and as many as two seconds' worth at once."""

    def __init__(self, per_s: int, now_s: float) -> None:
        self._per_s = per_s
        self._most = 2.0 * per_s
        self._left = self._most
        self._filled_s = now_s

    def take(self, now_s: float, count: int = 1) -> bool:
        """Whether so many more reports are within the budget; one message may overdraw it."""
        self._left = min(self._most, self._left + (now_s - self._filled_s) * self._per_s)
        self._filled_s = now_s
        if self._left < 1.0:
            return False
        self._left -= count
        return True

    def idle(self, now_s: float) -> bool:
        """Whether it is full again, so that forgetting it changes nothing."""
        return self._left + (now_s - self._filled_s) * self._per_s >= self._most
